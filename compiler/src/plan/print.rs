//! The textual form of plans.

use super::{Offsets, Plan, Step};
use std::fmt;

/// Longer lists are cut: a plan is read by people.
const SHOWN: usize = 6;

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, length: usize, item: impl Fn(usize) -> T) -> fmt::Result {
    f.write_str("[")?;
    for index in 0..length.min(SHOWN) {
        let separator = if index > 0 { " " } else { "" };
        write!(f, "{separator}{}", item(index))?;
    }
    if length > SHOWN {
        write!(f, " ... {length} in all")?;
    }
    f.write_str("]")
}

fn width(offsets: &Offsets) -> u32 {
    match offsets {
        Offsets::Narrow(_) => 32,
        Offsets::Wide(_) => 64,
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Nothing => f.write_str("nothing"),
            Step::Copy { bytes } => write!(f, "copy {bytes} bytes"),
            Step::Rows { rows, stride, bytes } => write!(f, "rows {rows} x {stride} of {bytes} bytes"),
            Step::Planes { planes, plane_stride, rows, stride, bytes } => {
                write!(f, "planes {planes} x {plane_stride} of rows {rows} x {stride} of {bytes} bytes")
            }
            Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes } => {
                write!(f, "tile {planes} x {plane_stride} of ")?;
                if *layers > 1 {
                    write!(f, "layers {layers} x {layer_stride} of ")?;
                }
                write!(f, "rows {rows} x {stride} of {bytes} bytes")
            }
            Step::List { offsets, bytes } => {
                write!(f, "list of {bytes} bytes at {}-bit offsets ", width(offsets))?;
                list(f, offsets.len(), |index| offsets.get(index))
            }
            Step::Runs(table) => {
                f.write_str("runs ")?;
                let runs = &table.runs;
                list(f, runs.len(), |index| format!("({} {})", runs[index].offset, runs[index].count))
            }
            Step::Repeat { count, stride, body } => write!(f, "repeat {count} x {stride} of #{}", body.index()),
            Step::Scatter { offsets, body } => {
                write!(f, "scatter #{} at {}-bit offsets ", body.index(), width(offsets))?;
                list(f, offsets.len(), |index| offsets.get(index))
            }
            Step::Sequence { parts } => {
                f.write_str("sequence ")?;
                list(f, parts.len(), |index| format!("{}: #{}", parts[index].offset, parts[index].step.index()))
            }
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan of {} bytes, extent {} {{", self.size, self.extent)?;
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "  #{index} = {step}")?;
        }
        writeln!(f, "  root {}: #{}", self.root.offset, self.root.step.index())?;
        writeln!(f, "  {}", self.decision)?;
        f.write_str("}")
    }
}
