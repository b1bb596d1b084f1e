//! Packs and unpacks by libdtc, counted for the report and shown to profilers.

use crate::memory::Moved;
use crate::ranges::Range;
use crate::report::{now, reports, say, seconds};
use crate::staging::ENGINE;
use crate::types::Type;
use crate::{print, text};
use dtc::{
    DTC_DIRECTION_PACK, DTC_DIRECTION_UNPACK, DTC_MEMORY_DEVICE, DTC_MEMORY_HOST, DTC_OK, dtc_batch_call, dtc_transfer,
};
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI64, Ordering, Ordering::Relaxed};

/// Kinds of memory, by `DTC_MEMORY_...`, where "unknown" stands for elements of absolute addresses.
const KINDS: [&str; 5] = ["several kinds of", "host", "pinned", "managed", "device"];

/// In the order of [`Packing`].
const DIRECTIONS: [&str; 2] = ["packs", "unpacks"];

/// What a move does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// From elements to packed bytes.
    Pack,
    /// From packed bytes to elements.
    Unpack,
}

/// Elements of a committed type, and their packed bytes. Without a transfer, both are in memory of the host.
pub struct Move<'a> {
    /// What is done.
    pub packing: Packing,
    /// That of the elements.
    pub r#type: &'a Type,
    /// Where they are.
    pub memory: *mut c_void,
    /// How many there are.
    pub elements: i64,
    /// Where their packed bytes are.
    pub packed: *mut c_void,
    /// How many of these are moved.
    pub bytes: i64,
    /// Where both lie.
    pub transfer: Option<&'a dtc_transfer>,
}

struct MoveCounts {
    calls: AtomicI64,
    bytes: AtomicI64,
    nanoseconds: AtomicI64,
}

/// By the kinds of memory of elements and of packed data, and the direction.
static COUNTS: [[[MoveCounts; DIRECTIONS.len()]; KINDS.len()]; KINDS.len()] = [const {
    [const {
        [const { MoveCounts { calls: AtomicI64::new(0), bytes: AtomicI64::new(0), nanoseconds: AtomicI64::new(0) } }; 2]
    }; 5]
}; 5];

/// What moves: the direction, and the kinds of memory of elements and of packed data.
#[derive(Clone, Copy)]
struct Path {
    packing: Packing,
    memory: i32,
    packed: i32,
}

impl Path {
    fn count(self) -> Option<&'static MoveCounts> {
        let at = |number: i32| usize::try_from(number).unwrap_or(usize::MAX);
        COUNTS.get(at(self.memory))?.get(at(self.packed))?.get(self.packing as usize)
    }

    fn name(self) -> String {
        let of = |names: &'static [&str], number: i32| *names.get(number as usize).unwrap_or(&"unknown");
        let (memory, packed) = (of(&KINDS, self.memory), of(&KINDS, self.packed));
        format!("dtc {}: elements in {memory} memory, packed in {packed} memory", DIRECTIONS[self.packing as usize])
    }

    /// Does it within a range, and counts it if it was done; false if it failed.
    fn run(self, bytes: i64, work: impl FnOnce() -> c_int) -> bool {
        let range = Range::begin(|| self.name());
        let begun = if reports() { now() } else { 0 };
        let code = work();
        drop(range);
        if code != DTC_OK {
            // SAFETY: a text that ends, of this thread.
            say("a pack or unpack failed", unsafe { text(dtc::dtc_message()) });
            return false;
        }
        if let Some(count) = self.count().filter(|_| reports()) {
            count.calls.fetch_add(1, Relaxed);
            count.bytes.fetch_add(bytes, Relaxed);
            count.nanoseconds.fetch_add(now() - begun, Relaxed);
        }
        true
    }
}

impl Move<'_> {
    /// Does it; false if that fails.
    ///
    /// # Safety
    ///
    /// There is memory at both ends for what is moved, of the kinds that the transfer says.
    pub unsafe fn run(&self) -> bool {
        let Move { packing, r#type, memory, elements, packed, bytes, transfer } = *self;
        let (r#type, done) = (r#type.get(), null_mut());
        let (from, to) = transfer.map_or((DTC_MEMORY_HOST, DTC_MEMORY_HOST), |kinds| (kinds.memory, kinds.packed));
        let transfer = transfer.map_or(null(), std::ptr::from_ref);
        // SAFETY: a committed type, and memory as the caller says.
        Path { packing, memory: from, packed: to }.run(bytes, || unsafe {
            match packing {
                Packing::Pack => dtc::dtc_pack(r#type, memory, elements, 0, packed, bytes, done, transfer),
                Packing::Unpack => dtc::dtc_unpack(r#type, memory, elements, 0, packed, bytes, done, transfer),
            }
        })
    }
}

/// Does calls on a GPU by one launch, all of one direction; false if that fails. The other end is memory of the kind `packed`.
///
/// # Safety
///
/// There is memory at both ends of each call, and each type is committed.
pub unsafe fn launch(device: i32, packing: Packing, calls: &[dtc_batch_call], packed: i32) -> bool {
    let bytes = calls.iter().map(|call| call.max).sum();
    let path = Path { packing, memory: DTC_MEMORY_DEVICE, packed };
    let engine = ENGINE.load(Ordering::Acquire);
    let length = calls.len() as i64;
    // SAFETY: as the caller says; the engine lives as long as calls are handled.
    calls.is_empty()
        || path.run(bytes, || unsafe { dtc::dtc_batch_run(engine, device, calls.as_ptr(), length, null_mut()) })
}

/// A call of such a launch.
pub fn batch_call(packing: Packing, moved: &Moved, packed: *mut c_void, bytes: i64) -> Option<dtc_batch_call> {
    Some(dtc_batch_call {
        r#type: moved.plan.r#type.as_ref()?.get(),
        memory: moved.memory,
        packed,
        count: moved.elements,
        offset: 0,
        max: bytes,
        direction: match packing {
            Packing::Pack => DTC_DIRECTION_PACK,
            Packing::Unpack => DTC_DIRECTION_UNPACK,
        },
        reserved: 0,
    })
}

/// For the report: what went between which kinds of memory.
pub fn report(abi: &str) {
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
