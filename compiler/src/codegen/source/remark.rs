//! What is said above a text.

use super::outline::Outline;
use super::text::wrapped;
use crate::layout::Overlap;
use crate::pipeline::Pipeline;

/// Characters of the longest notation that is repeated.
const LONGEST: usize = 2_000;

/// List entries of the longest notation that is written to find its length.
const ENTRIES: u64 = 4_096;

/// Most columns of a line.
const COLUMNS: usize = 110;

/// A remark that names the datatype and its hash, with more lines behind.
pub(super) fn remark(first: &str, form: &str, pipeline: &Pipeline, outline: &Outline, more: &str) -> String {
    let datatype = pipeline.datatype();
    let notation = (datatype.entries() <= ENTRIES).then(|| datatype.to_string()).filter(|text| text.len() <= LONGEST);
    let notation = notation.unwrap_or_else(|| {
        format!("a datatype of {} constructors and list entries, which is too long to repeat", datatype.entries())
    });
    let layout = outline.layout();
    let mut text = format!("/*\n * {first}\n *\n");
    for line in notation.lines() {
        text.push_str(&wrapped(line.split(' '), " *     ", COLUMNS));
    }
    let bounds = if layout.size() == 0 {
        "No bytes.".to_owned()
    } else {
        format!(
            "{} packed bytes an element, from bytes {} to {} of memory; elements are {} bytes apart.",
            layout.size(),
            layout.true_lb(),
            layout.true_ub(),
            layout.extent()
        )
    };
    text.push_str(&format!(" *\n * {bounds}\n"));
    match layout.overlap(None) {
        Overlap::None => {}
        overlap => text.push_str(&wrapped(format!("Overlap: {overlap}.").split(' '), " * ", COLUMNS)),
    }
    text.push_str(&format!(" * Hash {}\n *\n", pipeline.hash()));
    for line in more.lines() {
        text.push_str(format!(" * {line}").trim_end());
        text.push('\n');
    }
    let version = env!("CARGO_PKG_VERSION");
    text.push_str(&format!(" *\n * Written by dtc {version}, dtc emit --as {form}; no other file is needed.\n */\n"));
    text
}
