//! What the processes of a communicator tell each other about an exchange, in memory that they share: a message of the MPI takes some
//! microseconds, a word that another process waits for a fraction of one.
//!
//! Exchanges have numbers, from 1 on, which are the same in all processes. A process begins an exchange when all others have voted in the one
//! before. They have read its offer by then, so it may write over that. Some may still wait for votes, so those of two exchanges are kept.
//!
//! The memory is a file without a name, with a slot for each process, which it alone writes to.

use crate::shared_file::{self, Mapping};
use dtc::DTC_EXPORT_BYTES;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// Bytes of the name of a segment, and its end.
pub const NAME: usize = 64;

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Space {
    /// The first byte.
    pub place: i64,
    /// How many they are.
    pub bytes: i64,
    /// How many they take.
    pub taken: i64,
}

/// The memory of a process that others pack into; `number` is 0 if it receives nothing.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Target {
    /// The number of the process.
    pub process: i64,
    /// That of the piece of memory.
    pub number: i64,
    /// What others open it by.
    pub name: [u8; DTC_EXPORT_BYTES as usize],
}

/// A word in a line of its own.
#[repr(C, align(128))]
struct Line<T>(T);

/// What a process says of its last exchanges: twice their number, and one more if it went well. Its spaces follow.
#[repr(C)]
struct SegmentSlot {
    offered: Line<AtomicI64>,
    target: Target,
    voted: Line<[AtomicI64; 2]>,
    packed: Line<AtomicI64>,
}

/// The steps of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// What this process wants can be read.
    Offered,
    /// Whether it can take part.
    Voted,
    /// All that it packs for others lies there.
    PackedForOthers,
}

/// Memory that processes share, as one of them sees it.
pub struct Segment {
    rank: usize,
    size: usize,
    mapping: Mapping,
}

fn slot_length(size: usize) -> usize {
    (size_of::<SegmentSlot>() + size * size_of::<Space>()).next_multiple_of(LINE)
}

impl Segment {
    fn new(file: i32, rank: usize, size: usize) -> Option<Segment> {
        Mapping::new(file, size * slot_length(size)).map(|mapping| Segment { rank, size, mapping })
    }

    /// Makes a segment for `size` processes, of which this one is `rank`, and what the others open it by; none if there is no memory.
    pub fn make(rank: usize, size: usize) -> Option<(Segment, CString)> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        if rank >= size || size > MOST_PROCESSES {
            return None;
        }
        // SAFETY: it cannot fail.
        let user = unsafe { libc::geteuid() };
        for _ in 0..TRIES {
            let made = MADE.fetch_add(1, Ordering::Relaxed) + 1;
            let path = format!("/dev/shm/dtc-mpi-segment-{user}-{}-{made}", std::process::id());
            let path = CString::new(path).ok().filter(|path| path.as_bytes().len() < NAME)?;
            let file = shared_file::open(&path, libc::O_CREAT | libc::O_EXCL);
            if file < 0 {
                continue;
            }
            let segment = Segment::new(file, rank, size);
            if segment.is_none() {
                shared_file::unlink(&path);
            }
            return segment.map(|segment| (segment, path));
        }
        None
    }

    /// Opens the segment of another process; none if it cannot be opened.
    pub fn open(rank: usize, size: usize, name: &CStr) -> Option<Segment> {
        if name.is_empty() || rank >= size || size > MOST_PROCESSES {
            return None;
        }
        let file = shared_file::open(name, 0);
        if file < 0 { None } else { Segment::new(file, rank, size) }
    }

    /// Says what this process wants of another one, and that it wants nothing else. It is read once the offer is told.
    pub fn set_space(&self, peer: usize, space: Space) {
        if peer < self.size {
            // SAFETY: the slot of this process has a space for each process, which nobody reads yet.
            unsafe { self.spaces(self.rank).add(peer).write(space) };
        }
    }

    /// Says which memory others pack into. It is read once the offer is told.
    pub fn set_target(&self, target: Target) {
        // SAFETY: the slot of this process, which nobody reads yet.
        unsafe { (&raw mut (*self.slot(self.rank)).target).write(target) };
    }

    /// What process `peer` wants of this one, once it has offered it.
    pub fn space_of(&self, peer: usize) -> Space {
        // SAFETY: the slot of a process of this segment, which writes no more until the next exchange.
        unsafe { self.spaces(peer.min(self.size - 1)).add(self.rank).read() }
    }

    /// The memory of process `peer`, once it has offered it.
    pub fn target_of(&self, peer: usize) -> Target {
        // SAFETY: as above.
        unsafe { (&raw const (*self.slot(peer.min(self.size - 1))).target).read() }
    }

    /// Says that this process has done a step of an exchange, and whether it went well.
    pub fn tell(&self, step: Step, exchange: i64, well: bool) {
        self.word(self.rank, step, exchange).store(2 * exchange + i64::from(well), Ordering::Release);
    }

    /// Waits until a process has; whether it went well. `progress` is called now and then, for messages that others wait for meanwhile. (MPI 4.1,
    /// 3.7.4)
    pub fn wait(&self, peer: usize, step: Step, exchange: i64, progress: impl Fn()) -> bool {
        let word = self.word(peer.min(self.size - 1), step, exchange);
        let mut polls: u64 = 0;
        loop {
            let said = word.load(Ordering::Acquire);
            if said / 2 == exchange {
                return said % 2 != 0;
            }
            std::hint::spin_loop();
            polls += 1;
            if !polls.is_multiple_of(QUESTIONS) {
                continue;
            }
            progress();
            if polls >= QUESTIONS * PATIENCE {
                std::thread::yield_now();
            }
        }
    }

    fn slot(&self, rank: usize) -> *mut SegmentSlot {
        self.mapping.memory.wrapping_add(rank * slot_length(self.size)).cast()
    }

    fn spaces(&self, rank: usize) -> *mut Space {
        self.slot(rank).wrapping_add(1).cast()
    }

    fn word(&self, rank: usize, step: Step, exchange: i64) -> &AtomicI64 {
        // SAFETY: the slot lies in the mapping, which lives as long as the segment, and this part of it is atomic.
        unsafe {
            let slot = self.slot(rank);
            match step {
                Step::Offered => &(*slot).offered.0,
                Step::Voted => &(*slot).voted.0[usize::from(exchange % 2 != 0)],
                Step::PackedForOthers => &(*slot).packed.0,
            }
        }
    }
}

/// Once all have opened a segment: a job that is killed leaves no file behind.
pub fn hide(name: &CStr) {
    if !name.is_empty() {
        shared_file::unlink(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes, played by one thread.
    #[test]
    fn what_a_process_says_is_read_by_the_other() {
        let (one, name) = Segment::make(0, 2).expect("a segment");
        let other = Segment::open(1, 2, &name).expect("the same");
        hide(&name);
        assert!(Segment::open(1, 2, &name).is_none());
        let space = Space { place: 64, bytes: 100, taken: 256 };
        one.set_space(1, space);
        one.set_target(Target { process: 1, number: 3, name: [7; DTC_EXPORT_BYTES as usize] });
        one.tell(Step::Offered, 1, true);
        one.tell(Step::Voted, 1, false);
        assert!(other.wait(0, Step::Offered, 1, || ()));
        assert!(!other.wait(0, Step::Voted, 1, || ()));
        assert_eq!(other.space_of(0), space);
        assert_eq!(other.target_of(0).number, 3);
    }
}
