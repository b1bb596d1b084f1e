//! What is written on the nodes of types and layouts: a word, and its numbers in short.

use crate::graph::{Caption, Graph};
use dtc_compiler::datatype::{Argument, Constructor, Datatype, Distribution, Nodes, Order};
use dtc_compiler::layout::{Edge, Layout, Node, Run};
use dtc_compiler::tabled::{TabledEdge, TabledLayout, TabledNode};
use dtc_measure::report;

/// Entries of a list that are written out.
const SHOWN: usize = 12;

/// Edges of a node whose offsets are written beside them.
const LABELLED: usize = 8;

/// A list, cut if it is long.
fn list<T: std::fmt::Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    joined(items, " ")
}

/// The same with another separator.
fn joined<T: std::fmt::Display>(items: impl ExactSizeIterator<Item = T>, separator: &str) -> String {
    let (number, mut text) = (items.len(), Vec::new());
    text.extend(items.take(SHOWN).map(|item| item.to_string()));
    let rest =
        if number > SHOWN { format!(" \u{2026} {} in all", report::grouped(number as u64)) } else { String::new() };
    text.join(separator) + &rest
}

fn caption(title: &str, detail: String) -> Caption {
    Caption { title: title.to_owned(), detail }
}

/// Copies at a stride.
fn copies(count: u64, stride: i64) -> String {
    match count {
        1 => "1 copy".to_owned(),
        _ => format!("{} copies, {} B apart", report::grouped(count), signed(stride)),
    }
}

/// A signed number, in groups of three.
pub fn signed(number: i64) -> String {
    let sign = if number < 0 { "\u{2212}" } else { "" };
    format!("{sign}{}", report::grouped(number.unsigned_abs()))
}

/// The offset of an edge; nothing where it is 0.
fn offset_of(offset: i64) -> String {
    if offset == 0 { String::new() } else { format!("at {}", signed(offset)) }
}

/// The edges of a node, with offsets if they are few.
fn labelled<T>(edges: &[T], of: impl Fn(&T) -> (usize, i64)) -> Vec<(usize, String)> {
    let few = edges.len() <= LABELLED;
    let edge = |edge: &T| {
        let (node, offset) = of(edge);
        (node, if few { offset_of(offset) } else { String::new() })
    };
    edges.iter().map(edge).collect()
}

/// The nodes of a layout by their numbers.
pub struct LayoutGraph<'a>(Vec<&'a Node>);

impl<'a> LayoutGraph<'a> {
    /// The graph of a layout.
    pub fn of(layout: &'a Layout) -> LayoutGraph<'a> {
        LayoutGraph(layout.nodes().map(|(_, node)| node).collect())
    }
}

impl Graph for LayoutGraph<'_> {
    fn children(&self, node: usize) -> Vec<(usize, String)> {
        labelled(self.0[node].edges(), |edge: &Edge| (edge.node.index(), edge.offset))
    }

    fn caption(&self, node: usize) -> Caption {
        of_layout(self.0[node])
    }
}

fn of_layout(node: &Node) -> Caption {
    let grouped = report::grouped;
    match node {
        Node::Dense { count, kind } => caption("dense", format!("{} \u{d7} {kind}", grouped(*count))),
        Node::Stream { count, stride, .. } => caption("stream", copies(*count, *stride)),
        Node::Indexed { offsets, .. } => caption("indexed", format!("copies at {}", list(offsets.iter()))),
        Node::Runs { runs, kind } => {
            let run = |run: &Run| format!("{}@{}", run.count, run.offset);
            caption("runs", format!("{} of {kind}", list(runs.iter().map(run))))
        }
        Node::Record { parts } => caption("record", format!("{} parts", grouped(parts.len() as u64))),
    }
}

impl Graph for TabledLayout {
    fn children(&self, node: usize) -> Vec<(usize, String)> {
        labelled(self.nodes()[node].edges(), |edge: &TabledEdge| (edge.node.index(), edge.offset))
    }

    fn caption(&self, node: usize) -> Caption {
        match &self.nodes()[node] {
            TabledNode::Fixed { fixed } => {
                let size = self.fixed_layouts()[*fixed].size();
                caption(&format!("fixed {fixed}"), format!("layout of {} bytes", report::grouped(size)))
            }
            TabledNode::Stream { count, stride, .. } => caption("stream", copies(*count, *stride)),
            TabledNode::Indexed { offsets, .. } => caption("indexed", format!("copies at {}", list(offsets.iter()))),
            TabledNode::Table { table, places, pitch, .. } => {
                let places = report::grouped(*places);
                caption(
                    &format!("table {table}"),
                    format!("copies at entry \u{d7} {} B, {places} places", signed(*pitch)),
                )
            }
            TabledNode::Addresses { table, .. } => {
                caption(&format!("addresses {table}"), "copies at addresses".to_owned())
            }
            TabledNode::Record { parts } => caption("record", format!("{} parts", parts.len())),
        }
    }
}

