//! Memory for calls whose memory grows with their input.
//!
//! The bounds are generous multiples of what was measured with every allocation served from a claim: a claim costs nothing
//! until it is used, and then only where the system has no memory.

use crate::status::{DTC_ERROR_OUT_OF_MEMORY, Failure, Outcome};
use dtc_reserve::Claim;

/// Bytes for each number of a constructor: the numbers are copied, and their bounds computed.
const FOR_A_NUMBER: u64 = 64;

/// Bytes for each node, and each entry of its lists, while a type is lowered, brought into its canonical form and planned.
const FOR_AN_ENTRY: u64 = 2048;

/// Bytes for what does not grow, such as messages.
const FOR_A_CALL: u64 = 64 << 10;

/// Bytes for each byte of a flattened type. A node has at least three.
const FOR_A_FLATTENED_BYTE: u64 = 512;

/// Bytes for compiling one kernel, whose plan is limited to 256 steps.
const FOR_A_KERNEL: u64 = 16 << 20;

fn claim(each: u64, number: u64, more: u64) -> Outcome<Claim> {
    let bytes = each.checked_mul(number).and_then(|bytes| bytes.checked_add(more)?.checked_add(FOR_A_CALL));
    let claim = bytes.and_then(|bytes| dtc_reserve::claim(usize::try_from(bytes).ok()?));
    claim.ok_or_else(|| {
        let bytes = bytes.map_or_else(|| "2^64 bytes or more".to_owned(), |bytes| format!("{bytes} bytes"));
        Failure::new(DTC_ERROR_OUT_OF_MEMORY, format!("memory: expected up to {bytes}, found less"))
    })
}

/// For a call that needs little, whatever its input.
pub(crate) fn for_a_call() -> Outcome<Claim> {
    claim(0, 0, 0)
}

/// For making a node from `numbers` numbers and children.
pub(crate) fn for_numbers(numbers: u64) -> Outcome<Claim> {
    claim(FOR_A_NUMBER, numbers, 0)
}

/// For any work on a graph with `entries` nodes and list entries.
pub(crate) fn for_entries(entries: u64) -> Outcome<Claim> {
    claim(FOR_AN_ENTRY, entries, 0)
}

/// For such work, and a kernel.
pub(crate) fn for_a_kernel(entries: u64) -> Outcome<Claim> {
    claim(FOR_AN_ENTRY, entries, FOR_A_KERNEL)
}

/// For a type from `bytes` flattened bytes.
pub(crate) fn for_flattened(bytes: u64) -> Outcome<Claim> {
    claim(FOR_A_FLATTENED_BYTE, bytes, 0)
}
