//! Prints the textual form of layouts.

use super::{Edge, Layout, Node};
use std::fmt::{self, Write};

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
        let mut separator = "";
        self.lines(|line| {
            f.write_str(separator)?;
            separator = "\n";
            f.write_fmt(line)
        })
    }
}

impl Layout {
    /// Calls `line` for each line of the textual form.
    fn lines(&self, mut line: impl FnMut(fmt::Arguments<'_>) -> fmt::Result) -> fmt::Result {
        let exact = if self.exact { "exact " } else { "" };
        line(format_args!("layout {exact}lb {} extent {} {{", self.lb, self.extent))?;
        for (id, node) in self.nodes() {
            line(format_args!("  %{} = {node}", id.index()))?;
        }
        line(format_args!("  root {}", Displaced(self.root)))?;
        line(format_args!("}}"))
    }

    /// Lines of the textual form, each cut after `longest` characters. The rest of a line is not computed.
    pub(crate) fn abridged(&self, longest: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let collected = self.lines(|line| {
            let mut start = Start { text: String::new(), left: longest };
            if start.write_fmt(line).is_err() {
                start.text.push_str(" ...");
            }
            lines.push(start.text);
            Ok(())
        });
        debug_assert!(collected.is_ok());
        lines
    }
}

/// The begin of a line; writing beyond it is an error.
struct Start {
    text: String,
    left: usize,
}

impl Write for Start {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let end = more.char_indices().nth(self.left).map_or(more.len(), |(end, _)| end);
        self.left -= more[..end].chars().count();
        self.text.push_str(&more[..end]);
        if end < more.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
