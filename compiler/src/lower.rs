//! Lowers datatypes to layouts: every constructor becomes its nodes, without optimisation, which is left to
//! [`crate::passes`].

use crate::datatype::{AxisBlocks, Constructor, Datatype, Predefined, axes_of_darray, axes_of_subarray};
use crate::layout::{Edge, Layout, LayoutBuilder, Node, Run};
use smallvec::SmallVec;
use std::sync::Arc;

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
    let mut lowering = Lowering::new();
    let nodes = datatype.nodes();
    let mut lowered: SmallVec<[Option<Child>; 8]> = SmallVec::with_capacity(nodes.len());
    let mut entries = 0;
    for node in nodes.iter() {
        let edge = lowering.node(node, |child| lowered[nodes.place(child)]);
        lowered.push(edge.map(|edge| Child { edge, extent: node.facts().extent() }));
        entries += 1 + node.constructor().entries() as u64;
    }
    let facts = datatype.facts();
    lowering.finish(lowered.pop().flatten(), facts.lb, facts.extent()).with_entries(entries)
}

/// Builds the layouts of types one by one, children first, for callers that keep the graph of types themselves.
///
/// `None` is a type without bytes. Sizes, displacements and bounds must fit 64 bits; a type that breaks this becomes
/// one without bytes.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::Predefined;
/// use dtc_compiler::lower::{Child, Lowering};
/// let mut lowering = Lowering::new();
/// let double = lowering.named(Predefined::DOUBLE).map(|edge| Child { edge, extent: 8 });
/// let vector = double.and_then(|double| lowering.strided(3, 2, 32, double)).map(|edge| Child { edge, extent: 80 });
/// assert_eq!(lowering.finish(vector, 0, 80).size(), 48);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lowering {
    layout: LayoutBuilder,
}

/// A type as an element of its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its bytes.
    pub edge: Edge,
    /// Bytes from one copy to the next.
    pub extent: i64,
}

impl Lowering {
    /// A lowering without types.
    pub fn new() -> Lowering {
        Lowering::default()
    }

    /// The layout of a type, with its bounds in bytes.
    pub fn finish(mut self, root: Option<Child>, lb: i64, extent: i64) -> Layout {
        let root = root.map_or_else(|| self.layout.empty(), |root| root.edge);
        self.layout.finish(root, lb, extent)
    }

    // The builder of datatypes has checked that every displacement and bound fits 64 bits, so a node that cannot be
    // interned is a type without bytes.

    fn intern(&mut self, node: Node) -> Option<Edge> {
        let node = self.layout.intern(node)?;
        Some(Edge { offset: 0, node })
    }

    fn stream(&mut self, count: i64, stride: i128, child: Edge) -> Option<Edge> {
        // The stride of a single copy is never used, so it may be anything.
        let stride = if count == 1 { 0 } else { i64::try_from(stride).ok()? };
        self.intern(Node::Stream { count: u64::try_from(count).ok()?, stride, child })
    }

    fn block(&mut self, length: i64, child: Child) -> Option<Edge> {
        self.stream(length, child.extent.into(), child.edge)
    }

    /// `count` blocks of `blocklength` copies, `stride` bytes apart.
    pub fn strided(&mut self, count: i64, blocklength: i64, stride: i128, child: Child) -> Option<Edge> {
        let block = self.block(blocklength, child)?;
        self.stream(count, stride, block)
    }

    fn record(&mut self, parts: &[Edge]) -> Option<Edge> {
        if parts.is_empty() { None } else { self.intern(Node::Record { parts: parts.into() }) }
    }

    /// Blocks of differing children: copies of each child at a displacement in bytes.
    pub fn structure(&mut self, blocks: impl Iterator<Item = (i64, i64, Option<Child>)>) -> Option<Edge> {
        let mut parts: SmallVec<[Edge; 8]> = SmallVec::new();
        for (blocklength, offset, child) in blocks {
            let block = child.filter(|_| blocklength > 0).and_then(|child| self.block(blocklength, child));
            parts.extend(block.map(|block| Edge { offset, ..block }));
        }
        self.record(&parts)
    }

