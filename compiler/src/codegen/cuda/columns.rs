//! What the template of arrays that are packed field by field needs to know.

use super::place::{number, signed};
use super::template::word_type;
use crate::plan::Direction;
use crate::plan::gpu::Columns;
use minijinja::{Value, context};

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
    let each: Vec<Value> = columns
        .columns
        .iter()
        .map(|column| {
            // Packed words may begin inside the first aligned one.
            let cut = u64::from(direction == Direction::Pack);
            context! {
                offset => column.offset,
                packed => number(column.packed),
                width => column.width,
                unit => columns.unit(column, memory),
                rounds => rounds((tile_records * column.width).div_ceil(4) + cut),
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
