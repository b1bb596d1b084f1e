//! Size, bounds and segments of types, from those of their children: what MPICH asks after every creation.
//!
//! The bounds are those of MPICH, which differ from the standard's: every part takes part in them, resized or not, and
//! structs alone are padded to their alignment.

use crate::builtin::Builtin;
use dtc_compiler::datatype::Field;

/// What is known of a type as soon as it exists. Offsets are in bytes from the address the type is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Packed bytes.
    pub(crate) size: u64,
    pub(crate) lb: i64,
    pub(crate) ub: i64,
    pub(crate) true_lb: i64,
    pub(crate) true_ub: i64,
    /// Where the first packed byte lies.
    pub(crate) first: i64,
    /// One past where the last packed byte lies.
    pub(crate) last: i64,
    /// Contiguous segments in packed order, neighbours joined.
    pub(crate) segments: u64,
    pub(crate) alignment: u64,
    /// The size of its basic elements, if they have one size; otherwise 0.
    pub(crate) unit: u64,
    /// Its basic elements, if they are all of one type.
    pub(crate) basic: Option<Builtin>,
}

impl Shape {
    /// Of a type without bytes.
    pub(crate) const EMPTY: Shape = Shape {
        size: 0,
        lb: 0,
        ub: 0,
        true_lb: 0,
        true_ub: 0,
        first: 0,
        last: 0,
        segments: 0,
        alignment: 1,
        unit: 1,
        basic: None,
    };

    /// From one element of an array to the next.
    #[inline]
    pub(crate) fn extent(&self) -> i64 {
        // Every shape was made by functions that check that it fits.
        self.ub - self.lb
    }

    /// Whether an array of the type is one segment. So it is with the type without bytes.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.segments <= 1 && i128::from(self.ub) - i128::from(self.lb) == i128::from(self.size)
    }

    /// Copies, `stride` bytes apart; nothing if a number leaves 64 bits.
    pub(crate) fn repeated(&self, copies: u64, stride: i64) -> Option<Shape> {
        if copies == 1 {
            return Some(*self);
        }
        if copies == 0 {
            return Some(Shape::EMPTY);
        }
        let span = i64::try_from(copies - 1).ok()?.checked_mul(stride)?;
        let (down, up) = (span.min(0), span.max(0));
        let joined = if self.size > 0 && self.first.checked_add(stride)? == self.last { copies - 1 } else { 0 };
        Shape {
            size: self.size.checked_mul(copies)?,
            lb: self.lb.checked_add(down)?,
            ub: self.ub.checked_add(up)?,
            true_lb: self.true_lb.checked_add(down)?,
            true_ub: self.true_ub.checked_add(up)?,
            first: self.first,
            last: self.last.checked_add(span)?,
            segments: self.segments.checked_mul(copies)? - joined,
            ..*self
        }
        .checked()
    }

    /// A block: copies one extent apart.
    pub(crate) fn block(&self, copies: u64) -> Option<Shape> {
        self.repeated(copies, self.extent())
    }

    /// With other bounds.
    pub(crate) fn resized(&self, lb: i64, extent: i64) -> Option<Shape> {
        Shape { lb, ub: lb.checked_add(extent)?, ..*self }.checked()
    }

    /// With its upper bound raised to a whole multiple of the alignment, as in structs.
    pub(crate) fn padded(&self) -> Option<Shape> {
        // The remainder is C's: with a negative extent it is negative.
        let rest = self.extent() % self.alignment as i64;
        if rest == 0 {
            return Some(*self);
        }
        Shape { ub: self.ub.checked_add(self.alignment as i64 - rest)?, ..*self }.checked()
    }

    /// If its size and extents fit 63 bits.
    fn checked(self) -> Option<Shape> {
        i64::try_from(self.size).ok()?;
        self.ub.checked_sub(self.lb)?;
        self.true_ub.checked_sub(self.true_lb)?;
        Some(self)
    }
}

impl Builtin {
    /// Size, bounds and segments.
    pub(crate) fn shape(self) -> Shape {
        let Some(predefined) = self.predefined() else { return Shape::EMPTY };
        let fields = predefined.fields();
        let end = |field: &Field| field.offset + field.kind.size() as i64;
        let touching = fields.windows(2).filter(|pair| end(&pair[0]) == pair[1].offset).count();
        let last = fields.last().map_or(0, end);
        Shape {
            size: predefined.size(),
            lb: 0,
            ub: predefined.extent() as i64,
            true_lb: 0,
            true_ub: last,
            first: 0,
            last,
            segments: (fields.len() - touching) as u64,
            alignment: predefined.alignment(),
            unit: predefined.size(),
            basic: Some(self),
        }
    }
}

