//! Files in `/dev/shm` that processes share.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Opens a file, with `more` flags beside those for reading and writing; -1 if it cannot be.
pub(crate) fn open(path: &CStr, more: i32) -> i32 {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | more;
    // SAFETY: the path ends.
    unsafe { libc::open(path.as_ptr(), flags, 0o600) }
}

/// Takes the name of a file away.
pub(crate) fn unlink(path: &CStr) {
    // SAFETY: the path ends.
    unsafe { libc::unlink(path.as_ptr()) };
}

/// Whether a file belongs to this user.
pub(crate) fn is_own(file: i32) -> bool {
    let mut status: MaybeUninit<libc::stat> = MaybeUninit::uninit();
    // SAFETY: `status` has room, and is read only if it was written.
    unsafe { libc::fstat(file, status.as_mut_ptr()) == 0 && status.assume_init().st_uid == libc::geteuid() }
}

/// Makes a file at least as long as that, in bytes: all of them exist then, so that none is missing when it is written to. Beyond the limit on
/// the sizes of files (`ulimit -f`), the kernel would end the process by `SIGXFSZ`; the file is left as it is, and the result is false.
fn extend(file: i32, length: usize) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && length as u64 > limit.rlim_cur {
        return false;
    }
    // SAFETY: no memory is involved.
    libc::off_t::try_from(length).is_ok_and(|length| unsafe { libc::posix_fallocate(file, 0, length) } == 0)
}

/// Memory of a file, for as long as this lives.
pub(crate) struct Mapping {
    pub(crate) memory: *mut u8,
    pub(crate) length: usize,
}

// SAFETY: any thread may use and unmap memory.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a file, which is made as long as that if it is not, and closes it. None if there is no memory.
    pub(crate) fn new(file: i32, length: usize) -> Option<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping replaces nothing.
        let map = || unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, file, 0) };
        let memory = if extend(file, length) { map() } else { libc::MAP_FAILED };
        // SAFETY: the caller's file, which is not used any more; the mapping keeps it.
        unsafe { libc::close(file) };
        (memory != libc::MAP_FAILED).then_some(Mapping { memory: memory.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`.
        unsafe { libc::munmap(self.memory.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

    fn file() -> i32 {
        tempfile::tempfile().expect("a file").into_raw_fd()
    }

    /// Longer than what the tests of this process may write meanwhile, also to a file that they print to.
    const LIMIT: usize = 1 << 36;

    #[test]
    fn a_file_beyond_the_limit_on_sizes_is_left_as_it_is() {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a limit is read, lowered and set again.
        unsafe {
            libc::getrlimit(libc::RLIMIT_FSIZE, &mut before);
            libc::setrlimit(libc::RLIMIT_FSIZE, &libc::rlimit { rlim_cur: LIMIT as u64, ..before });
        }
        let (refused, made) = (Mapping::new(file(), LIMIT + 1), Mapping::new(file(), 4096));
        // SAFETY: as above.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &before) };
        assert!(refused.is_none());
        assert_eq!(made.expect("a mapping").length, 4096);
    }

    #[test]
    fn two_mappings_of_a_file_are_the_same_memory() {
        let one = file();
        // SAFETY: `one` is open and this test's; the copy is closed by the second mapping.
        let copy = unsafe { OwnedFd::from_raw_fd(libc::dup(one)) };
        let (one, other) = (Mapping::new(one, 4096).expect("a mapping"), Mapping::new(copy.into_raw_fd(), 4096));
        let other = other.expect("a mapping");
        // SAFETY: both have 4,096 bytes, and no other thread uses them.
        unsafe {
            one.memory.add(4095).write(7);
            assert_eq!(other.memory.add(4095).read(), 7);
        }
    }
}
