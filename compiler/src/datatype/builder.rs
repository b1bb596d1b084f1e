//! Building datatypes, bottom-up, with every argument checked.

use super::array::{AxisBlocks, axes_of_darray, axes_of_subarray, block_length};
use super::bounds::{Facts, Union};
use super::{Constructor, Datatype, DatatypeError, Distribution, GivenBounds, Order, Predefined, TypeNode};
use petgraph::graph::{DiGraph, NodeIndex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names a type of one [`TypeBuilder`], or a node of a [`Datatype`] that this builder finished.
///
/// An id carries the number of its builder, so no other builder takes it for a type of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId {
    pub(super) node: NodeIndex,
    pub(super) builder: BuilderId,
}

impl TypeId {
    /// A dense number, smaller than that of every parent.
    pub fn index(self) -> usize {
        self.node.index()
    }
}

/// Number of a builder. Each builder of the process has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BuilderId(u64);

impl BuilderId {
    fn next() -> BuilderId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Only uniqueness is needed, so no order is. 2^64 builders take centuries.
        BuilderId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Builds datatypes from the leaves up. A type that is used twice is shared.
///
/// The methods are MPI's constructors. They return an error that names the argument, what was expected and what was
/// found when a count is negative, lists differ in length, a size or bound does not fit 64 bits, or a [`TypeId`] is of
/// another builder.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let row = types.contiguous(5, double)?;
/// let face = types.vector(12, 1, 14, row)?;
/// let face = types.finish(face)?;
/// assert_eq!((face.facts().size, face.facts().extent()), (480, 6200));
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Debug)]
pub struct TypeBuilder {
    /// Shared with the datatypes that were finished; copied when a type is added while one of them lives.
    graph: Arc<DiGraph<TypeNode, ()>>,
    id: BuilderId,
}

impl Default for TypeBuilder {
    fn default() -> TypeBuilder {
        TypeBuilder { graph: Arc::default(), id: BuilderId::next() }
    }
}

type Built = Result<TypeId, DatatypeError>;

impl TypeBuilder {
    /// An empty builder.
    pub fn new() -> TypeBuilder {
        TypeBuilder::default()
    }

    /// What MPI defines for a type built so far.
    ///
    /// # Errors
    ///
    /// The id is of another builder.
    pub fn facts(&self, id: TypeId) -> Result<&Facts, DatatypeError> {
        self.known(id, || "facts.id".to_owned())
    }

    /// The datatype with that root. Types that it does not reach are ignored by every later stage. The builder remains, for
    /// more types.
    ///
    /// # Errors
    ///
    /// The id is of another builder.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let (mut types, mut others) = (TypeBuilder::new(), TypeBuilder::new());
    /// let double = types.named(Predefined::DOUBLE);
    /// let char = others.named(Predefined::CHAR);
    /// assert_eq!(types.finish(double)?.facts().size, 8);
    /// assert_eq!(types.finish(char).unwrap_err().found(), "an id of another one");
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn finish(&self, root: TypeId) -> Result<Datatype, DatatypeError> {
        self.known(root, || "finish.root".to_owned())?;
        Ok(self.rooted(root))
    }

    /// The datatype whose root is an id that this builder handed out.
    pub(super) fn rooted(&self, root: TypeId) -> Datatype {
        Datatype { graph: self.graph.clone(), root }
    }

    /// The facts of a type of this builder; an error that names the argument otherwise.
    fn known(&self, id: TypeId, argument: impl FnOnce() -> String) -> Result<&Facts, DatatypeError> {
        match self.graph.node_weight(id.node) {
            Some(node) if id.builder == self.id => Ok(&node.facts),
            _ => Err(DatatypeError::new(argument(), "an id of this builder", "an id of another one")),
        }
    }

    /// The facts of the only child of a constructor.
    fn child(&self, constructor: &Constructor, child: TypeId) -> Result<Facts, DatatypeError> {
        self.known(child, || format!("{}.child", constructor.name())).copied()
    }

    /// A predefined type.
    pub fn named(&mut self, predefined: Predefined) -> TypeId {
        self.insert(Constructor::Named(predefined), Facts::of_predefined(predefined), &[])
    }

