//! Handles: counted references that C holds as pointers.

use crate::arguments::check_pointer;
use crate::status::{DTC_ERROR_HANDLE, Failure, Outcome};
use std::sync::Arc;

/// Tells handles apart, so that one of another kind is refused. The first field of every handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Tag(u64);

impl Tag {
    pub(crate) const ENGINE: Tag = Tag(0x6474_635f_656e_6769);
    pub(crate) const TYPE: Tag = Tag(0x6474_635f_7479_7065);
    pub(crate) const REQUEST: Tag = Tag(0x6474_635f_7265_7175);
    pub(crate) const BATCH: Tag = Tag(0x6474_635f_6261_7463);
    /// Of a handle that was released: refused as long as its memory is not used again.
    pub(crate) const GONE: Tag = Tag(0);
}

/// A kind of handle. The type itself is only a name for C.
pub(crate) trait Handle {
    /// What the handle leads to.
    type Inside;
    /// The tag of the kind.
    const TAG: Tag;
    /// The name of the kind in messages.
    const NAME: &'static str;
}

/// What lies behind the pointer of a handle.
#[repr(C)]
struct Tagged<T> {
    tag: Tag,
    inside: T,
}

impl<T> Drop for Tagged<T> {
    fn drop(&mut self) {
        // SAFETY: a place of this type. Volatile, since nobody who is right reads it again.
        unsafe { std::ptr::write_volatile(&mut self.tag, Tag::GONE) };
    }
}

fn check<T: Handle>(handle: *const T) -> Outcome<*const Tagged<T::Inside>> {
    let wrong = |found: &str| Failure::new(DTC_ERROR_HANDLE, format!("{0}: expected a {0}, found {found}", T::NAME));
    if handle.is_null() {
        return Err(wrong("a null pointer"));
    }
    let tagged = handle.cast::<Tagged<T::Inside>>();
    if check_pointer(T::NAME, tagged).is_err() {
        return Err(wrong("an address that no handle has"));
    }
    // SAFETY: every handle begins with a tag. That this is one is the caller's promise.
    let tag = unsafe { tagged.cast::<Tag>().read() };
    if tag == T::TAG { Ok(tagged) } else { Err(wrong("another handle, or one that was released")) }
}

/// What a handle leads to.
///
/// # Safety
///
/// `handle` is null, misaligned, or a live handle of any kind.
pub(crate) unsafe fn borrow<'a, T: Handle>(handle: *const T) -> Outcome<&'a T::Inside> {
    let tagged = check(handle)?;
    // SAFETY: the tag says what it is, and the caller that it lives.
    Ok(unsafe { &(*tagged).inside })
}

/// A new handle, which counts one reference.
pub(crate) fn share<T: Handle>(inside: T::Inside) -> *mut T {
    Arc::into_raw(Arc::new(Tagged { tag: T::TAG, inside })).cast_mut().cast()
}

/// Counts one more reference.
///
/// # Safety
///
/// As for [`borrow`].
pub(crate) unsafe fn retain<T: Handle>(handle: *const T) -> Outcome {
    let tagged = check(handle)?;
    // SAFETY: `share` made it of an `Arc`, which lives.
    unsafe { Arc::increment_strong_count(tagged) };
    Ok(())
}

/// Counts one reference less, and frees what it leads to with the last.
///
/// # Safety
///
/// As for [`borrow`]; the reference is not used again.
pub(crate) unsafe fn release<T: Handle>(handle: *const T) -> Outcome {
    let tagged = check(handle)?;
    // SAFETY: as above, and the caller gives its reference up.
    unsafe { Arc::decrement_strong_count(tagged) };
    Ok(())
}
