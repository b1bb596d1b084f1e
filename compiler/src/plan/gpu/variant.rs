//! The kernels that plans choose from.

use super::families::Family;
use super::tuning::SM_90;
use crate::plan::Direction;
use std::fmt;

/// A kernel of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The direction of the call.
    pub direction: Direction,
    /// The family that it is of, and its parameters there.
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
            Family::Words(words) => Family::Words(words.capped(&SM_90)),
            Family::Vectors(vectors) => Family::Words(vectors.capped(&SM_90)),
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
            (Family::Words(own), Family::Words(other)) => own.covers(&other),
            (Family::Vectors(own), Family::Words(other)) => own.word <= other.word,
            _ => false,
        };
        words && self.direction == other.direction && self.capped == other.capped && (self.wide || !other.wide)
    }

    /// Threads of a block. Where a family has no shapes to choose from, they are those of the table of sm_90 on every GPU: generic kernels are compiled
    /// before a GPU is known.
    pub fn threads(&self) -> u32 {
        self.family.kernel().threads(&SM_90, self.direction, self.capped)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.direction, self.family)?;
        f.write_str(if self.wide { ", 64-bit indices" } else { "" })?;
        f.write_str(if self.capped { ", on few multiprocessors" } else { "" })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kernel().describe(f)
    }
}
