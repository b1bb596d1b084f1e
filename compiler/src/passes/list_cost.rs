//! What a CPU takes to move a list, estimated in hundredths of a nanosecond.
//!
//! Passes of plans compare the forms of a list by these costs, and choose one that costs less than the list they are given.

use crate::layout::Run;

/// Runs above which a list of blocks pays off. Kernels move shorter tables, and tables of twice as many, by straight code.
pub(super) const UNROLLED_RUNS: usize = 64;

/// Most parts of the records of a layout for which a kernel for a GPU has code. NVRTC 13.0 took 1.3 s for 150, 9 s for 600, and more than
/// 100 s for 3,000 (Zen 4, both processors busy). Lists are searched in tables, of any length.
pub(crate) const MOST_PARTS: usize = 512;

/// The longest block that is listed, in bytes: beyond a vector, a run costs what a block does.
const LONGEST_BLOCK: u64 = 64;

/// Cost of a run of up to 64 bytes, in hundredths of a nanosecond. This and the costs below were measured in the first- and
/// second-level cache of an AMD EPYC (Zen 5), 1,024 to 65,536 blocks.
const RUN: u64 = 110;

/// Cost of every further 64 bytes of a run, in hundredths of a nanosecond.
const RUN_LINE: u64 = 50;

/// Cost of mispredicted branches where runs of up to 64 bytes and longer ones alternate, in hundredths of a nanosecond.
const MISPREDICTION: u64 = 1500;

/// Runs whose lengths the branch predictor learns: it had learned 5,000 and not 6,600.
const LEARNED_RUNS: usize = 4096;

/// Cost of the call of a microkernel for a stretch of equal runs, in hundredths of a nanosecond.
pub(super) const STRETCH: u64 = 1000;

/// The longest piece of a group that is moved word by word, in bytes.
const LONGEST_PIECE: u64 = 512;

/// Cost of a group beside its pieces: its offset is loaded, and a loop goes on.
const GROUP: u64 = 80;

/// Cost of a load and a store of up to 64 bytes. Straight code has words of 16 bytes, and none of the loop around them.
const WORD: u64 = 30;

/// Longest word of a group, in bytes.
const LONGEST_WORD: u64 = 64;

/// Fewest runs of one length that are a group: shorter ones cost as much as blocks of a list.
pub(super) const FEWEST_EQUAL_RUNS: usize = 4;

/// Cost of groups: each word by word, or a microkernel that moves the runs of one.
pub(super) fn of_groups(group: &[Run], groups: usize) -> u64 {
    let equal = group.iter().all(|run| run.count == group[0].count);
    let each = if group.len() <= UNROLLED_RUNS && group.iter().all(|run| run.count <= LONGEST_PIECE) {
        group.iter().fold(GROUP, |sum, run| sum + words_of(run.count) * WORD)
    } else {
        GROUP + of_stretches(&[group])
    };
    if equal && group.len() < FEWEST_EQUAL_RUNS { u64::MAX } else { each.saturating_mul(groups as u64) }
}

/// Loads that move a piece, with the widest words that it holds; the last may overlap the one before.
fn words_of(bytes: u64) -> u64 {
    let widest = if bytes < LONGEST_WORD { (bytes / 2 + 1).next_power_of_two() } else { LONGEST_WORD };
    bytes.div_ceil(widest)
}

/// Cost of a list of runs, by a list of blocks if they have one length.
pub(super) fn of_list(runs: &[Run]) -> u64 {
    let equal = runs.iter().all(|run| run.count == runs[0].count);
    match of_blocks(runs[0].count) {
        Some(block) if equal => block.saturating_mul(runs.len() as u64),
        _ => of_runs(runs),
    }
}

/// Cost of a listed block, in hundredths of a nanosecond; `None` for blocks that are not listed instead of runs.
pub(super) fn of_blocks(bytes: u64) -> Option<u64> {
    Some(match bytes {
        1 | 2 | 4 | 8 => 25,
        16 => 40,
        0..16 => 65,
        17..=32 => 75,
        33..=LONGEST_BLOCK => 95,
        _ => return None,
    })
}

/// Cost of runs, in hundredths of a nanosecond.
pub(super) fn of_runs(runs: &[Run]) -> u64 {
    let beyond_first_line = |run: &Run| (run.count - 1) / 64;
    let lines = runs.iter().fold(0u64, |sum, run| sum.saturating_add(beyond_first_line(run)));
    let long = runs.iter().filter(|run| beyond_first_line(run) > 0).count();
    let mispredicted = if runs.len() > LEARNED_RUNS { long.min(runs.len() - long) } else { 0 };
    (runs.len() as u64 * RUN).saturating_add(lines.saturating_mul(RUN_LINE)) + mispredicted as u64 * MISPREDICTION
}

/// Cost of stretches of equal runs, in hundredths of a nanosecond.
pub(super) fn of_stretches(stretches: &[&[Run]]) -> u64 {
    stretches.iter().fold(0u64, |sum, stretch| {
        let runs = of_blocks(stretch[0].count).map_or_else(|| of_runs(stretch), |block| block * stretch.len() as u64);
        sum.saturating_add(STRETCH).saturating_add(runs)
    })
}
