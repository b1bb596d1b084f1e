//! How packed elements are combined with those of memory.

use super::GpuPlan;
use super::call::Call;
use super::cost::{self, Shape};
use super::granularity;
use super::sizes::NARROW;
use super::variant::{Accumulation, Family, Variant};
use crate::operation::{Element, Operation, Reduction};
use crate::plan::Direction;

/// The launch shape for elements whose parts may lie apart.
const APART: Shape = Shape { threads: 256, unroll: 1 };

/// Whether kernels compute a reduction: none has floats of 80 bits. Replacing is a plain unpack.
///
/// ```
/// use dtc_compiler::operation::{Element, Operation, Reduction};
/// use dtc_compiler::plan::gpu::computes;
/// assert!(computes(Reduction::new(Operation::Sum, Element::F16)?));
/// assert!(!computes(Reduction::new(Operation::Sum, Element::F80)?));
/// # Ok::<(), dtc_compiler::operation::OperationError>(())
/// ```
pub fn computes(reduction: Reduction) -> bool {
    let extended = matches!(reduction.element(), Element::F80 | Element::LongDoubleInt);
    !extended && reduction.operation() != Operation::Replace
}

impl GpuPlan {
    /// The kernel that serves a call which combines whole packed elements with those of memory; nothing if the plan has none
    /// for the layout or the reduction.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_compiler::plan::gpu::{Call, Family, GpuPlan};
    /// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
    /// let plan = GpuPlan::new(&Layout::parse(text)?);
    /// let sum = Reduction::new(Operation::Sum, Element::F32)?;
    /// let variant = plan.accumulation(sum, &Call::whole(32768)).unwrap();
    /// assert!(matches!(variant.family, Family::Accumulate(chosen) if chosen.word == 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accumulation(&self, reduction: Reduction, call: &Call) -> Option<Variant> {
        if !self.allows_in_batch() || !computes(reduction) {
            return None;
        }
        let size = reduction.element().size() as u32;
        let whole = if size.is_power_of_two() { size } else { 1 };
        let packed = granularity::alignment(call.packed.wrapping_sub(call.first));
        let widest = self.granularity().word().min(granularity::alignment(call.memory));
        // Words that do not hold whole elements are part of one.
        let widest = if size.is_power_of_two() { widest } else { widest.min(granularity::alignment(size.into())) };
        let runs = cost::Runs::of(self.layout());
        let preferred = cost::word(Direction::Unpack, widest, &runs).max(whole.min(widest));
        // Putting a word together from packed bytes costs less than moving it in many.
        let word = if packed >= whole.min(preferred).max(4) { preferred.min(packed) } else { preferred };
        let shape = if word >= size { cost::shape(Direction::Unpack, word, &runs) } else { APART };
        let cut = word > size && !(call.first | call.bytes).is_multiple_of(word.into());
        let chosen = Accumulation { reduction, word, shape, aligned: word <= packed, cut };
        let wide = call.first.saturating_add(call.bytes) / u64::from(word) >= NARROW;
        Some(Variant { direction: Direction::Unpack, family: Family::Accumulate(chosen), wide, capped: false })
    }
}
