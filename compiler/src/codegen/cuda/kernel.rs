//! The text of a kernel: a template, with the functions of its layout.

use super::accumulate;
use super::columns;
use super::fields;
use super::groups;
use super::place::{Places, signed};
use super::tables::Tables;
use super::template::{CodegenError, render, word_type};
use crate::layout::{Layout, Node};
use crate::plan::Direction;
use crate::plan::gpu::{Cut, Family, GpuPlan, LINE, LISTS_AHEAD, Masks, Pieces, SHORT_RUNS_SPAN, Variant};
use minijinja::{Value, context};
use std::fmt::Write;

/// Loads of words that lie astride which a thread has under way; more of them cost registers, and so threads.
const ASTRIDE_LOADS: u32 = 9;

/// Listed runs that a thread brings to the L2 cache, of 8 bytes each.
const LISTED_AT_ONCE: u64 = 12;

/// The shared memory of a kernel. A block belongs to one item, so all kinds use the same.
pub(super) const POOL: &str = "pool";

/// The namespace of the kernel of that name.
pub(super) fn namespace(entry: &str) -> &str {
    entry.trim_start_matches("dtc_")
}

/// The text of kernels, and the lists that they read.
#[derive(Clone, Debug)]
pub struct Program {
    /// CUDA C++, for NVRTC.
    pub source: String,
    /// What the parameter `tables` of the kernels points at, on a boundary of 16 bytes; empty when they read none.
    pub tables: Vec<u8>,
}

/// Whether a kernel loads words of up to 8 bytes at any address.
fn loads_bytes(variant: &Variant) -> bool {
    match variant.family {
        Family::Gather | Family::Scatter | Family::Lines | Family::Rows { .. } => true,
        Family::Joined | Family::Records | Family::Masks | Family::Pieces => false,
        Family::Shifted { .. } => variant.direction == Direction::Unpack,
        Family::Accumulate(chosen) => !chosen.aligned,
        Family::Words { .. } | Family::Ordered { .. } => false,
        Family::Tiles { .. } | Family::Fields { .. } | Family::Columns { .. } | Family::Groups { .. } => false,
    }
}

/// Whether a kernel stores parts of words.
fn stores_bytes(plan: &GpuPlan, variant: &Variant) -> bool {
    match variant.family {
        Family::Scatter => true,
        Family::Pieces => variant.direction == Direction::Unpack && !moves_long_runs(plan, variant),
        _ => false,
    }
}

/// Whether several lanes move a run.
fn moves_long_runs(plan: &GpuPlan, variant: &Variant) -> bool {
    variant.family == Family::Pieces && plan.pieces().is_some_and(|pieces| pieces.cut(variant.direction).lanes > 1)
}

/// Whether a kernel that joins words brings lists to the L2 cache: short ones stay there.
fn brings_lists(pieces: &Pieces) -> bool {
    pieces.size > 2 * LISTS_AHEAD
}

/// Whether a kernel brings lines of memory to the L2 cache before it needs them.
fn prefetches(plan: &GpuPlan, variant: &Variant) -> bool {
    match variant.family {
        Family::Joined => plan.pieces().is_some_and(brings_lists),
        Family::Lines => true,
        _ => plan.prefetches(variant),
    }
}

/// The types and functions that kernels of these variants use.
pub(super) fn library(kernels: &[(&GpuPlan, Variant)]) -> String {
    let any = |needs: fn(&GpuPlan, &Variant) -> bool| kernels.iter().any(|(plan, variant)| needs(plan, variant));
    let mut text = dtc_templates::PRELUDE.to_owned();
    if any(|_, variant| loads_bytes(variant)) {
        text.push_str(dtc_templates::LOAD_BYTES);
    }
    if any(stores_bytes) {
        text.push_str(dtc_templates::STORE_BYTES);
    }
    if any(|_, variant| matches!(variant.family, Family::Rows { .. })) {
        text.push_str(dtc_templates::STORE_PART);
    }
    let joins = |_: &GpuPlan, variant: &Variant| variant.family == Family::Joined;
    if any(moves_long_runs) || any(joins) {
        text.push_str(dtc_templates::FUNNEL);
    }
    if any(joins) {
        text.push_str(dtc_templates::JOIN);
    }
    if any(prefetches) {
        text.push_str(dtc_templates::PREFETCH);
    }
    if any(|_, variant| variant.direction == Direction::Pack && matches!(variant.family, Family::Columns { .. })) {
        text.push_str(dtc_templates::STAGED);
    }
    let cut = kernels.iter().filter_map(|(_, variant)| match variant.family {
        Family::Accumulate(chosen) => Some(chosen.cut),
        _ => None,
    });
    if let Some(cut) = cut.reduce(|one, other| one || other) {
        text.push_str(&accumulate::library(cut));
    }
    text
}

