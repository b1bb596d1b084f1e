//! The textual form.

use super::{TabledEdge, TabledLayout, TabledNode};
use std::fmt;

/// An edge, whose node has a number behind those of the fixed layouts.
struct PrintedEdge<'a>(&'a TabledEdge, &'a str);

impl fmt::Display for PrintedEdge<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PrintedEdge(TabledEdge { offset, node }, separator) = self;
        if *offset == 0 && separator.is_empty() {
            write!(f, "%{}", node.index())
        } else {
            write!(f, "{separator}{offset}: %{}", node.index())
        }
    }
}

impl fmt::Display for TabledNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TabledNode::Fixed { fixed } => write!(f, "fixed {fixed}"),
            TabledNode::Stream { count, stride, child } => {
                write!(f, "stream {count} x {stride} of {}", PrintedEdge(child, ""))
            }
            TabledNode::Indexed { offsets, child } => {
                f.write_str("indexed [")?;
                for (index, offset) in offsets.iter().enumerate() {
                    write!(f, "{}{offset}", if index == 0 { "" } else { " " })?;
                }
                write!(f, "] of {}", PrintedEdge(child, ""))
            }
            TabledNode::Table { table, places, pitch, child } => {
                write!(f, "table {table} below {places} x {pitch} of {}", PrintedEdge(child, ""))
            }
            TabledNode::Addresses { table, child } => write!(f, "addresses {table} of {}", PrintedEdge(child, "")),
            TabledNode::Record { parts } => {
                f.write_str("record [")?;
                for (index, part) in parts.iter().enumerate() {
                    write!(f, "{}", PrintedEdge(part, if index == 0 { "" } else { ", " }))?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for TabledLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tabled {{")?;
        for (number, table) in self.tables.iter().enumerate() {
            writeln!(f, "  table {number}: {table}")?;
        }
        for (number, fixed) in self.fixed_layouts.iter().enumerate() {
            let text = fixed.to_string().replace('\n', "\n  ");
            writeln!(f, "  fixed {number}: {text}")?;
        }
        for (number, node) in self.nodes.iter().enumerate() {
            writeln!(f, "  %{number} = {node}")?;
        }
        write!(f, "  root {}\n}}", PrintedEdge(&self.root, ""))
    }
}
