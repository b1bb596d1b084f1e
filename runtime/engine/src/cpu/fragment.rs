//! Any byte range of the packed bytes.
//!
//! A range cuts at most two bodies of any loop, one at each end, and leaves whole ones between them. So a worklist of a
//! few cut steps suffices, whatever the depth.

use super::program::{Bound, Program, microkernel};
use super::{Addresses, Kernel};
use dtc_compiler::plan::{Offsets, Part, Step, StepId};
use smallvec::SmallVec;

/// Some bytes of a step. `addresses.packed` is the address that the step's first byte would have.
struct Cut {
    step: StepId,
    addresses: Addresses,
    skip: u64,
    take: u64,
}

/// How a range of bytes divides equal bodies: a cut one, whole ones, a cut one.
struct Division {
    head: Option<(u64, u64)>,
    whole: std::ops::Range<u64>,
    tail: u64,
}

/// Divides `take` bytes from byte `skip` on over bodies of `size` bytes. The head is `(skip, take)` in body
/// `whole.start - 1`, the tail the leading bytes of body `whole.end`.
fn divide(skip: u64, take: u64, size: u64) -> Division {
    let (first, within) = (skip / size, skip % size);
    let head = if within > 0 { Some((within, take.min(size - within))) } else { None };
    let rest = take - head.map_or(0, |(_, taken)| taken);
    let start = first + u64::from(head.is_some());
    Division { head, whole: start..start + rest / size, tail: rest % size }
}

impl Program {
    /// Moves `take` bytes of a count of elements from packed byte `skip` on; `packed` is where byte `skip` lies.
    ///
    /// # Safety
    ///
    /// Every byte of the range is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn range<const PACK: bool>(
        &self,
        kernel: Option<&Kernel>,
        addresses: Addresses,
        skip: u64,
        take: u64,
    ) {
        // SAFETY: `bytes` moves the same range under the same contract.
        unsafe {
            match take {
                0 => {}
                bytes if self.is_non_temporal::<PACK>(bytes) => {
                    self.bytes::<PACK, true>(kernel, addresses, skip, bytes)
                }
                bytes => self.bytes::<PACK, false>(kernel, addresses, skip, bytes),
            }
        }
    }

    /// [`Program::range`] of at least a byte; where `NON_TEMPORAL`, packs bypass the caches.
    ///
    /// # Safety
    ///
    /// As for [`Program::range`].
    unsafe fn bytes<const PACK: bool, const NON_TEMPORAL: bool>(
        &self,
        kernel: Option<&Kernel>,
        addresses: Addresses,
        skip: u64,
        take: u64,
    ) {
        let plan = self.plan();
        let addresses = Addresses { packed: addresses.packed.wrapping_sub(skip as usize), ..addresses };
        let Part { offset, step: root, .. } = plan.root();
        // SAFETY: the bytes that are moved are those of the range, divided.
        unsafe {
            if self.is_contiguous() {
                let addresses = addresses.at(offset + skip as i64, skip);
                return microkernel::<PACK, NON_TEMPORAL>(&Step::Copy { bytes: take }, self.bound(root), addresses);
            }
            let division = divide(skip, take, plan.size());
            let element = |at: u64| addresses.at((at as i64).wrapping_mul(plan.extent()), at * plan.size());
            let whole = division.whole;
            if let Some((skip, take)) = division.head {
                self.cut::<PACK, NON_TEMPORAL>(root, element(whole.start - 1).at(offset, 0), skip, take);
            }
            if !whole.is_empty() {
                let count = whole.end - whole.start;
                match kernel {
                    Some(kernel) => kernel.run::<PACK>(element(whole.start), count),
                    None => self.whole_elements::<PACK, NON_TEMPORAL>(element(whole.start), count),
                }
            }
            if division.tail > 0 {
                self.cut::<PACK, NON_TEMPORAL>(root, element(whole.end).at(offset, 0), 0, division.tail);
            }
        }
    }

    /// Moves some bytes of a step.
    ///
    /// # Safety
    ///
    /// As for [`Program::range`], for those bytes.
    unsafe fn cut<const PACK: bool, const NON_TEMPORAL: bool>(
        &self,
        step: StepId,
        addresses: Addresses,
        skip: u64,
        take: u64,
    ) {
        let mut work: SmallVec<[Cut; 4]> = SmallVec::new();
        work.push(Cut { step, addresses, skip, take });
        while let Some(cut) = work.pop() {
            // SAFETY: the parts of a cut are among its bytes.
            unsafe {
                if cut.skip == 0 && cut.take == self.plan().size_of(cut.step) {
                    self.whole::<PACK, NON_TEMPORAL>(cut.step, cut.addresses);
                } else if matches!(self.bound(cut.step), Bound::Loop | Bound::Groups(_)) {
                    self.cut_loop::<PACK, NON_TEMPORAL>(&cut, &mut work);
                } else {
                    cut_microkernel::<PACK, NON_TEMPORAL>(
                        self.plan().step(cut.step),
                        self.bound(cut.step),
                        cut.addresses,
                        cut.skip,
                        cut.take,
                    );
                }
            }
        }
    }

    /// Moves the whole bodies of a cut loop and leaves the cut ones in `work`.
    ///
    /// # Safety
    ///
    /// As for [`Program::range`], for the bytes of the cut.
    unsafe fn cut_loop<const PACK: bool, const NON_TEMPORAL: bool>(&self, cut: &Cut, work: &mut SmallVec<[Cut; 4]>) {
        let mut push = |iteration: u64, skip: u64, take: u64| {
            if let Some((step, addresses)) = self.body(cut.step, iteration, cut.addresses) {
                work.push(Cut { step, addresses, skip, take });
            }
        };
        let whole = match self.plan().step(cut.step) {
            Step::Repeat { body, .. } | Step::Scatter { body, .. } => {
                let Division { head, whole, tail } = divide(cut.skip, cut.take, self.plan().size_of(*body));
                if let Some((skip, take)) = head {
                    push(whole.start - 1, skip, take);
                }
                if tail > 0 {
                    push(whole.end, 0, tail);
                }
                whole
            }
            Step::Sequence { parts } => {
                let end = cut.skip + cut.take;
                let first = parts.partition_point(|part| part.position <= cut.skip) - 1;
                let last = parts.partition_point(|part| part.position < end) - 1;
                let size = |at: usize| self.plan().size_of(parts[at].step);
                let ends = |at: usize| parts[at].position + size(at);
                let (cut_first, cut_last) = (parts[first].position < cut.skip || ends(first) > end, ends(last) > end);
                if cut_first {
                    let skip = cut.skip - parts[first].position;
                    push(first as u64, skip, cut.take.min(size(first) - skip));
                }
                if cut_last && last > first {
                    push(last as u64, 0, end - parts[last].position);
                }
                (first + usize::from(cut_first)) as u64..(last + usize::from(!cut_last)) as u64
            }
            _ => return,
        };
        // SAFETY: whole bodies inside the range.
        unsafe { self.whole_bodies::<PACK, NON_TEMPORAL>(cut.step, whole, cut.addresses) };
    }
}

