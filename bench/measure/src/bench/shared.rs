//! Buffers that several processes share, so that what is measured of each does not depend on where its pages are.
//!
//! Which physical pages a buffer gets decides up to 30 % of the time where one word of each page is moved.

use crate::mapped::MappedMut;
use std::fs::File;
use std::io;
use std::path::Path;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Memory, and from its next page on the packed bytes.
pub struct Shared {
    map: MappedMut,
    memory: usize,
    packed: usize,
    path: String,
    // Others open it by the number that it has in this process.
    _file: File,
}

impl Shared {
    /// Buffers of these lengths, all zero. Their file has no name, so the system frees it with the last process that maps it.
    pub fn new(memory: usize, packed: usize) -> io::Result<Shared> {
        let begin = memory.next_multiple_of(PAGE);
        // At least a page: an empty file has no map.
        let file = unnamed((begin + packed).max(PAGE) as u64)?;
        let map = MappedMut::new(&file)?;
        let path = path_of(&file);
        Ok(Shared { map, memory, packed, path, _file: file })
    }

    /// Where other processes open the file, while this value lives.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Memory and packed bytes.
    pub fn sides(&mut self) -> (&mut [u8], &mut [u8]) {
        let (memory, packed) = self.map.bytes_mut().split_at_mut(self.memory.next_multiple_of(PAGE));
        (&mut memory[..self.memory], &mut packed[..self.packed])
    }
}

/// A file without a name, in memory where the system has such a folder with room for it.
fn unnamed(length: u64) -> io::Result<File> {
    let in_memory = Path::new("/dev/shm");
    let within = |folder: &Path| {
        let path = folder.join(format!("dtc-bench-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        allocate(&file, length)?;
        Ok(file)
    };
    within(in_memory).or_else(|_: io::Error| within(&std::env::temp_dir()))
}

/// Gives a file its length, and room: a page that finds none when it is touched ends the process.
#[cfg(target_os = "linux")]
fn allocate(file: &File, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    file.set_len(length)?;
    match fallocate(file, FallocateFlags::empty(), 0, length) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        allocated => Ok(allocated?),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)
}

#[cfg(unix)]
fn path_of(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(not(unix))]
fn path_of(_: &File) -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn others_see_the_same_bytes() {
        let mut shared = Shared::new(5_000, 3).unwrap();
        let (memory, packed) = shared.sides();
        assert_eq!((memory.len(), packed.len()), (5_000, 3));
        assert_eq!((memory.as_ptr() as usize % PAGE, packed.as_ptr() as usize % PAGE), (0, 0));
        memory[4_999] = 7;
        packed.copy_from_slice(&[1, 2, 3]);
        let mut bytes = Vec::new();
        File::open(shared.path()).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes[4_999], &bytes[8192..]), (7, &[1, 2, 3][..]));
    }
}