/// The length of the shortest run that a layout is written with, in bytes.
fn shortest_run(layout: &Layout) -> u64 {
    let runs = layout.nodes().filter_map(|(_, node)| match node {
        Node::Dense { count, kind } => Some(count * kind.size()),
        Node::Runs { runs, kind } => runs.iter().map(|run| run.count * kind.size()).min(),
        _ => None,
    });
    runs.min().unwrap_or(0)
}

/// The layouts, as a comment.
pub(super) fn header(what: &str, plans: &[&GpuPlan]) -> String {
    const LONGEST: usize = 140;
    let mut text = format!("// {what} by dtc, for\n");
    for plan in plans {
        text.push_str("//\n");
        for line in plan.layout().abridged(LONGEST) {
            let _ = writeln!(text, "//     {line}");
        }
    }
    text.push_str("//\n\n");
    text
}

/// A namespace with what a block of a variant does, and the kernel of that name, if one is asked for.
pub(super) fn kernel(
    namespace: &str,
    plan: &GpuPlan,
    variant: &Variant,
    threads: u32,
    tables: &mut Tables,
    entry: Option<&str>,
) -> Result<String, CodegenError> {
    let name = match variant.family {
        Family::Words { .. } => "words",
        Family::Shifted { .. } if variant.direction == Direction::Pack => "shifted_pack",
        Family::Shifted { .. } => "shifted_unpack",
        Family::Gather => "gather",
        Family::Scatter => "scatter",
        Family::Lines => "lines",
        Family::Rows { .. } => "rows",
        Family::Ordered { .. } => "ordered",
        Family::Fields { .. } => "fields",
        Family::Columns { .. } => "columns",
        Family::Pieces if moves_long_runs(plan, variant) => "long_runs",
        Family::Pieces => "short_runs",
        Family::Joined => "joined",
        Family::Records => "records",
        Family::Groups { .. } => "groups",
        Family::Masks => "masks",
        Family::Tiles { .. } => "tiles",
        Family::Accumulate(_) => "accumulate",
    };
    let mut places = Places::new(plan, tables);
    let pool = if entry.is_none() { POOL } else { "" };
    let missing = || CodegenError(format!("{name}: the plan has none"));
    let (word, values) = match variant.family {
        Family::Words { word, shape, cut } => {
            places.elements(word.into(), false);
            // Blocks in any order are at lines that others have blocks of, too.
            let streamed = plan.disordered() && variant.direction == Direction::Pack;
            (word, context! { unroll => shape.unroll, cut, streamed })
        }
        Family::Shifted { word } => {
            places.elements(word.into(), false);
            (word, context! { unroll => variant.unroll() })
        }
        Family::Gather => {
            places.elements(1, true);
            // After its first byte at least, a run of seven fills a word.
            (1, context! { crosses_once => shortest_run(plan.layout()) >= 7 })
        }
        Family::Scatter => {
            places.elements(1, true);
            (1, Value::UNDEFINED)
        }
        Family::Lines => {
            places.elements(1, true);
            (1, context! { span => SHORT_RUNS_SPAN, pool })
        }
        Family::Rows { slots } => {
            let row = plan.row().ok_or_else(missing)?;
            places.elements(row, false);
            (1, context! { row, slots })
        }
        Family::Ordered { word } => {
            places.ordered(word.into())?;
            (word, context! { unroll => variant.unroll() })
        }
        Family::Pieces => {
            let pieces = plan.pieces().ok_or_else(missing)?;
            let Cut { bytes, lanes, unroll } = pieces.cut(variant.direction);
            let (list, bases) = places.pieces(pieces, variant.direction);
            let shared = pieces.shared_bytes(variant.direction, threads);
            let count = pieces.count(variant.direction);
            // Bytes of either end that a lane has: fewer than a word together.
            let edge = 16u32.div_ceil(lanes);
            let single = bytes <= lanes * unroll * 16;
            let values = context! { list, bases, size => pieces.size, pieces => count, piece => bytes, lanes, unroll };
            (1, context! { edge, single, shared, pool, ..values })
        }
        Family::Joined => {
            let pieces = plan.pieces().ok_or_else(missing)?;
            let (list, bases, steps, runs) = places.joined(pieces);
            let runs_ahead = if brings_lists(pieces) { LISTS_AHEAD / pieces.mean } else { 0 };
            let stretches = (u64::from(threads) * 16 / pieces.mean).div_ceil(LISTED_AT_ONCE);
            let ahead = context! { runs_ahead, bytes_ahead => LISTS_AHEAD, stretches, stretch => LISTED_AT_ONCE };
            (1, context! { list, bases, steps, runs, size => pieces.size, ..ahead })
        }
        Family::Records => {
            let records = plan.records().ok_or_else(missing)?;
            let rounds = (records.tile_bytes() + 15).div_ceil(16).div_ceil(threads.into());
            let lines = (records.tile_records() * records.stride + LINE - 1).div_ceil(4 * u64::from(threads));
            let values = context! {
                table => places.record_bytes(records), size => records.size, stride => records.stride,
                low => signed(records.low), records => records.tile_records(), rounds, lines,
                stage_bytes => records.stage_bytes(), shared => records.shared_bytes(), pool,
            };
            (1, values)
        }
        Family::Masks => {
            let masks = plan.masks().ok_or_else(missing)?;
            let [list, befores] = places.masks(masks);
            let values = context! {
                masks => list, befores, size => masks.size, low => signed(masks.low), groups => masks.groups(), group => Masks::GROUP,
                line => LINE, stage_words => Masks::STAGE_WORDS, warp_words => Masks::WARP_WORDS, shared => Masks::shared_bytes(threads), pool,
            };
            (1, values)
        }
        Family::Groups { memory, packed } => {
            let groups = plan.groups().ok_or_else(missing)?;
            let list = places.group_words(groups, variant.direction, memory, packed);
            (1, groups::values(groups, variant.direction, [memory, packed], threads, list, pool))
        }
        Family::Fields { memory, packed } => {
            let fields = plan.fields().ok_or_else(missing)?;
            places.records(fields.record, fields.size);
            places.elements(1, false);
            (1, fields::values(fields, memory, packed, pool))
        }
        Family::Columns { memory } => {
            let columns = plan.columns().ok_or_else(missing)?;
            (1, columns::values(columns, plan.layout().extent(), variant.direction, memory, threads, pool))
        }
        Family::Accumulate(chosen) => {
            places.elements(chosen.word.into(), false);
            (chosen.word, accumulate::values(&chosen))
        }
        Family::Tiles { shifted } => {
            let tiles = plan.tiles().ok_or_else(missing)?;
            places.planes(tiles);
            let tile_rows = tiles.rows_of_tile(shifted);
            let words = tile_rows * tiles.tile_columns;
            // Words that lie astride need their neighbours too.
            let load_steps = (words + tiles.tile_columns).div_ceil(threads);
            let values = context! {
                rows => tiles.rows, columns => tiles.columns, neighbour_stride => tiles.stride,
                tile_rows, tile_columns => tiles.tile_columns, pitch => tiles.pitch(shifted), shifted, steps => words.div_ceil(threads),
                load_steps, loads => load_steps.min(ASTRIDE_LOADS),
                line_rows => tiles.line_rows(variant.direction, shifted), line_columns => tiles.line_columns(),
                pool,
            };
            (tiles.word, values)
        }
    };
    let functions = places.into_text();
    let pack = variant.direction == Direction::Pack;
    let prefetched = prefetches(plan, variant);
    let own =
        context! { pack, prefetched, threads, call => "Bounds", context => "", word, word_type => word_type(word) };
    // What a family says goes before what all say.
    let body = render(name, &context! { ..values, ..own })?;
    let kernel = match entry {
        Some(entry) => {
            let shared = matches!(
                variant.family,
                Family::Tiles { .. }
                    | Family::Fields { .. }
                    | Family::Columns { .. }
                    | Family::Pieces
                    | Family::Records
                    | Family::Masks
                    | Family::Groups { .. }
                    | Family::Lines
            );
            let resident = variant.resident_blocks();
            render("entry", &context! { entry, threads, resident, shared, capped => variant.capped, call => "Bounds" })?
                + "\n"
        }
        None => String::new(),
    };
    let index = if variant.wide { "u64" } else { "u32" };
    Ok(format!("\nnamespace {namespace} {{\n\ntypedef {index} index;\n\n{functions}{body}\n{kernel}}}\n"))
}
