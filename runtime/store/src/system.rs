//! Detects file systems that belong to one node, from their magic numbers.

use std::fs::File;

/// Magic numbers of node-local file systems. On any other, locks may wait for a server or do nothing. Treating an
/// unknown one as remote costs at most compiling a kernel twice.
#[cfg(target_os = "linux")]
const NODE_LOCAL: [u32; 11] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x2fc1_2fc1, // ZFS
    0xf2f5_2010, // F2FS
    0xca45_1a4e, // bcachefs
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
];

/// Whether the file system of this directory belongs to this node alone.
#[cfg(target_os = "linux")]
pub(super) fn is_node_local(directory: &File) -> bool {
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;
    let mut answer = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `directory` keeps the descriptor open, and `answer` has room for the structure.
    if unsafe { libc::fstatfs(directory.as_raw_fd(), answer.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: `fstatfs` has succeeded, so it has filled `answer`.
    let answer = unsafe { answer.assume_init() };
    // The type of the field differs between architectures; the magic numbers have 32 bits.
    NODE_LOCAL.contains(&(answer.f_type as u32))
}

/// Whether the file system of this directory belongs to this node alone; unknown on this system, so false.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_node_local(_: &File) -> bool {
    false
}
