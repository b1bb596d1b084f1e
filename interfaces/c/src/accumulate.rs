//! Accumulation: unpacking with an operation.

use crate::arguments;
use crate::handle;
use crate::status::{DTC_ERROR_ARGUMENT, DTC_ERROR_HANDLE, DTC_ERROR_OPERATION, Failure, Outcome, answer};
use crate::tabled::{Side, dtc_tabled_elements};
use crate::transfer::{Call, dtc_transfer, range, uncapped};
use crate::types::dtc_type;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_runtime::cuda::MemoryKind;
use dtc_runtime::{AccumulateError, Endpoint};
use std::ffi::{c_int, c_void};

/// `MPI_SUM`.
pub const DTC_OPERATION_SUM: i32 = 1;
/// `MPI_PROD`.
pub const DTC_OPERATION_PRODUCT: i32 = 2;
/// `MPI_MIN`.
pub const DTC_OPERATION_MIN: i32 = 3;
/// `MPI_MAX`.
pub const DTC_OPERATION_MAX: i32 = 4;
/// `MPI_LAND`.
pub const DTC_OPERATION_LOGICAL_AND: i32 = 5;
/// `MPI_LOR`.
pub const DTC_OPERATION_LOGICAL_OR: i32 = 6;
/// `MPI_LXOR`.
pub const DTC_OPERATION_LOGICAL_XOR: i32 = 7;
/// `MPI_BAND`.
pub const DTC_OPERATION_BITWISE_AND: i32 = 8;
/// `MPI_BOR`.
pub const DTC_OPERATION_BITWISE_OR: i32 = 9;
/// `MPI_BXOR`.
pub const DTC_OPERATION_BITWISE_XOR: i32 = 10;
/// `MPI_MINLOC`.
pub const DTC_OPERATION_MINLOC: i32 = 11;
/// `MPI_MAXLOC`.
pub const DTC_OPERATION_MAXLOC: i32 = 12;
/// `MPI_REPLACE`.
pub const DTC_OPERATION_REPLACE: i32 = 13;

impl From<AccumulateError> for Failure {
    fn from(error: AccumulateError) -> Failure {
        match error {
            AccumulateError::Unpack(error) => error.into(),
            other => Failure::new(DTC_ERROR_OPERATION, other.to_string()),
        }
    }
}

fn operation(number: i32) -> Outcome<Operation> {
    Ok(match number {
        DTC_OPERATION_SUM => Operation::Sum,
        DTC_OPERATION_PRODUCT => Operation::Product,
        DTC_OPERATION_MIN => Operation::Min,
        DTC_OPERATION_MAX => Operation::Max,
        DTC_OPERATION_LOGICAL_AND => Operation::LogicalAnd,
        DTC_OPERATION_LOGICAL_OR => Operation::LogicalOr,
        DTC_OPERATION_LOGICAL_XOR => Operation::LogicalXor,
        DTC_OPERATION_BITWISE_AND => Operation::BitwiseAnd,
        DTC_OPERATION_BITWISE_OR => Operation::BitwiseOr,
        DTC_OPERATION_BITWISE_XOR => Operation::BitwiseXor,
        DTC_OPERATION_MINLOC => Operation::MinLoc,
        DTC_OPERATION_MAXLOC => Operation::MaxLoc,
        DTC_OPERATION_REPLACE => Operation::Replace,
        unknown => return Err(Failure::argument("operation", "one of DTC_OPERATION_", unknown)),
    })
}

/// The operation on the element that a basic type is.
///
/// # Safety
///
/// `basic` is null or a type.
unsafe fn reduction(number: i32, basic: *const dtc_type) -> Outcome<Reduction> {
    let operation = operation(number)?;
    // SAFETY: `basic` is null or a live type, which the caller keeps during the call (contract of this function).
    let element = unsafe { handle::borrow(basic)? }.element();
    let refused = |message: String| Failure::new(DTC_ERROR_OPERATION, message);
    let element =
        element.ok_or_else(|| refused("basic: expected an element with operations, found another type".into()))?;
    Reduction::new(operation, element).map_err(|error| refused(error.to_string()))
}

