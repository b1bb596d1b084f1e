//! Calls by the copies of the driver: for tables in host memory that lead to few large blocks.

use super::device_end::{DeviceEnd, Packed};
use super::table::TableSource;
use crate::device::copies;
use dtc_compiler::tabled::Entries;
use dtc_cuda::{CudaError, Stream};
use smallvec::SmallVec;

/// Bytes of the shortest block from which on calls are moved by copies of the driver, where they may be: none is as long. The kernel moves blocks of
/// any length at 0.91 to 0.98 of a copy (`bench/results/2026-11-27-gpu-tables.md`), and rows of 576 and 656 bytes faster than copies of the driver
/// (`bench/results/2026-11-28-gpu-table-peers.md`); `dtc-bench --backend cuda --part tables` prints both.
const COPIED_BYTES: u64 = u64::MAX;

/// Copies of a call at most: the processor lists them at each call.
const MOST_COPIES: usize = 1 << 14;

/// Consecutive bytes of one end.
#[derive(Clone, Copy)]
struct Block {
    /// The first packed byte, counted from the first of the call.
    position: u64,
    address: u64,
    bytes: u64,
}

/// One copy.
#[derive(Clone, Copy)]
pub(super) struct DriverCopy {
    to: u64,
    from: u64,
    bytes: u64,
}

/// The copies that move a call; nothing where the kernel is faster, or has to move it. `requested`: whether the caller keeps the multiprocessors.
pub(super) fn of(
    (elements, packed): (&DeviceEnd<'_>, &Packed<'_>),
    bytes: u64,
    unpacks: bool,
    requested: bool,
) -> Option<Vec<DriverCopy>> {
    let is_short =
        |end: &DeviceEnd<'_>| end.shared.layout.fixed_layouts().iter().any(|fixed| fixed.size() < COPIED_BYTES);
    let target_is_short = matches!(packed, Packed::Elements(end) if is_short(end));
    if !requested && (is_short(elements) || target_is_short) {
        return None;
    }
    let memory = blocks(elements, bytes)?;
    let other = match packed {
        Packed::Bytes(address) => vec![Block { position: 0, address: *address, bytes }],
        Packed::Elements(end) => blocks(end, bytes)?,
    };
    let mut copies = Vec::with_capacity(memory.len().max(other.len()));
    let (mut at, mut beside) = (memory.iter(), other.iter());
    let (mut one, mut another) = (at.next(), beside.next());
    while let (Some(first), Some(second)) = (one, another) {
        let (first_end, second_end) = (first.position + first.bytes, second.position + second.bytes);
        let (begin, end) = (first.position.max(second.position), first_end.min(second_end));
        if begin < end {
            if copies.len() == MOST_COPIES {
                return None;
            }
            let [memory, other] = [first, second].map(|block| block.address.wrapping_add(begin - block.position));
            let (to, from) = if unpacks { (memory, other) } else { (other, memory) };
            copies.push(DriverCopy { to, from, bytes: end - begin });
        }
        if first_end <= second_end {
            one = at.next();
        }
        if second_end <= first_end {
            another = beside.next();
        }
    }
    Some(copies)
}

/// The blocks of an end in packed order, those that follow each other on both sides as one. Nothing where they have gaps, where they are too many, or
/// where a table lies where the processor does not read it.
fn blocks(end: &DeviceEnd<'_>, bytes: u64) -> Option<Vec<Block>> {
    let tables = end.tables.iter().map(|table| match table.source() {
        TableSource::Host(entries) => Some(entries),
        TableSource::Anywhere { .. } => None,
    });
    let tables: SmallVec<[Entries<'_>; 4]> = tables.collect::<Option<_>>()?;
    let (layout, first, last) = (&end.shared.layout, end.first, end.first + bytes);
    let mut found: Vec<Block> = Vec::new();
    for block in layout.blocks(&tables, first, last) {
        let (offset, _) = layout.fixed_layouts()[block.fixed].contiguous()?;
        for copy in block.copies() {
            let (begin, stop) = (copy.position.max(first), (copy.position + block.bytes).min(last));
            let base = if copy.absolute { copy.place } else { end.address.wrapping_add(copy.place) };
            let address = base.wrapping_add(offset as u64).wrapping_add(begin - copy.position);
            let (position, bytes) = (begin - first, stop - begin);
            let is_full = found.len() == MOST_COPIES;
            match found.last_mut() {
                Some(before)
                    if before.position + before.bytes == position
                        && before.address.wrapping_add(before.bytes) == address =>
                {
                    before.bytes += bytes;
                }
                _ if is_full => return None,
                _ => found.push(Block { position, address, bytes }),
            }
        }
    }
    Some(found)
}

/// Enqueues copies, in one call if the driver can.
///
/// # Safety
///
/// The device reaches both sides of each, which do not overlap, until the work is done.
pub(super) unsafe fn enqueue(stream: &Stream, copies: &[DriverCopy]) -> Result<(), CudaError> {
    let [mut to, mut from] = [Vec::with_capacity(copies.len()), Vec::with_capacity(copies.len())];
    let mut lengths = Vec::with_capacity(copies.len());
    for copy in copies {
        to.push(copy.to);
        from.push(copy.from);
        lengths.push(copy.bytes as usize);
    }
    // SAFETY: the lists are equally long, and the contract of this function covers each copy.
    unsafe { copies::enqueue_listed(stream, to, from, lengths) }
}
