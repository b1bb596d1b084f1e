//! The requests with which staged messages are under way, by the value of their handle.

use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Handles are added to lists by their hash. A power of two.
const LISTS: usize = 4096;

/// What is under way with a request: the first member of a structure that says more.
#[repr(C)]
pub struct Tracked {
    next: *mut Tracked,
    /// The value of the handle.
    request: usize,
    /// Whether the handle stays valid when the request ends.
    persistent: bool,
}

impl Tracked {
    /// Of a request that is not added yet.
    pub fn new(persistent: bool) -> Tracked {
        Tracked { next: null_mut(), request: 0, persistent }
    }

    /// The value of the handle that it was added with.
    pub fn request(&self) -> usize {
        self.request
    }

    /// Whether the handle stays valid when the request ends.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }
}

/// A list, and whether a thread has it.
struct List {
    busy: AtomicBool,
    first: UnsafeCell<*mut Tracked>,
}

// SAFETY: `first` and what it leads to are used by the thread alone that has set `busy`.
unsafe impl Sync for List {}

static TABLE: [List; LISTS] =
    [const { List { busy: AtomicBool::new(false), first: UnsafeCell::new(null_mut()) } }; LISTS];

static COUNT: AtomicI64 = AtomicI64::new(0);

/// Whether there are any; as long as there is none, no request needs to be looked up.
#[inline]
pub fn any() -> bool {
    COUNT.load(Ordering::Acquire) != 0
}

impl List {
    fn of(request: usize) -> &'static List {
        // The upper 12 bits of a product with 2^64 over the golden ratio.
        let hash = (request as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        &TABLE[hash as usize % LISTS]
    }

    /// Calls `work` with the place of the first.
    fn with<T>(&self, work: impl FnOnce(*mut *mut Tracked) -> T) -> T {
        while self.busy.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        let result = work(self.first.get());
        self.busy.store(false, Ordering::Release);
        result
    }
}

/// The place in a list from `place` on that leads to what `is_it` says, or to null.
///
/// # Safety
///
/// `place` is that of the first of a list that this thread has.
unsafe fn find(mut place: *mut *mut Tracked, is_it: impl Fn(*mut Tracked) -> bool) -> *mut *mut Tracked {
    // SAFETY: places of a list lead to its members, or to null, and stay while this thread has it.
    unsafe {
        while !(*place).is_null() && !is_it(*place) {
            place = &raw mut (**place).next;
        }
    }
    place
}

/// Adds what is under way with a request.
///
/// # Safety
///
/// It is in no list, and lives until it is removed.
pub unsafe fn track(tracked: *mut Tracked, request: usize) {
    List::of(request).with(|first| {
        // SAFETY: the caller's, in no list yet; the list is this thread's.
        unsafe {
            (*tracked).request = request;
            (*tracked).next = *first;
            *first = tracked;
        }
    });
    COUNT.fetch_add(1, Ordering::Release);
}

fn look_for(request: usize, take: bool) -> *mut Tracked {
    let (found, taken) = List::of(request).with(|first| {
        // SAFETY: the list is this thread's.
        unsafe {
            let place = find(first, |tracked| (*tracked).request == request);
            let found = *place;
            let taken = take && !found.is_null() && !(*found).persistent;
            if taken {
                *place = (*found).next;
            }
            (found, taken)
        }
    });
    if taken {
        COUNT.fetch_sub(1, Ordering::Release);
    }
    found
}

/// What is under way with a request; null if nothing is.
pub fn find_tracked(request: usize) -> *mut Tracked {
    look_for(request, false)
}

/// The same, and removes it unless it is persistent: the MPI uses a handle again, in any thread, as soon as its request has ended.
pub fn take_tracked(request: usize) -> *mut Tracked {
    look_for(request, true)
}

/// Removes what was added.
///
/// # Safety
///
/// It lives.
pub unsafe fn untrack(tracked: *mut Tracked) {
    // SAFETY: added by the caller, and not removed meanwhile.
    let request = unsafe { (*tracked).request };
    let removed = List::of(request).with(|first| {
        // SAFETY: the list is this thread's.
        unsafe {
            let place = find(first, |found| found == tracked);
            let found = !(*place).is_null();
            if found {
                *place = (*tracked).next;
            }
            found
        }
    });
    if removed {
        COUNT.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_until_they_are_taken() {
        let (mut once, mut lasts) = (Box::new(Tracked::new(false)), Box::new(Tracked::new(true)));
        let (once, lasts): (*mut Tracked, *mut Tracked) = (&mut *once, &mut *lasts);
        // SAFETY: both live until the end of this test.
        unsafe {
            track(once, 0x5100_0001);
            track(lasts, 0x5100_0002);
            assert!(any());
            assert_eq!(find_tracked(0x5100_0001), once);
            assert_eq!(take_tracked(0x5100_0001), once);
            assert_eq!(take_tracked(0x5100_0001), null_mut());
            assert_eq!(take_tracked(0x5100_0002), lasts);
            assert_eq!(take_tracked(0x5100_0002), lasts);
            untrack(lasts);
            assert_eq!(find_tracked(0x5100_0002), null_mut());
        }
    }
}
