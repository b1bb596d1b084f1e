//! The families of kernels: a file for each, and here their list and the order in which they are tried.
//!
//! `CONTRIBUTING.md` shows how to add one.

mod accumulate;
mod boxes;
mod columns;
mod family;
mod fields;
mod gather;
mod generic;
mod groups;
mod joined;
mod lines;
mod masks;
mod ordered;
mod pieces;
mod query;
mod records;
mod rows;
mod scatter;
mod shifted;
mod tiles;
mod vectors;
mod words;

pub use accumulate::computes;
pub use boxes::Boxes;
pub use columns::{Column, Columns};
pub(crate) use family::{Instance, KernelFamily};
pub use fields::{Fields, RecordField};
pub(crate) use generic::Generic;
pub use groups::Groups;
pub use masks::Masks;
pub use ordered::Disorder;
pub use pieces::Pieces;
pub(crate) use query::Query;
pub use records::Records;
pub(crate) use rows::slots;
pub use tiles::Tiles;
pub(crate) use words::{best_shape, best_word};

use super::analysis::Analysis;
use crate::plan::Direction;

/// Declares the families, in an order in which each finds its structure after those that it builds on.
macro_rules! families {
    ($($(#[$documentation:meta])* $name:ident($module:ident::$kernel:ident),)*) => {
        $(pub use $module::$kernel;)*

        /// The family of a kernel, and the parameters that it has there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Family {
            $($(#[$documentation])* $name($kernel),)*
        }

        $(impl From<$kernel> for Family {
            fn from(kernel: $kernel) -> Family {
                Family::$name(kernel)
            }
        })*

        impl Family {
            /// The kernel, as all families have one.
            pub(crate) fn kernel(&self) -> &dyn KernelFamily {
                match self {
                    $(Family::$name(kernel) => kernel,)*
                }
            }
        }

        /// Adds what all families find in a layout.
        pub(crate) fn find(analysis: &mut Analysis) {
            $($kernel::find(analysis);)*
        }

        /// Every kernel that may serve a call, also those that are never the fastest.
        pub(crate) fn candidates(query: &Query<'_>) -> Vec<Family> {
            let mut families = Vec::new();
            $(families.extend($kernel::candidates(query).into_iter().map(Family::from));)*
            families
        }
    };
}

families! {
    /// Words at their alignment on both sides.
    Words(words::WordsKernel),
    /// Packed words of 16 bytes from bytes or shorts of memory, aligned on both sides. Packs only.
    Vectors(vectors::VectorsKernel),
    /// Words of memory that are unaligned among the packed bytes.
    Shifted(shifted::ShiftedKernel),
    /// Aligned packed words from memory at any alignment. Packs only.
    Gather(gather::GatherKernel),
    /// Aligned packed words to memory at any alignment. Unpacks only.
    Scatter(scatter::ScatterKernel),
    /// Words of memory that rows of one length fill. Unpacks only.
    Rows(rows::RowsKernel),
    /// Runs, or pieces of long ones, found by their numbers and not by their bytes.
    Pieces(pieces::PiecesKernel),
    /// Packed words of 16 bytes, each put together from the runs that it has. Packs only.
    Joined(joined::JoinedKernel),
    /// Short runs close to each other, byte by byte in the order of memory, which masks tell. Unpacks only.
    Masks(masks::MasksKernel),
    /// Packed bytes to short runs close to each other, through lines of memory in shared memory. Unpacks by generic kernels only.
    Lines(lines::LinesKernel),
    /// Records with small gaps, byte by byte in the order of memory, through shared memory. Unpacks only.
    Records(records::RecordsKernel),
    /// Words of blocks whose packed order is not that of memory, in the order of memory. Unpacks of whole elements only.
    Ordered(ordered::OrderedKernel),
    /// Small groups of runs, through shared memory.
    Groups(groups::GroupsKernel),
    /// Tiles through shared memory.
    Tiles(tiles::TilesKernel),
    /// Boxes of arrays with permuted axes, through shared memory. Whole elements only.
    Boxes(boxes::BoxesKernel),
    /// Arrays of records that are packed field by field, through shared memory. Whole elements only.
    Columns(columns::ColumnsKernel),
    /// Records whose fields are in arrays of their own, through shared memory.
    Fields(fields::FieldsKernel),
    /// Elements of memory that become themselves combined with the packed ones. Unpacks only.
    Accumulate(accumulate::Accumulation),
}

/// A rule: the kernel of a family that serves a call, if it is faster than those of the rules behind.
type Rule = fn(&Query<'_>) -> Option<Family>;

macro_rules! rules {
    ($($rule:path,)*) => {
        &[$(|query| $rule(query).map(Family::from)),*]
    };
}

/// The rules in the order in which they are tried: from those that see most of a layout's structure to those that see runs alone, or bytes.
const RULES: &[Rule] = rules![
    // All words are under way at once.
    words::resident,
    // Through shared memory, where neighbours in memory are packed far apart, or runs are listed in groups.
    fields::admits,
    columns::admits,
    boxes::admits,
    tiles::admits,
    groups::admits,
    // Unpacks in the order of memory.
    ordered::admits,
    records::admits,
    masks::admits,
    // Listed runs, each looked up once.
    joined::admits,
    pieces::admits,
    // Rows by their words of memory.
    rows::inside_sectors,
    // Aligned words. Each thread looks up the run of its word.
    vectors::admits,
    words::aligned,
    words::resident_narrow,
    // Words that are put together.
    shifted::admits,
    gather::admits,
    rows::admits,
];

/// The kernel that serves a call: that of the first rule which holds. Every unpack may be scattered.
pub(crate) fn serving(query: &Query<'_>) -> Family {
    RULES.iter().find_map(|rule| rule(query)).unwrap_or(Family::Scatter(ScatterKernel))
}

impl Generic {
    /// The family of the generic kernel, and its parameters: at any alignment.
    pub(crate) const fn family(self, direction: Direction) -> Family {
        match self {
            Generic::Words(word) => Family::Words(words::cut(word)),
            Generic::Shifted(word) => Family::Shifted(ShiftedKernel { word }),
            Generic::Bytes => match direction {
                Direction::Pack => Family::Gather(GatherKernel),
                Direction::Unpack => Family::Scatter(ScatterKernel),
            },
            Generic::Lines => Family::Lines(LinesKernel),
            Generic::Columns => Family::Columns(ColumnsKernel { memory: 1 }),
            Generic::Fields => Family::Fields(FieldsKernel { memory: 1, packed: 1 }),
            Generic::Groups => Family::Groups(GroupsKernel { memory: 1, packed: 1 }),
            Generic::Tiles => Family::Tiles(TilesKernel { shifted: false }),
        }
    }
}
