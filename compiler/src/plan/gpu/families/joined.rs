//! Packed words of 16 bytes, each put together from the listed runs that it has.

use super::pieces::{Pieces, each_run, in_words};
use super::{Instance, KernelFamily, Query};
use crate::layout::{Edge, Layout};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Grid, JOINED, JoinedTuning, KernelList, KernelText, LibraryPart, ListedPiece, Tuning, Units,
};
use minijinja::context;
use std::fmt;

/// A kernel that joins packed words of 16 bytes from the runs that they have. Packs only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoinedKernel;

/// Serves packs of runs of a few dozen to a few hundred bytes.
pub(super) fn admits(query: &Query<'_>) -> Option<JoinedKernel> {
    let (pieces, tuning) = (query.found::<Pieces>()?, &query.tuning().joined);
    let (runs, min_bytes) = match query.word {
        ..4 => (&tuning.odd_runs, tuning.odd_min_bytes),
        4 => (&tuning.aligned_runs, tuning.aligned_min_bytes),
        _ => return None,
    };
    let joins = !query.unpacks() && !in_words(query.analysis, query.direction, query.aligned_word());
    (joins && runs.contains(&pieces.mean) && query.call.bytes >= min_bytes).then_some(JoinedKernel)
}

/// Whether a kernel brings lists to the L2 cache: short ones stay there.
fn brings_lists(pieces: &Pieces, tuning: &JoinedTuning) -> bool {
    pieces.size > 2 * tuning.lists_ahead
}

/// The runs in packed order: what is between their places in memory and among the packed bytes, and where they end there.
fn runs(pieces: &Pieces, layout: &Layout) -> Vec<ListedPiece> {
    let (mut runs, mut end) = (Vec::new(), 0);
    each_run(layout, Edge { offset: 0, node: pieces.record }, &mut |offset, length| {
        let start = end;
        end += length;
        runs.push((offset - start as i64, end));
    });
    runs
}

/// For runs that end at these packed bytes, the number of the run of every 256th byte, and how many runs later the one of every 16th
/// is: fewer than 256, since every run has a byte.
fn steps(ends: impl Iterator<Item = u64>) -> (Vec<u32>, Vec<u8>) {
    let (mut bases, mut steps) = (Vec::new(), Vec::new());
    let (mut at, mut base) = (0, 0);
    for (run, end) in (0u32..).zip(ends) {
        while at < end {
            if at % 256 == 0 {
                base = run;
                bases.push(run);
            }
            steps.push((run - base) as u8);
            at += JOINED;
        }
    }
    (bases, steps)
}

impl KernelFamily for JoinedKernel {
    fn candidates(query: &Query<'_>) -> Vec<JoinedKernel> {
        if !query.unpacks() && query.analysis.has::<Pieces>() { vec![JoinedKernel] } else { Vec::new() }
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.joined.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(Grid::new(Units::Addressed, JOINED, instance.threads.into()))
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        let tuning = &instance.analysis.tuning.joined;
        instance.analysis.found().is_some_and(|pieces| brings_lists(pieces, tuning))
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let (pieces, tuning) = (instance.analysis.found::<Pieces>()?, &instance.analysis.tuning.joined);
        let runs = runs(pieces, &instance.analysis.layout);
        let (bases, steps) = steps(runs.iter().map(|run| run.1));
        let runs_ahead = if brings_lists(pieces, tuning) { tuning.lists_ahead / pieces.mean } else { 0 };
        let values = context! {
            runs => runs.len(),
            size => pieces.size,
            runs_ahead,
            bytes_ahead => tuning.lists_ahead,
            stretches => (u64::from(instance.threads) * JOINED / pieces.mean).div_ceil(tuning.listed_at_once),
            stretch => tuning.listed_at_once,
        };
        let lists = vec![
            ("list", KernelList::Pieces(runs)),
            ("bases", KernelList::Numbers(bases)),
            ("steps", KernelList::Bytes(steps)),
        ];
        let outer = AddressFunction::Records { record: pieces.record, size: pieces.size };
        let library = vec![LibraryPart::Funnel, LibraryPart::Join];
        Some(KernelText { values, lists, library, ..KernelText::new("joined", 1, vec![outer]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("packed words joined from listed runs")
    }
}
