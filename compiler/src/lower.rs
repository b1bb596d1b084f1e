//! From datatypes to layouts: every constructor becomes the nodes that it says, and no more. Making them better is the
//! business of [`crate::passes`].

use crate::datatype::{AxisBlocks, Constructor, Datatype, Predefined, TypeId, axes_of_darray, axes_of_subarray};
use crate::layout::{Edge, Layout, LayoutBuilder, Node, Run};

/// The layout of a datatype, with its element kinds.
///
/// Time and memory are linear in the length of the description; shared types stay shared.
///
/// # Standard section
///
/// MPI 4.1, 5.1.2 to 5.1.4: the type maps of the constructors.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let vector = types.vector(3, 2, 4, double)?;
/// let layout = dtc_compiler::lower(&types.finish(vector)?);
/// let text = "layout lb 0 extent 80 {
///   %0 = dense 1 x f64
///   %1 = stream 2 x 8 of %0
///   %2 = stream 3 x 32 of %1
///   root %2
/// }";
/// assert_eq!(layout.to_string(), text);
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
pub fn lower(datatype: &Datatype) -> Layout {
    let mut lowering = Lowering { datatype, layout: LayoutBuilder::new(), lowered: Vec::new() };
    lowering.lowered.resize(datatype.root().index() + 1, None);
    for id in datatype.nodes() {
        lowering.lowered[id.index()] = lowering.node(id);
    }
    let facts = datatype.facts();
    let root = lowering.lowered[datatype.root().index()];
    let root = root.unwrap_or_else(|| lowering.layout.empty());
    lowering.layout.finish(root, facts.lb, facts.extent()).with_entries(datatype.entries())
}

/// What becomes of the nodes of a datatype. `None` is a type without bytes.
struct Lowering<'a> {
    datatype: &'a Datatype,
    layout: LayoutBuilder,
    lowered: Vec<Option<Edge>>,
}

/// A child as its parents see it: where its bytes are, and the distance from one copy to the next.
#[derive(Clone, Copy)]
struct Child {
    edge: Edge,
    extent: i64,
}

