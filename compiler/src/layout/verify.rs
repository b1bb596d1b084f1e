//! Checks the invariants of the arena of a layout.

use super::{Edge, Layout, Measure, Node, NodeId};
use std::collections::HashMap;
use std::fmt;

/// The rule that a layout breaks, and the node that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    node: Option<NodeId>,
    rule: &'static str,
}

impl VerifyError {
    /// The node; `None` if the root edge breaks the rule.
    pub fn node(&self) -> Option<NodeId> {
        self.node
    }

    /// The rule.
    pub fn rule(&self) -> &'static str {
        self.rule
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "%{}: expected {}", node.index(), self.rule),
            None => write!(f, "root: expected {}", self.rule),
        }
    }
}

impl std::error::Error for VerifyError {}

impl Layout {
    /// Checks that children come before parents, that equal nodes are one node, that counts, lists and children are not
    /// empty, that every number fits 64 bits, and that the measures are correct.
    ///
    /// # Errors
    ///
    /// The first broken rule.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let layout = Layout::parse("layout lb 0 extent 1 {\n  %0 = dense 1 x byte\n  root %0\n}")?;
    /// assert!(layout.verify().is_ok());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn verify(&self) -> Result<(), VerifyError> {
        let mut seen: HashMap<&Node, NodeId> = HashMap::with_capacity(self.nodes.len());
        for (id, node) in self.nodes() {
            let fail = |rule| Err(VerifyError { node: Some(id), rule });
            if node.edges().iter().any(|edge| edge.node >= id) {
                return fail("children with smaller numbers");
            }
            let child_size = |edge: &Edge| self.measure(edge.node).size;
            let inner = matches!(node, Node::Stream { .. } | Node::Indexed { .. });
            if inner && node.edges().iter().any(|edge| child_size(edge) == 0) {
                return fail("a child that is not empty");
            }
            match Measure::of(node, |edge| *self.measure(edge.node)) {
                None => return fail("counts of at least 1, and sizes and offsets that fit 64 bits"),
                Some(measure) if measure != *self.measure(id) => return fail("the measure of its contents"),
                Some(_) => {}
            }
            if seen.insert(node, id).is_some() {
                return fail("a node that exists only once");
            }
        }
        let root = |rule| Err(VerifyError { node: None, rule });
        let Some(measure) = self.measures.get(self.root.node.index()) else {
            return root("a node of this layout");
        };
        let bounds = [measure.low, measure.high].map(|bound| bound.checked_add(self.root.offset));
        if bounds.contains(&None) || self.lb.checked_add(self.extent).is_none() {
            return root("bounds that fit 64 bits");
        }
        Ok(())
    }
}
