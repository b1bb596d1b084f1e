//! Size, bounds and alignment of types: the arithmetic of type maps, without the maps.

use super::{Field, Predefined};

/// Bounds that a caller supplies as facts, because MPIs disagree on how bounds follow from children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GivenBounds {
    /// Lower bound in bytes.
    pub lb: i64,
    /// Extent in bytes.
    pub extent: i64,
}

/// What MPI defines for a type, in bytes.
///
/// # Standard sections
///
/// MPI 4.1, 5.1 (type map, size, extent), 5.1.7 (lower and upper bound markers), 5.1.8 (true extent).
///
/// The bounds are those that MPICH and Open MPI compute, wherever the two agree. Elsewhere they follow the standard.
///
/// - A part takes part with its own bounds, padding included, and not with its elements alone.
/// - Markers are sticky: the bounds of a type with resized, subarray or darray parts come from those parts alone.
/// - Without markers, the upper bound is raised until the extent is a multiple of the strictest alignment.
/// - A type without bytes has the bounds 0 and 0, unless it is itself resized, a subarray, a darray or a duplicate of one.
/// - A part without bytes takes part in the bounds of a struct that has some.
///
/// `docs/reference/bounds.md` lists the types on which MPICH or Open MPI differs, and [`super::Mpi::bounds`] computes theirs. A caller that follows such an MPI supplies its bounds
/// ([`super::TypeBuilder::give_bounds`]).
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// let mut types = TypeBuilder::new();
/// let (char, double) = (types.named(Predefined::CHAR), types.named(Predefined::DOUBLE));
/// let padded = types.structure(&[1, 1], &[0, 8], &[double, char])?;
/// let outer = types.structure(&[1, 1], &[4, 8], &[char, padded])?;
/// let facts = types.facts(outer)?;
/// assert_eq!((facts.lb, facts.ub, facts.true_ub), (4, 28, 17));
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Bytes that the type packs to.
    pub size: u64,
    /// Lower bound.
    pub lb: i64,
    /// Upper bound.
    pub ub: i64,
    /// Whether the bounds were set by a marker or by the caller, not computed from the parts.
    pub explicit: bool,
    /// Lowest displacement of a byte; 0 for an empty type.
    pub true_lb: i64,
    /// One past the highest displacement of a byte; 0 for an empty type.
    pub true_ub: i64,
    /// Strictest alignment of the elements; 1 for an empty type.
    pub alignment: u64,
}

impl Facts {
    /// Distance from one element of an array to the next, in bytes.
    pub fn extent(&self) -> i64 {
        // Builders admit bounds only when their difference fits.
        self.ub - self.lb
    }

    /// Bytes from the first to one past the last byte of the type map.
    pub fn true_extent(&self) -> i64 {
        self.true_ub - self.true_lb
    }

    pub(crate) fn of_predefined(predefined: Predefined) -> Facts {
        let end = |field: &Field| field.offset + field.kind.size() as i64;
        Facts {
            size: predefined.size(),
            lb: 0,
            ub: predefined.extent() as i64,
            explicit: false,
            true_lb: 0,
            true_ub: predefined.fields().iter().map(end).max().unwrap_or(0),
            alignment: predefined.alignment(),
        }
    }

    pub(crate) fn with_bounds(mut self, given: GivenBounds) -> Option<Facts> {
        self.lb = given.lb;
        self.ub = given.lb.checked_add(given.extent)?;
        self.explicit = true;
        Some(self)
    }
}

/// Collects blocks of children into the facts of their parent.
pub(crate) struct Union {
    size: i128,
    alignment: u64,
    elements: Displacements,
    /// The bounds of all children.
    parts: Displacements,
    /// The bounds of the children whose bounds are explicit.
    markers: Displacements,
    /// Where children are placed, which must fit 64 bits even where their bytes are far from their origin.
    origins: Displacements,
}

/// A range of displacements, empty at first. 128 bits: two arguments of 64 bits may be multiplied on the way.
#[derive(Clone, Copy)]
struct Displacements {
    low: i128,
    high: i128,
}

impl Displacements {
    const EMPTY: Displacements = Displacements { low: i128::MAX, high: i128::MIN };

    fn is_empty(&self) -> bool {
        // A marker may stand above its partner: extents can be negative.
        self.low == i128::MAX
    }

    fn include(&mut self, low: i128, high: i128) {
        self.low = self.low.min(low);
        self.high = self.high.max(high);
    }
}

impl Union {
    pub(crate) fn new() -> Union {
        Union {
            size: 0,
            alignment: 1,
            elements: Displacements::EMPTY,
            parts: Displacements::EMPTY,
            markers: Displacements::EMPTY,
            origins: Displacements::EMPTY,
        }
    }

    /// Adds `copies` of a child, the first displaced by `first`, the last by `last`, and all between those two.
    pub(crate) fn spread(&mut self, child: &Facts, copies: i128, first: i128, last: i128) {
        if copies == 0 {
            return;
        }
        let (low, high) = (first.min(last), first.max(last));
        self.origins.include(low, high);
        if child.size > 0 {
            self.elements.include(low + i128::from(child.true_lb), high + i128::from(child.true_ub));
        }
        let (lb, ub) = (low + i128::from(child.lb), high + i128::from(child.ub));
        self.parts.include(lb, ub);
        if child.explicit {
            self.markers.include(lb, ub);
        }
        self.alignment = self.alignment.max(child.alignment);
        self.size = self.size.saturating_add(copies.saturating_mul(child.size.into()));
    }

    /// Adds a block: `copies` of a child one extent apart, the first displaced by `displacement`.
    pub(crate) fn block(&mut self, child: &Facts, copies: i64, displacement: i128) {
        let last = displacement + (i128::from(copies) - 1) * i128::from(child.extent());
        self.spread(child, copies.into(), displacement, last);
    }

    /// The facts of the parent; `None` when a number leaves 64 bits.
    pub(crate) fn finish(self) -> Option<Facts> {
        let size = i64::try_from(self.size).ok()? as u64;
        let narrow = |span: Displacements| -> Option<(i64, i64)> {
            if span.is_empty() {
                return Some((0, 0));
            }
            let (low, high) = (i64::try_from(span.low).ok()?, i64::try_from(span.high).ok()?);
            high.checked_sub(low)?;
            Some((low, high))
        };
        narrow(self.origins)?;
        let (true_lb, true_ub) = narrow(self.elements)?;
        let explicit = size > 0 && !self.markers.is_empty();
        let (lb, ub) = if size == 0 {
            (0, 0)
        } else if explicit {
            let (lb, _) = narrow(Displacements { low: self.markers.low, high: self.markers.low })?;
            let (ub, _) = narrow(Displacements { low: self.markers.high, high: self.markers.high })?;
            ub.checked_sub(lb)?;
            (lb, ub)
        } else {
            let (lb, ub) = narrow(self.parts)?;
            let extent = (ub - lb) as u64;
            let padded = i64::try_from(extent.checked_next_multiple_of(self.alignment)?).ok()?;
            (lb, lb.checked_add(padded)?)
        };
        Some(Facts { size, lb, ub, explicit, true_lb, true_ub, alignment: if size == 0 { 1 } else { self.alignment } })
    }
}
