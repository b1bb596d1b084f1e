//! Layouts as descriptions: whether two are written alike, which is known sooner than whether they are the same bytes.

use super::{Layout, Node};
use std::hash::{BuildHasher, Hash, Hasher};

/// Entries of a list, and nodes of a layout, that a sample has at most.
const SAMPLED: usize = 64;

impl Layout {
    /// A hash of some of the nodes and list entries. Layouts that are written alike have the same; it takes less than a
    /// microsecond, however long the lists are, so others may have it too.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use std::hash::RandomState;
    /// let text = "layout lb 0 extent 8 {\n  %0 = dense 1 x i32\n  %1 = indexed [4 0] of %0\n  root %1\n}";
    /// let (one, other, seed) = (Layout::parse(text)?, Layout::parse(text)?, RandomState::new());
    /// assert_eq!(one.sample(&seed), other.sample(&seed));
    /// assert!(one.is_written_like(&other));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn sample(&self, seed: &impl BuildHasher) -> u64 {
        let mut state = seed.build_hasher();
        (self.nodes.len(), self.root, self.lb, self.extent).hash(&mut state);
        for node in sampled(&self.nodes) {
            std::mem::discriminant(node).hash(&mut state);
            match node {
                Node::Dense { .. } | Node::Stream { .. } => node.hash(&mut state),
                Node::Indexed { offsets, child } => {
                    (offsets.len(), child).hash(&mut state);
                    sampled(offsets).for_each(|offset| offset.hash(&mut state));
                }
                Node::Runs { runs, kind } => {
                    (runs.len(), kind).hash(&mut state);
                    sampled(runs).for_each(|run| run.hash(&mut state));
                }
                Node::Record { parts } => {
                    parts.len().hash(&mut state);
                    sampled(parts).for_each(|part| part.hash(&mut state));
                }
            }
        }
        state.finish()
    }

    /// Whether two layouts have the same nodes, bounds and list entries.
    ///
    /// See [`Layout::sample`] for an example.
    pub fn is_written_like(&self, other: &Layout) -> bool {
        (self.root, self.lb, self.extent) == (other.root, other.lb, other.extent) && self.nodes == other.nodes
    }
}

/// Some entries of a list, evenly spread.
fn sampled<T>(list: &[T]) -> impl Iterator<Item = &T> {
    list.iter().step_by(list.len().div_ceil(SAMPLED).max(1))
}
