//! What is said of the MPI when `DTC_MPI_REPORT` asks: which it is, and what this library does under it.

use crate::abi::{Abi, MPI_SUCCESS};
use crate::collectives::direct;
use crate::limits::limits;
use crate::memory::{has_gpu, source_of_awareness, takes_devices};
use crate::pmpi::pmpi;
use crate::report::reports;
use crate::seen::sees_completions;
use crate::{find, print, substitutes};
use std::ffi::CString;

/// Most characters of a version that are said.
const MOST: usize = 80;

fn thread_level<A: Abi>() -> &'static str {
    let mut level = -1;
    // SAFETY: `level` is writable.
    if unsafe { (pmpi::<A>().query_thread)(&mut level) } != MPI_SUCCESS {
        return "unknown";
    }
    let constants = A::CONSTANTS;
    let levels = [
        (constants.thread_single, "MPI_THREAD_SINGLE"),
        (constants.thread_funneled, "MPI_THREAD_FUNNELED"),
        (constants.thread_serialized, "MPI_THREAD_SERIALIZED"),
        (constants.thread_multiple, "MPI_THREAD_MULTIPLE"),
    ];
    levels.into_iter().find(|(number, _)| *number == level).map_or("unknown", |(_, name)| name)
}

/// Calls of the MPI that are given memory of a GPU as the program gives it. An MPI that knows nothing of CUDA fails in them; what a
/// CUDA-aware one does with derived datatypes there is its own.
const UNHELPED: &str = "Allgather Allgatherv Allreduce Alltoall Alltoallv Bcast Exscan Gather Gatherv Neighbor_allgather \
    Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Reduce Reduce_local Reduce_scatter \
    Reduce_scatter_block Scan Scatter Scatterv Put Get Accumulate Get_accumulate Fetch_and_op \
    Compare_and_swap Rput Rget Raccumulate Rget_accumulate Psend_init Precv_init Pack_external \
    Unpack_external File_read File_read_at File_read_all File_read_at_all File_read_shared \
    File_read_ordered File_write File_write_at File_write_all File_write_at_all File_write_shared \
    File_write_ordered";

/// Those that this MPI has.
fn unhelped() -> String {
    let names = UNHELPED.split_whitespace().map(|name| format!("MPI_{name}"));
    let has = |name: &String| CString::new(name.as_str()).is_ok_and(|name| !find::function(&name).is_null());
    names.filter(has).map(|name| name + " ").collect()
}

/// Says it.
pub fn tell<A: Abi>() {
    if !reports() {
        return;
    }
    let version = find::library_version().lines().next().unwrap_or("");
    let version: String = version.replace('\t', " ").chars().take(MOST).collect();
    print(&format!("MPI: {version}"));
    print(&format!("ABI: {}", A::NAME));
    print(&format!("threads: {}", thread_level::<A>()));
    let substituted = substitutes::are_large_substituted();
    let description = if substituted { "large-count forms, which the MPI lacks" } else { "none" };
    print(&format!("substitutes: {description}"));
    let later = if sees_completions::<A>() { ", nonblocking and persistent messages" } else { " alone" };
    print(&format!("served: blocking calls{later}"));
    print(&format!("table: {}", limits().mpi()));
    if !has_gpu() {
        return;
    }
    let given = if takes_devices() { "given to the MPI" } else { "staged in memory of the host" };
    print(&format!("memory of a GPU: {given} ({})", source_of_awareness()));
    print(&format!("exchanges between GPUs of a machine: {}", direct::way()));
    print(&format!("left to the MPI with memory of a GPU: {}and their other forms", unhelped()));
}
