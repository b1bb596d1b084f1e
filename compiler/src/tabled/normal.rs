//! The normal form: what nodes with the same bytes for all tables are brought to, as far as it goes.

use super::{TabledEdge, TabledNode, TabledNodeId};
use crate::canonicalise;
use crate::layout::Layout;
use std::collections::HashMap;

/// Builds nodes from the innermost up. Equal nodes are one, and offsets move to the edges above.
#[derive(Default)]
pub(super) struct TabledBuilder {
    nodes: Vec<TabledNode>,
    known: HashMap<TabledNode, TabledNodeId>,
    fixed_layouts: Vec<Layout>,
    known_fixed: HashMap<[u8; 32], usize>,
}

impl TabledBuilder {
    fn add(&mut self, offset: i64, node: TabledNode) -> TabledEdge {
        let nodes = &mut self.nodes;
        let id = *self.known.entry(node).or_insert_with_key(|node| {
            nodes.push(node.clone());
            TabledNodeId(nodes.len() as u32 - 1)
        });
        TabledEdge { offset, node: id }
    }

    /// A layout that has at least one byte.
    pub(super) fn fixed(&mut self, layout: &Layout) -> TabledEdge {
        let canonical = canonicalise(layout).layout;
        let fixed = self.known_fixed_layout(canonical.as_part());
        self.add(canonical.root().offset, TabledNode::Fixed { fixed })
    }

    /// The place of a layout among those that are fixed.
    fn known_fixed_layout(&mut self, part: Layout) -> usize {
        let fixed_layouts = &mut self.fixed_layouts;
        *self.known_fixed.entry(part.digest()).or_insert_with(|| {
            fixed_layouts.push(part);
            fixed_layouts.len() - 1
        })
    }

    pub(super) fn stream(&mut self, count: u64, stride: i64, child: TabledEdge) -> TabledEdge {
        if count == 1 {
            return child;
        }
        if let TabledNode::Stream { count: inner, stride: step, child: innermost } = self.nodes[child.node.index()]
            && i128::from(stride) == i128::from(inner) * i128::from(step)
        {
            let node = TabledNode::Stream { count: count * inner, stride: step, child: innermost };
            return self.add(child.offset, node);
        }
        self.add(child.offset, TabledNode::Stream { count, stride, child: TabledEdge { offset: 0, ..child } })
    }

    /// Copies at one offset or more.
    pub(super) fn indexed(&mut self, mut offsets: Vec<i64>, child: TabledEdge) -> TabledEdge {
        let first = offsets[0];
        let offset = first.wrapping_add(child.offset);
        if offsets.len() == 1 {
            return TabledEdge { offset, ..child };
        }
        offsets.iter_mut().for_each(|offset| *offset = offset.wrapping_sub(first));
        let child = TabledEdge { offset: 0, ..child };
        self.add(offset, TabledNode::Indexed { offsets: offsets.into(), child })
    }

    pub(super) fn table(&mut self, table: usize, places: u64, pitch: i64, child: TabledEdge) -> TabledEdge {
        let inner = TabledEdge { offset: 0, ..child };
        self.add(child.offset, TabledNode::Table { table, places, pitch, child: inner })
    }

    pub(super) fn addresses(&mut self, table: usize, child: TabledEdge) -> TabledEdge {
        let inner = TabledEdge { offset: 0, ..child };
        self.add(child.offset, TabledNode::Addresses { table, child: inner })
    }

    /// Differing children. Records among them become flat at the end ([`TabledBuilder::finish`]), so that a chain of them takes no more memory than its
    /// last one.
    pub(super) fn record(&mut self, parts: &[TabledEdge]) -> TabledEdge {
        if let [only] = parts {
            return *only;
        }
        let first = parts.first().map_or(0, |part| part.offset);
        let moved = |part: &TabledEdge| TabledEdge { offset: part.offset.wrapping_sub(first), ..*part };
        self.add(first, TabledNode::Record { parts: parts.iter().map(moved).collect() })
    }

    /// The children of a node in packed order, those of records in a record among them.
    fn flat_edges(&self, node: &TabledNode) -> Vec<TabledEdge> {
        let TabledNode::Record { parts } = node else { return node.edges().to_vec() };
        let mut flat = Vec::with_capacity(parts.len());
        let mut open = vec![(0i64, parts.iter())];
        while let Some((base, rest)) = open.last_mut() {
            let Some(part) = rest.next() else {
                open.pop();
                continue;
            };
            let offset = base.wrapping_add(part.offset);
            match &self.nodes[part.node.index()] {
                TabledNode::Record { parts } => open.push((offset, parts.iter())),
                _ => flat.push(TabledEdge { offset, ..*part }),
            }
        }
        flat
    }

    /// The nodes and fixed layouts that the root reaches, records in records flat, children before parents, each where a walk first needs it.
    pub(super) fn finish(self, root: TabledEdge) -> (Vec<TabledNode>, Vec<Layout>, TabledEdge) {
        let mut renamed: Vec<Option<TabledNodeId>> = vec![None; self.nodes.len()];
        let mut flat = TabledBuilder::default();
        let mut open = vec![(root.node, self.flat_edges(&self.nodes[root.node.index()]), 0)];
        while let Some((id, edges, next)) = open.last_mut() {
            if let Some(edge) = edges.get(*next) {
                let child = edge.node;
                *next += 1;
                if renamed[child.index()].is_none() {
                    open.push((child, self.flat_edges(&self.nodes[child.index()]), 0));
                }
                continue;
            }
            let rename =
                |edge: &TabledEdge| TabledEdge { node: renamed[edge.node.index()].unwrap_or(edge.node), ..*edge };
            let mut node = self.nodes[id.index()].clone();
            match &mut node {
                TabledNode::Fixed { fixed } => *fixed = flat.known_fixed_layout(self.fixed_layouts[*fixed].clone()),
                TabledNode::Stream { child, .. }
                | TabledNode::Indexed { child, .. }
                | TabledNode::Table { child, .. }
                | TabledNode::Addresses { child, .. } => *child = rename(child),
                TabledNode::Record { parts } => *parts = edges.iter().map(rename).collect(),
            }
            renamed[id.index()] = Some(flat.add(0, node).node);
            open.pop();
        }
        let root = TabledEdge { node: renamed[root.node.index()].unwrap_or(root.node), ..root };
        (flat.nodes, flat.fixed_layouts, root)
    }
}
