//! Whether a kernel is compiled for a plan, and what it writes out.

use super::pieces::ShortPieces;
use crate::plan::step::{RunTable, Step, StepId};
use smallvec::SmallVec;
use std::fmt;

/// Plans with more steps than this, shared bodies counted once for every use, stay on the generic tier. 340 steps, most of
/// them fields of a record in 13 lists, are 7 KiB of code and compiled in 1.7 ms (Zen 4).
pub const SPECIALISED_STEPS: u64 = 512;

/// Plans nested deeper than this stay on the generic tier.
pub const SPECIALISED_DEPTH: u32 = 16;

/// Most loads of an element that is unrolled whole: a call costs as much as moving them.
const SMALL_WORDS: u64 = 64;

/// The same for an element that one microkernel moves in pieces longer than two words, for which it has wider vectors: 8 rows of
/// 40 bytes took 7 ns either way, 12 rows 10 ns by straight code and 8.4 by the microkernel.
const SMALL_WIDE_WORDS: u64 = 16;

/// Nanoseconds that the interpreter spends on a step beside what the microkernel does: dispatch and call. Measured on 500 lists
/// of four runs, as the difference to a kernel that calls the same microkernel.
const INTERPRETED_STEP: u64 = 7;

/// Nanoseconds that the interpreter spends on entering and leaving a loop over other steps.
const INTERPRETED_LOOP: u64 = 10;

/// Words of groups that the interpreter moves in a nanosecond more than straight code takes: 256 records of three words took 0.15 us, and
/// 0.11 us by a kernel.
const INTERPRETED_WORDS: u64 = 8;

/// Nanoseconds that straight code saves of each short run: a body of 4 to 10 of them took 2.5 to 6 ns instead of 20 to 38.
const UNROLLED_RUN: u64 = 2;

/// Longest row or block, in bytes, that straight code moves; a microkernel, which has wider vectors, moves longer ones.
pub(crate) const INLINE_BYTES: u64 = 64;

/// Longest piece by itself, in bytes, that straight code moves: 8 loads and stores take less than the call of a microkernel.
pub(crate) const INLINE_PIECE_BYTES: u64 = 128;

/// Most runs of a table that straight code moves: 81 runs took 30 ns so, and 150 ns by the microkernel (Zen 4).
const STRAIGHT_RUNS: usize = 128;

/// Most loads of a table of runs that straight code moves.
const UNROLLED_RUN_WORDS: u64 = 256;

/// Most loads of a loop, or of rows, that a kernel writes out: the loop around 4 records of 6 loads took 0.6 of the time without one inside,
/// and 6 fields of 16 records 0.55 without calls (Zen 4, `bench/results/2026-11-26-short-bodies.md`).
pub(crate) const UNROLLED_WORDS: u64 = 32;

/// Most loads of the bodies that one iteration of a longer loop moves: pairs of loads took 0.55 to 0.7 of the time by five and by eight
/// (Zen 4).
pub(crate) const LOOP_WORDS: u64 = 16;

/// Longest row, in bytes, that straight code moves where a microkernel for rows could: one load of Cranelift's widest vector.
pub(crate) const INLINE_WORD_BYTES: u64 = 16;

/// Most loads of a list that straight code moves wherever it is: eight blocks of 16 bytes in a loop took 5 ns by the microkernel, and
/// 2 ns so (Zen 4).
pub(crate) const UNROLLED_LIST_WORDS: u64 = 64;

/// Fewest rows for which a kernel calls a microkernel, unless they are few words; fewer are inline.
pub(crate) const MICROKERNEL_ROWS: u64 = 8;

/// Most words of rows that a kernel moves by a loop without a call. Calls for 38 rows of 4 and 8 bytes took 16 ns each, and a loop by hand 6.5
/// (Zen 4).
pub(crate) const INLINE_ROWS: u64 = 256;

/// Most rows that it moves so at any stride: a microkernel shuffles more of them where they are close together.
pub(crate) const INLINE_CLOSE_ROWS: u64 = 63;

/// Shortest stride, in bytes, at which it moves more rows so: 64 rows 32 bytes apart took 43 ns by shuffles, and 18 by hand (Zen 4).
pub(crate) const INLINE_STRIDE: u64 = 32;

