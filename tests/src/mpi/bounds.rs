//! Bounds of every node of a type in each MPI.

use super::Mpi;
use crate::type_map::Bounds;
use dtc_compiler::datatype::{Constructor, Datatype, Distribution, MpiBounds};
use dtc_compiler::layout::Kind;
use std::collections::HashSet;

/// The bounds of every node of a type, by the index of the node, according to the model of an MPI. A type without bytes
/// has no `true_lb` and `true_ub`.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::text;
/// use dtc_tests::mpi::{Mpi, bounds};
/// let rows = text::parse("hvector 2 1 5 int")?;
/// let extent = |mpi| bounds::of(mpi, &rows)[rows.nodes().place(&rows)].extent();
/// assert_eq!((extent(Mpi::Mpich), extent(Mpi::OpenMpi)), (9, 12));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn of(mpi: Mpi, datatype: &Datatype) -> Vec<Bounds> {
    let all = mpi.bounds(datatype).expect("bounds that fit 64 bits");
    let bounds = all.into_iter().map(|MpiBounds { size, lb, ub, true_lb, true_ub, alignment }| Bounds {
        size,
        lb,
        ub,
        true_lb,
        true_ub,
        alignment,
    });
    bounds.collect()
}

/// Whether a type can be built with an MPI, which must have every predefined type and accept every argument.
///
/// MPI has no arrays without axes or elements. Open MPI mistakes a stride of -1 byte for one extent, and refuses some
/// darrays of types without bytes. Types with two equal nodes are excluded, because MPICH distinguishes types by their
/// handles, and such nodes may share one.
pub fn can_be_asked(datatype: &Datatype) -> bool {
    let (mut seen, nodes, bounds) = (HashSet::new(), datatype.nodes(), of(Mpi::OpenMpi, datatype));
    nodes.iter().all(|node| {
        let places: Vec<usize> = node.children().iter().map(|child| nodes.place(child)).collect();
        let extent = places.first().map_or(0, |&child| bounds[child].extent());
        let has_bytes = || places.iter().all(|&child| bounds[child].size > 0);
        let arguments = match node.constructor() {
            Constructor::Vector { stride, .. } => stride * extent != -1,
            Constructor::Hvector { stride_bytes, .. } => *stride_bytes != -1,
            Constructor::Named(predefined) => return !UNAVAILABLE.contains(&predefined.name()),
            Constructor::Subarray { sizes, subsizes, .. } => !sizes.is_empty() && !subsizes.contains(&0),
            Constructor::Darray { gsizes, .. } => !gsizes.is_empty() && !gsizes.contains(&0) && has_bytes(),
            _ => true,
        };
        arguments && seen.insert(format!("{:?} {:?} {places:?}", node.constructor(), node.given()))
    })
}

/// Predefined types that one MPI lacks, or does not align like C: MPICH aligns the 16-byte floats of Fortran to 1.
const UNAVAILABLE: [&str; 9] = [
    "MPI_INTEGER16",
    "MPI_REAL2",
    "MPI_REAL16",
    "MPI_COMPLEX4",
    "MPI_COMPLEX32",
    "MPI_LOGICAL1",
    "MPI_LOGICAL2",
    "MPI_LOGICAL4",
    "MPI_LOGICAL8",
];

/// Whether the MPI packs the bytes of the type map.
///
/// MPICH moves `long double` by value, without its 6 bytes of padding, and misplaces elements in blocks of a type with
/// a negative extent. For some structs with bytes and a part without bytes, MPICH divides by zero, and Open MPI
/// misplaces elements.
pub fn packs_the_type_map(mpi: Mpi, datatype: &Datatype) -> bool {
    let (nodes, all) = (datatype.nodes(), of(mpi, datatype));
    let bounds = |node: &Datatype| &all[nodes.place(node)];
    nodes.iter().all(|node| match node.constructor() {
        Constructor::Named(predefined) => {
            let is_long_double = |kind| matches!(kind, Kind::F80 | Kind::C160);
            mpi != Mpi::Mpich || !predefined.fields().iter().any(|field| is_long_double(field.kind))
        }
        Constructor::Struct { blocklengths, .. } => {
            let has_bytes = |(child, length): (&Datatype, &i64)| *length == 0 || bounds(child).size > 0;
            bounds(node).size == 0 || node.children().iter().zip(blocklengths.iter()).all(has_bytes)
        }
        Constructor::Resized { .. } | Constructor::Dup => true,
        _ => mpi != Mpi::Mpich || node.children().iter().all(|child| bounds(child).extent() >= 0),
    })
}

/// Whether the MPI returns the true bounds of the type map. Open MPI does not set those of types without bytes; MPICH
/// includes the position of a block without elements in cyclic arrays.
pub fn has_true_bounds(mpi: Mpi, datatype: &Datatype) -> bool {
    let is_cyclic = |node: &&Datatype| match node.constructor() {
        Constructor::Darray { distributions, .. } => {
            distributions.iter().any(|distribution| matches!(distribution, Distribution::Cyclic(_)))
        }
        _ => false,
    };
    datatype.facts().size > 0 && (mpi != Mpi::Mpich || !datatype.nodes().iter().any(is_cyclic))
}