/// Moves some bytes of a step that one microkernel carries out.
///
/// # Safety
///
/// As for [`Program::range`], for those bytes.
unsafe fn cut_microkernel<const PACK: bool, const NON_TEMPORAL: bool>(
    step: &Step,
    bound: &Bound,
    addresses: Addresses,
    skip: u64,
    take: u64,
) {
    // Blocks at computed places: the cut ones are copied, the whole ones left to the microkernel.
    let copy = |offset: i64, position: u64, bytes: u64| {
        let Addresses { memory, packed } = addresses.at(offset, position);
        let (destination, source) = if PACK { (packed, memory) } else { (memory, packed) };
        // SAFETY: called below for bytes of the range only.
        unsafe { dtc_microkernels::copy(destination, source, bytes as usize) }
    };
    let blocks = |bytes: u64, offset_of: &dyn Fn(u64) -> i64, whole: &dyn Fn(std::ops::Range<u64>)| {
        let division = divide(skip, take, bytes);
        if let Some((skip, take)) = division.head {
            let block = division.whole.start - 1;
            copy(offset_of(block) + skip as i64, block * bytes + skip, take);
        }
        if division.tail > 0 {
            copy(offset_of(division.whole.end), division.whole.end * bytes, division.tail);
        }
        if !division.whole.is_empty() {
            whole(division.whole);
        }
    };
    // SAFETY: every call moves bytes of the range.
    unsafe {
        match (step, bound) {
            (Step::Copy { .. }, _) => copy(skip as i64, skip, take),
            (&Step::Rows { stride, bytes, .. }, _) => blocks(bytes, &|row| row as i64 * stride, &|whole| {
                let step = Step::Rows { rows: whole.end - whole.start, stride, bytes };
                microkernel::<PACK, NON_TEMPORAL>(
                    &step,
                    bound,
                    addresses.at(whole.start as i64 * stride, whole.start * bytes),
                );
            }),
            (
                &(Step::Planes { plane_stride, rows, stride, bytes, .. }
                | Step::Tile { plane_stride, rows, stride, bytes, .. }),
                _,
            ) => {
                let plane = match *step {
                    Step::Tile { layers, layer_stride, .. } if layers > 1 => {
                        Step::Planes { planes: layers, plane_stride: layer_stride, rows, stride, bytes }
                    }
                    _ => Step::Rows { rows, stride, bytes },
                };
                let size = match *step {
                    Step::Tile { layers, .. } => layers * rows * bytes,
                    _ => rows * bytes,
                };
                let division = divide(skip, take, size);
                let place = |at: u64| addresses.at(at as i64 * plane_stride, at * size);
                if let Some((skip, take)) = division.head {
                    cut_microkernel::<PACK, NON_TEMPORAL>(&plane, bound, place(division.whole.start - 1), skip, take);
                }
                if division.tail > 0 {
                    cut_microkernel::<PACK, NON_TEMPORAL>(&plane, bound, place(division.whole.end), 0, division.tail);
                }
                let planes = division.whole.end - division.whole.start;
                if planes > 0 {
                    let whole = match *step {
                        Step::Tile { layers, layer_stride, .. } => {
                            Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes }
                        }
                        _ => Step::Planes { planes, plane_stride, rows, stride, bytes },
                    };
                    microkernel::<PACK, NON_TEMPORAL>(&whole, bound, place(division.whole.start));
                }
            }
            (Step::List { offsets, bytes }, _) => blocks(*bytes, &|block| offsets.get(block as usize), &|whole| {
                let Addresses { memory, packed } = addresses.at(0, whole.start * bytes);
                let (start, count) = (whole.start as usize, (whole.end - whole.start) as usize);
                match (offsets, bound) {
                    (Offsets::Narrow(offsets), Bound::List32(list)) => {
                        list.of::<PACK>()(memory, packed, offsets[start..].as_ptr(), count, *bytes as usize);
                    }
                    (Offsets::Wide(offsets), Bound::List64(list)) => {
                        list.of::<PACK>()(memory, packed, offsets[start..].as_ptr(), count, *bytes as usize);
                    }
                    // `Program::new` binds lists by their width.
                    _ => {}
                }
            }),
            (Step::Runs(table), Bound::Runs(runs)) => {
                let end = skip + take;
                let first = table.positions.partition_point(|&position| position <= skip) - 1;
                let last = table.positions.partition_point(|&position| position < end) - 1;
                let ends = |at: usize| table.positions[at] + table.runs[at].count;
                let piece = |at: usize, from: u64, to: u64| {
                    let inside = from - table.positions[at];
                    copy(table.runs[at].offset + inside as i64, from, to - from);
                };
                if first == last {
                    return piece(first, skip, end);
                }
                let cut_first = table.positions[first] < skip;
                let cut_last = ends(last) > end;
                if cut_first {
                    piece(first, skip, ends(first));
                }
                if cut_last {
                    piece(last, table.positions[last], end);
                }
                let whole = first + usize::from(cut_first)..last + usize::from(!cut_last);
                if !whole.is_empty() {
                    let Addresses { memory, packed } = addresses.at(0, table.positions[whole.start]);
                    let table = table.runs[whole].as_ref();
                    runs.of::<PACK>()(memory, packed, table.as_ptr(), table.len());
                }
            }
            // Loops do not come here, and runs are bound to their microkernel.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_cover_the_range() {
        for size in 1..7u64 {
            for skip in 0..20 {
                for take in 1..20 {
                    let Division { head, whole, tail } = divide(skip, take, size);
                    let head_take = head.map_or(0, |(_, take)| take);
                    assert_eq!(head_take + (whole.end - whole.start) * size + tail, take);
                    if let Some((within, _)) = head {
                        assert_eq!((whole.start - 1) * size + within, skip);
                    } else {
                        assert_eq!(whole.start * size, skip);
                    }
                    assert!(tail < size);
                }
            }
        }
    }
}
