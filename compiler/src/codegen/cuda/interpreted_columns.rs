//! The generic kernels for arrays of records that are packed field by field, and what they read in place of an interpreter's program.

use super::division::{half, magic};
use super::template::{TemplateError, render};
use crate::plan::Direction;
use crate::plan::gpu::{Column, Columns, SM_90, Variant};
use minijinja::context;

/// Packed words that a lane of a pack puts together of a part.
const ITEM_ROUNDS: u64 = 4;

/// Numbers of 64 bits before the columns, and of each of them.
const HEAD: usize = 12;
const COLUMN: usize = 2;

/// What stands in place of a program, in numbers of 64 bits.
pub(super) const NUMBERS: usize = HEAD + COLUMN * Columns::MOST;

/// A namespace with what a block does, and the kernel of that name. Its last parameter has `length` numbers.
pub(super) fn kernel(namespace: &str, entry: &str, variant: &Variant, length: usize) -> Result<String, TemplateError> {
    let Variant { direction, .. } = *variant;
    let threads = variant.threads();
    let tuning = &SM_90.columns;
    let lines = match direction {
        Direction::Pack => (Columns::most_tile_bytes(direction, tuning) + 15).div_ceil(16),
        Direction::Unpack => Columns::most_lines(tuning),
    };
    let values = context! {
        pack => direction == Direction::Pack,
        threads,
        rounds => lines.div_ceil(threads.into()),
        item_rounds => ITEM_ROUNDS,
        most_columns => Columns::MOST,
        unused => length - NUMBERS,
        shared => Columns::most_shared_bytes(direction, tuning),
        stage_bytes => (Columns::most_lines(tuning) + 1) * 16,
    };
    let body = render("interpreted_columns", &values)?;
    let entry = context! { entry, threads, resident => 1, shared => true, capped => false, call => "Columns" };
    Ok(format!("\nnamespace {namespace} {{\n\n{body}\n{}\n}}\n", render("entry", &entry)?))
}

/// The columns of elements of an extent whose arrays begin at an offset, behind what the elements of a call span.
pub(super) fn numbers(
    columns: &Columns,
    (extent, offset): (i64, i64),
    direction: Direction,
    prefetches: bool,
) -> [u64; NUMBERS] {
    let (size_magic, shift) = magic(columns.size);
    let part = |column: &Column| match direction {
        Direction::Pack => (columns.tile_records(direction) * column.width).div_ceil(4).div_ceil(32 * ITEM_ROUNDS),
        Direction::Unpack => columns.lines(column),
    };
    let parts: u64 = columns.columns.iter().map(part).sum();
    let pair = |low: u64, high: u64| low | high << 32;
    let head: [u64; HEAD] = [
        0,
        0,
        columns.size,
        size_magic,
        extent as u64,
        offset.wrapping_add(columns.low) as u64,
        columns.records,
        // More tiles than this have no grid.
        pair(shift.into(), columns.tiles(direction).min(u32::MAX.into())),
        pair(columns.tile_records(direction), columns.stride),
        pair(columns.span, half(columns.stride)),
        pair(columns.columns.len() as u64, parts),
        prefetches.into(),
    ];
    let mut first = 0;
    let each = columns.columns.iter().flat_map(|column| {
        let place = first | column.offset << 16 | column.width << 24;
        first += part(column);
        let own: [u64; COLUMN] = [column.packed, pair(half(column.width), place)];
        own
    });
    let mut numbers = [0; NUMBERS];
    for (place, number) in numbers.iter_mut().zip(head.into_iter().chain(each)) {
        *place = number;
    }
    numbers
}