/// Most arrays whose elements of 4 and 8 bytes a kernel packs in turn by shuffles: each has a register. 3 arrays of 4,192 words took 18.9 us
/// word by word, and 6.6 by hand (Zen 4).
pub(crate) const INTERLEAVED_ARRAYS: usize = 12;

/// Bytes that a microkernel moves in a nanosecond when they are in cache.
const MICROKERNEL_BYTES: u64 = 16;

/// The cost model's verdict on a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    reason: Reason,
    interpreted: u64,
    moving: u64,
    steps: u64,
    levels: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    OneMicrokernel,
    LittleOverhead,
    TooLarge,
    Small,
    Compiled,
}

impl Decision {
    pub(in crate::plan) const GENERIC: Decision =
        Decision { reason: Reason::OneMicrokernel, interpreted: 0, moving: 0, steps: 1, levels: 0 };

    /// Whether a kernel should be compiled.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let row = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert!(!Plan::new(&row).decision().specialise());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn specialise(&self) -> bool {
        matches!(self.reason, Reason::Compiled | Reason::Small)
    }

    /// Estimate of the time that the generic tier takes for one element in cache, in nanoseconds.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let row = Layout::parse("layout lb 0 extent 1600 {\n  %0 = dense 1600 x byte\n  root %0\n}")?;
    /// assert!((100..120).contains(&Plan::new(&row).decision().generic_nanoseconds()));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn generic_nanoseconds(&self) -> u64 {
        self.interpreted.saturating_add(self.moving)
    }

    /// Whether the element is so small that its kernel is straight code.
    pub(crate) fn is_small(&self) -> bool {
        self.reason == Reason::Small
    }

    /// Whether a kernel may be compiled at all: the plan is not too large.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let row = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert!(Plan::new(&row).decision().allows());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn allows(&self) -> bool {
        self.reason != Reason::TooLarge
    }

    /// Steps of the plan, shared bodies counted once for every use, and its levels of nesting.
    pub(crate) fn extent(&self) -> (u64, u32) {
        (self.steps, self.levels)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decision { interpreted, moving, .. } = self;
        match self.reason {
            Reason::OneMicrokernel => f.write_str("generic: one microkernel does it all"),
            Reason::LittleOverhead => {
                write!(f, "generic: interpreting costs about {interpreted} ns beside {moving} ns of moving")
            }
            Reason::TooLarge => {
                write!(f, "generic: more than {SPECIALISED_STEPS} steps or {SPECIALISED_DEPTH} levels")
            }
            Reason::Small => f.write_str("specialised: a few words, straight code"),
            Reason::Compiled => {
                write!(f, "specialised: saves about {interpreted} ns of interpreting beside {moving} ns of moving")
            }
        }
    }
}

/// What is estimated of a step, with the steps inside it.
#[derive(Clone, Copy)]
struct Estimate {
    /// Nanoseconds that the interpreter spends around the microkernels.
    interpreted: u64,
    /// Steps, shared bodies counted once for every use.
    expanded: u64,
    /// Loops around the innermost steps.
    depth: u32,
    /// Loads that move the bytes, with vectors of 16 bytes.
    words: u64,
}

impl Estimate {
    /// The estimate of a loop over a body, which may be a group.
    fn repeated(count: u64, body: Estimate, group: Option<ShortPieces>) -> Estimate {
        let bodies = match group {
            Some(group) if group.has_wide_words() => 0,
            Some(_) => count.saturating_mul(body.words) / INTERPRETED_WORDS,
            None => count.saturating_mul(body.interpreted),
        };
        Estimate {
            interpreted: bodies.saturating_add(INTERPRETED_LOOP),
            expanded: body.expanded.saturating_add(1),
            depth: 1 + body.depth,
            words: count.saturating_mul(body.words),
        }
    }

    /// The estimate of a step that one microkernel carries out.
    fn microkernel(words: u64) -> Estimate {
        Estimate { interpreted: INTERPRETED_STEP, expanded: 1, depth: 0, words }
    }

