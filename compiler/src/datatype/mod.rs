//! Datatypes as MPI describes them: predefined types, constructors, bounds, signature, and their textual forms.
//!
//! A [`Datatype`] is a directed acyclic graph: a child that is used twice is one node. It is built bottom-up with a
//! [`TypeBuilder`], read from JSON with [`json::read`], or from the short notation of [`text`]. Every node carries the
//! [`Facts`] that MPI defines for it. All numbers have 64 bits; arithmetic that would leave them is an error.
//!
//! # Example
//!
//! ```
//! use dtc_compiler::datatype::{Predefined, TypeBuilder};
//!
//! let mut types = TypeBuilder::new();
//! let double = types.named(Predefined::DOUBLE);
//! let int = types.named(Predefined::INT);
//! let character = types.named(Predefined::CHAR);
//! let particle = types.structure(&[1, 2, 1], &[0, 8, 16], &[double, int, character])?;
//! let particle = types.finish(particle)?;
//! assert_eq!(particle.facts().size, 17);
//! assert_eq!(particle.facts().extent(), 24);
//! # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
//! ```

mod array;
mod bounds;
mod builder;
mod construct;
mod error;
pub mod json;
mod predefined;
mod signature;
mod suggest;
#[cfg(test)]
mod tests;
pub mod text;

pub use array::{AxisBlocks, axes_of_darray, axes_of_subarray};
pub use bounds::Facts;
pub use builder::{TypeBuilder, TypeId};
pub use error::DatatypeError;
pub use predefined::{Field, Predefined};
pub use signature::Signature;

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use std::sync::Arc;

/// The constructor of one node: its MPI combiner with its arguments. Children are the edges of the graph.
///
/// Counts, block lengths and displacements without a unit in their name are in elements of the child, as in MPI.
///
/// # Standard sections
///
/// MPI 4.1, 5.1.2 (constructors), 5.1.3 (subarray), 5.1.4 (darray), 5.1.7 (resized), 5.1.10 (dup).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constructor {
    /// A predefined type; no children.
    Named(Predefined),
    /// `count` copies, one extent apart.
    Contiguous {
        /// Number of copies.
        count: i64,
    },
    /// `count` blocks of `blocklength` copies, the blocks `stride` extents apart.
    Vector {
        /// Number of blocks.
        count: i64,
        /// Copies in each block.
        blocklength: i64,
        /// From block to block, in extents of the child.
        stride: i64,
    },
    /// Like [`Constructor::Vector`] with the stride in bytes.
    Hvector {
        /// Number of blocks.
        count: i64,
        /// Copies in each block.
        blocklength: i64,
        /// From block to block, in bytes.
        stride_bytes: i64,
    },
    /// Blocks of differing length at displacements counted in extents of the child.
    Indexed {
        /// Copies in each block.
        blocklengths: Vec<i64>,
        /// Of each block, in extents of the child.
        displacements: Vec<i64>,
    },
    /// Blocks of differing length at displacements in bytes.
    Hindexed {
        /// Copies in each block.
        blocklengths: Vec<i64>,
        /// Of each block, in bytes.
        displacements_bytes: Vec<i64>,
    },
    /// Blocks of one length at displacements counted in extents of the child.
    IndexedBlock {
        /// Copies in every block.
        blocklength: i64,
        /// Of each block, in extents of the child.
        displacements: Vec<i64>,
    },
    /// Blocks of one length at displacements in bytes.
    HindexedBlock {
        /// Copies in every block.
        blocklength: i64,
        /// Of each block, in bytes.
        displacements_bytes: Vec<i64>,
    },
    /// Block `i` is `blocklengths[i]` copies of child `i` at `displacements_bytes[i]`.
    Struct {
        /// Copies of each child.
        blocklengths: Vec<i64>,
        /// Of each child, in bytes.
        displacements_bytes: Vec<i64>,
    },
    /// A box inside an array.
    Subarray {
        /// Elements of the whole array along each axis.
        sizes: Vec<i64>,
        /// Elements of the box along each axis.
        subsizes: Vec<i64>,
        /// First element of the box along each axis.
        starts: Vec<i64>,
        /// Which axis is contiguous.
        order: Order,
    },
    /// The part of a distributed array that one rank of a process grid owns.
    Darray {
        /// Number of processes.
        size: i64,
        /// The process whose part this is.
        rank: i64,
        /// Elements of the global array along each axis.
        gsizes: Vec<i64>,
        /// How each axis is distributed.
        distributions: Vec<Distribution>,
        /// Processes along each axis.
        psizes: Vec<i64>,
        /// Which axis is contiguous.
        order: Order,
    },
    /// The child with other bounds.
    Resized {
        /// New lower bound in bytes.
        lb: i64,
        /// New extent in bytes.
        extent: i64,
    },
    /// The child itself.
    Dup,
}

