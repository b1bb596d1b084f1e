//! The generic kernels for records whose fields are in arrays of their own, and what they read beside an interpreter's program.

use super::division::half;
use super::tables::append;
use super::template::{TemplateError, render};
use crate::plan::Direction;
use crate::plan::gpu::{Call, Fields, SM_90, Variant, alignment};
use minijinja::context;

/// Loads or stores of a lane under way at a time: one field of as many records.
const ROUNDS: u64 = 4;

/// Lanes of a warp.
const LANES: u64 = 32;

/// Numbers of 64 bits that tell the records of a call.
pub(super) const NUMBERS: usize = 8;

/// A namespace with what a block does, and the kernel of that name.
pub(super) fn kernel(namespace: &str, entry: &str, variant: &Variant) -> Result<String, TemplateError> {
    let threads = variant.threads();
    // The packed bytes may begin inside a line of 16 bytes. `padded` leaves a word free after every 32.
    let bytes = Fields::most_tile_bytes(&SM_90.fields) + 16;
    let values = context! {
        pack => variant.direction == Direction::Pack,
        threads,
        rounds => ROUNDS,
        most_records => Fields::most_tile_records(&SM_90.fields),
        most_groups => Fields::most_groups(&SM_90.fields),
        shared => (bytes + bytes / 32).next_multiple_of(16),
    };
    let body = render("interpreted_fields", &values)?;
    let entry = context! { entry, threads, resident => 1, shared => true, capped => false, call => "Program" };
    Ok(format!("\nnamespace {namespace} {{\n\n{body}\n{}\n}}\n", render("entry", &entry)?))
}

/// Appends the fields to tables, and returns the byte where they begin.
pub(super) fn append_fields(fields: &Fields, tables: &mut Vec<u8>) -> u64 {
    tables.resize(tables.len().next_multiple_of(16), 0);
    let begin = tables.len() as u64;
    for field in &fields.fields {
        append(tables, [field.offset as u64, field.packed | field.bytes << 32].into_iter().map(u64::to_le_bytes));
    }
    begin
}

/// The records of a call, which follow the nodes of a program. The fields begin at byte `table` of its tables.
pub(super) fn numbers(fields: &Fields, table: u64, call: &Call) -> [u64; NUMBERS] {
    let pair = |low: u64, high: u64| low | high << 32;
    let packed = alignment(call.packed.wrapping_sub(call.first));
    let (memory, packed) = fields.alignments(alignment(call.memory), packed);
    let (records, count) = (fields.tile_records(), fields.fields.len() as u64);
    [
        call.first.div_ceil(fields.size),
        (call.first + call.bytes) / fields.size,
        fields.copies,
        table,
        pair(fields.size, u64::from(fields.stride as u32)),
        pair(memory.into(), packed.into()),
        pair(records, count),
        pair(half(count), records.div_ceil(LANES * ROUNDS)),
    ]
}
