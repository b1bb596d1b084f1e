//! The graph of a caller's types, as their handles hold it.
//!
//! MPI builds types from the leaves up and frees them in any order, so each handle holds its node, and a node its
//! children. Committing writes the graph into one [`Datatype`], where each node is once.

use crate::status::{DTC_ERROR_INTERNAL, Failure, Outcome};
use dtc_compiler::datatype::{
    Constructor, Datatype, DatatypeError, Facts, GivenBounds, Predefined, TypeBuilder, TypeId,
};
use dtc_compiler::operation::Element;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One type: its constructor, and what MPI defines for it.
pub(crate) struct Node {
    constructor: Constructor,
    given: Option<GivenBounds>,
    pub(crate) facts: Facts,
    children: Vec<Arc<Node>>,
    /// The element that operations see in a basic type.
    element: Option<Element>,
    /// Nodes of the tree below it, and the entries of their lists. What is shared counts each time.
    entries: u64,
}

/// Nodes that exist, and the entries of their lists: no graph has more.
static EXISTING: AtomicU64 = AtomicU64::new(0);

/// The length of the numbers of a constructor.
fn own_entries(constructor: &Constructor) -> u64 {
    let entries = match constructor {
        Constructor::Indexed { displacements, .. } | Constructor::IndexedBlock { displacements, .. } => {
            displacements.len()
        }
        Constructor::Hindexed { displacements_bytes, .. }
        | Constructor::HindexedBlock { displacements_bytes, .. }
        | Constructor::Struct { displacements_bytes, .. } => displacements_bytes.len(),
        Constructor::Subarray { sizes, .. } => sizes.len(),
        Constructor::Darray { gsizes, .. } => gsizes.len(),
        _ => 0,
    };
    1 + entries as u64
}

impl Node {
    pub(crate) fn new(
        constructor: Constructor,
        children: Vec<Arc<Node>>,
        given: Option<GivenBounds>,
    ) -> Result<Arc<Node>, DatatypeError> {
        let facts: Vec<Facts> = children.iter().map(|child| child.facts).collect();
        let facts = Facts::of(&constructor, &facts, given)?;
        let element = if let Constructor::Named(predefined) = constructor { Element::of(predefined) } else { None };
        Ok(Arc::new(Node::counted(constructor, given, facts, children, element)))
    }

    fn counted(
        constructor: Constructor,
        given: Option<GivenBounds>,
        facts: Facts,
        children: Vec<Arc<Node>>,
        element: Option<Element>,
    ) -> Node {
        let own = own_entries(&constructor);
        let entries = children.iter().fold(own, |sum, child| sum.saturating_add(child.entries));
        EXISTING.fetch_add(own, Ordering::Relaxed);
        Node { constructor, given, facts, children, element, entries }
    }

    /// At most how many nodes and entries the graph has: exact for a tree.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.min(EXISTING.load(Ordering::Relaxed))
    }

    /// A bfloat16. MPI has no predefined type for it, so types carry it as an unsigned integer.
    pub(crate) fn bfloat() -> Result<Arc<Node>, DatatypeError> {
        let constructor = Constructor::Named(Predefined::UINT16_T);
        let facts = Facts::of(&constructor, &[], None)?;
        let element = Some(Element::Bf16);
        Ok(Arc::new(Node::counted(constructor, None, facts, Vec::new(), element)))
    }

    /// The graph of a datatype.
    pub(crate) fn of(datatype: &Datatype) -> Outcome<Arc<Node>> {
        let mut made: HashMap<TypeId, Arc<Node>> = HashMap::new();
        for id in datatype.nodes() {
            let node = datatype.node(id)?;
            let children: Option<_> = datatype.children(id)?.iter().map(|child| made.get(child).cloned()).collect();
            let children = children.ok_or_else(disordered)?;
            made.insert(id, Node::new(node.constructor.clone(), children, node.given)?);
        }
        made.remove(&datatype.root()).ok_or_else(disordered)
    }

    /// The element that operations see in a basic type, or in one that is the same with other bounds.
    pub(crate) fn element(&self) -> Option<Element> {
        let mut node = self;
        while let (Constructor::Dup | Constructor::Resized { .. }, [child]) = (&node.constructor, &node.children[..]) {
            node = child;
        }
        node.element
    }

    /// The graph below a node as the compiler takes it.
    pub(crate) fn datatype(self: &Arc<Node>) -> Outcome<Datatype> {
        let mut types = TypeBuilder::new();
        let mut made: HashMap<*const Node, TypeId> = HashMap::new();
        // A node is on the stack until its children are made, however deep they lie.
        let mut stack: Vec<&Arc<Node>> = vec![self];
        while let Some(&node) = stack.last() {
            let waiting = stack.len();
            stack.extend(node.children.iter().filter(|child| !made.contains_key(&Arc::as_ptr(child))));
            if stack.len() > waiting {
                continue;
            }
            stack.pop();
            if made.contains_key(&Arc::as_ptr(node)) {
                continue;
            }
            let children: Option<Vec<TypeId>> =
                node.children.iter().map(|child| made.get(&Arc::as_ptr(child)).copied()).collect();
            let id = types.construct(&node.constructor, &children.ok_or_else(disordered)?)?;
            if let Some(given) = node.given {
                types.give_bounds(id, given)?;
            }
            made.insert(Arc::as_ptr(node), id);
        }
        let root = made.get(&Arc::as_ptr(self)).copied().ok_or_else(disordered)?;
        Ok(types.finish(root)?)
    }
}

impl Drop for Node {
    /// Without recursion: chains of types may be long.
    fn drop(&mut self) {
        EXISTING.fetch_sub(own_entries(&self.constructor), Ordering::Relaxed);
        let mut orphans = std::mem::take(&mut self.children);
        while let Some(orphan) = orphans.pop() {
            if let Some(mut orphan) = Arc::into_inner(orphan) {
                orphans.append(&mut orphan.children);
            }
        }
    }
}

/// Both graphs list children before their parents.
fn disordered() -> Failure {
    Failure::new(DTC_ERROR_INTERNAL, "graph of types: expected children before their parents, found a parent")
}