impl Constructor {
    /// The name of the kind in JSON descriptions.
    ///
    /// ```
    /// use dtc_compiler::datatype::Constructor;
    /// assert_eq!(Constructor::Contiguous { count: 3 }.name(), "contiguous");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Constructor::Named(_) => "named",
            Constructor::Contiguous { .. } => "contiguous",
            Constructor::Vector { .. } => "vector",
            Constructor::Hvector { .. } => "hvector",
            Constructor::Indexed { .. } => "indexed",
            Constructor::Hindexed { .. } => "hindexed",
            Constructor::IndexedBlock { .. } => "indexed_block",
            Constructor::HindexedBlock { .. } => "hindexed_block",
            Constructor::Struct { .. } => "struct",
            Constructor::Subarray { .. } => "subarray",
            Constructor::Darray { .. } => "darray",
            Constructor::Resized { .. } => "resized",
            Constructor::Dup => "dup",
        }
    }

    /// How many numbers of list arguments the constructor writes down: the length of its description.
    pub(crate) fn entries(&self) -> u64 {
        (match self {
            Constructor::Indexed { blocklengths, .. } | Constructor::Hindexed { blocklengths, .. } => {
                blocklengths.len()
            }
            Constructor::IndexedBlock { displacements, .. } => displacements.len(),
            Constructor::HindexedBlock { displacements_bytes, .. } => displacements_bytes.len(),
            Constructor::Struct { blocklengths, .. } => blocklengths.len(),
            Constructor::Subarray { sizes, .. } => sizes.len(),
            Constructor::Darray { gsizes, .. } => gsizes.len(),
            _ => 0,
        }) as u64
    }
}

/// Which axis of an array is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last axis is contiguous (`MPI_ORDER_C`).
    C,
    /// The first axis is contiguous (`MPI_ORDER_FORTRAN`).
    Fortran,
}

/// How one axis of a distributed array is dealt to the processes along it.
///
/// # Standard section
///
/// MPI 4.1, 5.1.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// One block for each process; `None` is `MPI_DISTRIBUTE_DFLT_DARG`: the smallest block that covers the axis.
    Block(Option<i64>),
    /// Blocks dealt in turn; `None` is the default block length 1.
    Cyclic(Option<i64>),
    /// Not distributed.
    None,
}

/// One node of a [`Datatype`].
#[derive(Clone, Debug)]
pub struct TypeNode {
    /// The constructor with its arguments.
    pub constructor: Constructor,
    /// What MPI defines for the type.
    pub facts: Facts,
    /// Lower bound and extent as given by the caller, when they replace the computed ones.
    pub given: Option<GivenBounds>,
}

/// Bounds that a caller supplies as facts, because MPIs disagree on how bounds follow from children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GivenBounds {
    /// Lower bound in bytes.
    pub lb: i64,
    /// Extent in bytes.
    pub extent: i64,
}

/// An MPI datatype: a DAG of constructors with one root. Immutable, and cheap to clone.
#[derive(Clone, Debug)]
pub struct Datatype {
    graph: Arc<DiGraph<TypeNode, ()>>,
    root: TypeId,
}

