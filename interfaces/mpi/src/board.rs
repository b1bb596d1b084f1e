//! What the processes of a communicator tell each other about an exchange, in memory that they share: a message of the MPI takes some
//! microseconds, a word that another process waits for a fraction of one.
//!
//! Exchanges have numbers, from 1 on, which are the same in all processes. A process begins an exchange when all others have voted in the one
//! before. They have read its offer by then, so it may write over that. Some may still wait for votes, so those of two exchanges are kept.
//!
//! The memory is a file without a name, with a desk for each process, which it alone writes to.

use crate::shared_file::{self, Mapping};
use dtc::DTC_EXPORT_BYTES;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// Bytes of the name of a board: `DTC_MPI_BOARD_NAME`.
const NAME: usize = 64;

/// Bytes of a cache line, or of two that the processor fetches together.
const LINE: usize = 128;

/// Most processes, each of which has a space for each.
const MOST_PROCESSES: usize = 1024;

/// Names that are tried: processes in other containers may have the same numbers, and see the same files.
const TRIES: u32 = 16;

/// Questions between two calls of `progress`, and calls before this process leaves the processor to another one.
const QUESTIONS: u64 = 32;
const PATIENCE: u64 = 16;

/// Where a process wants the blocks of another one to lie, in bytes: the first byte, how many they are, and how many they take.
#[repr(C)]
pub struct Space {
    place: i64,
    bytes: i64,
    taken: i64,
}

/// The memory of a process that others pack into; `number` is 0 if it receives nothing.
#[repr(C)]
pub struct Target {
    process: i64,
    number: i64,
    name: [u8; DTC_EXPORT_BYTES as usize],
}

/// A word in a line of its own.
#[repr(C, align(128))]
struct Line<T>(T);

/// What a process says of its last exchanges: twice their number, and one more if it went well. Its spaces follow.
#[repr(C)]
struct Desk {
    offered: Line<(AtomicI64, Target)>,
    voted: Line<[AtomicI64; 2]>,
    packed: Line<AtomicI64>,
}

/// The steps of an exchange, in the order of `enum dtc_mpi_step`.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum Step {
    /// What this process wants can be read.
    Offered,
    /// Whether it can take part.
    Voted,
    /// All that it packs for others lies there.
    PackedForOthers,
}

/// Memory that processes share, as one of them sees it.
pub struct Board {
    rank: usize,
    size: usize,
    mapping: Mapping,
}

fn desk_length(size: usize) -> usize {
    (size_of::<Desk>() + size * size_of::<Space>()).next_multiple_of(LINE)
}

impl Board {
    fn new(file: c_int, rank: usize, size: usize) -> *mut Board {
        let mapping = Mapping::new(file, size * desk_length(size));
        mapping.map_or(null_mut(), |mapping| Box::into_raw(Box::new(Board { rank, size, mapping })))
    }

    fn desk(&self, rank: usize) -> *mut Desk {
        self.mapping.memory.wrapping_add(rank * desk_length(self.size)).cast()
    }

    fn spaces(&self, rank: usize) -> *mut Space {
        self.desk(rank).wrapping_add(1).cast()
    }

    fn word(&self, rank: usize, step: Step, exchange: i64) -> &AtomicI64 {
        // SAFETY: the desk lies in the mapping, which lives as long as the board, and this part of it is atomic.
        unsafe {
            let desk = self.desk(rank);
            match step {
                Step::Offered => &(*desk).offered.0.0,
                Step::Voted => &(*desk).voted.0[usize::from(exchange % 2 != 0)],
                Step::PackedForOthers => &(*desk).packed.0,
            }
        }
    }
}

/// A rank and a number of ranks of C.
fn ranks(rank: c_int, size: c_int) -> Option<(usize, usize)> {
    let (rank, size) = (usize::try_from(rank).ok()?, usize::try_from(size).ok()?);
    (rank < size && size <= MOST_PROCESSES).then_some((rank, size))
}

/// Makes a board for `size` processes, of which this one is `rank`; null if there is no memory. `name`, of [`NAME`] bytes, receives what the others
/// open it by: nothing, if there is no board.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_make(rank: c_int, size: c_int, name: *mut c_char) -> *mut Board {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let Some((rank, size)) = ranks(rank, size) else { return null_mut() };
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    let mut path = CString::default();
    let mut file = -1;
    for _ in 0..TRIES {
        let made = MADE.fetch_add(1, Ordering::Relaxed) + 1;
        path = CString::new(format!("/dev/shm/dtc-mpi-board-{user}-{}-{made}", std::process::id())).unwrap_or_default();
        file = shared_file::open(&path, libc::O_CREAT | libc::O_EXCL);
        if file >= 0 {
            break;
        }
    }
    let board = if file >= 0 { Board::new(file, rank, size) } else { null_mut() };
    if file >= 0 && board.is_null() {
        shared_file::unlink(&path);
    }
    let said = if board.is_null() { c"".to_bytes_with_nul() } else { path.to_bytes_with_nul() };
    if said.len() <= NAME {
        // SAFETY: the caller gives room for a name.
        unsafe { name.cast::<u8>().copy_from_nonoverlapping(said.as_ptr(), said.len()) };
    }
    board
}