impl Lowering<'_> {
    fn child(&self, id: TypeId) -> Option<Child> {
        let edge = self.lowered[id.index()]?;
        Some(Child { edge, extent: self.datatype.own(id).facts.extent() })
    }

    fn only_child(&self, id: TypeId) -> Option<Child> {
        self.child(self.datatype.child(id)?)
    }

    // The builder of datatypes has checked that every displacement and bound fits 64 bits, so a node that cannot be
    // made is a type without bytes.

    fn intern(&mut self, node: Node) -> Option<Edge> {
        let node = self.layout.intern(node)?;
        Some(Edge { offset: 0, node })
    }

    fn stream(&mut self, count: i64, stride: i128, child: Edge) -> Option<Edge> {
        // A stride that is never taken may be anything.
        let stride = if count == 1 { 0 } else { i64::try_from(stride).ok()? };
        self.intern(Node::Stream { count: u64::try_from(count).ok()?, stride, child })
    }

    fn block(&mut self, length: i64, child: Child) -> Option<Edge> {
        self.stream(length, child.extent.into(), child.edge)
    }

    fn strided(&mut self, count: i64, blocklength: i64, stride: i128, child: Child) -> Option<Edge> {
        let block = self.block(blocklength, child)?;
        self.stream(count, stride, block)
    }

    fn record(&mut self, parts: Vec<Edge>) -> Option<Edge> {
        if parts.is_empty() { None } else { self.intern(Node::Record { parts: parts.into() }) }
    }

    fn node(&mut self, id: TypeId) -> Option<Edge> {
        let datatype = self.datatype;
        match &datatype.own(id).constructor {
            Constructor::Named(predefined) => self.named(*predefined),
            Constructor::Contiguous { count } => {
                let child = self.only_child(id)?;
                self.block(*count, child)
            }
            Constructor::Vector { count, blocklength, stride } => {
                let child = self.only_child(id)?;
                let stride = i128::from(*stride) * i128::from(child.extent);
                self.strided(*count, *blocklength, stride, child)
            }
            Constructor::Hvector { count, blocklength, stride_bytes } => {
                let child = self.only_child(id)?;
                self.strided(*count, *blocklength, i128::from(*stride_bytes), child)
            }
            Constructor::Indexed { blocklengths, displacements } => {
                let child = self.only_child(id)?;
                let displaced = displacements.iter().map(|displacement| displacement.wrapping_mul(child.extent));
                self.listed(blocklengths, displaced, child)
            }
            Constructor::Hindexed { blocklengths, displacements_bytes } => {
                let child = self.only_child(id)?;
                self.listed(blocklengths, displacements_bytes.iter().copied(), child)
            }
            Constructor::IndexedBlock { blocklength, displacements } => {
                let child = self.only_child(id)?;
                let displaced = displacements.iter().map(|displacement| displacement.wrapping_mul(child.extent));
                self.equal_blocks(*blocklength, displaced, child)
            }
            Constructor::HindexedBlock { blocklength, displacements_bytes } => {
                let child = self.only_child(id)?;
                self.equal_blocks(*blocklength, displacements_bytes.iter().copied(), child)
            }
            Constructor::Struct { blocklengths, displacements_bytes } => {
                let children = datatype.own_children(id);
                let blocks = blocklengths.iter().zip(displacements_bytes).zip(children);
                let parts = blocks.filter_map(|((&blocklength, &displacement), child)| {
                    let child = self.child(child)?;
                    let block = self.block(blocklength, child)?;
                    Some(Edge { offset: displacement, ..block })
                });
                let parts = parts.collect();
                self.record(parts)
            }
            Constructor::Subarray { sizes, subsizes, starts, order } => {
                let child = self.only_child(id)?;
                self.array(&axes_of_subarray(sizes, subsizes, starts, *order), child)
            }
            Constructor::Darray { rank, gsizes, distributions, psizes, order, .. } => {
                let child = self.only_child(id)?;
                self.array(&axes_of_darray(*rank, gsizes, distributions, psizes, *order), child)
            }
            Constructor::Resized { .. } | Constructor::Dup => Some(self.only_child(id)?.edge),
        }
    }

    fn named(&mut self, predefined: Predefined) -> Option<Edge> {
        let mut fields = Vec::new();
        for field in predefined.fields() {
            let element = self.intern(Node::Dense { count: 1, kind: field.kind })?;
            fields.push(Edge { offset: field.offset, ..element });
        }
        match fields[..] {
            [only] => Some(only),
            _ => self.record(fields),
        }
    }

    fn equal_blocks(&mut self, length: i64, offsets: impl Iterator<Item = i64>, child: Child) -> Option<Edge> {
        let child = self.block(length, child)?;
        self.intern(Node::Indexed { offsets: offsets.collect(), child })
    }

    /// Blocks of differing lengths: runs if the child is a single element without padding, else a record.
    fn listed(&mut self, lengths: &[i64], offsets: impl Iterator<Item = i64>, child: Child) -> Option<Edge> {
        let blocks = lengths.iter().copied().zip(offsets);
        if let Node::Dense { count: 1, kind } = *self.layout.node(child.edge.node)
            && child.extent == kind.size() as i64
        {
            let base = child.edge.offset;
            let runs = blocks.map(|(length, offset)| Run { offset: offset.wrapping_add(base), count: length as u64 });
            // Written once if no block is empty, as a rule.
            let runs = if lengths.contains(&0) { runs.filter(|run| run.count > 0).collect() } else { runs.collect() };
            return self.intern(Node::Runs { runs, kind });
        }
        let mut parts = Vec::new();
        for (length, offset) in blocks.filter(|&(length, _)| length > 0) {
            let block = self.block(length, child)?;
            parts.push(Edge { offset, ..block });
        }
        self.record(parts)
    }

    /// The axes of an array around an element, the fastest first.
    fn array(&mut self, axes: &[AxisBlocks], child: Child) -> Option<Edge> {
        let mut inner = child.edge;
        for axis in axes.iter().rev() {
            let step = axis.step.checked_mul(child.extent.into())?;
            let offset_of = |index: i64| step.checked_mul(index.into()).and_then(|bytes| i64::try_from(bytes).ok());
            let mut parts = Vec::new();
            if axis.blocks > 0 && axis.length > 0 {
                let block = self.stream(axis.length, step, inner)?;
                let stride = step.saturating_mul(axis.stride.into());
                let blocks = self.stream(axis.blocks, stride, block)?;
                parts.push(Edge { offset: offset_of(axis.first)?, ..blocks });
            }
            if axis.tail > 0 {
                let tail = self.stream(axis.tail, step, inner)?;
                let first = axis.first + axis.blocks * axis.stride;
                parts.push(Edge { offset: offset_of(first)?, ..tail });
            }
            inner = match parts[..] {
                [only] => only,
                _ => self.record(parts)?,
            };
        }
        Some(inner)
    }
}
