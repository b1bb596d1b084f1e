//! Words of memory that are unaligned among the packed bytes: a call from an odd offset, or with an odd packed address.

use super::words;
use super::{Generic, Instance, KernelFamily, Query};
use crate::plan::Direction;
use crate::plan::gpu::{AddressFunction, Analysis, Call, Grid, KernelText, LibraryPart, SCALAR, Tuning, Units, WARP};
use minijinja::context;
use std::fmt;

/// A kernel that shifts words of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShiftedKernel {
    /// Bytes of a word: 4 or 8, or 16 for unpacks.
    pub word: u32,
}

impl ShiftedKernel {
    /// Words that a thread moves.
    pub(crate) fn unroll(&self, tuning: &Tuning) -> u32 {
        (tuning.shifted.thread_bytes / self.word).max(1)
    }
}

/// Serves calls of words of 4 bytes and more.
pub(super) fn admits(query: &Query<'_>) -> Option<ShiftedKernel> {
    let preferred = words::preferred(query);
    let word = if query.unpacks() { preferred } else { preferred.min(SCALAR) };
    (query.word >= 4).then_some(ShiftedKernel { word })
}

impl KernelFamily for ShiftedKernel {
    fn candidates(query: &Query<'_>) -> Vec<ShiftedKernel> {
        let words: &[u32] = if query.unpacks() { &[4, 8, 16] } else { &[4, 8] };
        let serves = |&&word: &&u32| word <= query.word && (query.unpacks() || word > query.packed);
        words.iter().filter(serves).map(|&word| ShiftedKernel { word }).collect()
    }

    fn indices(&self, _analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(self.word)
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.shifted.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let threads = u64::from(instance.threads);
        // A warp of a pack stores one word less than it loads.
        let (count, threads) = match instance.direction {
            Direction::Pack => (Units::Filled, threads / WARP * (WARP - 1)),
            Direction::Unpack => (Units::Touched, threads),
        };
        Some(Grid::new(count, self.word.into(), threads * u64::from(self.unroll(instance.analysis.tuning))))
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let (template, library) = match instance.direction {
            Direction::Pack => ("shifted_pack", vec![]),
            Direction::Unpack => ("shifted_unpack", vec![LibraryPart::LoadBytes]),
        };
        let elements = AddressFunction::Elements { unit: self.word.into(), run: false };
        let values = context! { unroll => self.unroll(instance.analysis.tuning) };
        Some(KernelText { values, library, ..KernelText::new(template, self.word, vec![elements]) })
    }

    fn generic(&self, _query: &Query<'_>) -> Generic {
        Generic::Shifted(self.word)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "words of {} bytes, unaligned to the packed words", self.word)
    }
}
