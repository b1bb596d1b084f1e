//! What the addresses and lengths of a layout are multiples of.

use super::sizes::{SECTOR, WIDEST};
use crate::layout::{Layout, Node};

/// Powers of two, in bytes, up to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Granularity {
    /// Divides the displacement of every run of every element.
    pub starts: u32,
    /// Divides the length of every run.
    pub lengths: u32,
}

/// The bits of all displacements, and of all lengths: a power of two divides all numbers if and only if it divides their bits put together.
fn divisors(layout: &Layout) -> (u64, u64) {
    let (mut starts, mut lengths) = (layout.root().offset as u64 | layout.extent() as u64, 0);
    for (_, node) in layout.nodes() {
        for edge in node.edges() {
            starts |= edge.offset as u64;
        }
        match node {
            Node::Dense { count, kind } => lengths |= count * kind.size(),
            Node::Stream { stride, .. } => starts |= *stride as u64,
            Node::Indexed { offsets, .. } => {
                starts |= offsets.iter().fold(0, |bits, &offset| bits | offset as u64);
            }
            Node::Runs { runs, kind } => {
                for run in runs.iter() {
                    starts |= run.offset as u64;
                    lengths |= run.count * kind.size();
                }
            }
            Node::Record { .. } => {}
        }
    }
    (starts, lengths)
}

/// The granularity of a layout, and whether all runs begin and end at sectors, if element 0 begins at one. Reads each entry of a list once.
pub(crate) fn measure(layout: &Layout) -> (Granularity, bool) {
    let (starts, lengths) = divisors(layout);
    let granularity = Granularity { starts: alignment(starts), lengths: alignment(lengths) };
    (granularity, (starts | lengths).is_multiple_of(SECTOR))
}

impl Granularity {
    /// The granularity of a layout.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::Granularity;
    /// let text = "layout lb 0 extent 24 {\n  %0 = dense 17 x byte\n  root %0\n}";
    /// assert_eq!(Granularity::of(&Layout::parse(text)?), Granularity { starts: 8, lengths: 1 });
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn of(layout: &Layout) -> Granularity {
        measure(layout).0
    }

    /// The largest power of two up to 16 that divides all numbers whose bits were put together.
    ///
    /// ```
    /// assert_eq!(dtc_compiler::plan::gpu::Granularity::of_bits(4096 | 24), 8);
    /// ```
    pub fn of_bits(bits: u64) -> u32 {
        alignment(bits)
    }

    /// The widest word that every run is made of, in bytes.
    ///
    /// ```
    /// assert_eq!(dtc_compiler::plan::gpu::Granularity { starts: 8, lengths: 4 }.word(), 4);
    /// ```
    pub fn word(self) -> u32 {
        self.starts.min(self.lengths)
    }
}

/// The largest power of two up to 16 that divides a number.
pub(crate) fn alignment(number: u64) -> u32 {
    1 << number.trailing_zeros().min(WIDEST.trailing_zeros())
}

/// The length of every run, where they are all of one. Runs may follow each other in memory.
pub(crate) fn row(layout: &Layout) -> Option<u64> {
    let mut row = None;
    for (_, node) in layout.nodes() {
        match node {
            Node::Dense { count, kind } => {
                let bytes = count * kind.size();
                if *row.get_or_insert(bytes) != bytes {
                    return None;
                }
            }
            Node::Runs { .. } => return None,
            _ => {}
        }
    }
    row
}
