//! The smallest period of a list: a list that repeats is a stream of its first part.
//!
//! In bytes, the period is the smallest divisor `p` of `n` with `D_(i+p) - D_i` constant: a period of the sequence of
//! differences. That sequence is run-length coded here. With lengths `L_1 .. L_m` and gaps `g_1 .. g_(m-1)` between
//! maximal runs, `p` either ends with a run, and then lengths and gaps repeat after `q` runs where `q` divides `m`; or
//! it cuts runs, because the last run of each copy touches the first of the next, and then the gaps repeat after `c`
//! runs where `c` divides `m - 1`, the inner lengths too, and every run at a cut is as long as the first and the last
//! together. Both are string matching, in time linear in `m`.
//!
//! Copies of any child at listed offsets are looked at as runs of one length that do not touch: a period of the offsets is one of
//! the bytes, and if it is not their smallest one, that is a period of the child.

use super::Pass;
use super::rewriter::{Rewriter, displaced};
use crate::layout::{Edge, Kind, Node, NodeId, Run};

pub(super) const PASS: Pass = Pass {
    name: "detect-period",
    summary: "a list that repeats after some entries becomes a stream of its first part",
    rewrite,
};

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    match rewriter.builder.node(id) {
        Node::Runs { runs, kind: Kind::Byte } => find(runs.len(), |index| runs[index])?.write(rewriter),
        Node::Indexed { offsets, child } => {
            let child = *child;
            let Period { copies, stride, block } =
                find(offsets.len(), |index| Run { offset: offsets[index], count: 1 })?;
            let block = match block[..] {
                [only] => displaced(child, only.offset),
                _ => {
                    let offsets = block.iter().map(|run| run.offset).collect();
                    let node = rewriter.builder.intern(Node::Indexed { offsets, child })?;
                    rewriter.settle(Edge { offset: 0, node })
                }
            };
            stream(rewriter, copies, stride, block)
        }
        _ => None,
    }
}

/// Copies of a settled block, displaced as a whole.
fn stream(rewriter: &mut Rewriter, count: u64, stride: i64, block: Edge) -> Option<Edge> {
    let node = Node::Stream { count, stride, child: Edge { offset: 0, ..block } };
    Some(Edge { offset: block.offset, node: rewriter.builder.intern(node)? })
}

/// A list of runs as copies of its first part.
pub(super) struct Period {
    copies: u64,
    stride: i64,
    block: Vec<Run>,
}

impl Period {
    /// The list as a stream.
    pub(super) fn write(self, rewriter: &mut Rewriter) -> Option<Edge> {
        let block = rewriter.builder.runs(self.block)?;
        let block = rewriter.settle(block);
        stream(rewriter, self.copies, self.stride, block)
    }
}

/// For every shift, how far a sequence agrees with itself shifted: the Z function.
fn agreement(length: usize, equal: impl Fn(usize, usize) -> bool) -> Vec<u32> {
    let mut z = vec![0u32; length];
    let (mut left, mut right) = (0, 0);
    for shift in 1..length {
        let mut known = if shift < right { (right - shift).min(z[shift - left] as usize) } else { 0 };
        while shift + known < length && equal(known, shift + known) {
            known += 1;
        }
        z[shift] = known as u32;
        if shift + known > right {
            (left, right) = (shift, shift + known);
        }
    }
    z
}

/// The smallest period of maximal runs, if it is shorter than the whole.
pub(super) fn find(length: usize, run: impl Fn(usize) -> Run) -> Option<Period> {
    if length < 2 || u32::try_from(length).is_err() {
        return None;
    }
    // Measured runs are within 64 bits, so the difference of two bounds wraps for huge gaps only, and then equally.
    let gap = |index: usize| {
        let before = run(index);
        run(index + 1).offset.wrapping_sub(before.offset).wrapping_sub(before.count as i64)
    };
    let whole = whole_runs(length, &run, &gap);
    let cut = cut_runs(length, &run, &gap);
    // The shorter period is the one with more copies.
    let copies = |step: Option<usize>, runs: usize| step.map_or(1, |step| runs / step);
    let (whole_copies, cut_copies) = (copies(whole, length), copies(cut, length - 1));
    let stride = |next: i64| next.checked_sub(run(0).offset);
    if whole_copies >= cut_copies {
        let step = whole?;
        Some(Period {
            copies: whole_copies as u64,
            stride: stride(run(step).offset)?,
            block: (0..step).map(run).collect(),
        })
    } else {
        let step = cut?;
        let tail = Run { offset: run(step).offset, count: run(length - 1).count };
        Some(Period {
            copies: cut_copies as u64,
            stride: stride(tail.offset.checked_add(tail.count as i64)?)?,
            block: (0..step).map(run).chain([tail]).collect(),
        })
    }
}

