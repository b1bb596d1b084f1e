//! Fragments of 64 MiB that begin anywhere, against the whole.

use super::cases::runs;
use dtc_compiler::datatype::{Datatype, text};
use dtc_compiler::plan::Direction;
use dtc_measure::bench::case::Case;
use dtc_measure::bench::cuda::comparison::{Arena, Fragment, Line};
use dtc_measure::bench::cuda::gpu_peer::GpuPeer;
use dtc_measure::bench::table::table;
use dtc_measure::failure::Failure;
use std::io::Write;

/// Packed bytes of a fragment.
const BYTES: u64 = 64 << 20;

/// Offset of unaligned fragments, in bytes: odd, so that no word divides it.
const ODD: u64 = 12_345;

/// The largest buffer and the most packed bytes of the cases below.
pub const SIZES: (u64, u64) = (1 << 30, 512 << 20);

/// Layouts of every family, as in the index of `bench/gpu`.
const LAYOUTS: [(&str, &str); 4] = [
    ("strided 8/16", "vector 33554432 1 2 double"),
    ("strided 128/512", "vector 2097152 16 64 double"),
    ("rows 1001/1003", "vector 268167 1001 1003 byte"),
    ("transpose f64 8192", "hvector 8192 1 8 (vector 8192 1 8192 double)"),
];

/// Measures all.
pub fn measure(arena: &mut Arena, rounds: usize) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for (name, notation) in LAYOUTS {
        let datatype = text::parse(notation).map_err(|error| Failure::Description(format!("{name}: {error}")))?;
        lines.extend(fragments(arena, name, datatype, rounds)?);
    }
    let datatype = runs(1 << 20, 4, 32, 1, |_, _| {}).map_err(|error| Failure::Description(error.to_string()))?;
    lines.extend(fragments(arena, "runs int 1..32 1M", datatype, rounds)?);
    Ok(lines)
}

fn fragments(arena: &mut Arena, name: &str, datatype: Datatype, rounds: usize) -> Result<Vec<Line>, Failure> {
    let case = Case { name: name.to_owned(), datatype, count: 1, pack_origin: 0, unpack_origin: 0, buffer: None };
    let fragment = |offset, at| {
        (format!("{name}, 64 MiB from {offset}, packed at {at}"), Some(Fragment { offset, bytes: BYTES, at }))
    };
    let all = [(name.to_owned(), None), fragment(0, 0), fragment(ODD, 0), fragment(ODD, 1)];
    arena.run_fragments(&case, &all, rounds)
}

/// Prints them; the first of four is the whole.
pub fn print(lines: &[Line], out: &mut dyn Write) -> Result<(), Failure> {
    for direction in [Direction::Pack, Direction::Unpack] {
        writeln!(
            out,
            "\n{direction} of fragments: payload in GB/s with the cache emptied; shares of the whole's speed"
        )?;
        let mut table = table(&["fragment", "dtc", "of whole", "generic", "of whole", "kernel"]);
        let rate = |line: &Line| {
            let times = line.times.as_ref().ok()?;
            Some(line.packed_bytes as f64 / times.cold.max(1e-3) / 1e3)
        };
        let of = |peer| lines.iter().filter(move |line| (line.peer, line.direction) == (peer, direction));
        let (mut whole, mut generic_whole) = (None, None);
        for (index, (line, generic)) in of(GpuPeer::Specialised).zip(of(GpuPeer::Generic)).enumerate() {
            if index % 4 == 0 {
                (whole, generic_whole) = (rate(line), rate(generic));
            }
            let number = |line: &Line| match rate(line) {
                Some(rate) => format!("{rate:.1}"),
                None if line.wrong => "WRONG".to_owned(),
                None => "-".to_owned(),
            };
            let share = |line: &Line, whole: Option<f64>| match (rate(line), whole) {
                (Some(rate), Some(whole)) => format!("{:.2}", rate / whole),
                _ => "-".to_owned(),
            };
            table.add_row([
                line.case.clone(),
                number(line),
                share(line, whole),
                number(generic),
                share(generic, generic_whole),
                line.variant.clone(),
            ]);
        }
        if let Some(column) = table.column_mut(5) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
        writeln!(out, "{table}")?;
    }
    Ok(())
}
