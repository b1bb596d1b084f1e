//! The arguments of such a call.

use crate::abi::{Abi, MPI_SUCCESS, MPI_UNDEFINED};
use crate::memory::offset;
use crate::pmpi::pmpi;
use std::ffi::{c_int, c_void};

/// The arguments of one direction, as the program or this library gives them. Counts and displacements are wide in the large-count forms.
#[derive(Clone, Copy)]
pub struct BlockArguments<A: Abi> {
    /// How many blocks there are.
    pub length: usize,
    /// Whether counts have 64 bits.
    pub wide_counts: bool,
    /// Whether displacements have.
    pub wide_places: bool,
    /// What displacements are counted from.
    pub memory: *mut c_void,
    /// Elements of each block.
    pub counts: *const c_void,
    /// Displacements of each block, in bytes.
    pub places: *const c_void,
    /// Datatypes of each block.
    pub datatypes: *const A::Handle,
    /// A bit for each block whose other process is none, at the edge of a grid: those stay as they are.
    pub absent: u64,
}

/// A number of an array.
///
/// # Safety
///
/// The array has it, of this width.
unsafe fn number(numbers: *const c_void, wide: bool, at: usize) -> i64 {
    // SAFETY: as the caller says.
    unsafe { if wide { *numbers.cast::<i64>().add(at) } else { (*numbers.cast::<c_int>().add(at)).into() } }
}

impl<A: Abi> BlockArguments<A> {
    /// Whether there are blocks.
    pub fn is_usable(&self) -> bool {
        self.length > 0 && !self.counts.is_null() && !self.places.is_null() && !self.datatypes.is_null()
    }

    /// Elements of a block, none of one that is absent.
    pub fn elements(&self, at: usize) -> i64 {
        let is_absent = at < 64 && self.absent >> at & 1 != 0;
        // SAFETY: the program gives `length` counts, of the width of its call.
        if is_absent { 0 } else { unsafe { number(self.counts, self.wide_counts, at) } }
    }

    /// The displacement of a block, in bytes.
    pub fn place(&self, at: usize) -> i64 {
        // SAFETY: the program gives `length` displacements, of the width of its call.
        unsafe { number(self.places, self.wide_places, at) }
    }

    /// The datatype of a block.
    pub fn datatype(&self, at: usize) -> A::Handle {
        // SAFETY: the program gives `length` datatypes.
        unsafe { *self.datatypes.add(at) }
    }

    /// The address that the datatype of a block is applied to.
    pub fn memory_of(&self, at: usize) -> *mut c_void {
        offset(self.memory, self.place(at))
    }
}

/// Numbers of an array that the MPI is given, as wide as those of the program.
pub enum Numbers {
    /// Of 32 bits.
    Narrow(Vec<c_int>),
    /// Of 64 bits.
    Wide(Vec<i64>),
}

impl Numbers {
    /// None yet, with room for so many.
    pub fn new(wide: bool, length: usize) -> Numbers {
        if wide { Numbers::Wide(Vec::with_capacity(length)) } else { Numbers::Narrow(Vec::with_capacity(length)) }
    }

    /// Adds a number, which fits.
    pub fn push(&mut self, number: i64) {
        match self {
            Numbers::Narrow(numbers) => numbers.push(number as c_int),
            Numbers::Wide(numbers) => numbers.push(number),
        }
    }

    /// The array.
    pub fn as_ptr(&self) -> *const c_void {
        match self {
            Numbers::Narrow(numbers) => numbers.as_ptr().cast(),
            Numbers::Wide(numbers) => numbers.as_ptr().cast(),
        }
    }
}

/// Whether a communicator that says that it is a Cartesian grid is one. Open MPI 5.0 says so of a graph that was made of a grid too, and fails in
/// what it does with it, or ends by a signal. It tells the edges of a graph alone.
fn is_grid<A: Abi>(communicator: A::Handle) -> bool {
    let pmpi = pmpi::<A>();
    if !A::IS_OPEN_MPI {
        return true;
    }
    let mut before = A::handles().errors_return;
    let (mut input, mut out, mut weighted) = (0, 0, 0);
    // SAFETY: a communicator of the program, and all are writable.
    unsafe {
        if (pmpi.comm_get_errhandler)(communicator, &mut before) != MPI_SUCCESS {
            return false;
        }
        (pmpi.comm_set_errhandler)(communicator, A::handles().errors_return);
        let count = pmpi.dist_graph_neighbors_count;
        let is_graph = count(communicator, &mut input, &mut out, &mut weighted) == MPI_SUCCESS;
        (pmpi.comm_set_errhandler)(communicator, before);
        (pmpi.errhandler_free)(&mut before);
        !is_graph
    }
}