/// Opens the board of another process; null if it cannot be opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_open(rank: c_int, size: c_int, name: *const c_char) -> *mut Board {
    // SAFETY: a name of the function above.
    let name = unsafe { CStr::from_ptr(name) };
    let Some((rank, size)) = ranks(rank, size).filter(|_| !name.is_empty()) else { return null_mut() };
    let file = shared_file::open(name, 0);
    if file < 0 { null_mut() } else { Board::new(file, rank, size) }
}

/// Once all have opened it: a job that is killed leaves no file behind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_hide(name: *const c_char) {
    // SAFETY: a name of `dtc_mpi_board_make`.
    let name = unsafe { CStr::from_ptr(name) };
    if !name.is_empty() {
        shared_file::unlink(name);
    }
}

/// Leaves a board, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_drop(board: *mut Board) {
    if !board.is_null() {
        // SAFETY: made above, and not used any more.
        drop(unsafe { Box::from_raw(board) });
    }
}

/// What this process wants of each other one. It is read once the offer is told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_spaces(board: *const Board) -> *mut Space {
    // SAFETY: a board of the caller.
    let board = unsafe { &*board };
    board.spaces(board.rank)
}

/// Where this process says which memory others pack into.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_target(board: *const Board) -> *mut Target {
    // SAFETY: a board of the caller; the desk lies in its mapping.
    unsafe { &raw mut (*(*board).desk((*board).rank)).offered.0.1 }
}

/// What process `rank` wants of this one, once it has offered it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_space_of(board: *const Board, rank: c_int) -> *const Space {
    // SAFETY: a board of the caller, and a rank of it.
    let board = unsafe { &*board };
    board.spaces(rank as usize).wrapping_add(board.rank)
}

/// The memory of process `rank`, once it has offered it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_target_of(board: *const Board, rank: c_int) -> *const Target {
    // SAFETY: a board of the caller, and a rank of it; the desk lies in its mapping.
    unsafe { &raw const (*(*board).desk(rank as usize)).offered.0.1 }
}

/// Says that this process has done a step of an exchange, and whether it went well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_tell(board: *const Board, step: Step, exchange: i64, well: c_int) {
    // SAFETY: a board of the caller.
    let board = unsafe { &*board };
    board.word(board.rank, step, exchange).store(2 * exchange + i64::from(well != 0), Ordering::Release);
}

/// Waits until a process has; whether it went well. `progress` is called now and then, for messages that others wait for meanwhile. (MPI 4.1, 3.7.4)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_board_wait(
    board: *const Board,
    rank: c_int,
    step: Step,
    exchange: i64,
    progress: unsafe extern "C" fn(*mut c_void),
    of_progress: *mut c_void,
) -> c_int {
    // SAFETY: a board of the caller, and a rank of it.
    let word = unsafe { &*board }.word(rank as usize, step, exchange);
    let mut asked: u64 = 0;
    loop {
        let said = word.load(Ordering::Acquire);
        if said / 2 == exchange {
            return (said % 2) as c_int;
        }
        std::hint::spin_loop();
        asked += 1;
        if !asked.is_multiple_of(QUESTIONS) {
            continue;
        }
        // SAFETY: the caller's function, and what it asks for.
        unsafe { progress(of_progress) };
        if asked >= QUESTIONS * PATIENCE {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn nothing(_: *mut c_void) {}

    /// Two processes, played by one thread.
    #[test]
    fn what_a_process_says_is_read_by_the_other() {
        let mut name = [0 as c_char; NAME];
        // SAFETY: the name has room; the boards live until they are dropped, and each rank is one of them.
        unsafe {
            let one = dtc_mpi_board_make(0, 2, name.as_mut_ptr());
            let other = dtc_mpi_board_open(1, 2, name.as_ptr());
            assert!(!one.is_null() && !other.is_null());
            dtc_mpi_board_hide(name.as_ptr());
            assert!(dtc_mpi_board_open(1, 2, name.as_ptr()).is_null());
            dtc_mpi_board_spaces(one).add(1).write(Space { place: 64, bytes: 100, taken: 256 });
            (*dtc_mpi_board_target(one)).number = 3;
            dtc_mpi_board_tell(one, Step::Offered, 1, 1);
            dtc_mpi_board_tell(one, Step::Voted, 1, 0);
            assert_eq!(dtc_mpi_board_wait(other, 0, Step::Offered, 1, nothing, null_mut()), 1);
            assert_eq!(dtc_mpi_board_wait(other, 0, Step::Voted, 1, nothing, null_mut()), 0);
            let space = &*dtc_mpi_board_space_of(other, 0);
            assert_eq!((space.place, space.bytes, space.taken), (64, 100, 256));
            assert_eq!((*dtc_mpi_board_target_of(other, 0)).number, 3);
            dtc_mpi_board_drop(one);
            dtc_mpi_board_drop(other);
        }
    }
}
