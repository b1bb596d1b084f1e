//! What a call is expected to cost.

use crate::arguments::{self, Growing};
use crate::handle;
use crate::status::{Outcome, answer};
use crate::transfer::dtc_transfer;
use crate::types::dtc_type;
use dtc_runtime::Direction;
use dtc_runtime::cuda::MemoryKind;
use std::ffi::c_int;

/// What moving a count of elements is expected to cost. `DTC_EXPENSE_INIT` sets `size`. Later versions add fields at the end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_expense {
    /// `sizeof(dtc_expense)`.
    pub size: i64,
    /// Packed bytes.
    pub bytes: i64,
    /// Contiguous pieces that hold them, the entries of an iov list; INT64_MAX if they are more.
    pub pieces: i64,
    /// Nanoseconds of a pack, about.
    pub pack_nanoseconds: i64,
    /// Nanoseconds of an unpack, about.
    pub unpack_nanoseconds: i64,
}

// SAFETY: `repr(C)`, begins with an `i64`, and any bytes are a value.
unsafe impl Growing for dtc_expense {
    const DEFAULT: dtc_expense = dtc_expense {
        size: size_of::<dtc_expense>() as i64,
        bytes: 0,
        pieces: 0,
        pack_nanoseconds: 0,
        unpack_nanoseconds: 0,
    };
    const NAME: &'static str = "dtc_expense";
}

/// Tells what moving `count` elements is expected to cost, for choices between eager and rendezvous, and between packing and
/// an iov list. It is an estimate, mostly within a factor of 2, of memory and devices that nobody else uses.
///
/// `transfer`: where the bytes lie; a side of an unknown kind is taken for memory of the host. Null for the host.
/// `expense`: filled as far as `expense->size` reaches.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the count is negative, a field of `transfer` unknown, or `expense` null or too short.
/// `DTC_ERROR_RANGE`: the packed bytes do not fit 63 bits.
/// `DTC_ERROR_DEVICE`: CUDA lacks the device of a side.
///
/// # Safety
///
/// `type` is null or a type; `transfer` and `expense` are null or lead to their sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_cost(
    r#type: *const dtc_type,
    count: i64,
    transfer: *const dtc_transfer,
    expense: *mut dtc_expense,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let committed = &unsafe { handle::borrow(r#type)? }.ready()?.committed;
        let count = arguments::length("count", count)?;
        let bytes = committed.packed_size(count)? as u64;
        // SAFETY: `transfer` is null or readable for the size that it begins with (contract of this function).
        let [memory, packed] =
            unsafe { arguments::read(transfer)? }.kinds()?.map(|kind| kind.unwrap_or(MemoryKind::Pageable));
        let nanoseconds = |direction| -> Outcome<i64> {
            Ok(committed.estimate(direction, memory, packed, bytes)?.nanoseconds as i64)
        };
        let layout = committed.layout();
        let pieces = layout.measure(layout.root().node).runs.saturating_mul(count);
        let known = dtc_expense {
            bytes: bytes as i64,
            pieces: if bytes == 0 { 0 } else { i64::try_from(pieces).unwrap_or(i64::MAX) },
            pack_nanoseconds: nanoseconds(Direction::Pack)?,
            unpack_nanoseconds: nanoseconds(Direction::Unpack)?,
            ..dtc_expense::DEFAULT
        };
        // SAFETY: `expense` is null or readable and writable for the size that it begins with (contract of this
        // function).
        unsafe { arguments::fill(expense, known) }
    })
}