impl Graph for Nodes<'_> {
    fn children(&self, node: usize) -> Vec<(usize, String)> {
        let children = self[node].children();
        labelled(children, |child: &Datatype| (self.place(child), 0))
    }

    fn caption(&self, node: usize) -> Caption {
        let node = self[node];
        let mut details = match node.constructor() {
            Constructor::Named(predefined) => {
                return caption(&predefined.name().to_lowercase(), format!("{} B", predefined.size()));
            }
            constructor => of_arguments(constructor),
        };
        if let Some(given) = node.given() {
            details.push(format!("given lb {} extent {}", given.lb, given.extent));
        }
        caption(node.constructor().name(), details.join(", "))
    }
}

/// The arguments of a constructor, each with its name.
fn of_arguments(constructor: &Constructor) -> Vec<String> {
    let mut details = Vec::new();
    for (name, argument) in constructor.arguments() {
        let name = name.trim_end_matches("_bytes");
        let value = match argument {
            Argument::Length(_) => continue,
            Argument::Integer(number) | Argument::Address(number) => signed(number),
            Argument::Integers(numbers) | Argument::Addresses(numbers) => format!("[{}]", list(numbers.iter())),
            Argument::Order(Order::C) => "C".to_owned(),
            Argument::Order(Order::Fortran) => "Fortran".to_owned(),
            Argument::Distributions(all) => format!("[{}]", list(all.iter().map(distribution))),
        };
        details.push(format!("{name} {value}"));
    }
    details
}

fn distribution(distribution: &Distribution) -> String {
    match distribution {
        Distribution::Block(None) => "block".to_owned(),
        Distribution::Block(Some(length)) => format!("block({length})"),
        Distribution::Cyclic(None) => "cyclic".to_owned(),
        Distribution::Cyclic(Some(length)) => format!("cyclic({length})"),
        Distribution::None => "none".to_owned(),
    }
}

/// A layout in its textual form, with long lists cut, and `lines` lines at most.
pub fn text_of(layout: &Layout, lines: usize) -> String {
    let exact = if layout.exact() { "exact " } else { "" };
    let mut text = format!("layout {exact}lb {} extent {} {{\n", layout.lb(), layout.extent());
    let number = layout.nodes().len();
    let displaced = |edge: &Edge| match edge.offset {
        0 => format!("%{}", edge.node.index()),
        offset => format!("{offset}: %{}", edge.node.index()),
    };
    for (id, node) in layout.nodes().take(lines) {
        let written = match node {
            Node::Indexed { offsets, child } => format!("indexed [{}] of {}", list(offsets.iter()), displaced(child)),
            Node::Runs { runs, kind } => {
                let run = |run: &Run| format!("({} {})", run.offset, run.count);
                format!("runs [{}] x {kind}", list(runs.iter().map(run)))
            }
            Node::Record { parts } => {
                format!(
                    "record [{}]",
                    joined(parts.iter().map(|part| format!("{}: %{}", part.offset, part.node.index())), ", ")
                )
            }
            Node::Dense { .. } | Node::Stream { .. } => node.to_string(),
        };
        text += &format!("  %{} = {written}\n", id.index());
    }
    if number > lines {
        text += &format!("  \u{2026} {} more nodes\n", number - lines);
    }
    text + &format!("  root {}\n}}", displaced(&layout.root()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_short_layouts_are_those_of_the_compiler() {
        let text = "layout lb 0 extent 8 {\n  %0 = dense 2 x i16\n  %1 = indexed [0 8 4] of 2: %0\n  %2 = runs [(0 2) (9 1)] x byte\n  \
                    %3 = record [0: %1, 90: %2]\n  root -33: %3\n}";
        let layout = Layout::parse(text).expect("a layout");
        assert_eq!(text_of(&layout, 9), layout.to_string());
        assert!(text_of(&layout, 2).contains("\u{2026} 2 more nodes"));
        assert_eq!(of_layout(layout.node(layout.root().node)).detail, "2 parts");
    }
}
