//! The kernels that plans choose from.

use super::cost::{self, Shape};
use crate::operation::Reduction;
use crate::plan::Direction;

/// Bytes that a thread moves of words that lie astride.
const SHIFTED_BYTES: u32 = 16;

/// A way of moving bytes: a template of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Words at their alignment on both sides.
    Words {
        /// Bytes of a word: 1, 2, 4, 8 or 16.
        word: u32,
        /// Threads and words for each.
        shape: Shape,
        /// Whether the call may begin or end inside a word, or inside a line of the packed bytes.
        cut: bool,
    },
    /// Words of memory that lie astride the words of the packed bytes.
    Shifted {
        /// Bytes of a word: 4 or 8, or 16 for unpacks.
        word: u32,
    },
    /// Aligned packed words from memory at any alignment. Packs only.
    Gather,
    /// Aligned packed words to memory at any alignment. Unpacks only.
    Scatter,
    /// Packed bytes to short runs close to each other, in any order, through lines of memory in shared memory. Unpacks by generic kernels only.
    Lines,
    /// Words of memory that rows of one odd length fill. Unpacks only.
    Rows {
        /// Words of memory that a row may touch, which depends on the alignment of element 0.
        slots: u64,
    },
    /// Words of blocks whose packed order is not that of memory, in the order of memory. Unpacks of whole elements only.
    Ordered {
        /// Bytes of a word: 1, 2, 4, 8 or 16.
        word: u32,
    },
    /// Tiles through shared memory.
    Tiles {
        /// Whether words of memory lie astride the words of the packed bytes.
        shifted: bool,
    },
    /// Records whose fields lie in arrays of their own, through shared memory.
    Fields {
        /// Bytes that divide the address of element 0: a power of two.
        memory: u32,
        /// Bytes that divide where packed byte 0 would lie: a power of two.
        packed: u32,
    },
    /// Arrays of records that are packed field by field, through shared memory. Whole elements only.
    Columns {
        /// Bytes that divide the address of element 0: a power of two.
        memory: u32,
    },
    /// Records with small gaps, byte by byte in the order of memory, through shared memory. Unpacks only.
    Records,
    /// Short runs close to each other, byte by byte in the order of memory, which masks tell. Unpacks only.
    Masks,
    /// Small groups of runs, through shared memory.
    Groups {
        /// Bytes that divide the address of element 0: a power of two.
        memory: u32,
        /// Bytes that divide where packed byte 0 would lie: a power of two.
        packed: u32,
    },
    /// Runs, or pieces of long ones, found by their numbers and not by their bytes. Packs of short ones pass through shared memory.
    Pieces,
    /// Packed words of 16 bytes, each put together from the runs that it has. Packs only.
    Joined,
    /// Elements of memory that become themselves combined with the packed ones. Unpacks only.
    Accumulate(Accumulation),
}

/// A kernel of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The direction of the call.
    pub direction: Direction,
    /// The template that it is made from.
    pub family: Family,
    /// Whether indices need 64 bits.
    pub wide: bool,
    /// Whether a grid may have fewer blocks than the work, which costs up to a quarter of the speed.
    pub capped: bool,
}

impl Variant {
    /// The same kernel for a grid that may have fewer blocks than the work. Its blocks move more at a time: a few of them
    /// have to keep the memory, or the link to the host, as busy as many would.
    pub fn capped(self) -> Variant {
        let family = match self.family {
            Family::Words { word, cut, .. } => Family::Words { word, shape: cost::capped_shape(word), cut },
            family => family,
        };
        Variant { family, capped: true, ..self }
    }

    /// Whether this kernel may serve the calls of another one: both move words, of which this one asks for no more alignment.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::{Direction, gpu::{Call, GpuPlan}};
    /// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
    /// let plan = GpuPlan::new(&Layout::parse(text)?);
    /// let small = plan.variant(Direction::Pack, &Call::whole(32768));
    /// assert!(plan.usual(Direction::Pack).covers(&small));
    /// assert!(!plan.usual(Direction::Unpack).covers(&small));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn covers(&self, other: &Variant) -> bool {
        let words = match (self.family, other.family) {
            (Family::Words { word, cut, .. }, Family::Words { word: asked, cut: cuts, .. }) => {
                word <= asked && (cut || !cuts)
            }
            _ => false,
        };
        words && self.direction == other.direction && self.capped == other.capped && (self.wide || !other.wide)
    }

    /// Words that a thread moves.
    pub(crate) fn unroll(&self) -> u32 {
        match self.family {
            Family::Words { shape, .. } | Family::Accumulate(Accumulation { shape, .. }) => shape.unroll,
            Family::Shifted { word } => (SHIFTED_BYTES / word).max(1),
            Family::Ordered { .. } => cost::ORDERED_WORDS,
            _ => 1,
        }
    }

    /// Blocks that a multiprocessor has at a time at least, which leaves fewer registers to a thread; 1 for as many as there are
    /// registers for.
    pub(crate) fn resident_blocks(&self) -> u32 {
        match self.family {
            // 2,048 threads of 32 registers. Measured in `bench/results/2026-11-24-gpu-sectors.md`.
            Family::Masks => 2048 / self.threads(),
            _ => 1,
        }
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        match self.family {
            Family::Words { shape, .. } | Family::Accumulate(Accumulation { shape, .. }) => shape.threads,
            // As many bytes under way as words have on few multiprocessors.
            Family::Pieces if self.capped => cost::capped_shape(1).threads,
            Family::Columns { .. } => cost::columns_tile(self.direction).1,
            Family::Groups { .. } if self.direction == Direction::Pack => 128,
            // Long threads: small blocks leave fewer of them waiting at the end.
            Family::Gather
            | Family::Lines
            | Family::Pieces
            | Family::Joined
            | Family::Masks
            | Family::Fields { .. } => 128,
            _ => 256,
        }
    }
}

/// A kernel that unpacks with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accumulation {
    /// What is done to what.
    pub reduction: Reduction,
    /// Bytes of memory that are loaded and stored at once: 1, 2, 4, 8 or 16. They hold whole elements, or an element holds
    /// several of them.
    pub word: u32,
    /// Threads, and units for each.
    pub shape: Shape,
    /// Whether the packed bytes are aligned to words, too.
    pub aligned: bool,
    /// Whether the call may begin or end inside a word.
    pub cut: bool,
}

impl Accumulation {
    /// Bytes of what a thread combines at once: a word, or an element where that is longer.
    pub fn unit(&self) -> u32 {
        self.word.max(self.reduction.element().size() as u32)
    }
}
