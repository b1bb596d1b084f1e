//! Packs and unpacks by libdtc, counted for the report and shown to profilers.

use crate::ranges::Range;
use crate::report::{now, reports, say, seconds};
use crate::staging::dtc_mpi_engine;
use crate::{print, text};
use dtc::{DTC_DIRECTION_UNPACK, DTC_MEMORY_DEVICE, DTC_MEMORY_HOST, DTC_OK, dtc_batch_call, dtc_transfer, dtc_type};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering, Ordering::Relaxed};

/// Kinds of memory, by `DTC_MEMORY_...`, where "unknown" stands for elements of absolute addresses.
const KINDS: [&str; 5] = ["several kinds of", "host", "pinned", "managed", "device"];

/// In the order of `enum dtc_mpi_direction`.
const DIRECTIONS: [&str; 2] = ["packs", "unpacks"];

/// The second direction.
const UNPACKS: c_int = 1;

/// Elements of a committed type, and their packed bytes: `struct dtc_mpi_move`. A null `transfer` means memory of the host.
#[repr(C)]
pub struct Move {
    direction: c_int,
    r#type: *const dtc_type,
    memory: *mut c_void,
    elements: i64,
    packed: *mut c_void,
    bytes: i64,
    transfer: *const dtc_transfer,
}

struct Count {
    calls: AtomicI64,
    bytes: AtomicI64,
    nanoseconds: AtomicI64,
}

/// By the kinds of memory of elements and of packed data, and the direction.
static COUNTS: [[[Count; DIRECTIONS.len()]; KINDS.len()]; KINDS.len()] = [const {
    [const { [const { Count { calls: AtomicI64::new(0), bytes: AtomicI64::new(0), nanoseconds: AtomicI64::new(0) } }; 2] };
        5]
}; 5];

/// What moves: the direction, and the kinds of memory of elements and of packed data.
#[derive(Clone, Copy)]
struct Path {
    direction: c_int,
    memory: i32,
    packed: i32,
}

impl Path {
    fn count(self) -> Option<&'static Count> {
        let at = |number: i32| usize::try_from(number).unwrap_or(usize::MAX);
        COUNTS.get(at(self.memory))?.get(at(self.packed))?.get(at(self.direction))
    }

    fn name(self) -> String {
        let of = |names: &'static [&str], number: i32| *names.get(number as usize).unwrap_or(&"unknown");
        let (memory, packed) = (of(&KINDS, self.memory), of(&KINDS, self.packed));
        format!("dtc {}: elements in {memory} memory, packed in {packed} memory", of(&DIRECTIONS, self.direction))
    }

    /// Does it within a range, and counts it if it was done; 0 if it failed.
    fn run(self, bytes: i64, work: impl FnOnce() -> c_int) -> c_int {
        let range = Range::begin(|| self.name());
        let begun = if reports() { now() } else { 0 };
        let code = work();
        drop(range);
        if code != DTC_OK {
            // SAFETY: a text that ends, of this thread.
            say("a pack or unpack failed", unsafe { text(dtc::dtc_message()) });
            return 0;
        }
        if let Some(count) = self.count().filter(|_| reports()) {
            count.calls.fetch_add(1, Relaxed);
            count.bytes.fetch_add(bytes, Relaxed);
            count.nanoseconds.fetch_add(now() - begun, Relaxed);
        }
        1
    }
}

/// Does a move; 0 if that fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_move(wanted: *const Move) -> c_int {
    // SAFETY: the caller's, with memory as it says.
    let wanted = unsafe { &*wanted };
    let Move { direction, r#type, memory, elements, packed, bytes, transfer } = *wanted;
    // SAFETY: null, or the caller's.
    let kinds =
        unsafe { transfer.as_ref() }.map_or((DTC_MEMORY_HOST, DTC_MEMORY_HOST), |kinds| (kinds.memory, kinds.packed));
    let done = null_mut();
    // SAFETY: a committed type, and memory of both ends for what is moved, of the kinds that `transfer` says.
    Path { direction, memory: kinds.0, packed: kinds.1 }.run(bytes, || unsafe {
        if direction == UNPACKS {
            dtc::dtc_unpack(r#type, memory, elements, 0, packed, bytes, done, transfer)
        } else {
            dtc::dtc_pack(r#type, memory, elements, 0, packed, bytes, done, transfer)
        }
    })
}

/// Does `length` calls on a GPU by one launch, all of one direction; 0 if that fails. The other end is memory of the kind `packed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_launch(device: i32, calls: *const dtc_batch_call, length: i32, packed: i32) -> c_int {
    let Some(count) = usize::try_from(length).ok().filter(|count| *count > 0) else { return 1 };
    // SAFETY: the caller's, `length` of them.
    let all = unsafe { std::slice::from_raw_parts(calls, count) };
    let unpacks = all.first().is_some_and(|call| call.direction == DTC_DIRECTION_UNPACK);
    let bytes = all.iter().map(|call| call.max).sum();
    let path = Path { direction: unpacks.into(), memory: DTC_MEMORY_DEVICE, packed };
    let engine = dtc_mpi_engine.load(Ordering::Acquire);
    // SAFETY: committed types, and memory of both ends for what is moved; the engine lives as long as calls are handled.
    path.run(bytes, || unsafe { dtc::dtc_batch_run(engine, device, calls, length.into(), null_mut()) })
}

/// For the report: what went between which kinds of memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_mpi_report_moves(abi: *const c_char) {
    // SAFETY: a text of the caller's program, which ends.
    let abi = unsafe { text(abi) };
    for (memory, of_memory) in KINDS.iter().zip(&COUNTS) {
        for (packed, counts) in KINDS.iter().zip(of_memory) {
            if counts.iter().all(|count| count.calls.load(Relaxed) == 0) {
                continue;
            }
            let said = DIRECTIONS.iter().zip(counts).map(|(direction, count)| {
                let (calls, bytes) = (count.calls.load(Relaxed), count.bytes.load(Relaxed));
                format!("{calls} {direction}, {bytes} bytes in {}", seconds(count.nanoseconds.load(Relaxed)))
            });
            let said = said.collect::<Vec<_>>().join("; ");
            print(&format!("{abi}: elements in {memory} memory, packed in {packed} memory: {said}"));
        }
    }
}
