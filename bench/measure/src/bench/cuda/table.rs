//! The table of a run on a GPU, and its geometric means.

use super::comparison::{Line, MedianTimes};
use super::gpu_peer::GpuPeer;
use crate::bench::table::table;
use crate::failure::Failure;
use crate::report;
use crate::timing::geometric_mean;
use dtc_compiler::plan::Direction;
use std::io::Write;

/// The lines of one direction of one case.
struct Row<'a>(&'a [Line]);

impl Row<'_> {
    fn of(&self, peer: GpuPeer) -> Option<&Line> {
        self.0.iter().find(|line| line.peer == peer)
    }

    fn times(&self, peer: GpuPeer) -> Option<MedianTimes> {
        self.of(peer)?.times.as_ref().ok().copied()
    }

    /// How many times as fast as another a peer is.
    fn ratio(&self, peer: GpuPeer, other: GpuPeer, time: fn(&MedianTimes) -> f64) -> Option<f64> {
        Some(time(&self.times(other)?) / time(&self.times(peer)?).max(1e-3))
    }
}

const COLD: fn(&MedianTimes) -> f64 = |times| times.cold;
const WARM: fn(&MedianTimes) -> f64 = |times| times.warm;

/// The share of the roofline that a line reached, with the cache emptied.
fn share(line: &Line) -> Option<f64> {
    Some(line.least_us? / line.times.as_ref().ok()?.cold.max(1e-3))
}

/// Prints everything.
pub fn print(lines: &[Line], out: &mut dyn Write) -> Result<(), Failure> {
    let rows: Vec<Row> =
        lines.chunk_by(|one, other| one.case == other.case && one.direction == other.direction).map(Row).collect();
    for direction in [Direction::Pack, Direction::Unpack] {
        writeln!(out, "\n{direction}: payload in GB/s with the cache emptied; ratios: above 1, dtc is faster")?;
        let header = [
            "type",
            "packed",
            "dtc",
            "generic",
            "memcpy",
            "x memcpy",
            "x memcpy, warm",
            "x roofline",
            "x generic",
            "kernel",
        ];
        let mut table = table(&header);
        for row in rows.iter().filter(|row| row.0[0].direction == direction) {
            let line = &row.0[0];
            let rate = |peer| match row.of(peer).map(|line| (&line.times, line.wrong)) {
                Some((Ok(times), _)) => format!("{:.1}", line.packed_bytes as f64 / times.cold.max(1e-3) / 1e3),
                Some((Err(_), true)) => "WRONG".to_owned(),
                _ => "-".to_owned(),
            };
            let ratio = |peer, other, time| {
                row.ratio(peer, other, time).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
            };
            table.add_row([
                line.case.clone(),
                report::bytes(line.packed_bytes),
                rate(GpuPeer::Specialised),
                rate(GpuPeer::Generic),
                rate(GpuPeer::Memcpy),
                ratio(GpuPeer::Specialised, GpuPeer::Memcpy, COLD),
                ratio(GpuPeer::Specialised, GpuPeer::Memcpy, WARM),
                share(line).map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
                ratio(GpuPeer::Specialised, GpuPeer::Generic, COLD),
                line.variant.clone(),
            ]);
        }
        if let Some(column) = table.column_mut(9) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
        writeln!(out, "{table}")?;
    }
    means(&rows, out)
}

fn means(rows: &[Row], out: &mut dyn Write) -> Result<(), Failure> {
    type Ratio = (&'static str, GpuPeer, GpuPeer, fn(&MedianTimes) -> f64);
    const RATIOS: [Ratio; 4] = [
        ("x memcpy, cold", GpuPeer::Specialised, GpuPeer::Memcpy, COLD),
        ("x memcpy, warm", GpuPeer::Specialised, GpuPeer::Memcpy, WARM),
        ("generic x memcpy, cold", GpuPeer::Generic, GpuPeer::Memcpy, COLD),
        ("x generic, cold", GpuPeer::Specialised, GpuPeer::Generic, COLD),
    ];
    writeln!(out)?;
    for direction in [Direction::Pack, Direction::Unpack] {
        let rows = || rows.iter().filter(|row| row.0[0].direction == direction);
        for (what, peer, other, time) in RATIOS {
            let ratios = rows().filter_map(|row| Some((row.ratio(peer, other, time)?, row.0[0].case.as_str())));
            mean(direction, what, &ratios.collect::<Vec<_>>(), out)?;
        }
        let shares = rows().filter_map(|row| Some((share(&row.0[0])?, row.0[0].case.as_str())));
        mean(direction, "x roofline, cold", &shares.collect::<Vec<_>>(), out)?;
    }
    Ok(())
}

/// A line about ratios, if there are any.
fn mean(direction: Direction, what: &str, ratios: &[(f64, &str)], out: &mut dyn Write) -> Result<(), Failure> {
    let Some((least, case)) = ratios.iter().copied().min_by(|one, other| one.0.total_cmp(&other.0)) else {
        return Ok(());
    };
    let mean = geometric_mean(&ratios.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>());
    let (direction, cases) = (direction.to_string(), ratios.len());
    writeln!(out, "{direction:<7} {what:<22} geometric mean {mean:.3}, minimum {least:.3} ({case}), {cases} cases")?;
    Ok(())
}
