//! Named rewrites that bring a layout into its canonical form.
//!
//! A [`Pass`] looks at one node whose children are settled and may replace it by something that means the same bytes in
//! the same order. The driver applies the passes at every node, children first, until none fires; shared nodes are
//! settled once. [`canonicalise`] runs two sweeps: [`SIMPLIFY`] with the cheap local rewrites, which already makes streams of
//! lists that repeat; then, unless only streams of one dense node are left, [`NORMALISE`], from the root down, which writes
//! concatenations out as their maximal runs and finds the period of those.
//!
//! # The canonical form
//!
//! It is a function of the byte displacements `D_0 .. D_(n-1)` alone. One byte is itself. Otherwise let `p` be the
//! smallest divisor of `n` such that `D_(i+p) - D_i` is one constant `S` for all `i`. If `p < n`, the form is `stream
//! n/p x S` of the form of the first `p` bytes (written `dense` when `S` is 1 and `p` is 1). If `p = n`, it is the list
//! of maximal runs: `indexed` if they are of one length, else `runs`. The divisor is unique because such periods are
//! closed under the greatest common divisor (Fine and Wilf), and over a stream of a canonical child the local rewrites
//! reach it without looking at bytes.
//!
//! A concatenation of more than `4 * entries + 1024` maximal runs is not written out; its structure is kept, and
//! [`Layout::exact`] says so. Its parts are written out, up to `entries + 2048` runs in all: so the passes, and
//! what they make, are linear in the description of any DAG.

mod detect_period;
mod divide_runs;
mod elide_singles;
mod equal_children;
mod equal_runs;
mod erase_kinds;
mod flatten_runs;
mod flatten_streams;
mod fold_dense;
mod group_runs;
mod hoist_offsets;
mod list_copies;
mod list_cost;
mod merge_adjacent;
mod remove_empty;
mod report;
mod rewriter;
mod roll_repeats;
mod split_lengths;
mod split_stretches;

pub use report::{Canonical, Report};
pub use rewriter::Pass;

pub(crate) use list_cost::MOST_PARTS;

use crate::layout::Layout;
use rewriter::Rewriter;

/// The cheap rewrites of the first sweep.
pub const SIMPLIFY: &[&Pass] = &[
    &erase_kinds::PASS,
    &remove_empty::PASS,
    &elide_singles::PASS,
    // A stream of a canonical child is canonical after the local rewrites below, and is never written out.
    &equal_children::PASS,
    &detect_period::PASS,
    &hoist_offsets::STREAMS,
    &fold_dense::PASS,
    &flatten_streams::PASS,
    // What is one run becomes dense here, so that writing a concatenation out takes time linear in its maximal runs.
    &merge_adjacent::PASS,
];

/// The rewrites of the second sweep.
pub const NORMALISE: &[&Pass] = &[
    &remove_empty::PASS,
    &elide_singles::PASS,
    &hoist_offsets::STREAMS,
    &flatten_runs::PASS,
    &equal_runs::PASS,
    &detect_period::PASS,
    &fold_dense::PASS,
    &flatten_streams::PASS,
    // From here on for concatenations that were too long to be written out.
    &hoist_offsets::LISTS,
    &merge_adjacent::PASS,
    &equal_children::PASS,
    &roll_repeats::PASS,
];

/// The planner's rewrites, which undo the canonical form where a machine prefers loops and shorter lists.
pub const REGULARISE: &[&Pass] =
    &[&split_stretches::PASS, &group_runs::PASS, &split_lengths::PASS, &list_copies::PASS, &elide_singles::PASS];

/// [`REGULARISE`] for a CPU, whose microkernels prefer lists of short blocks to runs. A GPU moves words either way.
pub const REGULARISE_FOR_CPU: &[&Pass] = &[
    &split_stretches::PASS,
    &group_runs::PASS,
    &divide_runs::PASS,
    &split_lengths::PASS,
    &list_copies::PASS,
    &elide_singles::PASS,
];

/// The planner writes short concatenations out that the canonical form keeps.
const WRITE_OUT: &[&Pass] = &[&flatten_runs::PASS, &equal_runs::PASS, &elide_singles::PASS];

/// Concatenations of more runs than this keep their structure in a plan. It bounds the tables of a DAG whose parts
/// overlap, and makes interpreting a part cheap beside moving its bytes.
const WRITTEN_OUT_RUNS: u64 = 512;

/// Runs that a plan writes out in all, for each entry of the description, beside those of four concatenations.
const WRITTEN_OUT_FACTOR: u64 = 1;

/// Every pass, once each, for reports and file tests.
///
/// ```
/// let names: Vec<&str> = dtc_compiler::passes::all().map(|pass| pass.name()).collect();
/// assert!(names.contains(&"fold-dense"));
/// ```
pub fn all() -> impl Iterator<Item = &'static Pass> {
    let mut seen = Vec::new();
    SIMPLIFY.iter().chain(NORMALISE).chain(REGULARISE_FOR_CPU).copied().filter(move |pass| {
        let new = !seen.contains(&pass.name);
        seen.push(pass.name);
        new
    })
}

