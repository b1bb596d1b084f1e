//! Moving types with index tables in host memory.

use crate::cached_type::tabled::TabledType;
use crate::cpu::Addresses;
use dtc_compiler::tabled::{Entries, TabledCopy};
use dtc_microkernels::accumulate::AccumulateFn;
use smallvec::SmallVec;

/// Few tables need no allocation.
pub(super) type HostTables<'a> = SmallVec<[Entries<'a>; 4]>;

/// A part of the packed bytes of a call, with tables whose entries were checked.
pub(super) struct HostCall<'t> {
    pub(super) tables: HostTables<'t>,
    /// The first packed byte.
    pub(super) first: u64,
    /// One past the last.
    pub(super) end: u64,
}

impl HostCall<'_> {
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.first
    }
}

/// Moves the bytes of a call. `addresses.packed` is where the first of them lies.
///
/// # Safety
///
/// Every byte that the entries of the tables lead to is readable on one side and writable on the other, and the sides do not
/// overlap.
pub(super) unsafe fn run<const PACK: bool>(shared: &TabledType, call: &HostCall<'_>, addresses: Addresses) {
    let programs = shared.programs();
    let Addresses { memory, packed } = addresses;
    for block in shared.layout.blocks(&call.tables, call.first, call.end) {
        let (program, contiguous) = (&programs[block.fixed], shared.layout.fixed_layouts()[block.fixed].contiguous());
        for copy in block.copies() {
            let from = copy.position.max(call.first);
            let to = (copy.position + block.bytes).min(call.end);
            let origin = origin(memory, &copy);
            let packed = packed.wrapping_add((from - call.first) as usize);
            let (skip, take) = (from - copy.position, to - from);
            // SAFETY: the fixed layout lies where an entry leads to, and its packed bytes `from .. to` are moved; both sides
            // have them (contract of this function).
            unsafe {
                match contiguous {
                    Some((offset, _)) => {
                        let place = origin.wrapping_offset(offset as isize).wrapping_add(skip as usize);
                        let (source, target) = if PACK { (place, packed) } else { (packed, place) };
                        source.copy_to_nonoverlapping(target, take as usize);
                    }
                    None if take == block.bytes => {
                        program.elements::<PACK>(Addresses { memory: origin, packed }, 1);
                    }
                    None => program.range::<PACK>(None, Addresses { memory: origin, packed }, skip, take),
                }
            }
        }
    }
}

/// Combines the elements of a call with packed ones: of layouts with gaps, through a buffer.
///
/// # Safety
///
/// As for [`run`], with memory that is readable and writable, and initialised. The range is whole elements of `unit` bytes, and so is each fixed layout;
/// the processor has what `accumulate` was selected for.
pub(super) unsafe fn accumulate(
    shared: &TabledType,
    call: &HostCall<'_>,
    addresses: Addresses,
    (accumulate, unit): (AccumulateFn, u64),
) {
    /// Bytes that are combined at a time: they stay in the nearest cache but one.
    const BUFFER: u64 = 48 << 10;
    let programs = shared.programs();
    let mut buffer: Vec<u8> = Vec::new();
    for block in shared.layout.blocks(&call.tables, call.first, call.end) {
        let (program, contiguous) = (&programs[block.fixed], shared.layout.fixed_layouts()[block.fixed].contiguous());
        for copy in block.copies() {
            let origin = origin(addresses.memory, &copy);
            let (mut at, end) = (copy.position.max(call.first), (copy.position + block.bytes).min(call.end));
            while at < end {
                let most = if contiguous.is_some() { u64::MAX } else { BUFFER / unit * unit };
                let (skip, take) = (at - copy.position, most.min(end - at));
                let packed = addresses.packed.wrapping_add((at - call.first) as usize);
                // SAFETY: the fixed layout lies where an entry leads to, and its packed bytes from `skip` on are combined, which are whole elements; both
                // sides have them (contract of this function). The buffer has as many bytes.
                unsafe {
                    let theirs = std::slice::from_raw_parts(packed, take as usize);
                    if let Some((offset, _)) = contiguous {
                        let place = origin.wrapping_offset(offset as isize).wrapping_add(skip as usize);
                        accumulate(std::slice::from_raw_parts_mut(place, take as usize), theirs);
                    } else {
                        buffer.resize(take as usize, 0);
                        let passed = Addresses { memory: origin, packed: buffer.as_mut_ptr() };
                        program.range::<true>(None, passed, skip, take);
                        accumulate(&mut buffer, theirs);
                        program.range::<false>(None, Addresses { packed: buffer.as_mut_ptr(), ..passed }, skip, take);
                    }
                }
                at += take;
            }
        }
    }
}

/// Where the origin of a fixed layout lies. `memory`: of the call.
fn origin(memory: *mut u8, copy: &TabledCopy) -> *mut u8 {
    if copy.absolute {
        std::ptr::with_exposed_provenance_mut(copy.place as usize)
    } else {
        memory.wrapping_add(copy.place as usize)
    }
}

/// Moves the bytes of a call to the places of another, through a buffer.
///
/// # Safety
///
/// As for [`run`], for the bytes of both calls, which are as many. `skips`: whether entries of the source may be none.
pub(super) unsafe fn copy(
    (source, from, read): (&TabledType, &HostCall<'_>, *mut u8),
    (target, to, written): (&TabledType, &HostCall<'_>, *mut u8),
    skips: bool,
) {
    /// Bytes that pass through the buffer at a time: they stay in the nearest cache but one.
    const BUFFER: u64 = 64 << 10;
    let mut buffer = vec![0u8; from.bytes().min(BUFFER) as usize];
    let part = |call: &HostCall<'_>, at: u64, bytes: u64| (call.first + at, call.first + at + bytes);
    let mut at = 0;
    while at < from.bytes() {
        let bytes = BUFFER.min(from.bytes() - at);
        let packed = buffer.as_mut_ptr();
        // SAFETY: the parts are those of the calls (contract of this function), and the buffer has as many bytes.
        unsafe {
            let (first, end) = part(to, at, bytes);
            let written_part = HostCall { tables: to.tables.clone(), first, end };
            let (first, end) = part(from, at, bytes);
            let read_part = HostCall { tables: from.tables.clone(), first, end };
            if skips {
                // What the source skips stays as it is.
                run::<true>(target, &written_part, Addresses { memory: written, packed });
            }
            run::<true>(source, &read_part, Addresses { memory: read, packed });
            run::<false>(target, &written_part, Addresses { memory: written, packed });
        }
        at += bytes;
    }
}
