//! Calls that begin and end the MPI, and datatypes and communicators.

use crate::abi::{Abi, Count, MPI_SUCCESS};
use crate::calls::next;
use crate::collectives::direct;
use crate::memory::has_gpu;
use crate::pmpi::pmpi;
use crate::report::reports;
use crate::start::{end, is_aside, is_ready};
use crate::{moves, operations, plan, recall, report, report_calls, settings};
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

/// Says once a job which settings are unknown.
pub fn say_settings<A: Abi>() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let mut rank = 0;
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: a communicator of the MPI, which is initialised, and `rank` is writable.
    let told = unsafe { (pmpi::<A>().comm_rank)(A::handles().comm_world, &mut rank) } == MPI_SUCCESS;
    if told && rank == 0 {
        settings::say_unknown();
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

/// `MPI_Init`.
pub unsafe extern "C" fn init<A: Abi, C: Count, const CALL: usize>(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
    // SAFETY: the program's arguments.
    after_init::<A>(unsafe { next::<Function>(CALL)(argc, argv) })
}

/// `MPI_Init_thread`.
pub unsafe extern "C" fn init_thread<A: Abi, C: Count, const CALL: usize>(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
    // SAFETY: the program's arguments.
    after_init::<A>(unsafe { next::<Function>(CALL)(argc, argv, required, provided) })
}

/// `MPI_Finalize`.
pub unsafe extern "C" fn finalize<A: Abi, C: Count, const CALL: usize>() -> c_int {
    operations::release_freed::<A>();
    if end() {
        let (decoded, compiled) = plan::count();
        direct::end();
        if reports() {
            report::report(A::NAME, decoded, compiled);
            moves::report(A::NAME);
            report_calls::report(A::NAME);
        }
        plan::end();
    }
    // SAFETY: it has no arguments.
    unsafe { next::<unsafe extern "C" fn() -> c_int>(CALL)() }
}

/// `MPI_Type_commit`.
pub unsafe extern "C" fn type_commit<A: Abi, C: Count, const CALL: usize>(datatype: *mut A::Handle) -> c_int {
    // SAFETY: the program's argument.
    unsafe {
        let result = next::<unsafe extern "C" fn(*mut A::Handle) -> c_int>(CALL)(datatype);
        if DECODES_ALL.load(Ordering::Relaxed) && result == MPI_SUCCESS && is_ready::<A>() {
            plan::make::<A>(*datatype);
        }
        result
    }
}

/// `MPI_Type_free`. The MPI may keep the datatype until its last message ends: what hangs on it is taken away here ([`plan`]).
pub unsafe extern "C" fn type_free<A: Abi, C: Count, const CALL: usize>(datatype: *mut A::Handle) -> c_int {
    // SAFETY: the program's argument.
    unsafe {
        if let Some(datatype) = datatype.as_ref()
            && *datatype != A::handles().datatype_null
            && !is_aside()
        {
            recall::forget::<A>(*datatype);
        }
        next::<unsafe extern "C" fn(*mut A::Handle) -> c_int>(CALL)(datatype)
    }
}

/// `MPI_Comm_free` and `MPI_Comm_disconnect`.
pub unsafe extern "C" fn comm_free<A: Abi, C: Count, const CALL: usize>(communicator: *mut A::Handle) -> c_int {
    // SAFETY: the program's argument.
    unsafe {
        direct::forget::<A>(communicator);
        next::<unsafe extern "C" fn(*mut A::Handle) -> c_int>(CALL)(communicator)
    }
}
