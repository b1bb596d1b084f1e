//! Files in memory, so that those larger than memory work.
#![expect(unsafe_code, reason = "mapping a file is unsafe because other processes may change it")]

use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io;

/// A file to be read.
pub struct Mapped(Option<Mmap>);

impl Mapped {
    /// Maps a whole file.
    pub fn new(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: the bytes are only copied, never interpreted, so a file that another process changes meanwhile gives
        // old or new bytes. One that another process cuts short ends this process with SIGBUS.
        let map = unsafe { Mmap::map(file)? };
        Ok(Mapped(Some(map)))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// A file to be changed in place.
pub struct MappedMut(Option<MmapMut>);

impl MappedMut {
    /// Maps a whole file that is open for reading and writing.
    pub fn new(file: &File) -> io::Result<MappedMut> {
        if file.metadata()?.len() == 0 {
            return Ok(MappedMut(None));
        }
        // SAFETY: the bytes are only copied, never interpreted, so writes of another process to the file do no harm; if it
        // cuts the file short, this process ends with SIGBUS. Another map of the file is at other addresses, so no
        // reference aliases this one.
        let map = unsafe { MmapMut::map_mut(file)? };
        Ok(MappedMut(Some(map)))
    }

    /// Its bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_deref_mut().unwrap_or_default()
    }

    /// Hands what was changed to the system and waits until it is stored.
    pub fn flush(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), MmapMut::flush)
    }
}
