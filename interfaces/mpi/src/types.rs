//! Types of libdtc that are given back when they are dropped.

use dtc::dtc_type;
use std::ptr::NonNull;

/// A reference to a committed type.
pub struct Type(NonNull<dtc_type>);

// SAFETY: types of libdtc may be used, counted and released by any thread (docs/reference/c.md).
unsafe impl Send for Type {}
// SAFETY: as above.
unsafe impl Sync for Type {}

impl Type {
    /// Takes over a reference; none if it is null.
    ///
    /// # Safety
    ///
    /// `reference` is null or a reference of the caller's, who gives it up.
    pub unsafe fn own(reference: *mut dtc_type) -> Option<Type> {
        NonNull::new(reference).map(Type)
    }

    /// The type, for calls of libdtc.
    pub fn get(&self) -> *mut dtc_type {
        self.0.as_ptr()
    }
}

impl Clone for Type {
    fn clone(&self) -> Type {
        // SAFETY: a live type.
        unsafe { dtc::dtc_type_retain(self.get()) };
        Type(self.0)
    }
}

impl Drop for Type {
    fn drop(&mut self) {
        // SAFETY: a reference of this value's.
        unsafe { dtc::dtc_type_release(self.get()) };
    }
}
