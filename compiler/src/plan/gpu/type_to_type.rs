//! How bytes go from the memory of one type to that of another.

use super::families::{best_shape, best_word, slots};
use super::granularity;
use super::grid::launched;
use super::plan::GpuPlan;
use super::shape::LaunchShape;
use super::sizes::{LINE, NARROW, SLOT};
use crate::plan::Direction;
use std::fmt;

/// A copy from type to type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyCall {
    /// The address of element 0 of the source.
    pub source: u64,
    /// The first packed byte there.
    pub source_first: u64,
    /// The address of element 0 of the target.
    pub target: u64,
    /// The first packed byte there.
    pub target_first: u64,
    /// How many bytes to move, at least 1.
    pub bytes: u64,
}

/// A kernel for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyVariant {
    /// The template that it is made from.
    pub family: CopyFamily,
    /// Whether indices need 64 bits.
    pub wide: bool,
}

/// A way of copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyFamily {
    /// Words that are aligned in both memories, and in the packed bytes of both.
    Words {
        /// Bytes of a word: 1, 2, 4, 8 or 16.
        word: u32,
        /// Threads and words for each.
        shape: LaunchShape,
        /// Whether the call may begin or end inside a word.
        cut: bool,
    },
    /// Words of the target's memory that its rows of one length fill, put together from runs at any alignment.
    Rows {
        /// Bytes of a row.
        row: u64,
        /// Words of memory that a row may touch, which depends on the alignment of element 0.
        slots: u64,
    },
    /// Words of the target put together from runs at any alignment.
    Bytes,
}

impl CopyVariant {
    /// The kernel that serves a copy; nothing if none is compiled for one of the layouts.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::{CopyCall, CopyFamily, CopyVariant, GpuPlan};
    /// let plan = |extent, stride| {
    ///     let nodes = format!("  %0 = dense 8 x byte\n  %1 = stream 512 x {stride} of %0\n  root %1");
    ///     Layout::parse(&format!("layout lb 0 extent {extent} {{\n{nodes}\n}}")).map(|layout| GpuPlan::new(&layout))
    /// };
    /// let call = CopyCall { source: 0, source_first: 0, target: 256, target_first: 8, bytes: 4096 };
    /// let variant = CopyVariant::serving(&plan(8192, 16)?, &plan(12288, 24)?, &call).unwrap();
    /// assert!(matches!(variant.family, CopyFamily::Words { word: 8, .. }));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn serving(source: &GpuPlan, target: &GpuPlan, call: &CopyCall) -> Option<CopyVariant> {
        if !source.allows_in_batch() || !target.allows_in_batch() {
            return None;
        }
        let (read, written) = (source.analysis(), target.analysis());
        let widest = call.widest(source, target);
        let preferred = best_word(read, Direction::Pack, widest).min(best_word(written, Direction::Unpack, 16));
        let short = read.runs.mean.min(written.runs.mean) < SLOT && preferred == widest;
        let family = if preferred >= 4 || short {
            let cut = !(call.source_first | call.bytes).is_multiple_of(preferred.into());
            CopyFamily::Words { word: preferred, shape: best_shape(written, Direction::Unpack, preferred), cut }
        } else {
            slots(written, call.target, call.bytes)
                .map_or(CopyFamily::Bytes, |(row, slots)| CopyFamily::Rows { row, slots })
        };
        let end = call.source_first.max(call.target_first).saturating_add(call.bytes);
        let units = if let CopyFamily::Words { word, .. } = family { end / u64::from(word) } else { end };
        Some(CopyVariant { family, wide: units >= NARROW })
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        match self.family {
            CopyFamily::Words { shape, .. } => shape.threads,
            CopyFamily::Rows { .. } => 2 * LINE as u32,
            CopyFamily::Bytes => LINE as u32,
        }
    }

    /// Blocks that the kernel is launched with for `bytes` bytes, or `None` when no grid is that large.
    pub fn blocks(&self, bytes: u64) -> Option<u32> {
        let threads = match self.family {
            CopyFamily::Words { word, shape, .. } => bytes.div_ceil(u64::from(word * shape.unroll)),
            // The call may begin and end inside of rows.
            CopyFamily::Rows { row, slots } => (bytes.div_ceil(row) + 1).checked_mul(slots)?,
            CopyFamily::Bytes => bytes.div_ceil(2 * SLOT),
        };
        let blocks = threads.div_ceil(self.threads().into());
        launched(blocks)
    }
}

impl CopyCall {
    /// The widest word that is aligned everywhere.
    fn widest(&self, source: &GpuPlan, target: &GpuPlan) -> u32 {
        let ahead = self.target_first.wrapping_sub(self.source_first);
        let words = source.granularity().word().min(target.granularity().word());
        words.min(granularity::alignment(self.source | self.target | ahead))
    }
}

impl fmt::Display for CopyVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            CopyFamily::Words { word, shape, cut } => {
                let cut = if cut { ", for cut calls" } else { "" };
                write!(f, "words of {word} bytes, {} a thread, {} threads a block{cut}", shape.unroll, shape.threads)?;
            }
            CopyFamily::Rows { row, slots } => {
                write!(
                    f,
                    "{slots} words of the target for each row of {row} bytes, put together from runs at any alignment"
                )?;
            }
            CopyFamily::Bytes => f.write_str("words of the target put together from runs at any alignment")?,
        }
        if self.wide { f.write_str(", 64-bit indices") } else { Ok(()) }
    }
}
