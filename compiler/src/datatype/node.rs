//! Datatypes as graphs of immutable nodes.

use super::facts::facts_of;
use super::{Constructor, DatatypeError, Facts, GivenBounds, Predefined};
use once_cell::race::OnceBox;
use smallvec::SmallVec;
use std::cmp::Ordering as Comparison;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An MPI datatype: a constructor with its arguments, applied to children. Immutable, counted, cheap to clone.
///
/// It is the root of a directed acyclic graph of such nodes. A clone is the same node.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Constructor, Datatype, Predefined};
/// let double = Datatype::named(Predefined::DOUBLE);
/// let row = Datatype::new(Constructor::Contiguous { count: 5 }, [double], None)?;
/// let pair = Constructor::Struct { blocklengths: [1, 1].into(), displacements_bytes: [0, 64].into() };
/// let pair = Datatype::new(pair, [row.clone(), row], None)?;
/// assert_eq!((pair.facts().size, pair.nodes().len()), (80, 3));
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Clone)]
pub struct Datatype(Reference);

/// A reference to a node. Every type leads to a few predefined ones: counting their uses would cost more than the rest of a node,
/// and in the same places for all threads.
#[derive(Clone)]
enum Reference {
    Predefined(&'static DatatypeNode),
    Counted(Arc<DatatypeNode>),
}

type Children = SmallVec<[Datatype; 1]>;

/// What a [`Datatype`] refers to.
struct DatatypeNode {
    /// Greater than those of its children, since they were made before. Predefined types come before all others.
    number: u64,
    constructor: Constructor,
    /// Whether the caller gave the bounds that the facts have.
    given: bool,
    facts: Facts,
    children: Children,
    /// Nodes of the tree below it and the entries of their lists. A shared node counts each time.
    entries: u64,
    /// Whether displacements come with the call, here or below.
    tabled: bool,
}

/// Nodes that were made, and the entries of their lists; and those that are gone. 2^64 take centuries.
static MADE: AtomicU64 = AtomicU64::new(Predefined::NUMBER as u64);
static GONE: AtomicU64 = AtomicU64::new(0);

impl Datatype {
    /// The type that a constructor makes of its children, with bounds that replace the computed ones if there are any.
    ///
    /// # Errors
    ///
    /// The arguments contradict each other, the number of children is not that of the constructor, or a size or bound does not fit 64
    /// bits. The constructor is one of index tables, which a [`TabledDatatype`](super::TabledDatatype) has.
    ///
    /// See [`Datatype`] for an example.
    pub fn new(
        constructor: Constructor,
        children: impl IntoIterator<Item = Datatype>,
        given: Option<GivenBounds>,
    ) -> Result<Datatype, DatatypeError> {
        Datatype::of(constructor, children, given)?.without_tables(|| "constructor".to_owned())
    }

    /// This type, if it has no index tables; an error that names the argument otherwise.
    pub(super) fn without_tables(self, argument: impl FnOnce() -> String) -> Result<Datatype, DatatypeError> {
        if self.is_tabled() {
            let expected = "a type without index tables, which a TabledDatatype may have";
            return Err(DatatypeError::new(argument(), expected, self.constructor().name()));
        }
        Ok(self)
    }

    /// Whether displacements come with the call, in this node or below. No type that leaves this module is so.
    pub(crate) fn is_tabled(&self) -> bool {
        self.node().tabled
    }

    /// The same as [`Datatype::new`] for any constructor.
    pub(crate) fn of(
        constructor: Constructor,
        children: impl IntoIterator<Item = Datatype>,
        given: Option<GivenBounds>,
    ) -> Result<Datatype, DatatypeError> {
        let children: Children = children.into_iter().collect();
        let mut facts = facts_of(&constructor, children.iter().map(Datatype::facts))?;
        if let Some(given) = given {
            facts = facts.with_bounds(given).ok_or_else(|| {
                let found = format!("lb {} and extent {}", given.lb, given.extent);
                DatatypeError::new("facts", "an upper bound that fits 64 bits", found)
            })?;
        }
        Ok(Datatype::of_facts(constructor, facts, children, given.is_some()))
    }

