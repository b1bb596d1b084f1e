//! What the written forms of datatypes have in common: names for shared nodes, and lists.

use super::{Constructor, Datatype, Nodes};
use std::fmt::{Arguments, Write};

/// The nodes of a datatype that are used more than once, numbered from 1, children before parents. Predefined types and the root need
/// no name.
pub(super) struct Names<'a> {
    pub(super) shared: Vec<&'a Datatype>,
    nodes: Nodes<'a>,
    numbers: Vec<Option<usize>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(datatype: &'a Datatype) -> Names<'a> {
        Names::nesting(datatype, usize::MAX)
    }

    /// The same, where other nodes have names too, so that the text of none nests deeper than `levels`.
    pub(super) fn nesting(datatype: &'a Datatype, levels: usize) -> Names<'a> {
        let nodes = datatype.nodes();
        let mut uses = vec![0u8; nodes.len()];
        for child in nodes.iter().flat_map(|node| node.children()) {
            let uses = &mut uses[nodes.place(child)];
            *uses = uses.saturating_add(1);
        }
        let (mut shared, mut numbers) = (Vec::new(), vec![None; nodes.len()]);
        let mut heights = vec![0; nodes.len()];
        for (place, &node) in nodes.iter().enumerate() {
            // A child with a name is a word in the text of its parents.
            let height = |child: &Datatype| numbers[nodes.place(child)].map_or(heights[nodes.place(child)], |_| 0);
            heights[place] = 1 + node.children().iter().map(height).max().unwrap_or(0);
            let is_named = uses[place] > 1 || heights[place] == levels && !node.is(datatype);
            if is_named && !matches!(node.constructor(), Constructor::Named(_)) {
                shared.push(node);
                numbers[place] = Some(shared.len());
            }
        }
        Names { shared, nodes, numbers }
    }

    /// The number of a node that has a name.
    pub(super) fn of(&self, node: &Datatype) -> Option<usize> {
        self.numbers[self.nodes.place(node)]
    }
}

/// Writes items in brackets.
pub(super) fn list<T>(text: &mut String, items: impl IntoIterator<Item = T>, write: impl Fn(&mut String, T)) {
    text.push('[');
    for (position, item) in items.into_iter().enumerate() {
        text.push_str(if position > 0 { ", " } else { "" });
        write(text, item);
    }
    text.push(']');
}

/// Writing to a string cannot fail.
pub(super) fn put(text: &mut String, piece: Arguments) {
    text.write_fmt(piece).expect("a string takes every text");
}
