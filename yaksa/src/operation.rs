//! The operations of packs and unpacks, by their numbers.

use crate::status::Status;

/// What happens to a byte that arrives where another is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// It takes its place.
    Replace,
}

impl Operation {
    /// The operation with this number.
    #[inline]
    pub(crate) fn of_number(number: u64) -> Result<Operation, Status> {
        match number {
            10 => Ok(Operation::Replace),
            _ => Err(Status::NotSupported),
        }
    }
}