    /// A predefined type: the same node each time.
    pub fn named(predefined: Predefined) -> Datatype {
        static NODES: OnceBox<Box<[DatatypeNode]>> = OnceBox::new();
        let node = |(number, predefined): (u64, Predefined)| DatatypeNode {
            number,
            constructor: Constructor::Named(predefined),
            given: false,
            facts: Facts::of_predefined(predefined),
            children: Children::new(),
            entries: 1,
            tabled: false,
        };
        let nodes = NODES.get_or_init(|| Box::new((0..).zip(Predefined::all()).map(node).collect()));
        Datatype(Reference::Predefined(&nodes[predefined.index()]))
    }

    fn of_facts(constructor: Constructor, facts: Facts, children: Children, given: bool) -> Datatype {
        let own = 1 + constructor.entries() as u64;
        let entries = children.iter().fold(own, |sum, child| sum.saturating_add(child.node().entries));
        let number = MADE.fetch_add(own, Ordering::Relaxed);
        let tabled = constructor.is_table() || children.iter().any(Datatype::is_tabled);
        let node = DatatypeNode { number, constructor, given, facts, children, entries, tabled };
        Datatype(Reference::Counted(Arc::new(node)))
    }

    #[inline]
    fn node(&self) -> &DatatypeNode {
        match &self.0 {
            Reference::Predefined(node) => node,
            Reference::Counted(node) => node,
        }
    }

    /// The constructor with its arguments.
    pub fn constructor(&self) -> &Constructor {
        &self.node().constructor
    }

    /// What MPI defines for the type: size, all bounds and alignment.
    #[inline]
    pub fn facts(&self) -> &Facts {
        &self.node().facts
    }

    /// Bytes that the type packs to: `MPI_Type_size`.
    ///
    /// ```
    /// use dtc_compiler::datatype::Datatype;
    /// let record: Datatype = "resized -8 32 (struct [1@4 int, 1@8 double])".parse()?;
    /// assert_eq!(record.size(), 12);
    /// assert_eq!((record.lb(), record.extent()), (-8, 32));
    /// assert_eq!((record.true_lb(), record.true_extent()), (4, 12));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    #[inline]
    pub fn size(&self) -> u64 {
        self.facts().size
    }

    /// Lower bound in bytes: that of `MPI_Type_get_extent`. See [`Datatype::size`] for an example.
    #[inline]
    pub fn lb(&self) -> i64 {
        self.facts().lb
    }

    /// Distance from one element of an array to the next, in bytes: the extent of `MPI_Type_get_extent`. See [`Datatype::size`] for
    /// an example.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.facts().extent()
    }

    /// Lowest displacement of a byte, 0 for an empty type: the lower bound of `MPI_Type_get_true_extent`. See [`Datatype::size`] for
    /// an example.
    #[inline]
    pub fn true_lb(&self) -> i64 {
        self.facts().true_lb
    }

    /// Bytes from the first to one past the last byte of the type map: the extent of `MPI_Type_get_true_extent`. See
    /// [`Datatype::size`] for an example.
    #[inline]
    pub fn true_extent(&self) -> i64 {
        self.facts().true_extent()
    }

    /// Lower bound and extent as given by the caller, where they replace the computed ones.
    pub fn given(&self) -> Option<GivenBounds> {
        let facts = self.facts();
        self.node().given.then(|| GivenBounds { lb: facts.lb, extent: facts.extent() })
    }

