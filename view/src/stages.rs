//! What each pass makes of a layout, from the lowered to the canonical one.
//!
//! The compiler settles a node by all passes of a sweep before it goes on to the next. Here a stage has one pass more than the one before, over
//! the whole layout: what a pass is for is what it changes.

use crate::captions::{LayoutGraph, text_of};
use crate::graph::Drawing;
use dtc_compiler::Pipeline;
use dtc_compiler::layout::Layout;
use dtc_compiler::passes::{self, NORMALISE, Pass, SIMPLIFY};
use serde::Serialize;

/// List entries of a lowered layout beyond which only the first and the last stage are shown: each of the others rewrites all of it.
const MOST_ENTRIES: u64 = 4096;

/// Nodes of a lowered layout beyond which the same holds.
const MOST_NODES: usize = 512;

/// Nodes of a layout that are written out.
const LINES: usize = 48;

/// A layout on the way.
#[derive(Serialize)]
pub struct Stage {
    /// The pass that was added, or what the stage is.
    pub pass: String,
    /// What the pass does.
    pub summary: String,
    /// How often it fired.
    pub fired: u64,
    /// The layout.
    pub text: String,
    /// The same as a graph.
    pub drawing: Drawing,
}

/// The stages of a layout, and whether all that the passes change is shown.
pub struct Stages {
    /// The lowered layout, those that a pass changed, and the canonical one.
    pub stages: Vec<Stage>,
    /// Whether the passes in between are there.
    pub complete: bool,
}

fn stage(pass: &str, summary: &str, fired: u64, layout: &Layout) -> Stage {
    let drawing = Drawing::of(&LayoutGraph::of(layout), layout.root().node.index());
    Stage { pass: pass.to_owned(), summary: summary.to_owned(), fired, text: text_of(layout, LINES), drawing }
}

/// Whether two layouts are written with the same nodes.
fn is_same(one: &Layout, other: &Layout) -> bool {
    let nodes = |layout: &Layout| layout.nodes().map(|(_, node)| node.clone()).collect::<Vec<_>>();
    one.root() == other.root() && nodes(one) == nodes(other)
}

impl Stages {
    /// The stages of a type.
    pub fn of(pipeline: &Pipeline) -> Stages {
        let lowered = pipeline.lowered();
        let complete = lowered.entries() <= MOST_ENTRIES && lowered.nodes().len() <= MOST_NODES;
        let mut stages = vec![stage("lowered", "each constructor as one or two nodes, nothing improved", 0, lowered)];
        let mut last = lowered.clone();
        if complete {
            for sweep in [SIMPLIFY, NORMALISE] {
                last = add(sweep, last, &mut stages);
            }
        }
        if !is_same(&last, pipeline.layout()) {
            let (name, summary) = match complete {
                true => ("canonical", "the same passes from the root down, as the compiler applies them"),
                false => ("canonical", "all passes"),
            };
            stages.push(stage(name, summary, 0, pipeline.layout()));
        } else if let Some(last) = stages.last_mut() {
            last.text = text_of(pipeline.layout(), LINES);
        }
        for at in 1..stages.len() {
            let (before, after) = stages.split_at_mut(at);
            after[0].drawing.mark_new(&before[at - 1].drawing);
        }
        Stages { stages, complete }
    }
}

/// Adds a stage for each pass of a sweep that changes a layout, given those before it; returns what all of them make of it.
fn add(sweep: &[&'static Pass], layout: Layout, stages: &mut Vec<Stage>) -> Layout {
    let mut last = layout.clone();
    for (at, pass) in sweep.iter().enumerate() {
        let canonical = passes::apply(&sweep[..=at], &layout);
        if is_same(&last, &canonical.layout) {
            continue;
        }
        let fired =
            canonical.report.fired().iter().find(|(name, _)| *name == pass.name()).map_or(0, |(_, times)| *times);
        stages.push(stage(pass.name(), pass.summary(), fired, &canonical.layout));
        last = canonical.layout;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::text;

    fn of(notation: &str) -> Vec<String> {
        let pipeline = Pipeline::new(text::parse(notation).expect(notation));
        let stages = Stages::of(&pipeline).stages;
        assert_eq!(stages.last().expect("a stage").text, pipeline.layout().to_string(), "{notation}");
        stages.into_iter().map(|stage| stage.pass).collect()
    }

    #[test]
    fn stages_are_the_passes_that_change_something() {
        assert_eq!(of("byte"), ["lowered"]);
        assert_eq!(of("vector 12 5 14 double"), ["lowered", "erase-kinds", "fold-dense"]);
        assert_eq!(of("indexed_block 1 [0, 2, 4, 6] int").last().map(String::as_str), Some("detect-period"));
    }

    #[test]
    fn long_lists_have_the_first_and_the_last_stage() {
        let offsets: Vec<String> = (0..5000u64).map(|at| (at * at).to_string()).collect();
        let pipeline =
            Pipeline::new(text::parse(&format!("indexed_block 1 [{}] int", offsets.join(", "))).expect("a type"));
        let found = Stages::of(&pipeline);
        assert!(!found.complete && found.stages.len() == 2, "{}", found.stages.len());
    }
}