    /// The estimate of a step, from those of its bodies.
    fn of(step: &Step, steps: &[Step], known: &[Estimate]) -> Estimate {
        let body = |id: &StepId| known[id.index()];
        match step {
            Step::Repeat { count, body: id, .. } => Estimate::repeated(*count, body(id), ShortPieces::of(steps, *id)),
            Step::Scatter { offsets, body: id } => {
                Estimate::repeated(offsets.len() as u64, body(id), ShortPieces::of(steps, *id))
            }
            Step::Sequence { parts } => {
                let empty = Estimate { interpreted: INTERPRETED_LOOP, expanded: 1, depth: 1, words: 0 };
                parts.iter().map(|part| body(&part.step)).fold(empty, |all, part| Estimate {
                    interpreted: all.interpreted.saturating_add(part.interpreted),
                    expanded: all.expanded.saturating_add(part.expanded),
                    depth: all.depth.max(1 + part.depth),
                    words: all.words.saturating_add(part.words),
                })
            }
            Step::Runs(table) => {
                let words = table.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(words_of(run.count)));
                if !table.is_unrolled() {
                    return Estimate::microkernel(words);
                }
                // The microkernel looks every length up that straight code knows.
                let runs = table.runs.len() as u64;
                Estimate { interpreted: INTERPRETED_STEP + runs * UNROLLED_RUN, expanded: runs, depth: 0, words }
            }
            Step::Nothing => Estimate::microkernel(0),
            Step::Copy { bytes } => Estimate::microkernel(words_of(*bytes)),
            Step::Rows { rows, bytes, .. } => Estimate::microkernel(words_of(*bytes).saturating_mul(*rows)),
            Step::Planes { planes, rows, bytes, .. } => {
                Estimate::microkernel(words_of(*bytes).saturating_mul(*rows).saturating_mul(*planes))
            }
            Step::Tile { planes, layers, rows, bytes, .. } => {
                let words = words_of(*bytes).saturating_mul(*rows).saturating_mul(*layers);
                Estimate::microkernel(words.saturating_mul(*planes))
            }
            Step::List { offsets, bytes } => {
                Estimate::microkernel(words_of(*bytes).saturating_mul(offsets.len() as u64))
            }
        }
    }
}

/// Estimates the cost of a plan on the generic tier and whether compiled code would save more than a twentieth.
pub(in crate::plan) fn decide(steps: &[Step], root: StepId, size: u64) -> Decision {
    let mut estimates: SmallVec<[Estimate; 12]> = SmallVec::with_capacity(steps.len());
    for step in steps {
        let estimate = Estimate::of(step, steps, &estimates);
        estimates.push(estimate);
    }
    let Estimate { interpreted, expanded, depth, words } = estimates[root.index()];
    let moving = size / MICROKERNEL_BYTES;
    let reason = if expanded > SPECIALISED_STEPS || depth > SPECIALISED_DEPTH {
        Reason::TooLarge
    } else if (1..=small_words(&steps[root.index()])).contains(&words) {
        Reason::Small
    } else if interpreted <= INTERPRETED_STEP || has_wide_words(steps, root) {
        Reason::OneMicrokernel
    } else if interpreted.saturating_mul(20) < moving {
        Reason::LittleOverhead
    } else {
        Reason::Compiled
    };
    Decision { reason, interpreted, moving, steps: expanded, levels: depth }
}

/// Whether a step is a loop over a group that its microkernel moves faster than straight code.
fn has_wide_words(steps: &[Step], id: StepId) -> bool {
    match steps[id.index()] {
        Step::Repeat { body, .. } | Step::Scatter { body, .. } => {
            ShortPieces::of(steps, body).is_some_and(|pieces| pieces.has_wide_words())
        }
        _ => false,
    }
}

impl RunTable {
    /// Whether a kernel moves the runs by straight code. A microkernel moves long runs faster than code that calls for each.
    pub(crate) fn is_unrolled(&self) -> bool {
        self.runs.len() <= STRAIGHT_RUNS
            && self.runs.iter().all(|run| run.count <= INLINE_PIECE_BYTES)
            && self.runs.iter().map(|run| words_of(run.count)).sum::<u64>() <= UNROLLED_RUN_WORDS
    }
}

/// Up to how many words straight code moves an element sooner than anything else.
fn small_words(root: &Step) -> u64 {
    match root {
        Step::Nothing | Step::Copy { .. } => 0,
        Step::Rows { bytes, .. } | Step::Planes { bytes, .. } | Step::Tile { bytes, .. } | Step::List { bytes, .. }
            if *bytes > 32 =>
        {
            SMALL_WIDE_WORDS
        }
        _ => SMALL_WORDS,
    }
}

/// Loads that move a piece, with vectors of 16 bytes.
fn words_of(bytes: u64) -> u64 {
    bytes / 16 + u64::from(!bytes.is_multiple_of(16))
}
