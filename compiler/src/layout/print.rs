//! The textual form of layouts.

use super::{Edge, Layout, Node};
use std::fmt;

struct Displaced(Edge);

impl fmt::Display for Displaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Edge { offset, node } = self.0;
        if offset == 0 { write!(f, "%{}", node.index()) } else { write!(f, "{offset}: %{}", node.index()) }
    }
}

fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    separator: &str,
    items: &[T],
    mut write_item: impl FnMut(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        write_item(f, item)?;
    }
    Ok(())
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Dense { count, kind } => write!(f, "dense {count} x {kind}"),
            Node::Stream { count, stride, child } => write!(f, "stream {count} x {stride} of {}", Displaced(*child)),
            Node::Indexed { offsets, child } => {
                f.write_str("indexed [")?;
                separated(f, " ", offsets, |f, offset| write!(f, "{offset}"))?;
                write!(f, "] of {}", Displaced(*child))
            }
            Node::Runs { runs, kind } => {
                f.write_str("runs [")?;
                separated(f, " ", runs, |f, run| write!(f, "({} {})", run.offset, run.count))?;
                write!(f, "] x {kind}")
            }
            Node::Record { parts } => {
                f.write_str("record [")?;
                separated(f, ", ", parts, |f, part| write!(f, "{}: %{}", part.offset, part.node.index()))?;
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = if self.exact { "exact " } else { "" };
        writeln!(f, "layout {exact}lb {} extent {} {{", self.lb, self.extent)?;
        for (id, node) in self.nodes() {
            writeln!(f, "  %{} = {node}", id.index())?;
        }
        writeln!(f, "  root {}", Displaced(self.root))?;
        f.write_str("}")
    }
}
