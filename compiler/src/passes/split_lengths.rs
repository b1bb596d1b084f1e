//! Long stretches of one length inside a list of runs become lists of their own.
//!
//! A list of equal blocks needs no lengths, and a list that repeats another at a distance needs no offsets either: the
//! arrays of an irregular exchange are one list of particles, applied again and again.

use super::rewriter::Rewriter;
use super::{Pass, detect_period};
use crate::layout::{Edge, Kind, Node, NodeId, Run};

pub(super) const PASS: Pass = Pass {
    name: "split-lengths",
    summary: "stretches of equal length inside a list of runs become indexed lists, if there are few",
    rewrite,
};

/// How long stretches must be on average.
const MEAN: usize = 16;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Runs { runs, kind: Kind::Byte } = rewriter.builder.node(id) else { return None };
    let runs = runs.clone();
    let stretches = stretches(&runs)?;
    let mut parts = Vec::with_capacity(stretches.len());
    for stretch in stretches {
        let Run { offset: first, count: bytes } = stretch[0];
        let run = |at: usize| Run { offset: stretch[at].offset - first, count: bytes };
        let repeated = detect_period::find(stretch.len(), run).and_then(|period| period.write(rewriter));
        let list = match repeated {
            Some(stream) => stream,
            None => {
                let child = rewriter.builder.bytes(0, bytes)?;
                let offsets = stretch.iter().map(|run| run.offset - first).collect();
                Edge { offset: 0, node: rewriter.builder.intern(Node::Indexed { offsets, child })? }
            }
        };
        let list = rewriter.settle(list);
        parts.push(Edge { offset: first + list.offset, ..list });
    }
    let node = rewriter.builder.intern(Node::Record { parts: parts.into() })?;
    Some(Edge { offset: 0, node })
}

/// The stretches of equal length, if there are few.
pub(super) fn stretches(runs: &[Run]) -> Option<Vec<&[Run]>> {
    let most = runs.len() / MEAN;
    let stretches: Vec<&[Run]> = runs.chunk_by(|run, next| run.count == next.count).take(most + 1).collect();
    (stretches.len() <= most).then_some(stretches)
}