    fn node(&mut self, node: &Datatype, lowered: impl Fn(&Datatype) -> Option<Child>) -> Option<Edge> {
        let only_child = || lowered(node.children().first()?);
        match node.constructor() {
            Constructor::Named(predefined) => self.named(*predefined),
            Constructor::Contiguous { count } => {
                let child = only_child()?;
                self.block(*count, child)
            }
            Constructor::Vector { count, blocklength, stride } => {
                let child = only_child()?;
                let stride = i128::from(*stride) * i128::from(child.extent);
                self.strided(*count, *blocklength, stride, child)
            }
            Constructor::Hvector { count, blocklength, stride_bytes } => {
                let child = only_child()?;
                self.strided(*count, *blocklength, i128::from(*stride_bytes), child)
            }
            Constructor::Indexed { blocklengths, displacements } => {
                let child = only_child()?;
                let displaced = displacements.iter().map(|displacement| displacement.wrapping_mul(child.extent));
                self.listed(blocklengths, displaced, child)
            }
            Constructor::Hindexed { blocklengths, displacements_bytes } => {
                let child = only_child()?;
                self.listed(blocklengths, displacements_bytes.iter().copied(), child)
            }
            Constructor::IndexedBlock { blocklength, displacements } => {
                let child = only_child()?;
                let displaced = displacements.iter().map(|displacement| displacement.wrapping_mul(child.extent));
                self.equal_blocks(*blocklength, displaced.collect(), child)
            }
            Constructor::HindexedBlock { blocklength, displacements_bytes } => {
                let child = only_child()?;
                // The layout has the list of the description, and no copy of it.
                self.equal_blocks(*blocklength, displacements_bytes.clone(), child)
            }
            Constructor::Struct { blocklengths, displacements_bytes } => {
                let children = node.children().iter().map(lowered);
                let blocks = blocklengths.iter().zip(displacements_bytes.iter()).zip(children);
                self.structure(blocks.map(|((&length, &displacement), child)| (length, displacement, child)))
            }
            Constructor::Subarray { sizes, subsizes, starts, order } => {
                let child = only_child()?;
                self.array(&axes_of_subarray(sizes, subsizes, starts, *order), child)
            }
            Constructor::Darray { rank, gsizes, distributions, psizes, order, .. } => {
                let child = only_child()?;
                self.array(&axes_of_darray(*rank, gsizes, distributions, psizes, *order), child)
            }
            Constructor::Resized { .. } | Constructor::Dup => Some(only_child()?.edge),
            // No type that is lowered here has them: see `tabled`.
            Constructor::Table { .. } | Constructor::Addresses { .. } => None,
        }
    }

    /// A predefined type.
    pub fn named(&mut self, predefined: Predefined) -> Option<Edge> {
        let mut fields: SmallVec<[Edge; 2]> = SmallVec::new();
        for field in predefined.fields() {
            let element = self.intern(Node::Dense { count: 1, kind: field.kind })?;
            fields.push(Edge { offset: field.offset, ..element });
        }
        match fields[..] {
            [only] => Some(only),
            _ => self.record(&fields),
        }
    }

    /// Blocks of one length at offsets in bytes, of which there is at least one.
    pub fn equal_blocks(&mut self, length: i64, offsets: Arc<[i64]>, child: Child) -> Option<Edge> {
        let child = self.block(length, child)?;
        self.intern(Node::Indexed { offsets, child })
    }

    /// Blocks of differing lengths at offsets in bytes: runs if the child is a single element without padding,
    /// otherwise a record.
    pub fn listed(&mut self, lengths: &[i64], offsets: impl Iterator<Item = i64>, child: Child) -> Option<Edge> {
        let blocks = lengths.iter().copied().zip(offsets);
        if let Node::Dense { count: 1, kind } = *self.layout.node(child.edge.node)
            && child.extent == kind.size() as i64
        {
            let base = child.edge.offset;
            let runs = blocks.map(|(length, offset)| Run { offset: offset.wrapping_add(base), count: length as u64 });
            // Blocks are rarely empty; without empty ones, the length is known and the list is allocated once.
            let runs = if lengths.contains(&0) { runs.filter(|run| run.count > 0).collect() } else { runs.collect() };
            return self.intern(Node::Runs { runs, kind });
        }
        self.structure(blocks.map(|(length, offset)| (length, offset, Some(child))))
    }

    /// The axes of an array around an element, fastest first.
    fn array(&mut self, axes: &[AxisBlocks], child: Child) -> Option<Edge> {
        let mut inner = child.edge;
        for axis in axes.iter().rev() {
            let step = axis.step.checked_mul(child.extent.into())?;
            let offset_of = |index: i64| step.checked_mul(index.into()).and_then(|bytes| i64::try_from(bytes).ok());
            let mut parts: SmallVec<[Edge; 2]> = SmallVec::new();
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
                _ => self.record(&parts)?,
            };
        }
        Some(inner)
    }
}
