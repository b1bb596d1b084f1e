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
        let (offset, part) = (canonical.root().offset, canonical.as_part());
        let fixed_layouts = &mut self.fixed_layouts;
        let fixed = *self.known_fixed.entry(part.digest()).or_insert_with(|| {
            fixed_layouts.push(part);
            fixed_layouts.len() - 1
        });
        self.add(offset, TabledNode::Fixed { fixed })
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

    pub(super) fn record(&mut self, parts: &[TabledEdge]) -> TabledEdge {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match &self.nodes[part.node.index()] {
                TabledNode::Record { parts } => flat.extend(
                    parts.iter().map(|inner| TabledEdge { offset: inner.offset.wrapping_add(part.offset), ..*inner }),
                ),
                _ => flat.push(*part),
            }
        }
        if let [only] = flat[..] {
            return only;
        }
        let first = flat.first().map_or(0, |part| part.offset);
        flat.iter_mut().for_each(|part| part.offset = part.offset.wrapping_sub(first));
        self.add(first, TabledNode::Record { parts: flat.into() })
    }

    /// The nodes and fixed layouts that the root reaches, children before parents, each where a walk first needs it.
    pub(super) fn finish(self, root: TabledEdge) -> (Vec<TabledNode>, Vec<Layout>, TabledEdge) {
        let mut renamed: Vec<Option<TabledNodeId>> = vec![None; self.nodes.len()];
        let mut fixed_names: Vec<Option<usize>> = vec![None; self.fixed_layouts.len()];
        let (mut nodes, mut fixed_layouts) = (Vec::new(), Vec::new());
        let mut open = vec![(root.node, 0)];
        while let Some((id, next)) = open.pop() {
            let node = &self.nodes[id.index()];
            if let Some(edge) = node.edges().get(next) {
                open.push((id, next + 1));
                if renamed[edge.node.index()].is_none() {
                    open.push((edge.node, 0));
                }
                continue;
            }
            if renamed[id.index()].is_some() {
                continue;
            }
            let rename =
                |edge: &TabledEdge| TabledEdge { node: renamed[edge.node.index()].unwrap_or(edge.node), ..*edge };
            let mut node = node.clone();
            match &mut node {
                TabledNode::Fixed { fixed } => {
                    *fixed = *fixed_names[*fixed].get_or_insert_with(|| {
                        fixed_layouts.push(self.fixed_layouts[*fixed].clone());
                        fixed_layouts.len() - 1
                    });
                }
                TabledNode::Stream { child, .. }
                | TabledNode::Indexed { child, .. }
                | TabledNode::Table { child, .. }
                | TabledNode::Addresses { child, .. } => *child = rename(child),
                TabledNode::Record { parts } => *parts = parts.iter().map(rename).collect(),
            }
            renamed[id.index()] = Some(TabledNodeId(nodes.len() as u32));
            nodes.push(node);
        }
        let root = TabledEdge { node: renamed[root.node.index()].unwrap_or(root.node), ..root };
        (nodes, fixed_layouts, root)
    }
}