/// What `MPI_Topo_test` says.
pub fn topology_of<A: Abi>(communicator: A::Handle) -> Option<c_int> {
    let mut topology = MPI_UNDEFINED;
    // SAFETY: a communicator of the program, and `topology` is writable.
    let told = unsafe { (pmpi::<A>().topo_test)(communicator, &mut topology) } == MPI_SUCCESS;
    told.then_some(topology)
}

/// Whether a communicator is one between groups; none if that is unknown.
pub fn is_inter<A: Abi>(communicator: A::Handle) -> Option<bool> {
    let mut inter = 1;
    if communicator == A::handles().comm_null {
        return None;
    }
    // SAFETY: a communicator of the program, and `inter` is writable.
    let told = unsafe { (pmpi::<A>().comm_test_inter)(communicator, &mut inter) } == MPI_SUCCESS;
    told.then_some(inter != 0)
}

/// The rank of this process.
pub fn rank_of<A: Abi>(communicator: A::Handle) -> Option<c_int> {
    let mut rank = 0;
    // SAFETY: a communicator of the program, and `rank` is writable.
    let told = unsafe { (pmpi::<A>().comm_rank)(communicator, &mut rank) } == MPI_SUCCESS;
    told.then_some(rank)
}

/// The number of processes.
pub fn processes_of<A: Abi>(communicator: A::Handle) -> Option<c_int> {
    let mut size = 0;
    // SAFETY: a communicator of the program, and `size` is writable.
    let told = unsafe { (pmpi::<A>().comm_size)(communicator, &mut size) } == MPI_SUCCESS;
    told.then_some(size)
}

/// How many processes a collective sends to and receives from; none if that is unknown, or between groups.
pub fn degrees<A: Abi>(communicator: A::Handle, neighbors: bool) -> Option<(usize, usize)> {
    let pmpi = pmpi::<A>();
    if is_inter::<A>(communicator)? {
        return None;
    }
    let (mut out, mut input, mut weighted) = (0, 0, 0);
    // SAFETY: a communicator of the program, and all are writable.
    let told = unsafe {
        if !neighbors {
            out = processes_of::<A>(communicator)?;
            input = out;
            MPI_SUCCESS
        } else {
            let topology = topology_of::<A>(communicator)?;
            let constants = A::CONSTANTS;
            if topology == constants.cart && is_grid::<A>(communicator) {
                let told = (pmpi.cartdim_get)(communicator, &mut out);
                out *= 2;
                input = out;
                told
            } else if topology == constants.dist_graph {
                (pmpi.dist_graph_neighbors_count)(communicator, &mut input, &mut out, &mut weighted)
            } else if topology == constants.graph {
                let told = (pmpi.graph_neighbors_count)(communicator, rank_of::<A>(communicator)?, &mut out);
                input = out;
                told
            } else {
                return None;
            }
        }
    };
    let degrees = (usize::try_from(out).ok()?, usize::try_from(input).ok()?);
    (told == MPI_SUCCESS).then_some(degrees)
}

/// Which neighbors in a Cartesian grid are none: a bit for each.
pub fn absent_neighbors<A: Abi>(communicator: A::Handle, length: usize) -> u64 {
    let constants = A::CONSTANTS;
    if topology_of::<A>(communicator) != Some(constants.cart) {
        return 0;
    }
    let mut absent = 0;
    for at in (0..length.min(64)).step_by(2) {
        let (mut before, mut after) = (0, 0);
        // SAFETY: a communicator of the program, and both are writable.
        let told = unsafe { (pmpi::<A>().cart_shift)(communicator, (at / 2) as c_int, 1, &mut before, &mut after) };
        if told == MPI_SUCCESS {
            absent |= u64::from(before == constants.proc_null) << at;
            absent |= u64::from(after == constants.proc_null) << (at + 1);
        }
    }
    absent
}