/// Collects parts, each displaced, into the shape of the whole.
pub(crate) struct Union {
    all: Shape,
    any: bool,
    fits: bool,
}

impl Union {
    pub(crate) fn new() -> Union {
        Union { all: Shape::EMPTY, any: false, fits: true }
    }

    /// Adds a part behind those added before.
    #[inline]
    pub(crate) fn add(&mut self, part: &Shape, displacement: i64) {
        let mut over = false;
        let mut moved = |offset: i64| {
            let (moved, wrapped) = offset.overflowing_add(displacement);
            over |= wrapped;
            moved
        };
        let (lb, ub) = (moved(part.lb), moved(part.ub));
        let (true_lb, true_ub) = (moved(part.true_lb), moved(part.true_ub));
        let (first, last) = (moved(part.first), moved(part.last));
        self.fits &= !over;
        let all = &mut self.all;
        (all.lb, all.ub) = if self.any { (all.lb.min(lb), all.ub.max(ub)) } else { (lb, ub) };
        all.alignment = all.alignment.max(part.alignment);
        self.any = true;
        if part.size == 0 {
            return;
        }
        if all.size == 0 {
            (all.true_lb, all.true_ub) = (true_lb, true_ub);
            (all.first, all.unit, all.basic) = (first, part.unit, part.basic);
        } else {
            (all.true_lb, all.true_ub) = (all.true_lb.min(true_lb), all.true_ub.max(true_ub));
            all.unit = if all.unit == part.unit { part.unit } else { 0 };
            all.basic = all.basic.filter(|_| all.basic == part.basic);
            all.segments = all.segments.wrapping_sub(u64::from(all.last == first));
        }
        // Each part fits 63 bits, so a sum that leaves them is seen at once.
        let (size, segments) = (all.size.wrapping_add(part.size), all.segments.wrapping_add(part.segments));
        self.fits &= (size | segments) <= i64::MAX as u64;
        (all.size, all.segments, all.last) = (size, segments, last);
    }

    /// The shape of the whole; nothing if a number left 64 bits.
    pub(crate) fn finish(self) -> Option<Shape> {
        if self.fits { self.all.checked() } else { None }
    }
}

/// Equal parts at these displacements; nothing if a number leaves 64 bits. There is at least one.
pub(crate) fn listed(part: &Shape, displacements: &[i64]) -> Option<Shape> {
    let (&begin, &end) = displacements.first().zip(displacements.last())?;
    let (mut low, mut high) = (begin, begin);
    let mut joined = 0;
    // Where the next displacement must be for its first byte to follow the last. If this wraps, the bounds do not fit.
    let reach = part.last.wrapping_sub(part.first);
    let mut follows = displacements[0].wrapping_add(reach);
    for &displacement in &displacements[1..] {
        low = low.min(displacement);
        high = high.max(displacement);
        joined += u64::from(displacement == follows);
        follows = displacement.wrapping_add(reach);
    }
    let parts = displacements.len() as u64;
    Shape {
        size: part.size.checked_mul(parts)?,
        lb: part.lb.checked_add(low)?,
        ub: part.ub.checked_add(high)?,
        true_lb: part.true_lb.checked_add(low)?,
        true_ub: part.true_ub.checked_add(high)?,
        first: part.first.checked_add(begin)?,
        last: part.last.checked_add(end)?,
        segments: part.segments.checked_mul(parts)? - joined,
        ..*part
    }
    .checked()
}