    /// `MPI_Type_contiguous`.
    pub fn contiguous(&mut self, count: i64, child: TypeId) -> Built {
        let constructor = Constructor::Contiguous { count };
        check_count(&constructor, "count", count)?;
        let facts = blocks(&constructor, &self.child(&constructor, child)?, count, &[0], 1)?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_vector`; the stride is in extents of the child.
    pub fn vector(&mut self, count: i64, blocklength: i64, stride: i64, child: TypeId) -> Built {
        let constructor = Constructor::Vector { count, blocklength, stride };
        let facts = self.child(&constructor, child)?;
        let stride = i128::from(stride) * i128::from(facts.extent());
        let facts = strided(&constructor, &facts, count, blocklength, stride)?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_create_hvector`; the stride is in bytes.
    pub fn hvector(&mut self, count: i64, blocklength: i64, stride_bytes: i64, child: TypeId) -> Built {
        let constructor = Constructor::Hvector { count, blocklength, stride_bytes };
        let facts = self.child(&constructor, child)?;
        let facts = strided(&constructor, &facts, count, blocklength, stride_bytes.into())?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_indexed`; displacements are in extents of the child.
    pub fn indexed(&mut self, blocklengths: &[i64], displacements: &[i64], child: TypeId) -> Built {
        let constructor =
            Constructor::Indexed { blocklengths: blocklengths.to_vec(), displacements: displacements.to_vec() };
        check_lengths(&constructor, "displacements", displacements.len(), blocklengths.len())?;
        let facts = self.child(&constructor, child)?;
        let facts = listed(&constructor, &facts, blocklengths, displacements, facts.extent())?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_create_hindexed`; displacements are in bytes.
    pub fn hindexed(&mut self, blocklengths: &[i64], displacements_bytes: &[i64], child: TypeId) -> Built {
        let constructor = Constructor::Hindexed {
            blocklengths: blocklengths.to_vec(),
            displacements_bytes: displacements_bytes.to_vec(),
        };
        check_lengths(&constructor, "displacements_bytes", displacements_bytes.len(), blocklengths.len())?;
        let facts = self.child(&constructor, child)?;
        let facts = listed(&constructor, &facts, blocklengths, displacements_bytes, 1)?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_create_indexed_block`; displacements are in extents of the child.
    pub fn indexed_block(&mut self, blocklength: i64, displacements: &[i64], child: TypeId) -> Built {
        let constructor = Constructor::IndexedBlock { blocklength, displacements: displacements.to_vec() };
        check_count(&constructor, "blocklength", blocklength)?;
        let facts = self.child(&constructor, child)?;
        let facts = blocks(&constructor, &facts, blocklength, displacements, facts.extent())?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_create_hindexed_block`; displacements are in bytes.
    pub fn hindexed_block(&mut self, blocklength: i64, displacements_bytes: &[i64], child: TypeId) -> Built {
        let constructor = Constructor::HindexedBlock { blocklength, displacements_bytes: displacements_bytes.to_vec() };
        check_count(&constructor, "blocklength", blocklength)?;
        let facts = blocks(&constructor, &self.child(&constructor, child)?, blocklength, displacements_bytes, 1)?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_create_struct`.
    pub fn structure(&mut self, blocklengths: &[i64], displacements_bytes: &[i64], children: &[TypeId]) -> Built {
        let constructor = Constructor::Struct {
            blocklengths: blocklengths.to_vec(),
            displacements_bytes: displacements_bytes.to_vec(),
        };
        check_lengths(&constructor, "displacements_bytes", displacements_bytes.len(), blocklengths.len())?;
        check_lengths(&constructor, "children", children.len(), blocklengths.len())?;
        check_counts(&constructor, "blocklengths", blocklengths)?;
        let mut union = Union::new();
        let blocks = blocklengths.iter().zip(displacements_bytes).zip(children);
        for (index, ((&blocklength, &displacement), &child)) in blocks.enumerate() {
            let facts = self.known(child, || format!("struct.children[{index}]"))?;
            union.block(facts, blocklength, displacement.into());
            union.sign(facts, blocklength as u64);
        }
        let facts = union.finish().ok_or_else(|| overflow(&constructor))?;
        Ok(self.insert(constructor, facts, children))
    }

    /// `MPI_Type_create_subarray`.
    pub fn subarray(&mut self, sizes: &[i64], subsizes: &[i64], starts: &[i64], order: Order, child: TypeId) -> Built {
        let constructor = Constructor::Subarray {
            sizes: sizes.to_vec(),
            subsizes: subsizes.to_vec(),
            starts: starts.to_vec(),
            order,
        };
        check_lengths(&constructor, "subsizes", subsizes.len(), sizes.len())?;
        check_lengths(&constructor, "starts", starts.len(), sizes.len())?;
        for axis in 0..sizes.len() {
            let (size, subsize, start) = (sizes[axis], subsizes[axis], starts[axis]);
            check_range(&constructor, "sizes", axis, size, 0, i64::MAX)?;
            check_range(&constructor, "subsizes", axis, subsize, 0, size)?;
            check_range(&constructor, "starts", axis, start, 0, size - subsize)?;
        }
        let axes = axes_of_subarray(sizes, subsizes, starts, order);
        self.array(constructor, sizes, &axes, child)
    }

    /// `MPI_Type_create_darray`: what `rank` of `size` processes owns.
    #[expect(clippy::too_many_arguments, reason = "the arguments of the MPI constructor")]
    pub fn darray(
        &mut self,
        size: i64,
        rank: i64,
        gsizes: &[i64],
        distributions: &[Distribution],
        psizes: &[i64],
        order: Order,
        child: TypeId,
    ) -> Built {
        let constructor = Constructor::Darray {
            size,
            rank,
            gsizes: gsizes.to_vec(),
            distributions: distributions.to_vec(),
            psizes: psizes.to_vec(),
            order,
        };
        let place = |argument: &str| format!("darray.{argument}");
        check_lengths(&constructor, "distributions", distributions.len(), gsizes.len())?;
        check_lengths(&constructor, "psizes", psizes.len(), gsizes.len())?;
        if size < 1 {
            return Err(DatatypeError::new(place("size"), "at least 1 process", size));
        }
        if !(0..size).contains(&rank) {
            return Err(DatatypeError::new(place("rank"), format!("a rank below {size}"), rank));
        }
        let mut processes = 1i128;
        for axis in 0..gsizes.len() {
            check_range(&constructor, "gsizes", axis, gsizes[axis], 0, i64::MAX)?;
            check_range(&constructor, "psizes", axis, psizes[axis], 1, i64::MAX)?;
            processes = processes.saturating_mul(psizes[axis].into());
            let place = || format!("darray.distributions[{axis}]");
            match distributions[axis] {
                Distribution::None if psizes[axis] != 1 => {
                    let expected = format!("psizes[{axis}] = 1 on an axis that is not distributed");
                    return Err(DatatypeError::new(place(), expected, psizes[axis]));
                }
                Distribution::Block(Some(length)) | Distribution::Cyclic(Some(length)) if length < 1 => {
                    return Err(DatatypeError::new(place(), "a block length of at least 1", length));
                }
                Distribution::Block(Some(length))
                    if i128::from(length) * i128::from(psizes[axis]) < i128::from(gsizes[axis]) =>
                {
                    let expected =
                        format!("blocks that cover {} elements with {} processes", gsizes[axis], psizes[axis]);
                    return Err(DatatypeError::new(place(), expected, length));
                }
                distribution => debug_assert!(block_length(distribution, gsizes[axis], psizes[axis]) >= 1),
            }
        }
        if processes != i128::from(size) {
            let expected = format!("a grid of {size} processes");
            return Err(DatatypeError::new(place("psizes"), expected, processes));
        }
        let axes = axes_of_darray(rank, gsizes, distributions, psizes, order);
        self.array(constructor, gsizes, &axes, child)
    }

    fn array(&mut self, constructor: Constructor, sizes: &[i64], axes: &[AxisBlocks], child: TypeId) -> Built {
        let child_facts = self.child(&constructor, child)?;
        let extent = i128::from(child_facts.extent());
        let fail = || overflow(&constructor);
        let copies = product(axes.iter().map(AxisBlocks::selected)).ok_or_else(fail)?;
        let elements = product(sizes.iter().copied()).ok_or_else(fail)?;
        let (mut first, mut last) = (0, 0);
        if copies > 0 {
            let corner = |index: fn(&AxisBlocks) -> i64| {
                let index = axes
                    .iter()
                    .try_fold(0i128, |sum, axis| sum.checked_add(axis.step.checked_mul(index(axis).into())?));
                index.and_then(|index| narrow(index.checked_mul(extent)?)).ok_or_else(fail)
            };
            (first, last) = (corner(|axis| axis.first)?, corner(|axis| axis.last().unwrap_or(0))?);
        }
        let facts = spread(&constructor, &child_facts, copies, first.min(last), first.max(last))?;
        let whole = elements.checked_mul(extent).and_then(|bytes| i64::try_from(bytes).ok());
        let facts = whole.and_then(|extent| facts.with_bounds(GivenBounds { lb: 0, extent })).ok_or_else(fail)?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_create_resized`.
    pub fn resized(&mut self, lb: i64, extent: i64, child: TypeId) -> Built {
        let constructor = Constructor::Resized { lb, extent };
        let facts = self.child(&constructor, child)?.with_bounds(GivenBounds { lb, extent });
        let facts = facts.ok_or_else(|| overflow(&constructor))?;
        Ok(self.insert(constructor, facts, &[child]))
    }

    /// `MPI_Type_dup`.
    pub fn dup(&mut self, child: TypeId) -> Built {
        let facts = self.child(&Constructor::Dup, child)?;
        Ok(self.insert(Constructor::Dup, facts, &[child]))
    }

    /// Replaces the computed bounds of a type by those that the caller knows, for instance from its MPI. Must be called
    /// before the type is used as a child, since parents take their bounds from it.
    ///
    /// ```
    /// use dtc_compiler::datatype::{GivenBounds, Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let uneven = types.hvector(2, 1, 5, int)?;
    /// assert_eq!(types.facts(uneven)?.extent(), 12);
    /// types.give_bounds(uneven, GivenBounds { lb: 0, extent: 9 })?;
    /// assert_eq!(types.facts(uneven)?.extent(), 9);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn give_bounds(&mut self, id: TypeId, given: GivenBounds) -> Result<(), DatatypeError> {
        let facts = self.known(id, || "give_bounds.id".to_owned())?.with_bounds(given).ok_or_else(|| {
            let found = format!("lb {} and extent {}", given.lb, given.extent);
            DatatypeError::new("facts", "an upper bound that fits 64 bits", found)
        })?;
        let node = &mut Arc::make_mut(&mut self.graph)[id.node];
        (node.facts, node.given) = (facts, Some(given));
        Ok(())
    }

    pub(super) fn insert(&mut self, constructor: Constructor, facts: Facts, children: &[TypeId]) -> TypeId {
        let graph = Arc::make_mut(&mut self.graph);
        let node = graph.add_node(TypeNode { constructor, facts, given: None });
        for child in children {
            graph.add_edge(node, child.node, ());
        }
        TypeId { node, builder: self.id }
    }
}

/// The facts of `count` blocks of a child, a number of bytes apart.
fn strided(
    constructor: &Constructor,
    child: &Facts,
    count: i64,
    blocklength: i64,
    stride: i128,
) -> Result<Facts, DatatypeError> {
    check_count(constructor, "count", count)?;
    check_count(constructor, "blocklength", blocklength)?;
    let copies = i128::from(count) * i128::from(blocklength);
    // The corners of the nest bound it.
    let outer = if copies > 0 { (i128::from(count) - 1).checked_mul(stride).and_then(narrow) } else { Some(0) };
    let outer = outer.ok_or_else(|| overflow(constructor))?;
    let inner = (i128::from(blocklength) - 1) * i128::from(child.extent());
    spread(constructor, child, copies, outer.min(0) + inner.min(0), outer.max(0) + inner.max(0))
}

/// The facts of blocks of differing length, at displacements in units of `unit` bytes.
fn listed(
    constructor: &Constructor,
    child: &Facts,
    blocklengths: &[i64],
    displacements: &[i64],
    unit: i64,
) -> Result<Facts, DatatypeError> {
    check_counts(constructor, "blocklengths", blocklengths)?;
    let extent = i128::from(child.extent());
    let (mut copies, mut low, mut high) = (0i128, i128::MAX, i128::MIN);
    for (&blocklength, &displacement) in blocklengths.iter().zip(displacements) {
        if blocklength > 0 {
            let first = i128::from(displacement) * i128::from(unit);
            let last = first + i128::from(blocklength - 1) * extent;
            copies += i128::from(blocklength);
            (low, high) = (low.min(first.min(last)), high.max(first.max(last)));
        }
    }
    spread(constructor, child, copies, low, high)
}

/// The facts of blocks of one length, at displacements in units of `unit` bytes.
fn blocks(
    constructor: &Constructor,
    child: &Facts,
    blocklength: i64,
    displacements: &[i64],
    unit: i64,
) -> Result<Facts, DatatypeError> {
    let copies = displacements.len() as i128 * i128::from(blocklength);
    let bounds = |(low, high): (i64, i64), &next: &i64| (low.min(next), high.max(next));
    let (low, high) = displacements.iter().fold((i64::MAX, i64::MIN), bounds);
    let [low, high] = [low, high].map(|end| i128::from(end) * i128::from(unit));
    let block = (i128::from(blocklength) - 1) * i128::from(child.extent());
    spread(constructor, child, copies, low.min(high) + block.min(0), low.max(high) + block.max(0))
}

/// The facts of copies of a child whose origins reach from `low` to `high`; of none, if there are no copies.
fn spread(
    constructor: &Constructor,
    child: &Facts,
    copies: i128,
    low: i128,
    high: i128,
) -> Result<Facts, DatatypeError> {
    let mut union = Union::new();
    if copies > 0 {
        union.spread(child, copies, low, high);
        union.sign(child, u64::try_from(copies).map_err(|_| overflow(constructor))?);
    }
    union.finish().ok_or_else(|| overflow(constructor))
}

fn product(mut numbers: impl Iterator<Item = i64>) -> Option<i128> {
    numbers.try_fold(1i128, |product, number| product.checked_mul(number.into()))
}

/// A displacement that fits 64 bits, or nothing.
fn narrow(displacement: i128) -> Option<i128> {
    i64::try_from(displacement).ok().map(i128::from)
}

fn overflow(constructor: &Constructor) -> DatatypeError {
    DatatypeError::new(constructor.name(), "sizes, displacements and bounds that fit 64 bits", "an overflow")
}

fn check_count(constructor: &Constructor, argument: &str, count: i64) -> Result<(), DatatypeError> {
    if count < 0 {
        let place = format!("{}.{argument}", constructor.name());
        return Err(DatatypeError::new(place, "a count of at least 0", count));
    }
    Ok(())
}

fn check_counts(constructor: &Constructor, argument: &str, counts: &[i64]) -> Result<(), DatatypeError> {
    match counts.iter().position(|&count| count < 0) {
        Some(at) => check_count(constructor, &format!("{argument}[{at}]"), counts[at]),
        None => Ok(()),
    }
}

fn check_lengths(
    constructor: &Constructor,
    argument: &str,
    found: usize,
    expected: usize,
) -> Result<(), DatatypeError> {
    if found != expected {
        let place = format!("{}.{argument}", constructor.name());
        return Err(DatatypeError::new(place, format!("{expected} entries"), found));
    }
    Ok(())
}

fn check_range(
    constructor: &Constructor,
    argument: &str,
    axis: usize,
    found: i64,
    low: i64,
    high: i64,
) -> Result<(), DatatypeError> {
    if !(low..=high).contains(&found) {
        let place = format!("{}.{argument}[{axis}]", constructor.name());
        let expected = if high == i64::MAX { format!("at least {low}") } else { format!("{low} to {high}") };
        return Err(DatatypeError::new(place, expected, found));
    }
    Ok(())
}
