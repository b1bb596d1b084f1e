//! From datatypes with index tables to their layouts.

use super::normal::TabledBuilder;
use super::{TabledEdge, TabledLayout, TabledNode};
use crate::datatype::{AxisBlocks, Constructor, Datatype, TabledDatatype, axes_of_darray, axes_of_subarray};
use crate::layout::Layout;

impl TabledLayout {
    /// Lowers a datatype, and brings what results into its normal form.
    pub fn new(datatype: &TabledDatatype) -> TabledLayout {
        let (nodes, fixed_layouts, root) = lower(datatype.root());
        let facts = datatype.facts();
        let tables = datatype.tables().to_vec();
        TabledLayout { nodes, fixed_layouts, root, tables, true_lb: facts.true_lb, true_ub: facts.true_ub }
    }
}

/// A type as a child of others: its bytes, if it has any, and the distance from one copy to the next.
#[derive(Clone, Copy)]
struct TabledChild {
    edge: TabledEdge,
    extent: i64,
}

/// The nodes of a type, the layouts that no table moves, and the root.
fn lower(root: &Datatype) -> (Vec<TabledNode>, Vec<Layout>, TabledEdge) {
    let mut builder = TabledBuilder::default();
    let nodes = root.nodes();
    let mut lowered: Vec<Option<TabledChild>> = Vec::with_capacity(nodes.len());
    // Whether a node is a part of one with tables, or the root: others are lowered as a part of what is.
    let mut needed = vec![false; nodes.len()];
    needed[nodes.place(root)] = true;
    for node in nodes.iter().filter(|node| node.is_tabled()) {
        node.children().iter().for_each(|child| needed[nodes.place(child)] = true);
    }
    for (node, needed) in nodes.iter().zip(needed) {
        let edge = if node.facts().size == 0 || !(needed || node.is_tabled()) {
            None
        } else if node.is_tabled() {
            tabled(&mut builder, node, |child| lowered[nodes.place(child)])
        } else {
            Some(builder.fixed(&crate::lower(node)))
        };
        lowered.push(edge.map(|edge| TabledChild { edge, extent: node.facts().extent() }));
    }
    let root = match lowered.pop().flatten() {
        Some(root) => root.edge,
        None => builder.record(&[]),
    };
    builder.finish(root)
}

/// The displacement of a copy or block. The builder of datatypes has checked that those of all bytes fit 64 bits.
fn displaced(number: i64, unit: i64) -> i64 {
    number.wrapping_mul(unit)
}

fn tabled(
    builder: &mut TabledBuilder,
    node: &Datatype,
    lowered: impl Fn(&Datatype) -> Option<TabledChild>,
) -> Option<TabledEdge> {
    let only_child = || lowered(node.children().first()?);
    let constructor = node.constructor();
    if let Constructor::Struct { blocklengths, displacements_bytes } = constructor {
        return Some(structure(builder, node, (blocklengths, displacements_bytes), lowered));
    }
    let child = only_child()?;
    let TabledChild { edge, extent } = child;
    let mut strided = |count: i64, length: i64, stride: i64| {
        let block = block(builder, length, child, 0)?;
        Some(builder.stream(u64::try_from(count).ok()?, stride, block))
    };
    match constructor {
        Constructor::Named(_) | Constructor::Struct { .. } => None,
        Constructor::Dup | Constructor::Resized { .. } => Some(edge),
        Constructor::Contiguous { count } => strided(*count, 1, extent),
        Constructor::Vector { count, blocklength, stride } => strided(*count, *blocklength, displaced(*stride, extent)),
        Constructor::Hvector { count, blocklength, stride_bytes } => strided(*count, *blocklength, *stride_bytes),
        Constructor::Indexed { blocklengths, displacements } => {
            Some(listed(builder, blocklengths, displacements.iter().map(|&at| displaced(at, extent)), child))
        }
        Constructor::Hindexed { blocklengths, displacements_bytes } => {
            Some(listed(builder, blocklengths, displacements_bytes.iter().copied(), child))
        }
        Constructor::IndexedBlock { blocklength, displacements } => {
            let block = block(builder, *blocklength, child, 0)?;
            Some(builder.indexed(displacements.iter().map(|&at| displaced(at, extent)).collect(), block))
        }
        Constructor::HindexedBlock { blocklength, displacements_bytes } => {
            let block = block(builder, *blocklength, child, 0)?;
            Some(builder.indexed(displacements_bytes.to_vec(), block))
        }
        Constructor::Subarray { sizes, subsizes, starts, order } => {
            array(builder, &axes_of_subarray(sizes, subsizes, starts, *order), child)
        }
        Constructor::Darray { rank, gsizes, distributions, psizes, order, .. } => {
            array(builder, &axes_of_darray(*rank, gsizes, distributions, psizes, *order), child)
        }
        Constructor::Table { table, places, pitch_bytes, .. } => {
            let (table, places) = (*table as usize, *places as u64);
            Some(builder.table(table, places, *pitch_bytes, edge))
        }
        Constructor::Addresses { table, .. } => Some(builder.addresses(*table as usize, edge)),
    }
}