    /// The children in the order of the arguments; a child used twice appears twice.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let float = types.named(Predefined::FLOAT);
    /// let pair = types.structure(&[1, 1, 1], &[0, 4, 8], &[int, float, int])?;
    /// let pair = types.finish(pair)?;
    /// assert!(pair.children()[0].is(&pair.children()[2]));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn children(&self) -> &[Datatype] {
        &self.node().children
    }

    /// Whether both are the same node. Equal descriptions may be different nodes.
    pub fn is(&self, other: &Datatype) -> bool {
        std::ptr::eq(self.node(), other.node())
    }

    /// The nodes that are reached from this one, each once: children before parents, predefined types in the order of their table, and
    /// then the others in the order in which they were made.
    ///
    /// ```
    /// use dtc_compiler::datatype::text;
    /// let pair = text::parse("let row = contiguous 5 int; struct [1@0 row, 1@64 row]")?;
    /// let nodes = pair.nodes();
    /// assert_eq!((nodes.len(), nodes.place(&pair)), (3, 2));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn nodes(&self) -> Nodes<'_> {
        let mut nodes: SmallVec<[&Datatype; 8]> = SmallVec::new();
        // Parents are newer than their children, so the newest that waits has no parent that was not visited.
        let mut waiting = BinaryHeap::new();
        let mut next = Some(self);
        while let Some(node) = next {
            nodes.push(node);
            next = match node.children() {
                [only] if waiting.is_empty() => Some(only),
                children => {
                    let mut others: SmallVec<[Newest; 4]> = children.iter().map(Newest).collect();
                    others.sort_unstable();
                    others.dedup();
                    waiting.extend(others);
                    waiting.pop().map(|newest| newest.0)
                }
            };
            // A node that several parents have waits several times.
            while next.is_some_and(|next| waiting.peek().is_some_and(|again| again.0.is(next))) {
                waiting.pop();
            }
        }
        nodes.reverse();
        Nodes(nodes)
    }

    /// How many entries the description writes down: nodes, and the entries of their lists.
    ///
    /// The canonical form of a layout is exact as long as its runs are few compared with this number.
    pub fn entries(&self) -> u64 {
        self.nodes().iter().map(|node| 1 + node.constructor().entries() as u64).sum()
    }

    /// At most how many entries the description writes down, known without a walk: exact for a tree.
    pub fn most_entries(&self) -> u64 {
        // No graph has more than exist.
        let gone = GONE.load(Ordering::Relaxed);
        self.node().entries.min(MADE.load(Ordering::Relaxed).saturating_sub(gone))
    }
}

impl fmt::Debug for Datatype {
    /// Prints the notation of [`text`](super::text), which does not recurse.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Datatype({self})")
    }
}

impl Drop for DatatypeNode {
    /// Takes chains apart in a loop: they may be longer than the stack.
    fn drop(&mut self) {
        GONE.fetch_add(1 + self.constructor.entries() as u64, Ordering::Relaxed);
        if self.children.iter().all(|child| matches!(child.0, Reference::Predefined(_))) {
            return;
        }
        let mut orphans = std::mem::take(&mut self.children);
        while let Some(orphan) = orphans.pop() {
            if let Reference::Counted(node) = orphan.0
                && let Some(mut orphan) = Arc::into_inner(node)
            {
                orphans.append(&mut orphan.children);
            }
        }
    }
}

/// The nodes of a graph, each once, children before parents; the root is the last.
#[derive(Clone, Debug)]
pub struct Nodes<'a>(SmallVec<[&'a Datatype; 8]>);

impl<'a> Nodes<'a> {
    /// Where a node of the graph stands.
    pub fn place(&self, node: &Datatype) -> usize {
        self.0.partition_point(|other| other.node().number < node.node().number)
    }
}

impl<'a> Deref for Nodes<'a> {
    type Target = [&'a Datatype];

    fn deref(&self) -> &[&'a Datatype] {
        &self.0
    }
}

/// Orders nodes by when they were made.
struct Newest<'a>(&'a Datatype);

impl Ord for Newest<'_> {
    fn cmp(&self, other: &Self) -> Comparison {
        self.0.node().number.cmp(&other.0.node().number)
    }
}

impl PartialOrd for Newest<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Comparison> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Newest<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(other.0)
    }
}

impl Eq for Newest<'_> {}
