//! Calls that begin and end the MPI, and datatypes and communicators.

use crate::abi::{Abi, Handle, MPI_SUCCESS};
use crate::collectives::direct;
use crate::memory::has_gpu;
use crate::pmpi::pmpi;
use crate::report::reports;
use crate::start::{end, is_ready, passes_through};
use crate::words::Words;
use crate::{kept, limits, moves, operations, plan, recall, report, report_calls, report_types, settings};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// The rank of the process in `MPI_COMM_WORLD`, between `MPI_Init` and `MPI_Finalize`; -1 if the MPI does not say.
fn rank_of<A: Abi>() -> c_int {
    let mut rank = 0;
    // SAFETY: a communicator of the MPI, which is initialised, and `rank` is writable.
    let told = unsafe { (pmpi::<A>().comm_rank)(A::handles().comm_world, &mut rank) } == MPI_SUCCESS;
    if told { rank } else { -1 }
}

/// Says once a job which settings are unknown.
pub fn say_settings<A: Abi>() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) && rank_of::<A>() == 0 {
        settings::say_unknown();
        limits::say_wrong();
    }
}

/// Whether all datatypes are decoded that the program commits, since they are recorded.
static DECODES_ALL: AtomicBool = AtomicBool::new(false);

/// After `MPI_Init`: begins where something has to be known of this process before its first call that is handled. Others of the machine ask for its
/// GPU ([`registry`](crate::registry)).
fn after_init<A: Abi>(result: c_int) -> c_int {
    if result == MPI_SUCCESS {
        let records = std::env::var_os("DTC_RECORD").is_some_and(|folder| !folder.is_empty());
        DECODES_ALL.store(records, Ordering::Relaxed);
        say_settings::<A>();
        if records || reports() || has_gpu() {
            is_ready::<A>();
        }
    }
    result
}

/// `MPI_Init` and `MPI_Init_thread`.
pub unsafe fn init<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    after_init::<A>(unsafe { words.mpi() })
}

/// `MPI_Finalize`.
pub unsafe fn finalize<A: Abi>(words: &mut Words<'_>) -> c_int {
    operations::release_freed::<A>();
    if end() {
        let (decoded, compiled) = plan::count();
        direct::end();
        if reports() {
            report::report(A::NAME, decoded, compiled);
            moves::report(A::NAME);
            report_calls::report(A::NAME);
            report_types::report(A::NAME, rank_of::<A>());
        }
        plan::end();
    }
    // SAFETY: it has no arguments.
    unsafe { words.mpi() }
}

/// `MPI_Type_commit`: datatype.
#[inline]
pub unsafe fn type_commit<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's argument.
    unsafe {
        let result = words.mpi();
        if DECODES_ALL.load(Ordering::Relaxed) && result == MPI_SUCCESS && is_ready::<A>() {
            plan::make::<A>(*words.address(0));
        }
        result
    }
}

/// `MPI_Type_free`: datatype. The MPI may keep the datatype until its last message ends: what hangs on it is taken away here ([`plan`]).
#[inline]
pub unsafe fn type_free<A: Abi>(words: &mut Words<'_>) -> c_int {
    let datatype: *const A::Handle = words.address(0);
    // SAFETY: the program's argument.
    unsafe {
        if let Some(datatype) = datatype.as_ref()
            && *datatype != A::handles().datatype_null
            && !passes_through()
        {
            kept::forget(datatype.word());
            recall::forget::<A>(*datatype);
            if reports() {
                report_types::forget(datatype.word());
            }
        }
        words.mpi()
    }
}

/// `MPI_Comm_free` and `MPI_Comm_disconnect`: communicator.
pub unsafe fn comm_free<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's argument.
    unsafe {
        direct::forget::<A>(words.address(0));
        words.mpi()
    }
}