/// Blocks of differing children. Neighbours without tables are one layout.
fn structure(
    builder: &mut TabledBuilder,
    node: &Datatype,
    (blocklengths, displacements): (&[i64], &[i64]),
    lowered: impl Fn(&Datatype) -> Option<TabledChild>,
) -> TabledEdge {
    let children = node.children();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < children.len() {
        let plain = children[at..].iter().take_while(|child| !child.is_tabled()).count();
        if plain == 0 {
            let child = lowered(&children[at]);
            parts.extend(child.and_then(|child| block(builder, blocklengths[at], child, displacements[at])));
            at += 1;
            continue;
        }
        let together = at..at + plain;
        at = together.end;
        let constructor = Constructor::Struct {
            blocklengths: blocklengths[together.clone()].into(),
            displacements_bytes: displacements[together.clone()].into(),
        };
        // A part of a type that fits 64 bits fits, too.
        let made = Datatype::of(constructor, children[together].iter().cloned(), None);
        parts.extend(made.ok().filter(|made| made.facts().size > 0).map(|made| builder.fixed(&crate::lower(&made))));
    }
    builder.record(&parts)
}

/// Copies of a child an extent apart, at an offset.
fn block(builder: &mut TabledBuilder, length: i64, child: TabledChild, at: i64) -> Option<TabledEdge> {
    let length = u64::try_from(length).ok().filter(|&length| length > 0)?;
    let edge = builder.stream(length, child.extent, child.edge);
    Some(TabledEdge { offset: edge.offset.wrapping_add(at), ..edge })
}

/// Blocks of differing lengths.
fn listed(
    builder: &mut TabledBuilder,
    lengths: &[i64],
    offsets: impl Iterator<Item = i64>,
    child: TabledChild,
) -> TabledEdge {
    let blocks = lengths.iter().zip(offsets);
    let parts: Vec<TabledEdge> = blocks.filter_map(|(&length, at)| block(builder, length, child, at)).collect();
    builder.record(&parts)
}

/// The axes of an array around a child, fastest first.
fn array(builder: &mut TabledBuilder, axes: &[AxisBlocks], child: TabledChild) -> Option<TabledEdge> {
    let mut inner = child.edge;
    for axis in axes.iter().rev() {
        let step = i64::try_from(axis.step.checked_mul(child.extent.into())?).ok()?;
        let mut parts = Vec::new();
        let part = |builder: &mut TabledBuilder, count: i64, stride: i64, at: i64, of: TabledEdge| {
            let edge = builder.stream(count as u64, stride, of);
            TabledEdge { offset: edge.offset.wrapping_add(displaced(at, step)), ..edge }
        };
        if axis.blocks > 0 && axis.length > 0 {
            let block = part(builder, axis.length, step, 0, inner);
            parts.push(part(builder, axis.blocks, displaced(axis.stride, step), axis.first, block));
        }
        if axis.tail > 0 {
            parts.push(part(builder, axis.tail, step, axis.first + axis.blocks * axis.stride, inner));
        }
        inner = builder.record(&parts);
    }
    Some(inner)
}