impl Datatype {
    /// What MPI defines for the whole type.
    pub fn facts(&self) -> &Facts {
        &self.own(self.root).facts
    }

    /// The root of the graph.
    pub fn root(&self) -> TypeId {
        self.root
    }

    /// The node behind an id of this datatype.
    ///
    /// # Errors
    ///
    /// The id is of another datatype.
    pub fn node(&self, id: TypeId) -> Result<&TypeNode, DatatypeError> {
        match self.graph.node_weight(id.node) {
            Some(node) if id.builder == self.root.builder => Ok(node),
            _ => Err(DatatypeError::new("id", "an id of this datatype", "an id of another one")),
        }
    }

    /// The node behind an id that this datatype handed out.
    pub(crate) fn own(&self, id: TypeId) -> &TypeNode {
        &self.graph[id.node]
    }

    /// The children of a node in the order of its arguments; a child used twice appears twice.
    ///
    /// # Errors
    ///
    /// The id is of another datatype.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let float = types.named(Predefined::FLOAT);
    /// let pair = types.structure(&[1, 1, 1], &[0, 4, 8], &[int, float, int])?;
    /// let pair = types.finish(pair)?;
    /// assert_eq!(pair.children(pair.root())?, [int, float, int]);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn children(&self, id: TypeId) -> Result<Vec<TypeId>, DatatypeError> {
        self.node(id)?;
        Ok(self.own_children(id))
    }

    /// The children of a node that this datatype handed out, in the order of its arguments.
    pub(crate) fn own_children(&self, id: TypeId) -> Vec<TypeId> {
        // petgraph lists edges newest first.
        let mut children: Vec<TypeId> = self.newest_first(id).collect();
        children.reverse();
        children
    }

    fn newest_first(&self, id: TypeId) -> impl Iterator<Item = TypeId> {
        let builder = id.builder;
        self.graph.neighbors_directed(id.node, Direction::Outgoing).map(move |node| TypeId { node, builder })
    }

    /// The only child of a constructor that has one.
    pub(crate) fn child(&self, id: TypeId) -> Option<TypeId> {
        self.newest_first(id).next()
    }

    /// The nodes reachable from the root, each once, children before parents.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let unused = types.contiguous(7, int)?;
    /// let pair = types.contiguous(2, int)?;
    /// let pair = types.finish(pair)?;
    /// assert_eq!(pair.nodes().len(), 2);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn nodes(&self) -> Vec<TypeId> {
        // A child always has the smaller index, so one sweep down marks everything that is reachable.
        let mut reached = vec![false; self.root.index() + 1];
        reached[self.root.index()] = true;
        let mut nodes = Vec::new();
        for index in (0..=self.root.index()).rev() {
            if reached[index] {
                let id = TypeId { node: NodeIndex::new(index), ..self.root };
                nodes.push(id);
                for child in self.newest_first(id) {
                    reached[child.index()] = true;
                }
            }
        }
        nodes.reverse();
        nodes
    }

    /// The nodes that are used more than once, children before parents, without predefined types: what a written form
    /// has to give a name. The root is never among them.
    pub(crate) fn shared(&self) -> Vec<TypeId> {
        let nodes = self.nodes();
        let mut uses = vec![0u8; self.root.index() + 1];
        for &id in &nodes {
            for child in self.newest_first(id) {
                uses[child.index()] = uses[child.index()].saturating_add(1);
            }
        }
        let named = |id: &TypeId| matches!(self.own(*id).constructor, Constructor::Named(_));
        nodes.into_iter().filter(|id| uses[id.index()] > 1 && !named(id)).collect()
    }

    /// How many entries the description writes down: nodes, and the entries of their lists.
    ///
    /// The canonical form of a layout is exact as long as its runs are few compared with this number.
    pub fn entries(&self) -> u64 {
        self.nodes().into_iter().map(|id| 1 + self.own(id).constructor.entries()).sum()
    }
}
