//! Executable memory.

use std::io;
use std::ptr::NonNull;

/// Machine code in pages that can be run and not written.
pub(crate) struct Code {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the pages are never written after `Code::new`, and running code from several threads is fine.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Copies code into pages of its own. The pages are first written, then made executable: never both.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory or to execute it.
    pub(crate) fn new(code: &[u8]) -> io::Result<Code> {
        let length = code.len().max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping touches no existing memory.
        let pages = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if pages == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(start) = NonNull::new(pages.cast::<u8>()) else {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        };
        let memory = Code { start, length };
        // SAFETY: the mapping is `length` bytes long, writable, and nobody else knows it.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), start.as_ptr(), code.len()) };
        // SAFETY: the mapping is ours.
        if unsafe { libc::mprotect(pages, length, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(memory)
    }

    /// The address of the first instruction.
    pub(crate) fn start(&self) -> *const u8 {
        self.start.as_ptr()
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `Code::new` with this length. Nobody runs it: kernels are dropped with the
        // last type that uses them, and a call holds its type.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
