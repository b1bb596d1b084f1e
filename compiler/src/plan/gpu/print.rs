//! The form of plans that people read.

use super::{Accumulation, Family, GpuPlan, Shape, Variant};
use crate::plan::Direction;
use std::fmt;

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.direction, self.family)?;
        f.write_str(if self.wide { ", 64-bit indices" } else { "" })?;
        f.write_str(if self.capped { ", on few multiprocessors" } else { "" })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Family::Words { word, shape, cut } => {
                let cut = if *cut { ", for cut calls" } else { "" };
                write!(f, "words of {word} bytes, {} a thread, {} threads a block{cut}", shape.unroll, shape.threads)
            }
            Family::Shifted { word } => write!(f, "words of {word} bytes astride the packed words"),
            Family::Gather => f.write_str("packed words gathered from runs at any alignment"),
            Family::Scatter => f.write_str("packed words scattered to runs at any alignment"),
            Family::Lines => f.write_str("packed bytes to runs through lines of shared memory"),
            Family::Rows { .. } => f.write_str("words of memory that odd rows fill"),
            Family::Ordered { word } => write!(f, "words of {word} bytes in the order of memory"),
            Family::Joined => f.write_str("packed words joined from listed runs"),
            Family::Groups { .. } => f.write_str("groups of runs through shared memory"),
            Family::Pieces => f.write_str("runs, each found by its number"),
            Family::Fields { .. } => f.write_str("records through shared memory, fields from arrays of their own"),
            Family::Columns { .. } => f.write_str("records through shared memory, packed field by field"),
            Family::Records => f.write_str("records through shared memory, in the order of memory"),
            Family::Masks => f.write_str("bytes of short runs by masks, in the order of memory"),
            Family::Tiles { shifted: false } => f.write_str("tiles through shared memory"),
            Family::Tiles { shifted: true } => f.write_str("tiles through shared memory, astride the packed words"),
            Family::Accumulate(Accumulation { reduction, word, shape, aligned, cut }) => {
                let astride = if *aligned { "" } else { " astride the packed words" };
                let cut = if *cut { ", for cut calls" } else { "" };
                let Shape { threads, unroll } = shape;
                write!(
                    f,
                    "{reduction}, words of {word} bytes{astride}, {unroll} a thread, {threads} threads a block{cut}"
                )
            }
        }
    }
}

impl fmt::Display for GpuPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_contiguous() {
            return f.write_str("contiguous: a copy by the driver\n");
        }
        if !self.allows() {
            return f.write_str("generic: nothing to move, or more nodes or parts than a kernel is compiled for\n");
        }
        for direction in [Direction::Pack, Direction::Unpack] {
            let variant = self.usual(direction);
            writeln!(f, "{variant}")?;
            if let (Family::Tiles { .. }, Some(tiles)) = (variant.family, &self.tiles) {
                let super::Tiles { word, tile_rows, tile_columns, stride, .. } = tiles;
                writeln!(f, "  {tile_rows} x {tile_columns} words of {word} bytes, columns {stride} bytes apart")?;
            }
        }
        Ok(())
    }
}
