//! What every call returns, and the message behind it.

use dtc_compiler::datatype::DatatypeError;
use dtc_compiler::layout::wire::WireError;
use dtc_runtime::cuda::CudaError;
use dtc_runtime::{PackError, TransferError};
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The call did what it says.
pub const DTC_OK: c_int = 0;
/// An argument is null, misaligned, negative, unknown or too small where it must not be.
pub const DTC_ERROR_ARGUMENT: c_int = 1;
/// A handle is null, or one of another kind.
pub const DTC_ERROR_HANDLE: c_int = 2;
/// The datatype cannot be built from these arguments.
pub const DTC_ERROR_TYPE: c_int = 3;
/// The type was not committed.
pub const DTC_ERROR_COMMIT: c_int = 4;
/// The offset lies behind the packed bytes, or the packed bytes do not fit 63 bits.
pub const DTC_ERROR_RANGE: c_int = 5;
/// A side lies nowhere, or in memory that the call does not reach.
pub const DTC_ERROR_MEMORY: c_int = 6;
/// CUDA is missing, has no such device, or failed.
pub const DTC_ERROR_DEVICE: c_int = 7;
/// The bytes are not a flattened type.
pub const DTC_ERROR_ENCODING: c_int = 8;
/// The caller was built for another version of this interface.
pub const DTC_ERROR_VERSION: c_int = 9;
/// The operation is not defined for the element, or the type does not consist of it.
pub const DTC_ERROR_OPERATION: c_int = 11;
/// A value cannot be represented in `external32`. The call was carried out.
pub const DTC_ERROR_VALUE: c_int = 12;
/// There is no memory for what the call needs at most. Nothing has changed.
pub const DTC_ERROR_OUT_OF_MEMORY: c_int = 13;
/// A defect of libdtc. The call may have been carried out in part.
pub const DTC_ERROR_INTERNAL: c_int = 10;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: c_int,
    pub(crate) message: String,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(status: c_int, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into() }
    }

    /// An argument is wrong: its place, what was expected there, and what was found.
    #[cold]
    #[inline(never)]
    pub(crate) fn argument(place: &str, expected: impl fmt::Display, found: impl fmt::Display) -> Failure {
        Failure::new(DTC_ERROR_ARGUMENT, format!("{place}: expected {expected}, found {found}"))
    }
}

impl From<DatatypeError> for Failure {
    fn from(error: DatatypeError) -> Failure {
        Failure::new(DTC_ERROR_TYPE, error.to_string())
    }
}

impl From<PackError> for Failure {
    fn from(error: PackError) -> Failure {
        Failure::new(DTC_ERROR_RANGE, error.to_string())
    }
}

impl From<CudaError> for Failure {
    fn from(error: CudaError) -> Failure {
        Failure::new(DTC_ERROR_DEVICE, error.to_string())
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Failure {
        match error {
            TransferError::Call(error) => error.into(),
            TransferError::Copy(error) => Failure::new(DTC_ERROR_RANGE, error.to_string()),
            TransferError::Accumulate(error) => error.into(),
            TransferError::External(error) => error.into(),
            TransferError::Cuda(error) => error.into(),
            other => Failure::new(DTC_ERROR_MEMORY, other.to_string()),
        }
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Failure {
        Failure::new(DTC_ERROR_ENCODING, error.to_string())
    }
}

thread_local! {
    /// The message of the last call of this thread that failed, and a byte 0. It has a fixed length and no destructor: the
    /// system ends the process if there is no memory to register one.
    static MESSAGE: RefCell<[u8; LONGEST_MESSAGE]> = const { RefCell::new([0; LONGEST_MESSAGE]) };
}

/// Longer messages are cut, in bytes with the 0 at the end.
const LONGEST_MESSAGE: usize = 2048;

/// The message of the last call of this thread that failed: the place, what was expected there, and what was found.
///
/// Never null; empty if none failed. It is valid until the next call of this thread that fails, and to the end of the
/// thread at most. Calls that succeed leave it as it is.
#[unsafe(no_mangle)]
pub extern "C" fn dtc_message() -> *const c_char {
    // A thread that is ending has no message any more.
    MESSAGE.try_with(|message| message.borrow().as_ptr().cast()).unwrap_or(c"".as_ptr())
}

/// Keeps a message for `dtc_message`, as a call that fails does, and returns the status: for what is built upon this library, as `dtc_mpi.h`
/// is.
///
/// `status`: returned as it is.
/// `message`: the place, what was expected there, and what was found; copied, and cut if it is longer than 2,047 bytes. Null is as an
/// empty text.
///
/// # Safety
///
/// `message` is null or a text that ends with a byte 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_fail(status: c_int, message: *const c_char) -> c_int {
    if message.is_null() {
        remember("");
    } else {
        // SAFETY: a text that ends with a byte 0, which the caller keeps during the call (contract of this function).
        remember(&unsafe { CStr::from_ptr(message) }.to_string_lossy());
    }
    status
}

fn remember(message: &str) {
    let length = message.floor_char_boundary(LONGEST_MESSAGE - 1);
    let _ = MESSAGE.try_with(|place| {
        let mut place = place.borrow_mut();
        // A byte 0 inside, from a name that someone gave, would end the message early.
        for (to, &from) in place.iter_mut().zip(&message.as_bytes()[..length]) {
            *to = if from == 0 { b' ' } else { from };
        }
        place[length] = 0;
    });
}

/// Runs the body of a call, and turns what it returns into a status.
///
/// Nothing below panics; should that ever be wrong, the caller, which has no unwinding tables for us, gets a status all the
/// same and not the end of its process.
pub(crate) fn answer(body: impl FnOnce() -> Outcome) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => DTC_OK,
        Ok(Err(Failure { status, message })) => {
            remember(&message);
            status
        }
        Err(_) => {
            remember("libdtc: expected no panic, found one: please report it");
            DTC_ERROR_INTERNAL
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_becomes_a_status() {
        std::panic::set_hook(Box::new(|_| {}));
        let status = answer(|| panic!("on purpose"));
        drop(std::panic::take_hook());
        assert_eq!(status, DTC_ERROR_INTERNAL);
        // SAFETY: the message is valid until the next failure of this thread.
        let message = unsafe { CStr::from_ptr(dtc_message()) };
        assert!(message.to_str().unwrap().contains("panic"));
    }

    #[test]
    fn a_message_with_a_zero_is_whole() {
        assert_eq!(answer(|| Err(Failure::argument("name", "text", "a\0b"))), DTC_ERROR_ARGUMENT);
        // SAFETY: the message ends with a byte 0 and is valid until the next failure of this thread, which comes after
        // its last use.
        let message = unsafe { CStr::from_ptr(dtc_message()) };
        assert_eq!(message.to_str(), Ok("name: expected text, found a b"));
    }
}
