//! Any byte range of the packed bytes.
//!
//! A range cuts at most two bodies of any loop, one at each end, and leaves whole ones between them. So a worklist of a
//! few cut steps suffices, whatever the depth.

use super::program::{Bound, Program, microkernel};
use super::{Addresses, CpuKernel};
use dtc_compiler::plan::{Offsets, Part, RunTable, Step, StepId};
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
        kernel: Option<&CpuKernel>,
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
        kernel: Option<&CpuKernel>,
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
                    let Cut { step, addresses, skip, take } = cut;
                    let (step, bound) = (self.plan().step(step), self.bound(step));
                    CutStep { step, bound, addresses, skip, take }.run::<PACK, NON_TEMPORAL>();
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

/// Some bytes of a step that one microkernel carries out: `take` of them, from byte `skip` of the step on.
struct CutStep<'a> {
    step: &'a Step,
    bound: &'a Bound,
    /// Those of the first byte of the step.
    addresses: Addresses,
    skip: u64,
    take: u64,
}

impl CutStep<'_> {
    /// Moves the bytes.
    ///
    /// # Safety
    ///
    /// As for [`Program::range`], for the bytes.
    unsafe fn run<const PACK: bool, const NON_TEMPORAL: bool>(&self) {
        // SAFETY: every method moves the bytes of this cut, under the same contract.
        unsafe {
            match *self.step {
                Step::Copy { .. } => self.copy::<PACK>(self.skip as i64, self.skip, self.take),
                Step::Rows { stride, bytes, .. } => self.rows::<PACK, NON_TEMPORAL>(stride, bytes),
                Step::Planes { plane_stride, rows, stride, bytes, .. } => {
                    let plane = Step::Rows { rows, stride, bytes };
                    let planes = |planes| Step::Planes { planes, plane_stride, rows, stride, bytes };
                    self.planes::<PACK, NON_TEMPORAL>(plane_stride, rows * bytes, &plane, planes);
                }
                Step::Tile { plane_stride, layers, layer_stride, rows, stride, bytes, .. } => {
                    let plane = match layers {
                        1 => Step::Rows { rows, stride, bytes },
                        _ => Step::Planes { planes: layers, plane_stride: layer_stride, rows, stride, bytes },
                    };
                    let planes =
                        |planes| Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes };
                    self.planes::<PACK, NON_TEMPORAL>(plane_stride, layers * rows * bytes, &plane, planes);
                }
                Step::List { ref offsets, bytes } => self.list::<PACK>(offsets, bytes),
                Step::Runs(ref table) => self.runs::<PACK>(table),
                // Loops do not come here.
                _ => {}
            }
        }
    }

    /// Copies `bytes` contiguous bytes, at an offset in memory and a position in the packed bytes of the step.
    ///
    /// # Safety
    ///
    /// As for [`CutStep::run`]; the bytes are among those of the cut.
    unsafe fn copy<const PACK: bool>(&self, offset: i64, position: u64, bytes: u64) {
        let Addresses { memory, packed } = self.addresses.at(offset, position);
        let (destination, source) = if PACK { (packed, memory) } else { (memory, packed) };
        // SAFETY: the bytes are readable and writable where they should be, and do not overlap (contract of this function).
        unsafe { dtc_microkernels::copy(destination, source, bytes as usize) }
    }

    /// Copies the cut blocks among blocks of `bytes` bytes at computed offsets, and returns the whole ones between them.
    ///
    /// # Safety
    ///
    /// As for [`CutStep::run`]; the step has blocks of this length at these offsets.
    unsafe fn cut_blocks<const PACK: bool>(&self, bytes: u64, offset: impl Fn(u64) -> i64) -> std::ops::Range<u64> {
        let Division { head, whole, tail } = divide(self.skip, self.take, bytes);
        // SAFETY: head and tail are among the bytes of the cut.
        unsafe {
            if let Some((skip, take)) = head {
                let block = whole.start - 1;
                self.copy::<PACK>(offset(block) + skip as i64, block * bytes + skip, take);
            }
            if tail > 0 {
                self.copy::<PACK>(offset(whole.end), whole.end * bytes, tail);
            }
        }
        whole
    }

    /// # Safety
    ///
    /// As for [`CutStep::run`].
    unsafe fn rows<const PACK: bool, const NON_TEMPORAL: bool>(&self, stride: i64, bytes: u64) {
        // SAFETY: the cut and the whole rows are those of the cut.
        unsafe {
            let whole = self.cut_blocks::<PACK>(bytes, |row| row as i64 * stride);
            if !whole.is_empty() {
                let step = Step::Rows { rows: whole.end - whole.start, stride, bytes };
                let addresses = self.addresses.at(whole.start as i64 * stride, whole.start * bytes);
                microkernel::<PACK, NON_TEMPORAL>(&step, self.bound, addresses);
            }
        }
    }

    /// Moves planes of `size` bytes: cut ones as the step `plane`, whole ones as the step that `planes` makes of their number.
    ///
    /// # Safety
    ///
    /// As for [`CutStep::run`].
    unsafe fn planes<const PACK: bool, const NON_TEMPORAL: bool>(
        &self,
        stride: i64,
        size: u64,
        plane: &Step,
        planes: impl Fn(u64) -> Step,
    ) {
        let Division { head, whole, tail } = divide(self.skip, self.take, size);
        let cut = |at: u64, skip: u64, take: u64| {
            let addresses = self.addresses.at(at as i64 * stride, at * size);
            CutStep { step: plane, bound: self.bound, addresses, skip, take }
        };
        // SAFETY: the cut and the whole planes are those of the cut.
        unsafe {
            if let Some((skip, take)) = head {
                cut(whole.start - 1, skip, take).run::<PACK, NON_TEMPORAL>();
            }
            if tail > 0 {
                cut(whole.end, 0, tail).run::<PACK, NON_TEMPORAL>();
            }
            if !whole.is_empty() {
                let addresses = self.addresses.at(whole.start as i64 * stride, whole.start * size);
                microkernel::<PACK, NON_TEMPORAL>(&planes(whole.end - whole.start), self.bound, addresses);
            }
        }
    }

    /// # Safety
    ///
    /// As for [`CutStep::run`].
    unsafe fn list<const PACK: bool>(&self, offsets: &Offsets, bytes: u64) {
        // SAFETY: the cut and the whole blocks are those of the cut.
        unsafe {
            let whole = self.cut_blocks::<PACK>(bytes, |block| offsets.get(block as usize));
            if whole.is_empty() {
                return;
            }
            let Addresses { memory, packed } = self.addresses.at(0, whole.start * bytes);
            let (start, count) = (whole.start as usize, (whole.end - whole.start) as usize);
            match (offsets, self.bound) {
                (Offsets::Narrow(offsets), Bound::List32(list)) => {
                    list.of::<PACK>()(memory, packed, offsets[start..].as_ptr(), count, bytes as usize);
                }
                (Offsets::Wide(offsets), Bound::List64(list)) => {
                    list.of::<PACK>()(memory, packed, offsets[start..].as_ptr(), count, bytes as usize);
                }
                // `Program::new` binds lists by their width.
                _ => {}
            }
        }
    }

    /// # Safety
    ///
    /// As for [`CutStep::run`].
    unsafe fn runs<const PACK: bool>(&self, table: &RunTable) {
        // `Program::new` binds runs to their microkernel.
        let Bound::Runs(runs) = self.bound else { return };
        let end = self.skip + self.take;
        let first = table.positions.partition_point(|&position| position <= self.skip) - 1;
        let last = table.positions.partition_point(|&position| position < end) - 1;
        let ends = |at: usize| table.positions[at] + table.runs[at].count;
        let piece = |at: usize, from: u64, to: u64| {
            let inside = from - table.positions[at];
            // SAFETY: called below for bytes of the cut only.
            unsafe { self.copy::<PACK>(table.runs[at].offset + inside as i64, from, to - from) };
        };
        if first == last {
            return piece(first, self.skip, end);
        }
        let cut_first = table.positions[first] < self.skip;
        let cut_last = ends(last) > end;
        if cut_first {
            piece(first, self.skip, ends(first));
        }
        if cut_last {
            piece(last, table.positions[last], end);
        }
        let whole = first + usize::from(cut_first)..last + usize::from(!cut_last);
        if !whole.is_empty() {
            let Addresses { memory, packed } = self.addresses.at(0, table.positions[whole.start]);
            let table = &table.runs[whole];
            // SAFETY: whole runs inside the cut.
            unsafe { runs.of::<PACK>()(memory, packed, table.as_ptr(), table.len()) };
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
