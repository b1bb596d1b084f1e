//! The requests with which staged messages are under way, by the value of their handle.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Handles are added to lists by their hash. A power of two.
const LISTS: usize = 4096;

/// What is under way with a request: `struct dtc_mpi_tracked`, the first member of a structure that says more.
#[repr(C)]
pub struct Tracked {
    next: *mut Tracked,
    /// The value of the handle.
    request: usize,
    /// Whether the handle stays valid when the request ends.
    persistent: c_char,
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

/// How many there are; as long as there is none, no request needs to be looked up.
#[unsafe(no_mangle)]
pub static dtc_mpi_tracked_count: AtomicI64 = AtomicI64::new(0);

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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_track(tracked: *mut Tracked, request: usize) {
    List::of(request).with(|first| {
        // SAFETY: the caller's, in no list yet; the list is this thread's.
        unsafe {
            (*tracked).request = request;
            (*tracked).next = *first;
            *first = tracked;
        }
    });
    dtc_mpi_tracked_count.fetch_add(1, Ordering::Release);
}

fn look_for(request: usize, take: bool) -> *mut Tracked {
    let (found, taken) = List::of(request).with(|first| {
        // SAFETY: the list is this thread's.
        unsafe {
            let place = find(first, |tracked| (*tracked).request == request);
            let found = *place;
            let taken = take && !found.is_null() && (*found).persistent == 0;
            if taken {
                *place = (*found).next;
            }
            (found, taken)
        }
    });
    if taken {
        dtc_mpi_tracked_count.fetch_sub(1, Ordering::Release);
    }
    found
}

/// What is under way with a request; null if nothing is.
#[unsafe(no_mangle)]
pub extern "C" fn dtc_mpi_find_tracked(request: usize) -> *mut Tracked {
    look_for(request, false)
}

/// The same, and removes it unless it is persistent: the MPI uses a handle again, in any thread, as soon as its request has ended.
#[unsafe(no_mangle)]
pub extern "C" fn dtc_mpi_take_tracked(request: usize) -> *mut Tracked {
    look_for(request, true)
}

/// Removes what was added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_untrack(tracked: *mut Tracked) {
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
        dtc_mpi_tracked_count.fetch_sub(1, Ordering::Release);
    }
}
