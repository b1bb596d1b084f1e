//! The smallest period of a list of runs: a list that repeats is a stream of its first part.
//!
//! In bytes, the period is the smallest divisor `p` of `n` with `D_(i+p) - D_i` constant: a period of the sequence of
//! differences. That sequence is run-length coded here. With lengths `L_1 .. L_m` and gaps `g_1 .. g_(m-1)` between
//! maximal runs, `p` either ends with a run, and then lengths and gaps repeat after `q` runs where `q` divides `m`; or
//! it cuts runs, because the last run of each copy touches the first of the next, and then the gaps repeat after `c`
//! runs where `c` divides `m - 1`, the inner lengths too, and every run at a cut is as long as the first and the last
//! together. Both are string matching, in time linear in `m`.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Kind, Node, NodeId, Run};

pub(super) const PASS: Pass = Pass {
    name: "detect-period",
    summary: "a list of runs that repeats after some bytes becomes a stream of its first part",
    rewrite,
};

pub(super) fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let period = match rewriter.builder.node(id) {
        Node::Runs { runs, kind: Kind::Byte } => find(runs.len(), |index| runs[index])?,
        Node::Indexed { offsets, child } => match *rewriter.builder.node(child.node) {
            Node::Dense { count, kind: Kind::Byte } if child.offset == 0 => {
                find(offsets.len(), |index| Run { offset: offsets[index], count })?
            }
            _ => return None,
        },
        _ => return None,
    };
    let block = rewriter.builder.runs(period.block)?;
    let child = rewriter.settle(block);
    let node = rewriter.builder.intern(Node::Stream { count: period.copies, stride: period.stride, child })?;
    Some(Edge { offset: 0, node })
}

/// A list of runs as copies of its first part.
struct Period {
    copies: u64,
    stride: i64,
    block: Vec<Run>,
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
fn find(length: usize, run: impl Fn(usize) -> Run) -> Option<Period> {
    if length < 2 || u32::try_from(length).is_err() {
        return None;
    }
    // Measured runs lie within 64 bits, so the difference of two bounds wraps for huge gaps only, and then equally.
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

/// The smallest number of runs after which lengths and gaps repeat, and which divides the number of runs.
fn whole_runs(length: usize, run: &impl Fn(usize) -> Run, gap: &impl Fn(usize) -> i64) -> Option<usize> {
    // The last run has no gap behind it and is compared apart.
    let last = length - 1;
    let z = agreement(last, |a, b| run(a).count == run(b).count && gap(a) == gap(b));
    (1..=length / 2).filter(|step| length.is_multiple_of(*step)).find(|&step| {
        let overlap = last - step;
        let repeats = step >= last || z[step] as usize >= overlap;
        repeats && run(last).count == run(last - step).count
    })
}

/// The smallest number of runs between cuts, which divides the number of runs less one.
fn cut_runs(length: usize, run: &impl Fn(usize) -> Run, gap: &impl Fn(usize) -> i64) -> Option<usize> {
    let cuts = length - 1;
    if cuts < 2 {
        return None;
    }
    let joined = run(0).count.checked_add(run(length - 1).count)?;
    // Token k is gap k with the run behind it; the last gap has only the last run behind it and is compared apart.
    let tokens = cuts - 1;
    let z = agreement(tokens, |a, b| gap(a) == gap(b) && run(a + 1).count == run(b + 1).count);
    (1..=cuts / 2).filter(|step| cuts.is_multiple_of(*step)).find(|&step| {
        let overlap = tokens - step;
        let repeats = step >= tokens || z[step] as usize >= overlap;
        repeats && gap(cuts - 1) == gap(cuts - 1 - step) && run(step).count == joined
    })
}