/// Brings a layout into its canonical form, without element kinds.
///
/// Time is linear in the description, with logarithms of the counts.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// let text = "layout lb 0 extent 16 {
///   %0 = runs [(0 2) (4 4) (10 2)] x byte
///   root %0
/// }";
/// let canonical = dtc_compiler::canonicalise(&Layout::parse(text)?).layout;
/// let expected = "layout exact lb 0 extent 16 {
///   %0 = dense 2 x byte
///   %1 = stream 2 x 4 of %0
///   %2 = stream 2 x 6 of %1
///   root %2
/// }";
/// assert_eq!(canonical.to_string(), expected);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn canonicalise(layout: &Layout) -> Canonical {
    let limit = layout.entries().saturating_mul(4).saturating_add(1024);
    let mut rewriter = Rewriter::new(limit);
    let mut root = rewriter.sweep_up(SIMPLIFY, layout);
    // Streams are settled by now.
    if !rewriter.is_regular(root) {
        if !rewriter.will_be_written_out(rewriter.concatenation(root)) {
            rewriter.write_out_parts(layout.entries().saturating_add(2048));
        }
        root = rewriter.sweep_down(NORMALISE, root);
    }
    let exact = rewriter.is_exact(root);
    let canonical = rewriter.finish(root, layout);
    if exact { Canonical { layout: canonical.layout.proved_exact(), ..canonical } } else { canonical }
}

/// Applies the cheap rewrites alone: the same bytes in the same order, in about as many entries as there are.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 1 x i32\n  %1 = stream 2 x 4 of %0\n  root %1\n}")?;
/// assert!(dtc_compiler::passes::simplify(&layout).to_string().contains("dense 8 x byte"));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn simplify(layout: &Layout) -> Layout {
    apply(SIMPLIFY, layout).layout
}

/// Applies some passes at every node, children first, until none fires.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::passes;
/// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 1 x i32\n  %1 = stream 2 x 4 of %0\n  root %1\n}")?;
/// let fold: Vec<_> = passes::all().filter(|pass| pass.name() == "fold-dense").collect();
/// let report = passes::apply(&fold, &layout).report;
/// assert_eq!(report.to_string(), "no pass fired"); // the kinds must be erased first
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn apply(passes: &[&'static Pass], layout: &Layout) -> Canonical {
    let limit = layout.entries().saturating_mul(4).saturating_add(1024);
    let mut rewriter = Rewriter::new(limit);
    let root = rewriter.sweep_up(passes, layout);
    rewriter.finish(root, layout)
}

/// Gives a canonical layout the form that plans for a GPU are made from: the same bytes in the same order.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// let offsets: Vec<String> = (0..20).map(|row| (row * 8 + row / 10).to_string()).collect();
/// let list = offsets.join(" ");
/// let text = format!("layout lb 0 extent 200 {{\n  %0 = dense 4 x byte\n  %1 = indexed [{list}] of %0\n  root %1\n}}");
/// let regular = dtc_compiler::passes::regularise(&Layout::parse(&text)?);
/// assert!(regular.to_string().contains("stream 10 x 8"));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn regularise(layout: &Layout) -> Layout {
    regularise_by(REGULARISE, layout)
}

/// Gives a canonical layout the form that plans for a CPU are made from: the same bytes in the same order.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// // 100 elements of 4 bytes, every tenth of which touches the one before.
/// let mut runs = String::new();
/// let mut at = 0;
/// for run in 0..90 {
///     let bytes = if run % 9 == 4 { 8 } else { 4 };
///     runs += &format!("({at} {bytes}) ");
///     at += bytes + 4 * (1 + run * run % 7);
/// }
/// let text = format!("layout lb 0 extent 3000 {{\n  %0 = runs [{}] x byte\n  root %0\n}}", runs.trim_end());
/// let regular = dtc_compiler::passes::regularise_for_cpu(&Layout::parse(&text)?);
/// assert!(regular.to_string().contains("%0 = dense 4 x byte\n  %1 = indexed"));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn regularise_for_cpu(layout: &Layout) -> Layout {
    regularise_by(REGULARISE_FOR_CPU, layout)
}

fn regularise_by(passes: &[&'static Pass], layout: &Layout) -> Layout {
    if layout.exact() {
        return apply(passes, layout).layout;
    }
    let budget = layout.entries().saturating_mul(WRITTEN_OUT_FACTOR).saturating_add(4 * WRITTEN_OUT_RUNS);
    let mut rewriter = Rewriter::with_budget(WRITTEN_OUT_RUNS, budget);
    let root = rewriter.sweep_up(&[], layout);
    let root = rewriter.sweep_down(WRITE_OUT, root);
    apply(passes, &rewriter.finish(root, layout).layout).layout
}
