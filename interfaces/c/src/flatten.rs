//! Types as bytes, for other processes.

use crate::arguments;
use crate::engine::dtc_engine;
use crate::handle;
use crate::memory;
use crate::status::{DTC_ERROR_ENCODING, Failure, Outcome, answer};
use crate::types::{Type, dtc_type};
use dtc_compiler::layout::Layout;
use dtc_compiler::raise;
use std::ffi::{c_int, c_void};

/// # Safety
///
/// `requested` is null or a type.
unsafe fn encoded(requested: *const dtc_type) -> Outcome<Vec<u8>> {
    // SAFETY: `requested` is null or a live type, which the caller keeps during the call (contract of this function).
    let requested = unsafe { handle::borrow(requested)? };
    requested.ready()?;
    let _claim = memory::for_entries(requested.datatype().most_entries())?;
    Ok(requested.elements()?.layout().to_readable_bytes()?)
}

/// How many bytes `dtc_flatten` writes.
///
/// `bytes`: receives the number.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: `bytes` is null.
/// `DTC_ERROR_ENCODING`: more than `dtc_unflatten` reads.
///
/// # Safety
///
/// `type` is null or a type; `bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_flatten_size(r#type: *const dtc_type, bytes: *mut i64) -> c_int {
    // SAFETY: `type` is null or a live type, and `bytes` is null or writable (contract of this function).
    answer(|| unsafe { arguments::give("bytes", bytes, encoded(r#type)?.len() as i64) })
}

/// Writes a committed type as bytes that any machine reads back: its elements with their kinds, and its bounds. The bytes
/// hold no address and no code, begin with a version, and carry a checksum.
///
/// `buffer`: receives the bytes.
/// `length`: how many it may hold, at least what `dtc_flatten_size` says.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the buffer is null or too short; nothing is written.
/// `DTC_ERROR_ENCODING`: more than `dtc_unflatten` reads.
///
/// # Safety
///
/// `type` is null or a type; `buffer` is null or writable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_flatten(r#type: *const dtc_type, buffer: *mut c_void, length: i64) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let bytes = unsafe { encoded(r#type)? };
        arguments::check_pointer("buffer", buffer.cast::<u8>())?;
        if arguments::length("length", length)? < bytes.len() as u64 {
            return Err(Failure::argument("length", format_args!("at least {}", bytes.len()), length));
        }
        // SAFETY: `buffer` is not null, so it is writable for `length` bytes (contract of this function), which are at
        // least those that are written (checked above). The vector is new, so the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
        Ok(())
    })
}

/// Makes a type of what `dtc_flatten` wrote, here or elsewhere. The type is committed, has the bounds of the original and
/// moves the same bytes. The bytes need not be trusted: whatever they are, they are refused or are a valid type, and take
/// memory in proportion to their length. More than 256 MiB, and more than 4,194,304 nodes (constructors and shared blocks),
/// are refused.
///
/// `bytes`: `length` bytes.
/// `type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or the length negative.
/// `DTC_ERROR_ENCODING`: the bytes are not a flattened type, damaged, too many, or of another version.
///
/// # Safety
///
/// `engine` is null or an engine; `bytes` is null or readable for `length` bytes; `type` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_unflatten(
    engine: *const dtc_engine,
    bytes: *const c_void,
    length: i64,
    r#type: *mut *mut dtc_type,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `bytes` is null or readable for `length` bytes, which no thread writes during the call (contract of this
        // function).
        let bytes = unsafe { arguments::list("bytes", bytes.cast::<u8>(), length)? };
        arguments::check_pointer("type", r#type)?;
        let _claim = memory::for_flattened(bytes.len() as u64)?;
        let layout = Layout::from_bytes(bytes)?;
        let refused = |error| Failure::new(DTC_ERROR_ENCODING, format!("flattened type: {error}"));
        let made = Type::new(engine, raise(&layout).map_err(refused)?);
        made.commit()?;
        // SAFETY: `type` is aligned and not null (checked above), so it is writable (contract of this function).
        unsafe { arguments::give("type", r#type, handle::share(made)) }
    })
}
