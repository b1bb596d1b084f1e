//! What the template of arrays that are packed field by field needs to know.

use super::place::{number, signed};
use super::template::word_type;
use crate::plan::Direction;
use crate::plan::gpu::Columns;
use minijinja::{Value, context};
use std::collections::BTreeMap;

/// Threads of a warp.
const WARP: u64 = 32;

/// Words of a column that a lane packs in a row, at most.
const MOST_ROUNDS: u64 = 4;

/// For an alignment of element 0, and the shared memory of a batch or none.
pub(super) fn values(
    columns: &Columns,
    extent: i64,
    direction: Direction,
    memory: u32,
    threads: u32,
    pool: &str,
) -> Value {
    let rounds = |units: u64| units.div_ceil(u64::from(threads));
    let tile_records = columns.tile_records(direction);
    let warps = u64::from(threads) / WARP;
    let each: Vec<Value> = columns
        .columns
        .iter()
        .map(|column| {
            context! {
                offset => column.offset,
                packed => number(column.packed),
                width => column.width,
                unit => columns.unit(column, memory),
                rounds => rounds((tile_records * column.width).div_ceil(4)),
            }
        })
        .collect();
    let stored = u64::from(columns.stored_unit(memory));
    let mut before = 0;
    let segments: Vec<Value> = columns
        .segments()
        .iter()
        .map(|segment| {
            let gaps = segment.start - before;
            before += segment.end - segment.start;
            context! { begin => segment.start - gaps, gaps }
        })
        .collect();
    let units = before / stored;
    context! {
        columns => each,
        classes => classes(columns, tile_records, memory, warps),
        warps,
        records => number(columns.records),
        tiles => number(columns.tiles(direction)),
        tile_records,
        stride => columns.stride,
        span => columns.span,
        low => signed(columns.low),
        extent => signed(extent),
        size => number(columns.size),
        segments,
        units,
        at_once => (u64::from(threads) / units).max(1),
        stored,
        stored_type => word_type(stored as u32),
        rounds => rounds((tile_records * columns.stride + 15).div_ceil(16)),
        shared => columns.shared_bytes(direction),
        pool,
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
