//! Which banks of shared memory threads access, and what keeps neighbours in different ones.

use super::array::Array;
use super::shared::SharedBox;
use super::steps::BoxSteps;
use crate::plan::gpu::{Analysis, BANK, BANKS, WARP};

/// Which of the words that a thread moves at once it begins with: `thread / threads * parts` modulo their number, and the others in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Threads that follow each other and begin with the same.
    pub(super) threads: u32,
    /// Words by which the next ones are ahead.
    pub(super) parts: u32,
}

impl Turn {
    /// Every thread begins with its first word.
    const NONE: Turn = Turn { threads: 1, parts: 0 };
    /// In the others, four groups of 8 threads or two of 16 begin with different words.
    const ALL: [Turn; 4] =
        [Turn::NONE, Turn { threads: 8, parts: 1 }, Turn { threads: 16, parts: 1 }, Turn { threads: 16, parts: 2 }];

    /// The turn with the fewest conflicts where threads move `words` words at once in memory.
    pub(super) fn best(steps: &BoxSteps, word: u32, words: u32) -> Turn {
        let fewest = Turn::ALL.into_iter().min_by_key(|turn| turn.wavefronts(steps, word, words));
        fewest.filter(|_| words > 1).unwrap_or(Turn::NONE)
    }

    /// Accesses of shared memory, one after the other, of two warps in a step in the order of memory.
    fn wavefronts(self, steps: &BoxSteps, word: u32, words: u32) -> u64 {
        let bank = u64::from(BANK);
        let (word, words) = (u64::from(word), u64::from(words));
        // Wide words are accessed by a half or a quarter of a warp at once.
        let together = (WARP * bank / word).min(WARP);
        let access = |first: u64, number: u64| {
            let part = |thread: u64| (number + thread / u64::from(self.threads) * u64::from(self.parts)) % words;
            let places = (first..first + together).filter_map(|thread| steps.place(thread, part(thread)));
            let mut rows: Vec<(u64, u64)> = places
                .flat_map(|place| place * word / bank..(place * word + word).div_ceil(bank))
                .map(|row| (row % BANKS, row))
                .collect();
            rows.sort_unstable();
            rows.dedup();
            rows.chunk_by(|(bank, _), (other, _)| bank == other).map(<[_]>::len).max().unwrap_or(0) as u64
        };
        let firsts = (0..2 * WARP).step_by(together as usize);
        firsts.map(|first| (0..words).map(|number| access(first, number)).sum::<u64>()).sum()
    }
}

/// A box in shared memory, with a gap against conflicts where it has fewer of them. It does not depend on where the array begins: items of a batch share the
/// text of a kernel.
pub(super) fn placed(cut: &Array, analysis: &Analysis) -> SharedBox {
    let timed = |gap: bool| {
        let shared = SharedBox::new(cut.clone(), analysis, gap);
        let words = shared.memory;
        let steps = BoxSteps::memory(&shared, words, analysis.tuning.boxes.threads);
        let wavefronts = Turn::best(&steps, cut.word, words).wavefronts(&steps, cut.word, words);
        (shared, wavefronts)
    };
    let ((dense, own), (apart, least)) = (timed(false), timed(true));
    if own <= least { dense } else { apart }
}

#[cfg(test)]
mod tests {
    use super::super::Boxes;
    use super::*;
    use crate::layout::Layout;
    use crate::plan::Direction;
    use crate::plan::gpu::{GpuPlan, WIDEST};

    /// The box of 200 x `inner` x `near` bytes whose two last axes are exchanged, and its conflicts: accesses for each word that a warp moves.
    fn conflicts(inner: u64, near: u64) -> (SharedBox, u64) {
        let plane = inner * near;
        let text = format!(
            "layout lb 0 extent {} {{\n  %0 = dense 1 x byte\n  %1 = stream {inner} x {near} of %0\n  %2 = stream {near} x 1 of %1\n  \
             %3 = stream 200 x {plane} of %2\n  root %3\n}}",
            200 * plane
        );
        let plan = GpuPlan::new(&Layout::parse(&text).unwrap());
        let shared = plan.found::<Boxes>().unwrap().of(Direction::Pack).unwrap().clone();
        let words = shared.memory_at_once(WIDEST);
        let steps = BoxSteps::memory(&shared, words, 256);
        let wavefronts = Turn::best(&steps, 1, words).wavefronts(&steps, 1, words);
        (shared, wavefronts / 2 / u64::from(words))
    }

    #[test]
    fn rows_of_odd_length_are_dense_and_stored_by_whole_words() {
        let (shared, conflicts) = conflicts(49, 68);
        assert_eq!((&shared.strides[..2], conflicts), (&[1, 49][..], 1));
        assert_eq!(shared.memory_at_once(WIDEST), 4);
        assert!(shared.packed_at_once(WIDEST) >= 4);
    }

    #[test]
    fn threads_take_turns_where_places_are_whole_banks_apart() {
        let (shared, conflicts) = conflicts(64, 256);
        assert_eq!((&shared.strides[..2], conflicts), (&[1, 68][..], 1));
    }

    #[test]
    fn words_of_several_rows_of_memory_are_loaded_at_once() {
        let (shared, conflicts) = conflicts(36, 89);
        assert_eq!(shared.memory_run(4), Some(vec![89, 4]));
        assert_eq!(shared.memory_at_once(WIDEST), 4);
        assert!(conflicts <= 2);
    }
}
