//! The generic kernels for small groups of runs, and what they read beside an interpreter's program.

use super::division::half;
use super::tables::append;
use super::template::{TemplateError, render};
use crate::plan::Direction;
use crate::plan::gpu::{Call, Groups, SM_90, Variant, alignment};
use minijinja::context;

/// Loads of a lane under way at a time.
const ROUNDS: u64 = 5;

/// Numbers of 64 bits that tell the groups of a call.
pub(super) const NUMBERS: usize = 8;

/// Alignment of packed bytes for which words of memory are made.
const PACKED: u32 = Groups::GENERIC_PACKED;

/// Bytes of the widest parts that packs put into shared memory.
const WIDEST_PART: u32 = 4;

/// A namespace with what a block does, and the kernel of that name.
pub(super) fn kernel(namespace: &str, entry: &str, variant: &Variant) -> Result<String, TemplateError> {
    let threads = variant.threads();
    let values = context! {
        pack => variant.direction == Direction::Pack,
        threads,
        rounds => ROUNDS,
        most_groups => Groups::MOST_GROUPS,
        most_words => Groups::MOST_WORDS,
        shared => Groups::most_stage_bytes(variant.direction, &SM_90.groups),
    };
    let body = render("interpreted_groups", &values)?;
    let entry = context! { entry, threads, resident => 1, shared => true, capped => false, call => "Program" };
    Ok(format!("\nnamespace {namespace} {{\n\n{body}\n{}\n}}\n", render("entry", &entry)?))
}

/// Appends the words of a group to tables for both directions, and returns the bytes where they begin.
pub(super) fn append_words(its: &Groups, tables: &mut Vec<u8>) -> [u64; 2] {
    [Direction::Pack, Direction::Unpack].map(|direction| {
        tables.resize(tables.len().next_multiple_of(16), 0);
        let begin = tables.len() as u64;
        let entries = its.entries(direction, u32::MAX, PACKED);
        append(tables, entries.iter().map(|&(offset, packed)| (u64::from(offset as u32) | packed << 32).to_le_bytes()));
        begin
    })
}

/// The groups of a call, which follow the nodes of a program. The words begin at byte `table` of its tables; `prefetches` is whether unpacks bring
/// sectors of memory to the cache.
pub(super) fn numbers(its: &Groups, table: u64, direction: Direction, prefetches: bool, call: &Call) -> [u64; NUMBERS] {
    let pair = |low: u64, high: u64| low | high << 32;
    let packed = alignment(call.packed.wrapping_sub(call.first)).min(PACKED);
    let words = its.words(direction, u32::MAX, packed);
    let part = words.first().map_or(1, |word| word.part).min(WIDEST_PART);
    // The first packed byte of a group.
    let lead = its.fields.iter().find(|field| field.packed == 0).map_or(0, |field| field.offset);
    [
        call.first.div_ceil(its.size),
        (call.first + call.bytes) / its.size,
        table,
        lead as u64,
        pair(its.size, its.tile_groups(direction)),
        pair(words.len() as u64, half(words.len() as u64)),
        pair(its.loaded(u32::MAX, PACKED).into(), part.into()),
        prefetches.into(),
    ]
}
