//! Properties of a node that both models need: the positions of its parts, and its own bounds.
//!
//! Two numbers of 64 bits may be multiplied on the way, so that displacements have 128; a node whose own numbers leave 64 has no bounds.

use crate::datatype::array::{AxisBlocks, axes_of_darray, axes_of_subarray};
use crate::datatype::{Constructor, Datatype};

/// A block: copies of a child, one extent apart, and the displacement of the first in bytes.
pub(super) type Block = (i64, i128);

/// The lowest and highest displacement of a copy of the child of an array, given the extent of the child; `None` inside if there are no copies.
/// `None` if they leave 64 bits.
pub(super) fn reach(constructor: &Constructor, extent: i128) -> Option<Option<(i128, i128)>> {
    let axes = match constructor {
        Constructor::Subarray { sizes, subsizes, starts, order } => axes_of_subarray(sizes, subsizes, starts, *order),
        Constructor::Darray { rank, gsizes, distributions, psizes, order, .. } => {
            axes_of_darray(*rank, gsizes, distributions, psizes, *order)
        }
        _ => return Some(None),
    };
    if axes.iter().any(|axis| axis.selected() == 0) {
        return Some(None);
    }
    let corner = |index: fn(&AxisBlocks) -> i64| {
        let index =
            axes.iter().try_fold(0i128, |sum, axis| sum.checked_add(axis.step.checked_mul(index(axis).into())?))?;
        narrow(index.checked_mul(extent)?)
    };
    let (first, last) = (corner(|axis| axis.first)?, corner(|axis| axis.last().unwrap_or(0))?);
    Some(Some((first.min(last), first.max(last))))
}

/// The copies of the only child, for constructors that are lists; `None` if a displacement leaves 64 bits.
pub(super) fn blocks(constructor: &Constructor, extent: i128) -> Option<Vec<Block>> {
    let place = |at: i64, unit: i128| narrow(i128::from(at) * unit);
    let pairs = |lengths: &[i64], displacements: &[i64], unit: i128| {
        lengths.iter().zip(displacements).map(|(&length, &at)| Some((length, place(at, unit)?))).collect()
    };
    let equal = |length: i64, displacements: &[i64], unit: i128| {
        displacements.iter().map(|&at| Some((length, place(at, unit)?))).collect()
    };
    match constructor {
        Constructor::Indexed { blocklengths, displacements } => pairs(blocklengths, displacements, extent),
        Constructor::Hindexed { blocklengths, displacements_bytes } => pairs(blocklengths, displacements_bytes, 1),
        Constructor::IndexedBlock { blocklength, displacements } => equal(*blocklength, displacements, extent),
        Constructor::HindexedBlock { blocklength, displacements_bytes } => equal(*blocklength, displacements_bytes, 1),
        _ => Some(Vec::new()),
    }
}

/// The bounds that a node has independently of its parts; `None` inside if it has none, `None` if they leave 64 bits.
pub(super) fn own(node: &Datatype, extent: i128) -> Option<Option<(i128, i128)>> {
    let whole = |sizes: &[i64]| {
        let elements = sizes.iter().try_fold(1i128, |product, &size| product.checked_mul(size.into()))?;
        Some(Some((0, narrow(elements.checked_mul(extent)?)?)))
    };
    let from = |lb: i64, extent: i64| Some(Some((lb.into(), narrow(i128::from(lb) + i128::from(extent))?)));
    if let Some(given) = node.given() {
        return from(given.lb, given.extent);
    }
    match node.constructor() {
        Constructor::Resized { lb, extent } => from(*lb, *extent),
        Constructor::Subarray { sizes, .. } => whole(sizes),
        Constructor::Darray { gsizes, .. } => whole(gsizes),
        _ => Some(None),
    }
}

/// A number that fits 64 bits, or nothing.
pub(super) fn narrow(number: i128) -> Option<i128> {
    i64::try_from(number).ok().map(i128::from)
}

/// The upper bound of a struct, raised until the extent is a multiple of the alignment. This is C's remainder: a negative extent gives a
/// negative one.
pub(super) fn padded(lb: i128, ub: i128, alignment: i128) -> i128 {
    match (ub - lb) % alignment {
        0 => ub,
        rest => ub + alignment - rest,
    }
}
