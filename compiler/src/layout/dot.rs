//! Prints layouts as graphs in the language of Graphviz.

use super::{Layout, Node};
use std::fmt::Write;

/// Most list entries that a label shows.
const SHOWN: usize = 6;

fn label(node: &Node) -> String {
    let ellipsis = |length: usize| if length > SHOWN { format!(" ... {length} in all") } else { String::new() };
    match node {
        Node::Dense { count, kind } => format!("dense {count} x {kind}"),
        Node::Stream { count, stride, .. } => format!("stream {count} x {stride}"),
        Node::Indexed { offsets, .. } => {
            let shown: Vec<String> = offsets.iter().take(SHOWN).map(i64::to_string).collect();
            format!("indexed {}{}", shown.join(" "), ellipsis(offsets.len()))
        }
        Node::Runs { runs, kind } => {
            let shown: Vec<String> =
                runs.iter().take(SHOWN).map(|run| format!("({} {})", run.offset, run.count)).collect();
            format!("runs {}{} x {kind}", shown.join(" "), ellipsis(runs.len()))
        }
        Node::Record { parts } if parts.is_empty() => "empty".to_owned(),
        Node::Record { parts } => format!("record of {}", parts.len()),
    }
}

impl Layout {
    /// The DAG as a Graphviz digraph: a shared node is one box, and edges carry offsets.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let layout = Layout::parse("layout lb 0 extent 9 {\n  %0 = dense 1 x byte\n  root 3: %0\n}")?;
    /// assert!(layout.to_dot().contains("n0 [label=\"dense 1 x byte\"]"));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn to_dot(&self) -> String {
        let mut text = String::from("digraph layout {\n  node [shape=box, fontname=monospace];\n");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  root [label=\"lb {} extent {}\", shape=plaintext];", self.lb(), self.extent());
        for (id, node) in self.nodes() {
            let _ = writeln!(text, "  n{} [label=\"{}\"];", id.index(), label(node));
            for edge in node.edges() {
                let _ = writeln!(text, "  n{} -> n{} [label=\"{}\"];", id.index(), edge.node.index(), edge.offset);
            }
        }
        let root = self.root();
        let _ = writeln!(text, "  root -> n{} [label=\"{}\"];", root.node.index(), root.offset);
        text.push_str("}\n");
        text
    }
}
