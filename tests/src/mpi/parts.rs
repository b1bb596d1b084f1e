//! Properties of a node that both models need: the positions of its parts, and its own bounds.

use crate::type_map::TypeMap;
use dtc_compiler::datatype::{Constructor, Datatype, GivenBounds};

/// The lowest and highest displacement of a copy of the child of an array, given the extent of the child.
pub(super) fn reach(node: &Datatype, map: &TypeMap) -> Option<(i64, i64)> {
    let mut reach: Option<(i64, i64)> = None;
    map.for_each_placement(node, &mut |at, _| {
        reach = Some(reach.map_or((at, at), |(low, high)| (low.min(at), high.max(at))));
    });
    reach
}

/// The size of a node other than a predefined type, from the sizes of its children.
pub(super) fn size(node: &Datatype, map: &TypeMap) -> u64 {
    let mut size = 0;
    map.for_each_placement(node, &mut |_, child| size += map.bounds_of(child).size);
    size
}

/// The copies of the only child, as `(copies, displacement in bytes)`, for constructors that are lists.
pub(super) fn blocks(constructor: &Constructor, extent: i64) -> Option<Vec<(i64, i64)>> {
    let pairs = |lengths: &[i64], displacements: &[i64], unit: i64| {
        lengths.iter().zip(displacements).map(|(&length, &at)| (length, at * unit)).collect()
    };
    let equal =
        |length: i64, displacements: &[i64], unit: i64| displacements.iter().map(|&at| (length, at * unit)).collect();
    Some(match constructor {
        Constructor::Indexed { blocklengths, displacements } => pairs(blocklengths, displacements, extent),
        Constructor::Hindexed { blocklengths, displacements_bytes } => pairs(blocklengths, displacements_bytes, 1),
        Constructor::IndexedBlock { blocklength, displacements } => equal(*blocklength, displacements, extent),
        Constructor::HindexedBlock { blocklength, displacements_bytes } => equal(*blocklength, displacements_bytes, 1),
        _ => return None,
    })
}

/// The bounds that a node has independently of its parts.
pub(super) fn own(constructor: &Constructor, given: Option<GivenBounds>, extent: i64) -> Option<(i64, i64)> {
    if let Some(GivenBounds { lb, extent }) = given {
        return Some((lb, lb + extent));
    }
    match constructor {
        Constructor::Resized { lb, extent } => Some((*lb, lb + extent)),
        Constructor::Subarray { sizes, .. } => Some((0, sizes.iter().product::<i64>() * extent)),
        Constructor::Darray { gsizes, .. } => Some((0, gsizes.iter().product::<i64>() * extent)),
        _ => None,
    }
}
