//! From how many elements on a call moves them as one nest, though a kernel moves each.

use super::{NestMethod, StepStrategy, Strategy};
use crate::plan::{Direction, Step};

/// Packed bytes of a call from which elements that make a nest are moved as one, whether there is a kernel for them or not. Its
/// microkernel takes longer to start, and has wider vectors: 8,134 columns of 4 floats took 6.5 us by the kernel, and a loop 2.4 us.
const NEST_BYTES: u64 = 4 << 10;

/// Blocks of a call from which the same holds where they are transposed in registers. 8 columns of 2 bytes to 16 of 8 bytes: 256 blocks took
/// 0.4 to 1.1 of the time of the kernel, 512 blocks 0.3 to 0.7, 128 blocks 0.8 to 1.6 (Zen 4).
const TRANSPOSED_BLOCKS: u64 = 256;

impl Strategy<'_> {
    /// The fewest elements that a call moves as one nest where a kernel could move each; `None` where elements make no nest.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::strategy::{Level, Strategy, Target};
    /// use dtc_compiler::plan::Plan;
    /// let column = |extent| format!("layout lb 0 extent {extent} {{\n  %0 = dense 4 x byte\n  %1 = stream 8 x 224 of %0\n  root %1\n}}");
    /// let target = Target { level: Level::Zen4, ..Target::default() };
    /// let fewest = |extent| Some(Strategy::new(&Plan::new(&Layout::parse(&column(extent)).ok()?), &target, 1).fewest_of_nest()?);
    /// assert_eq!((fewest(4), fewest(8)), (Some(32), Some(128))); // neighbours are transposed in registers
    /// ```
    pub fn fewest_of_nest(&self) -> Option<u64> {
        let size = self.plan.size().max(1);
        let of_any = Some(NEST_BYTES.div_ceil(size));
        let (Step::Planes { bytes, .. } | Step::Tile { bytes, .. }) = self.plan.repeated(2)? else { return of_any };
        let fewest = TRANSPOSED_BLOCKS.saturating_mul(bytes).min(NEST_BYTES).div_ceil(size);
        let nest = self.plan.repeated(fewest)?;
        let is_transposed = |direction| match self.step(&nest, direction) {
            StepStrategy::Nest { method, .. } => method == NestMethod::Transposed,
            StepStrategy::Tile { transposed } => transposed,
            _ => false,
        };
        if is_transposed(Direction::Pack) && is_transposed(Direction::Unpack) { Some(fewest) } else { of_any }
    }
}