/// Unpacks with an operation: each basic element in memory becomes itself combined with the packed one. Writes bytes of the
/// type map and no others. The processor computes elements of the host, a GPU those of its memory. (MPI 4.1, 12.3.4 and
/// 6.9.7)
///
/// `operation`: `DTC_OPERATION_...`.
/// `basic`: the element, as a basic type: of `dtc_type_basic`, or of `dtc_type_named` for pairs.
/// `destination`: the address that `type` is applied to.
/// `packed`: `length` bytes.
/// `done`: receives how many bytes were combined; may be null.
/// `transfer`: where the bytes lie; null if the library shall find out. Kernels take all multiprocessors that are free.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not types, or not committed.
/// `DTC_ERROR_ARGUMENT`: an unknown operation, a number is negative, `packed` is null, or a field of `transfer` unknown or a
/// cap on multiprocessors.
/// `DTC_ERROR_RANGE`: the offset lies behind the packed bytes, or those do not fit 63 bits.
/// `DTC_ERROR_OPERATION`: the operation is not defined for the element; the type certainly has other elements; its size,
/// the offset or the length is no multiple of theirs; or the GPU that has the elements does not compute it.
/// `DTC_ERROR_MEMORY`, `DTC_ERROR_DEVICE`: as for `dtc_pack`.
///
/// # Safety
///
/// Every byte of the elements in the range is readable and writable, `packed` is readable for as many, and they do not
/// overlap; with `DTC_TRANSFER_ENQUEUE` until the work is done. The stream is one of the primary context of its device.
/// `basic` and `type` are null or types, `done` is null or writable, and `transfer` is null or leads to its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_accumulate(
    operation: i32,
    basic: *const dtc_type,
    r#type: *const dtc_type,
    destination: *mut c_void,
    count: i64,
    offset: i64,
    packed: *const c_void,
    length: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are readable and writable and `packed` is readable for as many bytes until
        // the call, or the work that it enqueued, is done, and they do not overlap; `basic` and `type` are null or live
        // types, `transfer` is null or readable for its size, its stream is one of its device's primary context, and
        // `done` is null or writable (contract of this function).
        unsafe {
            let reduction = reduction(operation, basic)?;
            let call = Call::of(r#type, range("", count, offset, ("length", length))?, &uncapped(transfer)?)?;
            call.run(call.at(destination).accumulate(reduction, call.packed(packed)?), done)
        }
    })
}

/// Unpacks with an operation to elements whose type has index tables. On a GPU, strides and lengths of the type are multiples of an element of 1, 2,
/// 4, 8 or 16 bytes. Where a place occurs twice in the tables, its value is not defined.
///
/// `operation`, `basic`: as for `dtc_accumulate`.
/// `packed`, `bytes`, `destination`, `done`, `transfer`: as for `dtc_tabled_unpack`, whose errors are those of this function.
///
/// `DTC_ERROR_OPERATION`: as for `dtc_accumulate`, or the elements of the type may be apart, on a GPU.
///
/// # Safety
///
/// As for `dtc_tabled_unpack`, with the elements readable, too. `basic` is null or a type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_accumulate(
    operation: i32,
    basic: *const dtc_type,
    packed: *const c_void,
    bytes: i64,
    destination: *const dtc_tabled_elements,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: `basic` is null or a live type, `destination` and its tables are readable, `transfer` is null or leads to its size, `done` is null or
        // writable, and the bytes of both sides are as `TabledTransfer` asks for, until the work is done (contract of this function).
        unsafe {
            let reduction = reduction(operation, basic)?;
            let (side, options) = (Side::read("destination", destination, bytes)?, arguments::read(transfer)?);
            let [memory, other] = options.kinds()?;
            let packed = Endpoint::from(packed).with_kind(other);
            side.run(side.at(memory).accumulate(reduction, packed), &options, done)
        }
    })
}

/// Whether `dtc_accumulate` has an operation for an element where the bytes lie: devices have no long doubles. (MPI 4.1,
/// 6.9.2 and 6.9.4)
///
/// `transfer`: where the bytes lie; a side of an unknown kind is taken for memory of the host. Null for the host.
/// `supported`: receives 1 or 0.
///
/// `DTC_ERROR_HANDLE`: `basic` is not a type.
/// `DTC_ERROR_ARGUMENT`: an unknown operation, a field of `transfer` unknown, or `supported` is null.
///
/// # Safety
///
/// `basic` is null or a type; `supported` is null or writable; `transfer` is null or leads to its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_op_supported(
    operation: i32,
    basic: *const dtc_type,
    transfer: *const dtc_transfer,
    supported: *mut c_int,
) -> c_int {
    answer(|| {
        // SAFETY: `transfer` is null or readable for the size that it begins with (contract of this function).
        let transfer = unsafe { arguments::read(transfer)? };
        let [memory, packed] = transfer.kinds()?.map(|kind| kind.unwrap_or(MemoryKind::Pageable));
        // SAFETY: `basic` is null or a live type, which the caller keeps during the call (contract of this function).
        let answer = match unsafe { reduction(operation, basic) } {
            // SAFETY: `reduction` found a live type behind `basic`, which the caller keeps during the call (contract of
            // this function).
            Ok(reduction) => unsafe { handle::borrow(basic)? }.engine().computes(reduction, memory, packed),
            Err(failure) if [DTC_ERROR_ARGUMENT, DTC_ERROR_HANDLE].contains(&failure.status) => return Err(failure),
            Err(_) => false,
        };
        // SAFETY: `supported` is null or writable (contract of this function).
        unsafe { arguments::give("supported", supported, answer.into()) }
    })
}
