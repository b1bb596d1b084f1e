//! The nodes of layouts.

use super::kind::Kind;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Id of a node in one layout. Children have smaller ids than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// Index of the node in the arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// Offset in bytes.
    pub offset: i64,
    /// The node at the offset.
    pub node: NodeId,
}

/// Consecutive elements at an offset. It has the representation of C, because microkernels read tables of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(C)]
pub struct Run {
    /// Offset in bytes.
    pub offset: i64,
    /// Number of elements, at least 1.
    pub count: u64,
}

/// One node of a layout. The [module](super) defines each kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// Consecutive elements.
    Dense {
        /// Number of elements, at least 1.
        count: u64,
        /// Kind of the elements.
        kind: Kind,
    },
    /// Copies at a constant stride.
    Stream {
        /// Number of copies, at least 1.
        count: u64,
        /// Bytes from one copy to the next.
        stride: i64,
        /// The copied node; not empty.
        child: Edge,
    },
    /// Copies at listed offsets.
    Indexed {
        /// Offset of each copy in bytes; at least one.
        offsets: Arc<[i64]>,
        /// The copied node; not empty.
        child: Edge,
    },
    /// Contiguous runs of differing length.
    Runs {
        /// The runs in packed order; at least one.
        runs: Arc<[Run]>,
        /// Kind of the elements.
        kind: Kind,
    },
    /// Differing children.
    Record {
        /// The children in packed order; none in the empty layout.
        parts: Arc<[Edge]>,
    },
}

impl Hash for Node {
    /// Hashes every entry of a list: hostile descriptions would differ only in entries left out.
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Node::Dense { count, kind } => (count, kind).hash(state),
            Node::Stream { count, stride, child } => (count, stride, child).hash(state),
            Node::Indexed { offsets, child } => {
                hash_list(offsets, |&offset| [offset as u64], state);
                child.hash(state);
            }
            Node::Runs { runs, kind } => {
                hash_list(runs, |run| [run.offset as u64, run.count], state);
                kind.hash(state);
            }
            Node::Record { parts } => hash_list(parts, |part| [part.offset as u64, part.node.0.into()], state),
        }
    }
}

/// Hashes the words of all entries in blocks of 512 bytes, which is several times as fast as single words.
fn hash_list<T, H: Hasher, const WORDS: usize>(list: &[T], words: impl Fn(&T) -> [u64; WORDS], state: &mut H) {
    const BLOCK: usize = 64;
    let mut block = [0u8; BLOCK * size_of::<u64>()];
    state.write_usize(list.len());
    for entries in list.chunks(BLOCK / WORDS) {
        let places = block.as_chunks_mut::<{ size_of::<u64>() }>().0;
        for (place, word) in places.iter_mut().zip(entries.iter().flat_map(&words)) {
            *place = word.to_ne_bytes();
        }
        state.write(&block[..entries.len() * WORDS * size_of::<u64>()]);
    }
}

impl Node {
    /// Number of list entries of the node.
    pub(crate) fn list_entries(&self) -> u64 {
        (match self {
            Node::Dense { .. } | Node::Stream { .. } => 0,
            Node::Indexed { offsets, .. } => offsets.len(),
            Node::Runs { runs, .. } => runs.len(),
            Node::Record { parts } => parts.len(),
        }) as u64
    }

    /// The edges to the children, in packed order.
    pub fn edges(&self) -> &[Edge] {
        match self {
            Node::Dense { .. } | Node::Runs { .. } => &[],
            Node::Stream { child, .. } | Node::Indexed { child, .. } => std::slice::from_ref(child),
            Node::Record { parts } => parts,
        }
    }
}
