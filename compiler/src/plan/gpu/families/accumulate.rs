//! Elements of memory that become themselves combined with the packed ones.

use super::words::{best_shape, best_word};
use super::{Instance, KernelFamily, Query};
use crate::operation::{Element, Operation, Reduction};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, Call, Grid, KernelText, LaunchShape, LibraryPart, Tuning, Units, WIDEST, alignment,
    word_type,
};
use minijinja::context;
use std::fmt;

/// The launch shape for elements whose parts may be apart.
const APART: LaunchShape = LaunchShape { threads: 256, unroll: 1 };

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

/// A kernel that unpacks with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accumulation {
    /// What is done to what.
    pub reduction: Reduction,
    /// Bytes of memory that are loaded and stored at once: 1, 2, 4, 8 or 16. They hold whole elements, or an element holds
    /// several of them.
    pub word: u32,
    /// Threads, and units for each.
    pub shape: LaunchShape,
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

    /// The kernel that serves a call which combines whole packed elements with those of memory; nothing if no kernel computes the reduction.
    pub(crate) fn serving(query: &Query<'_>, reduction: Reduction) -> Option<Accumulation> {
        if !computes(reduction) {
            return None;
        }
        let size = reduction.element().size() as u32;
        let whole = if size.is_power_of_two() { size } else { 1 };
        // Words that do not hold whole elements are part of one.
        let widest = if size.is_power_of_two() { query.word } else { query.word.min(alignment(size.into())) };
        let preferred = best_word(query.analysis, Direction::Unpack, widest).max(whole.min(widest));
        // Putting a word together from packed bytes costs less than moving it in many.
        let packed = query.packed;
        let word = if packed >= whole.min(preferred).max(4) { preferred.min(packed) } else { preferred };
        let shape = if word >= size { best_shape(query.analysis, Direction::Unpack, word) } else { APART };
        let cut = word > size && !(query.call.first | query.call.bytes).is_multiple_of(word.into());
        Some(Accumulation { reduction, word, shape, aligned: word <= packed, cut })
    }
}

impl KernelFamily for Accumulation {
    /// None moves the bytes of a call alone.
    fn candidates(_query: &Query<'_>) -> Vec<Accumulation> {
        Vec::new()
    }

    fn indices(&self, _analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(self.word)
    }

    fn threads(&self, _tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        self.shape.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let each = u64::from(instance.threads) * u64::from(self.shape.unroll);
        Some(Grid::new(Units::Filled, self.unit().into(), each))
    }

    fn text(&self, _instance: &Instance<'_>) -> Option<KernelText> {
        let element = self.reduction.element();
        let (unit, size) = (self.unit(), element.size() as u32);
        let values = context! {
            unit,
            unroll => self.shape.unroll,
            parts => unit / self.word,
            elements => unit / size,
            operation => format!("{:?}", self.reduction.operation()),
            element => format!("{element:?}"),
            element_bytes => size,
            element_mask => format!("{:#x}ull", u64::MAX >> (64 - 8 * size.min(8))),
            aligned => self.aligned,
            cut => self.cut,
            // Halves that are numbers.
            word_type => if self.word == WIDEST { "ulonglong2" } else { word_type(self.word) },
        };
        let bytes = (!self.aligned).then_some(LibraryPart::LoadBytes);
        let ends = self.cut.then_some(LibraryPart::LoadValue);
        let library = bytes.into_iter().chain([LibraryPart::Combine]).chain(ends).collect();
        let elements = AddressFunction::Elements { unit: self.word.into(), run: false };
        Some(KernelText { values, library, ..KernelText::new("accumulate", self.word, vec![elements]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Accumulation { reduction, word, shape: LaunchShape { threads, unroll }, aligned, cut } = self;
        let unaligned = if *aligned { "" } else { ", unaligned to the packed words" };
        let cut = if *cut { ", for cut calls" } else { "" };
        write!(f, "{reduction}, words of {word} bytes{unaligned}, {unroll} a thread, {threads} threads a block{cut}")
    }
}
