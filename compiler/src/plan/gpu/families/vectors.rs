//! Packed words of 16 bytes from bytes or shorts of memory: a thread loads neighbours, and stores them at once.

use super::pieces::Pieces;
use super::words::{self, WordsKernel};
use super::{Instance, KernelFamily, Query};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, Call, Grid, KernelText, SECTOR, Tuning, Units, WIDEST, is_searched, shortest_run,
};
use minijinja::context;
use std::fmt;

/// A kernel whose threads load neighbouring words and store them as one of 16 bytes. Packs only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorsKernel {
    /// Bytes of a word of memory: 1 or 2.
    pub word: u32,
}

impl VectorsKernel {
    /// Words of the same alignment for few multiprocessors, whose blocks move more at a time.
    pub(crate) fn capped(self, tuning: &Tuning) -> WordsKernel {
        words::cut(self.word).capped(tuning)
    }
}

/// Serves packs of bytes and shorts. Wider words are as fast one by one, and longer runs of bytes are gathered.
pub(super) fn admits(query: &Query<'_>) -> Option<VectorsKernel> {
    let (word, Analysis { layout, runs, tuning, .. }) = (query.aligned_word(), query.analysis);
    // Where each word is in a sector of its own, more threads have more of them under way.
    let shared = runs.mean >= SECTOR || runs.step < SECTOR + SECTOR / 2;
    let gains = word == query.word && (word == 2 || (word == 1 && runs.mean <= tuning.vectors.most_bytes));
    let listed = runs.listed || is_searched(layout) || query.analysis.has::<Pieces>();
    (!query.unpacks() && shared && gains && !listed).then_some(VectorsKernel { word })
}

impl KernelFamily for VectorsKernel {
    fn candidates(query: &Query<'_>) -> Vec<VectorsKernel> {
        let words: &[u32] = if query.unpacks() { &[] } else { &[1, 2] };
        words.iter().filter(|&&word| word <= query.aligned_word()).map(|&word| VectorsKernel { word }).collect()
    }

    fn indices(&self, _analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(self.word)
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.vectors.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(Grid::new(Units::Addressed, WIDEST.into(), instance.threads.into()))
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let elements = AddressFunction::Elements { unit: self.word.into(), run: true };
        // After its first word, a run of the other ones fills a vector.
        let crosses_once = shortest_run(&instance.analysis.layout) >= (WIDEST - self.word).into();
        let values = context! { crosses_once };
        Some(KernelText { values, ..KernelText::new("vectors", self.word, vec![elements]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "words of {} bytes, {} stored at once", self.word, WIDEST / self.word)
    }
}
