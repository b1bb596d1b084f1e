//! Memory for calls whose memory grows with their input: bounds that are generous multiples of what was measured.

use crate::status::Status;
use dtc_reserve::Claim;

/// Bytes for each number of a constructor.
const FOR_A_NUMBER: u64 = 64;

/// Bytes for each type, and each entry of its lists, while it is described, lowered and planned.
const FOR_AN_ENTRY: u64 = 2048;

/// Bytes for what does not grow.
const FOR_A_CALL: u64 = 64 << 10;

fn claim(each: u64, number: u64) -> Result<Claim, Status> {
    let bytes = each.checked_mul(number).and_then(|bytes| bytes.checked_add(FOR_A_CALL));
    let claim = bytes.and_then(|bytes| dtc_reserve::claim(usize::try_from(bytes).ok()?));
    claim.ok_or(Status::OutOfMemory)
}

/// Memory for a new type with `numbers` numbers.
pub(crate) fn for_numbers(numbers: i64) -> Result<Claim, Status> {
    claim(FOR_A_NUMBER, u64::try_from(numbers).unwrap_or(0))
}

/// Memory for any work on a type with `entries` types and entries of lists.
pub(crate) fn for_entries(entries: u64) -> Result<Claim, Status> {
    claim(FOR_AN_ENTRY, entries)
}

/// Memory for a type from `bytes` flattened bytes.
pub(crate) fn for_flattened(bytes: u64) -> Result<Claim, Status> {
    claim(FOR_A_NUMBER, bytes)
}
