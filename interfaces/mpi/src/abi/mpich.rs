//! The ABI of MPICH and its relatives: handles are integers, with values of their own.

use super::{Abi, Constants, Handles};
use dtc::{dtc_engine, dtc_type};
use std::ffi::{c_int, c_void};

/// MPICH, MVAPICH and Intel MPI.
#[derive(Clone, Copy, Debug)]
pub struct Mpich;

/// `MPI_Status`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Status {
    count_lo: c_int,
    count_hi_and_cancelled: c_int,
    source: c_int,
    tag: c_int,
    error: c_int,
}

impl Abi for Mpich {
    const NAME: &'static str = "mpich";
    type Handle = c_int;
    type Status = Status;
    const CONSTANTS: Constants = Constants {
        err_count: 2,
        err_comm: 5,
        err_truncate: 14,
        err_other: 15,
        err_in_status: 17,
        err_pending: 18,
        err_no_mem: 34,
        err_unsupported_operation: 44,
        thread_single: 0,
        thread_funneled: 1,
        thread_serialized: 2,
        thread_multiple: 3,
        proc_null: -1,
        any_source: -2,
        graph: 1,
        cart: 2,
        dist_graph: 3,
        order_fortran: 57,
        combiner_named: 1,
        combiner_contiguous: 3,
        combiner_vector: 4,
        combiner_hvector: 6,
        combiner_struct: 12,
        combiner_subarray: 13,
        combiner_f90_real: 15,
        combiner_f90_complex: 16,
        combiner_f90_integer: 17,
        combiner_value_index: 20,
    };
    const FORTRAN_CALLS_C: bool = true;
    const STATUS_IGNORE: *mut Status = std::ptr::without_provenance_mut(1);
    const IN_PLACE: *const c_void = std::ptr::without_provenance(usize::MAX);

    fn handles() -> &'static Handles<c_int> {
        &HANDLES
    }

    fn find_handles() -> Result<(), &'static str> {
        Ok(())
    }

    fn new_status() -> Status {
        Status { count_lo: 0, count_hi_and_cancelled: 0, source: 0, tag: 0, error: 0 }
    }

    unsafe fn error_of(status: *mut Status) -> *mut c_int {
        // SAFETY: leads to a status (contract of this function).
        unsafe { &raw mut (*status).error }
    }

    unsafe fn decode(engine: *mut dtc_engine, key: c_int, datatype: c_int, made: *mut *mut dtc_type) -> c_int {
        // SAFETY: as the caller says.
        unsafe { dtc_mpi_decode_mpich(engine.cast(), key, datatype, made.cast()) }
    }
}

unsafe extern "C" {
    /// In `c/decode.c`.
    fn dtc_mpi_decode_mpich(engine: *mut c_void, key: c_int, datatype: c_int, made: *mut *mut c_void) -> c_int;
}

/// The predefined handles.
static HANDLES: Handles<c_int> = Handles {
    comm_null: 0x0400_0000,
    comm_world: 0x4400_0000,
    comm_self: 0x4400_0001,
    datatype_null: 0x0c00_0000,
    byte: 0x4c00_010d,
    packed: 0x4c00_010f,
    short: 0x4c00_0203,
    int: 0x4c00_0405,
    double: 0x4c00_080b,
    errors_return: 0x5400_0001,
    message_null: 0x2c00_0000,
    message_no_proc: 0x6c00_0000,
    request_null: 0x2c00_0000,
};
