//! Whether the process has loaded a library since an earlier look, for the price of one load from memory.
//!
//! The loader counts the libraries that it loads, but passes the count on under its lock only, which takes longer than a short pack. It
//! also keeps them in a list, the one that debuggers read, and puts each new one at the end. So while the library that was last at an
//! earlier look has no successor, none has come. Its entry may be read at any time if it is never unloaded, which is known of the loader
//! itself, last in most processes without plugins, of libraries linked with `-z nodelete`, and of the one that this code is in.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An entry of the loader's list: the public part of `struct link_map` in `<link.h>`.
#[repr(C)]
struct Loaded {
    /// The difference between addresses in memory and in the file.
    base: usize,
    name: *const c_void,
    dynamic: *const Dynamic,
    next: AtomicPtr<Loaded>,
}

/// An entry of a dynamic section: `ElfW(Dyn)` in `<link.h>`.
#[repr(C)]
struct Dynamic {
    tag: isize,
    value: usize,
}

/// The library that was last when the driver was not among them; null if there is none whose entry may be read.
static LAST: AtomicPtr<Loaded> = AtomicPtr::new(std::ptr::null_mut());

/// Whether no library came after the one that [`Last::remember`] was called on. False also where it was called on none.
#[inline]
pub(super) fn is_last() -> bool {
    // Acquire: the library's entry is seen as the loader made it.
    let last = LAST.load(Ordering::Acquire);
    // SAFETY: a pointer that is not null came from `find`: the entry of a library that is never unloaded. The loader writes its
    // successor as one pointer.
    !last.is_null() && unsafe { (*last).next.load(Ordering::Relaxed).is_null() }
}

/// The last library of the process, if it is never unloaded.
pub(super) struct Last(*mut Loaded);

impl Last {
    /// Has [`is_last`] compare with this library from now on.
    pub(super) fn remember(self) {
        LAST.store(self.0, Ordering::Release);
    }
}

/// Looks for the last library. May wait for the loader's locks, as opening a library does.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn find() -> Last {
    /// `RTLD_DL_LINKMAP` in `<dlfcn.h>`.
    const LINK_MAP: c_int = 2;

    /// Runs under the lock that the loader changes its list under: goes on from the entry in `last` to the last one, or to null where
    /// that may be unloaded.
    unsafe extern "C" fn walk(_: *mut libc::dl_phdr_info, _: usize, last: *mut c_void) -> c_int {
        // SAFETY: `last` is the local variable of `find`, and holds the entry of the library that this code is in. While the lock is
        // held, every entry that it leads to is that of a library in memory, and so is its dynamic section.
        unsafe {
            let last = &mut *last.cast::<*mut Loaded>();
            let own = *last;
            let next = |of: *mut Loaded| (*of).next.load(Ordering::Relaxed);
            while !next(*last).is_null() {
                *last = next(*last);
            }
            if *last != own && !is_permanent(&**last) {
                *last = std::ptr::null_mut();
            }
        }
        1
    }

    // SAFETY: all fields are integers and pointers, for which zero is valid.
    let mut information: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut last: *mut Loaded = std::ptr::null_mut();
    let here = find as *const c_void;
    // SAFETY: `dladdr1` takes any address; with this flag, it writes the address of an entry of the list, in which the library of this
    // code stays while it runs. `walk` runs before `dl_iterate_phdr` returns, which keeps no pointer.
    unsafe {
        if libc::dladdr1(here, &mut information, (&raw mut last).cast(), LINK_MAP) != 0 && !last.is_null() {
            libc::dl_iterate_phdr(Some(walk), (&raw mut last).cast());
        }
    }
    Last(last)
}

/// The list of another system, or C library, is not known.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn find() -> Last {
    Last(std::ptr::null_mut())
}

/// Whether a library is never unloaded: the loader itself, or one that says so.
///
/// # Safety
///
/// The dynamic section of the library is in memory, or null.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
unsafe fn is_permanent(library: &Loaded) -> bool {
    const FLAGS_1: isize = 0x6fff_fffb;
    const NODELETE: usize = 8;
    // SAFETY: `getauxval` has no preconditions.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
    if loader != 0 && library.base == loader {
        return true;
    }
    let mut entry = library.dynamic;
    // SAFETY: the dynamic section is in memory (contract of this function), and ends with an entry of tag 0.
    unsafe {
        while !entry.is_null() && (*entry).tag != 0 {
            if (*entry).tag == FLAGS_1 {
                return (*entry).value & NODELETE != 0;
            }
            entry = entry.add(1);
        }
    }
    false
}
