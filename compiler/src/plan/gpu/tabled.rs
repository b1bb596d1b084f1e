//! Kernels for types with index tables.

use super::families::computes;
use super::shape::LaunchShape;
use super::sizes::NARROW;
use super::tuning::SM_90;
use crate::operation::Reduction;
use std::fmt;

/// A kernel that moves words between places that index tables lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TabledVariant {
    /// Bytes of a word, aligned on both sides and in the packed bytes: 1, 2, 4, 8 or 16.
    pub word: u32,
    /// Threads and words for each.
    pub shape: LaunchShape,
    /// Whether indices need 64 bits.
    pub wide: bool,
    /// Whether the grid may have fewer blocks than the work.
    pub capped: bool,
    /// Whether entries beyond the places of their table are noted. None is followed in any case.
    pub checked: bool,
    /// What an unpack does with its elements, each of which is a word; nothing for those that store them.
    pub reduction: Option<Reduction>,
}

impl TabledVariant {
    /// The kernel for words of a size. `end`: one past the last packed byte that a call may name.
    ///
    /// See [`tabled`](crate::codegen::cuda::tabled()) for an example.
    pub fn new(word: u32, end: u64, checked: bool) -> TabledVariant {
        let shape = SM_90.tabled.shapes[word.trailing_zeros().min(4) as usize];
        TabledVariant { word, shape, wide: end / u64::from(word) >= NARROW, capped: false, checked, reduction: None }
    }

    /// The kernel that combines elements of memory with packed ones, at addresses of any alignment. `granularity`: of the type. Nothing if no kernel
    /// computes the reduction, or if elements of the type may be apart.
    ///
    /// ```
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_compiler::plan::gpu::TabledVariant;
    /// let sum = Reduction::new(Operation::Sum, Element::F64)?;
    /// assert_eq!(TabledVariant::accumulating(sum, 16, 1 << 20, false).unwrap().word, 8);
    /// assert_eq!(TabledVariant::accumulating(sum, 4, 1 << 20, false), None);
    /// # Ok::<(), dtc_compiler::operation::OperationError>(())
    /// ```
    pub fn accumulating(reduction: Reduction, granularity: u32, end: u64, checked: bool) -> Option<TabledVariant> {
        let size = reduction.element().size() as u32;
        let fits = size.is_power_of_two() && granularity.is_multiple_of(size) && computes(reduction);
        fits.then(|| TabledVariant { reduction: Some(reduction), ..TabledVariant::new(size, end, checked) })
    }

    /// The same for a grid of fewer blocks, each of which moves as much as one of capped words.
    pub fn capped(self) -> TabledVariant {
        let tuning = &SM_90.words;
        let unroll = (tuning.capped_bytes / self.word).clamp(1, tuning.capped_unroll);
        TabledVariant { capped: true, shape: LaunchShape { threads: tuning.capped_threads, unroll }, ..self }
    }

    /// Blocks of the work of `bytes` bytes, or `None` when no grid is that large.
    pub fn blocks(&self, bytes: u64) -> Option<u32> {
        self.shape.blocks(self.word, bytes)
    }
}

impl fmt::Display for TabledVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TabledVariant { word, shape: LaunchShape { threads, unroll }, .. } = self;
        write!(f, "words of {word} bytes by table, {unroll} a thread, {threads} threads a block")?;
        if let Some(reduction) = self.reduction {
            write!(f, ", {reduction}")?;
        }
        f.write_str(if self.wide { ", 64-bit indices" } else { "" })?;
        f.write_str(if self.capped { ", on few multiprocessors" } else { "" })?;
        f.write_str(if self.checked { ", entries checked" } else { "" })
    }
}
