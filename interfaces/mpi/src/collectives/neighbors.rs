//! The processes that a collective sends to and receives from.

use super::arguments::{rank_of, topology_of};
use crate::abi::{Abi, MPI_SUCCESS};
use crate::pmpi::pmpi;
use std::ffi::c_int;

/// A block of a call: its process, and its place in the arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// The rank.
    pub peer: c_int,
    /// The place.
    pub at: usize,
}

/// One direction: blocks in the order of processes, those of one in the order of the call, as the MPI matches them.
pub type Edges = Vec<Edge>;

/// The blocks of a call in this order, without those for no process.
fn ordered<A: Abi>(ranks: &[c_int]) -> Edges {
    let none = A::CONSTANTS.proc_null;
    let edges = ranks.iter().enumerate().filter(|(_, peer)| **peer != none).map(|(at, peer)| Edge { peer: *peer, at });
    let mut edges: Edges = edges.collect();
    edges.sort_unstable();
    edges
}

/// The neighbors in a Cartesian grid; none if some process is a neighbor twice: MPIs differ in which block goes where.
fn of_grid<A: Abi>(communicator: A::Handle, length: usize) -> Option<Vec<c_int>> {
    let mut ranks = Vec::with_capacity(length);
    for axis in 0..length / 2 {
        let (mut before, mut after) = (0, 0);
        // SAFETY: a communicator of the program, and both are writable.
        let told = unsafe { (pmpi::<A>().cart_shift)(communicator, axis as c_int, 1, &mut before, &mut after) };
        if told != MPI_SUCCESS {
            return None;
        }
        ranks.extend([before, after]);
    }
    let mut known: Vec<c_int> = ranks.iter().copied().filter(|rank| *rank != A::CONSTANTS.proc_null).collect();
    let count = known.len();
    known.sort_unstable();
    known.dedup();
    (known.len() == count).then_some(ranks)
}

/// The processes of a graph, as it was made: those that are sent to, and those that are received from.
fn of_graph<A: Abi>(communicator: A::Handle, out: usize, input: usize) -> Option<(Vec<c_int>, Vec<c_int>)> {
    let pmpi = pmpi::<A>();
    let (mut to, mut from) = (vec![0; out], vec![0; input]);
    if topology_of::<A>(communicator)? == A::CONSTANTS.graph {
        let own = rank_of::<A>(communicator)?;
        // SAFETY: a communicator of the program, and room for its neighbors.
        let told = unsafe { (pmpi.graph_neighbors)(communicator, own, out as c_int, to.as_mut_ptr()) };
        return (told == MPI_SUCCESS).then(|| (to.clone(), to));
    }
    let mut weights = vec![0; out.max(input)];
    let (to_at, from_at, weights_at) = (to.as_mut_ptr(), from.as_mut_ptr(), weights.as_mut_ptr());
    let (out, input) = (out as c_int, input as c_int);
    // SAFETY: a communicator of the program, and room for its neighbors.
    let told = unsafe { (pmpi.dist_graph_neighbors)(communicator, input, from_at, weights_at, out, to_at, weights_at) };
    (told == MPI_SUCCESS).then_some((to, from))
}

/// Finds both directions of a call of so many blocks; none if this process cannot tell which block goes where.
pub fn find<A: Abi>(communicator: A::Handle, neighbors: bool, out: usize, input: usize) -> Option<(Edges, Edges)> {
    let (to, from) = if !neighbors {
        ((0..out as c_int).collect(), (0..input as c_int).collect())
    } else if topology_of::<A>(communicator)? == A::CONSTANTS.cart {
        let ranks = of_grid::<A>(communicator, out)?;
        (ranks.clone(), ranks)
    } else {
        of_graph::<A>(communicator, out, input)?
    };
    Some((ordered::<A>(&to), ordered::<A>(&from)))
}
