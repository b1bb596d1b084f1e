//! Memory whose pages can be closed one by one: an access to a closed page kills the process.
#![expect(unsafe_code, reason = "pages are mapped and protected through libc")]

use std::collections::BTreeSet;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes of a page on the machines of the tests; checked when memory is reserved.
pub const PAGE: usize = 4096;

/// Allowed access to an open page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// A reserved range of addresses; its pages are closed unless opened.
#[derive(Debug)]
pub struct SparseMemory {
    start: *mut u8,
    length: usize,
    open: BTreeSet<usize>,
}

impl SparseMemory {
    /// Reserves at least `bytes` bytes, all closed and all zero. Only written pages cost memory.
    pub fn reserve(bytes: usize) -> SparseMemory {
        explain_faults();
        // SAFETY: `sysconf` only returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        assert_eq!(page, PAGE as i64, "the tests place data on pages of {PAGE} bytes");
        let length = bytes.next_multiple_of(PAGE).max(PAGE);
        // SAFETY: a private mapping at an address of the kernel's choice replaces nothing.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED, "cannot reserve {length} bytes of address space");
        SparseMemory { start: start.cast(), length, open: BTreeSet::new() }
    }

    /// Number of bytes, a multiple of the page size.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Always false, because there is at least one page.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn protect(&self, page: usize, pages: usize, protection: i32) {
        assert!((page + pages) * PAGE <= self.length, "pages {page} + {pages} lie outside");
        // SAFETY: the pages belong to this mapping, and nothing borrows them: every access copies.
        let status = unsafe { libc::mprotect(self.start.add(page * PAGE).cast(), pages * PAGE, protection) };
        assert_eq!(status, 0, "cannot protect pages");
    }

    /// Opens these pages and closes all others, which keep their contents.
    pub fn open_only(&mut self, pages: &BTreeSet<usize>, access: Access) {
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        self.protect(0, self.length / PAGE, libc::PROT_NONE);
        let mut pages_left = pages.iter().copied().peekable();
        while let Some(first) = pages_left.next() {
            let mut end = first + 1;
            while pages_left.next_if_eq(&end).is_some() {
                end += 1;
            }
            self.protect(first, end - first, protection);
        }
        self.open.clone_from(pages);
    }

    fn check(&self, at: usize, bytes: usize) {
        let closed = (at / PAGE..(at + bytes).div_ceil(PAGE)).find(|page| !self.open.contains(page));
        assert_eq!(closed, None, "page of a range of {bytes} bytes at {at} is closed");
    }

    /// Copies data to open pages, which must be writable.
    pub fn write(&mut self, at: usize, data: &[u8]) {
        self.check(at, data.len());
        // SAFETY: `at..at + data.len()` is in open pages of the mapping. `data` does not overlap it, because the
        // mapping is never borrowed.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), self.start.add(at), data.len()) }
    }

    /// Copies data from open pages.
    pub fn read(&self, at: usize, data: &mut [u8]) {
        self.check(at, data.len());
        // SAFETY: `at..at + data.len()` is in open pages of the mapping. `data` does not overlap it, because the
        // mapping is never borrowed.
        unsafe { ptr::copy_nonoverlapping(self.start.add(at), data.as_mut_ptr(), data.len()) }
    }

    /// Address of a byte, which may be outside the mapping if displacements lead back inside.
    pub fn address(&self, at: i64) -> *mut u8 {
        self.start.wrapping_offset(at as isize)
    }
}

impl Drop for SparseMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no reference into it exists.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

static SUBJECT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static SUBJECT_LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Names the current check, for the message if it touches a closed page. The text is never freed.
pub fn announce(what: &str) {
    let text: &'static mut str = Box::leak(format!("touched a closed page: {what}\n").into_boxed_str());
    SUBJECT_LENGTH.store(0, Ordering::SeqCst);
    SUBJECT.store(text.as_mut_ptr(), Ordering::SeqCst);
    SUBJECT_LENGTH.store(text.len(), Ordering::SeqCst);
}

/// Installs handlers that report the current check at a fault; otherwise only a signal number would be seen.
fn explain_faults() {
    extern "C" fn explain(_signal: i32) {
        let (text, length) = (SUBJECT.load(Ordering::SeqCst), SUBJECT_LENGTH.load(Ordering::SeqCst));
        // SAFETY: `write` and `_exit` are async-signal-safe; `text` is null or an announced text of `length` bytes,
        // which is never freed.
        unsafe {
            if !text.is_null() {
                libc::write(2, text.cast(), length);
            }
            libc::_exit(139)
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: zero is valid for every field of the action, and the handler makes only async-signal-safe calls.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = explain as extern "C" fn(i32) as usize;
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a forked child survives reading one byte.
    fn survives_reading(memory: &SparseMemory, at: usize) -> bool {
        // SAFETY: the child reads one byte of the mapping and leaves by `_exit`.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::close(2);
                std::hint::black_box(memory.start.add(at).read_volatile());
                libc::_exit(0);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
        }
    }

    #[test]
    fn closed_pages_are_deadly_and_open_ones_keep_their_contents() {
        let mut memory = SparseMemory::reserve(5 * PAGE);
        memory.open_only(&BTreeSet::from([1, 2, 4]), Access::ReadWrite);
        memory.write(2 * PAGE - 2, &[1, 2, 3]);
        memory.open_only(&BTreeSet::from([2]), Access::Read);
        let mut byte = [0];
        memory.read(2 * PAGE, &mut byte);
        assert_eq!(byte, [3]);
        assert!(survives_reading(&memory, 2 * PAGE));
        assert!(!survives_reading(&memory, 2 * PAGE - 1));
        assert!(!survives_reading(&memory, 3 * PAGE));
    }
}