/// The smallest divisor of `whole`, other than itself, by which a sequence of `length` tokens repeats and for which
/// `ends` holds. Divisors are tried by comparing, which most lists fail at once; a list that agrees with itself for long
/// is given to the Z function, so that the time stays linear.
fn smallest_period(
    whole: usize,
    length: usize,
    equal: impl Fn(usize, usize) -> bool,
    ends: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut budget = 4 * length + 64;
    let mut z = Vec::new();
    divisors(whole).find(|&step| {
        let overlap = length.saturating_sub(step);
        if budget == 0 && z.is_empty() {
            z = agreement(length, &equal);
        }
        let agrees = match z.get(step) {
            Some(&agreed) => agreed as usize,
            None => (0..overlap.min(budget)).take_while(|&at| equal(at, at + step)).count(),
        };
        // Out of budget before a mismatch: the next look-up, by Z, decides.
        let agrees = if z.is_empty() && agrees == budget && agrees < overlap {
            z = agreement(length, &equal);
            z[step] as usize
        } else {
            budget -= agrees.min(budget);
            agrees
        };
        agrees >= overlap && ends(step)
    })
}

/// The divisors of a number, other than itself, in rising order: found in pairs below and above its root.
fn divisors(number: usize) -> impl Iterator<Item = usize> {
    let root = number.isqrt();
    let below = (1..=root).filter(move |step| number.is_multiple_of(*step));
    let above = (1..=root).rev().filter(move |step| number.is_multiple_of(*step)).map(move |step| number / step);
    below.chain(above.skip_while(move |&step| step == root)).filter(move |&step| step < number)
}

/// The smallest number of runs after which lengths and gaps repeat, and which divides the number of runs.
fn whole_runs(length: usize, run: &impl Fn(usize) -> Run, gap: &impl Fn(usize) -> i64) -> Option<usize> {
    // The last run has no gap behind it and is compared apart.
    let last = length - 1;
    let equal = |a, b| run(a).count == run(b).count && gap(a) == gap(b);
    smallest_period(length, last, equal, |step| run(last).count == run(last - step).count)
}

/// The smallest number of runs between cuts, which divides the number of runs less one.
fn cut_runs(length: usize, run: &impl Fn(usize) -> Run, gap: &impl Fn(usize) -> i64) -> Option<usize> {
    let cuts = length - 1;
    let joined = run(0).count.checked_add(run(length - 1).count)?;
    // Token k is gap k with the run behind it; the last gap has only the last run behind it and is compared apart.
    let tokens = cuts - 1;
    let equal = |a, b| gap(a) == gap(b) && run(a + 1).count == run(b + 1).count;
    smallest_period(cuts, tokens, equal, |step| gap(cuts - 1) == gap(cuts - 1 - step) && run(step).count == joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: every divisor, every pair.
    fn by_definition(whole: usize, tokens: &[u8]) -> Option<usize> {
        let repeats = |step: usize| (step..tokens.len()).all(|at| tokens[at] == tokens[at - step]);
        (1..whole).filter(|step| whole.is_multiple_of(*step)).find(|&step| repeats(step))
    }

    #[test]
    fn divisors_rise() {
        for number in 0..200usize {
            let expected: Vec<usize> = (1..number).filter(|step| number.is_multiple_of(*step)).collect();
            assert_eq!(divisors(number).collect::<Vec<_>>(), expected, "{number}");
        }
    }

    #[test]
    fn periods_agree_with_the_definition() {
        let mut state = 7u32;
        for case in 0..20_000 {
            let length = 1 + case % 40;
            let base = 1 + case % 7;
            let mut tokens: Vec<u8> = (0..length).map(|at| (at % base) as u8).collect();
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state & 1 == 1 {
                let at = state as usize / 2 % length;
                tokens[at] = 9;
            }
            for whole in [length, length + 1] {
                let found = smallest_period(whole, length, |a, b| tokens[a] == tokens[b], |_| true);
                assert_eq!(found, by_definition(whole, &tokens), "{whole} {tokens:?}");
            }
        }
    }

    #[test]
    fn long_agreement_is_left_to_the_z_function() {
        // Agrees with itself almost to the end at every divisor.
        let length = 5040 * 4;
        let equal = |a: usize, b: usize| (a == length - 1) == (b == length - 1);
        assert_eq!(smallest_period(length, length, equal, |_| true), None);
        assert_eq!(smallest_period(length, length, |_, _| true, |step| step > 1000), Some(1008));
    }
}
