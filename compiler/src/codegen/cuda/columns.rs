//! What the template of arrays that are packed field by field needs to know.

use super::place::{number, signed};
use super::template::word_type;
use crate::plan::Direction;
use crate::plan::gpu::{Column, Columns, LINE};
use minijinja::{Value, context};
use std::collections::BTreeMap;

/// Threads of a warp.
const WARP: u64 = 32;

/// Words of a column that a lane packs in a row, at most.
const MOST_ROUNDS: u64 = 4;

/// Places in records that a lane keeps in registers in unpacks, at most.
const MOST_PLACES: u64 = 8;

/// For an alignment of element 0, and the shared memory of a batch or none.
pub(super) fn values(
    columns: &Columns,
    extent: i64,
    direction: Direction,
    memory: u32,
    threads: u32,
    pool: &str,
) -> Value {
    let tile_records = columns.tile_records(direction);
    let warps = u64::from(threads) / WARP;
    let own = match direction {
        Direction::Pack => {
            let rounds = (tile_records * columns.stride + 15).div_ceil(16).div_ceil(threads.into());
            context! { classes => classes(columns, tile_records, memory, warps), rounds }
        }
        Direction::Unpack => unpack_values(columns, memory, threads),
    };
    context! {
        warps,
        records => number(columns.records),
        tiles => number(columns.tiles(direction)),
        tile_records,
        stride => columns.stride,
        span => columns.span,
        low => signed(columns.low),
        extent => signed(extent),
        size => number(columns.size),
        shared => columns.shared_bytes(direction),
        pool,
        ..own
    }
}

/// What only unpacks need: columns in lines of shared memory, and how warps go through the records.
fn unpack_values(columns: &Columns, memory: u32, threads: u32) -> Value {
    let mut lines = 0;
    let each: Vec<Value> = columns
        .columns
        .iter()
        .map(|column| {
            let line = lines;
            lines += columns.lines(column);
            context! { offset => column.offset, packed => number(column.packed), width => column.width, line }
        })
        .collect();
    let stored = columns.stored_unit(memory);
    let unit = columns.staged_unit(stored);
    let fields: Vec<usize> = (0..columns.stride)
        .step_by(unit as usize)
        .map(|at| {
            let has = |column: &Column| (column.offset..column.offset + column.width).contains(&at);
            columns.columns.iter().position(has).unwrap_or(columns.columns.len())
        })
        .collect();
    let warps = u64::from(threads) / WARP;
    let row = WARP * u64::from(stored);
    // A lane is at the same place of a record again after `period` rows, which have `each_period` records.
    let common = 1 << (columns.stride | row).trailing_zeros();
    let (period, each_period) = (columns.stride / common, row / common);
    // A tile may begin inside of a line.
    let rows = (columns.tile_records(Direction::Unpack) * columns.stride + LINE + row).div_ceil(row);
    let periods = rows.div_ceil(period);
    let parts = u64::from(stored / unit);
    let chunks = period.div_ceil((MOST_PLACES / parts).max(1));
    let kept = period.div_ceil(chunks);
    // As many items as give all warps the same number of them.
    let groups = (1..=warps).find(|groups| (chunks * groups).is_multiple_of(warps)).unwrap_or(warps).min(periods);
    context! {
        count => each.len(),
        columns => each,
        slots => fields.len(),
        fields,
        unit,
        stored,
        stored_type => word_type(stored),
        parts,
        lines,
        rounds => lines.div_ceil(threads.into()),
        stage_bytes => columns.stage_bytes(),
        row,
        period,
        each => each_period,
        chunks,
        kept,
        unroll => (6 / kept).clamp(1, 4),
        items => chunks * groups,
        item_rounds => periods.div_ceil(groups),
    }
}

/// Columns of one width that are moved in units of one size share their text: a warp packs some words of one column at a time.
fn classes(columns: &Columns, tile_records: u64, memory: u32, warps: u64) -> Vec<Value> {
    let mut by_kind: BTreeMap<(u64, u32), Vec<Value>> = BTreeMap::new();
    for column in &columns.columns {
        let own = context! { offset => column.offset, packed => number(column.packed) };
        by_kind.entry((column.width, columns.unit(column, memory))).or_default().push(own);
    }
    let mut before = 0;
    let mut class = |((width, unit), own): ((u64, u32), Vec<Value>)| {
        let words = (tile_records * width).div_ceil(4);
        let rounds = words.div_ceil(WARP).min(MOST_ROUNDS);
        let chunks = words.div_ceil(WARP * rounds);
        let items = own.len() as u64 * chunks;
        // The classes before leave off at a warp; this one begins with the next.
        let turn = (warps - before % warps) % warps;
        before += items;
        context! { width, unit, count => own.len(), columns => own, rounds, chunks, items, turn }
    };
    by_kind.into_iter().map(&mut class).collect()
}
