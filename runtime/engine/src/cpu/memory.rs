//! Executable memory.

use super::coherence;
use memmap2::{Mmap, MmapMut};
use std::io;

/// Machine code in pages that can be run and not written.
pub(crate) struct Code(Mmap);

impl Code {
    /// Copies code into pages of its own. The pages are first written, then made executable: never both.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory or to execute it.
    pub(crate) fn new(code: &[u8]) -> io::Result<Code> {
        let mut pages = MmapMut::map_anon(code.len().max(1))?;
        pages[..code.len()].copy_from_slice(code);
        coherence::publish(&pages[..code.len()]);
        let pages = pages.make_exec()?;
        coherence::synchronise();
        Ok(Code(pages))
    }

    /// The address of the first instruction.
    pub(crate) fn start(&self) -> *const u8 {
        self.0.as_ptr()
    }
}
