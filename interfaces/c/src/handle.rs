//! Handles: counted references that C holds as pointers.

use crate::status::{DTC_ERROR_HANDLE, Failure, Outcome};
use std::sync::Arc;

/// Tells handles apart, so that one of another kind is refused. The first field of every handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Tag(u64);

impl Tag {
    pub(crate) const ENGINE: Tag = Tag(0x6474_635f_656e_6769);
    pub(crate) const TABLED: Tag = Tag(0x6474_635f_7461_626c);
    pub(crate) const TYPE: Tag = Tag(0x6474_635f_7479_7065);
    pub(crate) const REQUEST: Tag = Tag(0x6474_635f_7265_7175);
    pub(crate) const MATCHER: Tag = Tag(0x6474_635f_6d61_7463);
    pub(crate) const BATCH: Tag = Tag(0x6474_635f_6261_7463);
    pub(crate) const MEMORY: Tag = Tag(0x6474_635f_6d65_6d6f);
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
        // SAFETY: `self.tag` is a field of the value that is being dropped, so it is aligned and writable. The write is
        // volatile, since the compiler sees no read after it.
        unsafe { std::ptr::write_volatile(&mut self.tag, Tag::GONE) };
    }
}

/// What lies behind a handle, if it is one of its kind.
///
/// # Safety
///
/// `handle` is null, misaligned, or a live handle of any kind.
#[inline(always)]
unsafe fn find<T: Handle>(handle: *const T) -> Option<*const Tagged<T::Inside>> {
    let tagged = handle.cast::<Tagged<T::Inside>>();
    if tagged.is_null() || !tagged.is_aligned() {
        return None;
    }
    // SAFETY: the handle is aligned and not null (checked above), so it is a live handle of some kind (contract of this function),
    // and each kind begins with a tag (`repr(C)`).
    let tag = unsafe { tagged.cast::<Tag>().read() };
    (tag == T::TAG).then_some(tagged)
}

/// Why [`find`] finds nothing.
#[cold]
fn wrong<T: Handle>(handle: *const T) -> Failure {
    let found = match handle.cast::<Tagged<T::Inside>>() {
        handle if handle.is_null() => "a null pointer",
        handle if !handle.is_aligned() => "an address that no handle has",
        _ => "another handle, or one that was released",
    };
    Failure::new(DTC_ERROR_HANDLE, format!("{0}: expected a {0}, found {found}", T::NAME))
}

/// # Safety
///
/// As for [`find`].
#[inline(always)]
unsafe fn check<T: Handle>(handle: *const T) -> Outcome<*const Tagged<T::Inside>> {
    // SAFETY: `find` asks what this function asks.
    unsafe { find(handle) }.ok_or_else(|| wrong(handle))
}

/// What a handle leads to; `None` where [`borrow`] has a failure.
///
/// # Safety
///
/// As for [`borrow`].
#[inline(always)]
pub(crate) unsafe fn known<'a, T: Handle>(handle: *const T) -> Option<&'a T::Inside> {
    // SAFETY: the tag says that this is a `Tagged<T::Inside>`, and the handle is live, so its reference keeps the value (contract of
    // this function, which is that of `find`).
    unsafe { find(handle).map(|tagged| &(*tagged).inside) }
}

/// What a handle leads to.
///
/// # Safety
///
/// `handle` is null, misaligned, or a live handle of any kind.
#[inline(always)]
pub(crate) unsafe fn borrow<'a, T: Handle>(handle: *const T) -> Outcome<&'a T::Inside> {
    // SAFETY: `known` asks what this function asks.
    unsafe { known(handle) }.ok_or_else(|| wrong(handle))
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
    // SAFETY: the tag says that `share` made it from an `Arc` of this type, and the handle is live, so the count is at
    // least 1 (contract of this function, which is that of `check`).
    unsafe { Arc::increment_strong_count(check(handle)?) };
    Ok(())
}

/// Counts one reference less, and frees what it leads to with the last.
///
/// # Safety
///
/// As for [`borrow`]; the reference is not used again.
pub(crate) unsafe fn release<T: Handle>(handle: *const T) -> Outcome {
    // SAFETY: the tag says that `share` made it from an `Arc` of this type, and the caller gives up one reference,
    // which it does not use again (contract of this function, which is that of `check`).
    unsafe { Arc::decrement_strong_count(check(handle)?) };
    Ok(())
}