/// Blocks of these lengths at these displacements, of a child that has bytes; nothing if a length is not positive or a number
/// leaves 64 bits. There is at least one.
pub(crate) fn listed_blocks(child: &Shape, blocklengths: &[i64], displacements: &[i64]) -> Option<Shape> {
    let extent = child.extent();
    let (mut longest, mut shortest, mut copies) = (0, 1, 0i128);
    for &length in blocklengths {
        longest = longest.max(length);
        shortest = shortest.min(length);
        copies += i128::from(length);
    }
    let copies = i64::try_from(copies).ok().filter(|_| shortest == 1)?;
    // No block reaches farther than this, so that nothing below can leave 64 bits but the displacements do.
    let reach = longest.checked_mul(extent.checked_abs()?)?;
    let farthest = child.first.checked_abs()?.max(child.last.checked_abs()?).checked_add(reach)?;
    let extremes = displacements.iter().fold((0, 0), |(low, high), &each| (each.min(low), each.max(high)));
    extremes.0.checked_sub(farthest)?;
    extremes.1.checked_add(farthest)?;

    let (mut low, mut high) = (i64::MAX, i64::MIN);
    let (first, mut last, mut joined) = (displacements.first()?.wrapping_add(child.first), None, 0i64);
    for (&length, &displacement) in blocklengths.iter().zip(displacements) {
        let end = displacement.wrapping_add((length - 1).wrapping_mul(extent));
        low = low.min(displacement.min(end));
        high = high.max(displacement.max(end));
        joined += i64::from(last == Some(displacement.wrapping_add(child.first)));
        last = Some(end.wrapping_add(child.last));
    }
    // Copies of a block may touch, too.
    if child.first.checked_add(extent)? == child.last {
        joined = joined.checked_add(copies - blocklengths.len() as i64)?;
    }
    Shape {
        size: child.size.checked_mul(copies as u64)?,
        lb: child.lb.checked_add(low)?,
        ub: child.ub.checked_add(high)?,
        true_lb: child.true_lb.checked_add(low)?,
        true_ub: child.true_ub.checked_add(high)?,
        first,
        last: last?,
        segments: child.segments.checked_mul(copies as u64)?.checked_sub(joined as u64)?,
        ..*child
    }
    .checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Shape = Shape {
        size: 4,
        lb: 0,
        ub: 4,
        true_lb: 0,
        true_ub: 4,
        first: 0,
        last: 4,
        segments: 1,
        alignment: 4,
        unit: 4,
        basic: None,
    };

    #[test]
    fn a_vector_has_gaps_and_a_block_has_none() {
        let vector = INT.repeated(3, 8).unwrap();
        assert_eq!((vector.size, vector.extent(), vector.segments), (12, 20, 3));
        let block = INT.block(3).unwrap();
        assert_eq!((block.segments, block.is_contiguous()), (1, true));
        let backwards = INT.repeated(3, -8).unwrap();
        assert_eq!((backwards.lb, backwards.ub, backwards.first, backwards.last), (-16, 4, 0, -12));
    }

    #[test]
    fn every_part_takes_part_in_the_bounds() {
        // On the standard's rules the resized part alone would set them.
        let narrow = INT.resized(0, 16).unwrap();
        let mut union = Union::new();
        union.add(&INT, 0);
        union.add(&narrow, 64);
        let whole = union.finish().unwrap();
        assert_eq!((whole.lb, whole.ub, whole.true_ub), (0, 80, 68));
    }

    #[test]
    fn joined_segments_count_once() {
        let list = listed(&INT, &[8, 12, 0, 4]).unwrap();
        assert_eq!((list.segments, list.lb, list.ub, list.first, list.last), (2, 0, 16, 8, 8));
        assert!(!list.is_contiguous());
        assert!(listed(&INT, &[0, 4, 8]).unwrap().is_contiguous());
    }

    #[test]
    fn a_list_of_blocks_is_the_union_of_its_blocks() {
        let pair = INT.repeated(2, 12).unwrap().resized(-4, 20).unwrap();
        for child in [INT, pair, INT.resized(0, -8).unwrap(), INT.resized(0, 0).unwrap()] {
            let (lengths, places) = ([2, 1, 3, 1], [8, 16, -20, -8]);
            let mut union = Union::new();
            for (&length, &place) in lengths.iter().zip(&places) {
                union.add(&child.block(length as u64).unwrap(), place);
            }
            assert_eq!(listed_blocks(&child, &lengths, &places), union.finish());
        }
        assert_eq!(listed_blocks(&INT, &[i64::MAX, 1], &[0, 0]), None);
    }

    #[test]
    fn what_leaves_64_bits_is_refused() {
        assert_eq!(INT.repeated(u64::MAX, 4), None);
        assert_eq!(INT.repeated(3, i64::MAX / 2 + 1), None);
        assert_eq!(listed(&INT, &[i64::MIN, i64::MAX]), None);
        assert_eq!(INT.resized(i64::MAX, 1), None);
    }
}
