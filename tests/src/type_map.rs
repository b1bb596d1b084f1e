//! The oracle: type maps enumerated by MPI's definitions.
//!
//! It reads a [`Datatype`] only through its constructors and children, and uses neither the facts nor the axis
//! arithmetic that the compiler derives. It is slow and simple on purpose: it visits every copy of every child, and
//! enumerates arrays index by index. It recurses once per level of the type.

use dtc_compiler::datatype::{Constructor, Datatype, Distribution, GivenBounds, Nodes, Order, Predefined};
use dtc_compiler::layout::Kind;

/// One entry of a type map: a basic element and its displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Displacement of its first byte.
    pub displacement: i64,
    /// Kind of the element.
    pub kind: Kind,
    /// The predefined type that contains it.
    pub predefined: Predefined,
}

/// A contiguous run of bytes in packed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Displacement of its first byte.
    pub displacement: i64,
    /// Number of bytes, at least 1.
    pub length: u64,
}

/// Sizes and bounds that MPI derives from a type. A type without bytes and without bounds of its own has alignment 1
/// and zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all entries.
    pub size: u64,
    /// Lower bound.
    pub lb: i64,
    /// Upper bound.
    pub ub: i64,
    /// Lowest displacement of a byte.
    pub true_lb: i64,
    /// One past the highest displacement of a byte.
    pub true_ub: i64,
    /// Strictest alignment of an entry.
    pub alignment: u64,
}

impl Bounds {
    /// Bytes from one element of an array to the next.
    pub fn extent(&self) -> i64 {
        self.ub - self.lb
    }
}

/// The type map of a datatype.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_tests::type_map::TypeMap;
/// let mut types = TypeBuilder::new();
/// let short = types.named(Predefined::SHORT);
/// let pick = types.indexed_block(1, &[4, 0], short)?;
/// let pick = types.finish(pick)?;
/// assert_eq!(TypeMap::new(&pick).bytes(), [8, 9, 0, 1]);
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
pub struct TypeMap<'a> {
    datatype: &'a Datatype,
    nodes: Nodes<'a>,
    /// Bounds of each node, by its index.
    bounds: Vec<Bounds>,
}

/// Summary of the entries, the parts and the markers of a type. Each span is empty at first.
#[derive(Clone, Copy, Debug)]
struct Summary {
    size: u64,
    alignment: u64,
    elements: Option<(i64, i64)>,
    /// From the lowest lower bound to the highest upper bound of the parts.
    parts: Option<(i64, i64)>,
    /// The same span of only those parts whose bounds a marker has set.
    markers: Option<(i64, i64)>,
}

impl Summary {
    const EMPTY: Summary = Summary { size: 0, alignment: 1, elements: None, parts: None, markers: None };

    /// Adds a copy of a child at a displacement.
    fn add(&mut self, child: &Summary, displacement: i64) {
        self.size += child.size;
        self.alignment = self.alignment.max(child.alignment);
        let Bounds { lb, ub, .. } = child.bounds();
        widen(&mut self.elements, child.elements, displacement);
        widen(&mut self.parts, Some((lb, ub)), displacement);
        widen(&mut self.markers, child.markers, displacement);
    }

    /// Markers determine the bounds, if there are any (MPI 4.1, 5.1.7). Otherwise the extent from the bounds of the
    /// parts on is padded to the strictest alignment (5.1), as in MPICH and Open MPI.
    fn bounds(&self) -> Bounds {
        let (true_lb, true_ub) = self.elements.unwrap_or((0, 0));
        let alignment = self.alignment as i64;
        let (lb, ub) = self.markers.unwrap_or_else(|| {
            let (lb, ub) = self.parts.unwrap_or((0, 0));
            (lb, lb + (ub - lb + alignment - 1) / alignment * alignment)
        });
        Bounds { size: self.size, lb, ub, true_lb, true_ub, alignment: self.alignment }
    }
}

fn widen(span: &mut Option<(i64, i64)>, other: Option<(i64, i64)>, displacement: i64) {
    if let Some((low, high)) = other {
        let (low, high) = (low + displacement, high + displacement);
        *span = Some(span.map_or((low, high), |(old_low, old_high)| (old_low.min(low), old_high.max(high))));
    }
}

impl<'a> TypeMap<'a> {
    /// The type map of a datatype. Visits every placement of every node once.
    pub fn new(datatype: &'a Datatype) -> TypeMap<'a> {
        let mut map = TypeMap::with_bounds(datatype, Vec::new());
        let mut summaries = Vec::new();
        for node in datatype.nodes().iter() {
            summaries.push(map.summarise(node, &summaries));
            map.bounds.extend(summaries.last().map(Summary::bounds));
        }
        map
    }

    /// The type map of a datatype whose nodes have these bounds, by index, according to an MPI.
    pub fn with_bounds(datatype: &'a Datatype, bounds: Vec<Bounds>) -> TypeMap<'a> {
        TypeMap { datatype, nodes: datatype.nodes(), bounds }
    }

    fn summarise(&self, node: &Datatype, summaries: &[Summary]) -> Summary {
        let mut summary = Summary::EMPTY;
        if let Constructor::Named(predefined) = node.constructor() {
            for field in predefined.fields() {
                let span = Some((field.offset, field.offset + field.kind.size() as i64));
                let element = Summary {
                    size: field.kind.size(),
                    alignment: field.kind.alignment(),
                    elements: span,
                    parts: span,
                    markers: None,
                };
                summary.add(&element, 0);
            }
        }
        self.for_each_placement(node, &mut |displacement, child| {
            summary.add(&summaries[self.nodes.place(child)], displacement);
        });
        // A type without bytes ignores the bounds of its parts.
        if summary.size == 0 && !matches!(node.constructor(), Constructor::Dup) {
            summary = Summary::EMPTY;
        }
        // These bounds replace the markers of the children.
        let whole = |sizes: &[i64]| sizes.iter().product::<i64>() * self.extent(&node.children()[0]);
        match node.constructor() {
            Constructor::Subarray { sizes, .. } => summary.markers = Some((0, whole(sizes))),
            Constructor::Darray { gsizes, .. } => summary.markers = Some((0, whole(gsizes))),
            Constructor::Resized { lb, extent } => summary.markers = Some((*lb, lb + extent)),
            _ => {}
        }
        if let Some(GivenBounds { lb, extent }) = node.given() {
            summary.markers = Some((lb, lb + extent));
        }
        summary
    }

    pub(crate) fn bounds_of(&self, node: &Datatype) -> &Bounds {
        &self.bounds[self.nodes.place(node)]
    }

    fn extent(&self, node: &Datatype) -> i64 {
        self.bounds_of(node).extent()
    }

    /// Calls `visit` with the displacement of every copy of every child, in type-map order.
    pub(crate) fn for_each_placement(&self, node: &Datatype, visit: &mut dyn FnMut(i64, &Datatype)) {
        let (constructor, children) = (node.constructor(), node.children());
        if let Constructor::Named(_) = constructor {
            return;
        }
        if let Constructor::Struct { blocklengths, displacements_bytes } = constructor {
            for (block, child) in children.iter().enumerate() {
                for copy in 0..blocklengths[block] {
                    visit(displacements_bytes[block] + copy * self.extent(child), child);
                }
            }
            return;
        }
        let child = &children[0];
        let extent = self.extent(child);
        match constructor {
            Constructor::Named(_) | Constructor::Struct { .. } => unreachable!("handled above"),
            Constructor::Contiguous { count } => {
                for copy in 0..*count {
                    visit(copy * extent, child);
                }
            }
            Constructor::Vector { count, blocklength, stride } => {
                for block in 0..*count {
                    for copy in 0..*blocklength {
                        visit((block * stride + copy) * extent, child);
                    }
                }
            }
            Constructor::Hvector { count, blocklength, stride_bytes } => {
                for block in 0..*count {
                    for copy in 0..*blocklength {
                        visit(block * stride_bytes + copy * extent, child);
                    }
                }
            }
            Constructor::Indexed { blocklengths, displacements } => {
                for (length, displacement) in blocklengths.iter().zip(displacements.iter()) {
                    for copy in 0..*length {
                        visit((displacement + copy) * extent, child);
                    }
                }
            }
            Constructor::Hindexed { blocklengths, displacements_bytes } => {
                for (length, displacement) in blocklengths.iter().zip(displacements_bytes.iter()) {
                    for copy in 0..*length {
                        visit(displacement + copy * extent, child);
                    }
                }
            }
            Constructor::IndexedBlock { blocklength, displacements } => {
                for displacement in displacements.iter() {
                    for copy in 0..*blocklength {
                        visit((displacement + copy) * extent, child);
                    }
                }
            }
            Constructor::HindexedBlock { blocklength, displacements_bytes } => {
                for displacement in displacements_bytes.iter() {
                    for copy in 0..*blocklength {
                        visit(displacement + copy * extent, child);
                    }
                }
            }
            Constructor::Subarray { sizes, subsizes, starts, order } => {
                let selected: Vec<Vec<i64>> =
                    (0..sizes.len()).map(|axis| (starts[axis]..starts[axis] + subsizes[axis]).collect()).collect();
                for_each_index(sizes, &selected, *order, &mut |index| visit(index * extent, child));
            }
            Constructor::Darray { size, rank, gsizes, distributions, psizes, order } => {
                let selected = owned_indices(*size, *rank, gsizes, distributions, psizes);
                for_each_index(gsizes, &selected, *order, &mut |index| visit(index * extent, child));
            }
            Constructor::Resized { .. } | Constructor::Dup => visit(0, child),
            Constructor::Table { .. } | Constructor::Addresses { .. } => unreachable!("no datatype has index tables"),
        }
    }

    /// The bounds that MPI derives from the map.
    pub fn bounds(&self) -> Bounds {
        *self.bounds_of(self.datatype)
    }

    /// Calls `visit` with every entry, in type-map order.
    pub fn for_each_entry(&self, mut visit: impl FnMut(Entry)) {
        self.walk(self.datatype, 0, &mut visit);
    }

    fn walk(&self, node: &Datatype, displacement: i64, visit: &mut dyn FnMut(Entry)) {
        if self.bounds_of(node).size == 0 {
            return;
        }
        if let Constructor::Named(predefined) = node.constructor() {
            for field in predefined.fields() {
                visit(Entry { displacement: displacement + field.offset, kind: field.kind, predefined: *predefined });
            }
            return;
        }
        self.for_each_placement(node, &mut |offset, child| self.walk(child, displacement + offset, visit));
    }

    /// Calls `visit` with every maximal run, in type-map order.
    pub fn for_each_run(&self, mut visit: impl FnMut(Run)) {
        let mut open: Option<Run> = None;
        self.for_each_entry(|entry| {
            let length = entry.kind.size();
            match &mut open {
                Some(run) if run.displacement + run.length as i64 == entry.displacement => run.length += length,
                _ => {
                    if let Some(run) = open.replace(Run { displacement: entry.displacement, length }) {
                        visit(run);
                    }
                }
            }
        });
        if let Some(run) = open {
            visit(run);
        }
    }

    /// All entries, in type-map order.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.for_each_entry(|entry| entries.push(entry));
        entries
    }

    /// The displacement of every byte, in packed order.
    pub fn bytes(&self) -> Vec<i64> {
        let mut bytes = Vec::new();
        self.for_each_run(|run| bytes.extend(run.displacement..run.displacement + run.length as i64));
        bytes
    }
}

/// Calls `visit` with the linear index of every selected element; the contiguous axis varies fastest.
fn for_each_index(sizes: &[i64], selected: &[Vec<i64>], order: Order, visit: &mut dyn FnMut(i64)) {
    let slowest_first: Vec<usize> = match order {
        Order::C => (0..sizes.len()).collect(),
        Order::Fortran => (0..sizes.len()).rev().collect(),
    };
    descend(sizes, selected, &slowest_first, 0, visit);
}

/// Horner's rule: `prefix` is the linear index of the axes chosen so far.
fn descend(sizes: &[i64], selected: &[Vec<i64>], axes: &[usize], prefix: i64, visit: &mut dyn FnMut(i64)) {
    let Some((&axis, faster)) = axes.split_first() else { return visit(prefix) };
    for index in &selected[axis] {
        descend(sizes, selected, faster, prefix * sizes[axis] + index, visit);
    }
}

/// The indices that a process owns along each axis: MPI 4.1, 5.1.4.
fn owned_indices(
    size: i64,
    rank: i64,
    gsizes: &[i64],
    distributions: &[Distribution],
    psizes: &[i64],
) -> Vec<Vec<i64>> {
    let mut owned = Vec::new();
    let mut remaining_rank = rank;
    let mut remaining_size = size;
    for axis in 0..gsizes.len() {
        // The process grid is numbered as by MPI_Cart_create: the last coordinate varies fastest.
        remaining_size /= psizes[axis];
        let coordinate = remaining_rank / remaining_size;
        remaining_rank %= remaining_size;
        let block = match distributions[axis] {
            Distribution::Block(None) => (gsizes[axis] + psizes[axis] - 1) / psizes[axis],
            Distribution::Block(Some(length)) | Distribution::Cyclic(Some(length)) => length,
            Distribution::Cyclic(None) => 1,
            Distribution::None => gsizes[axis],
        };
        owned.push((0..gsizes[axis]).filter(|index| index / block % psizes[axis] == coordinate).collect());
    }
    owned
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::{TypeBuilder, TypeId};

    /// Builds a type over `MPI_SHORT` and returns the displacements of its elements and its bounds.
    fn shorts(build: impl FnOnce(&mut TypeBuilder, TypeId) -> TypeId) -> (Vec<i64>, Bounds) {
        let mut types = TypeBuilder::new();
        let short = types.named(Predefined::SHORT);
        let root = build(&mut types, short);
        let datatype = types.finish(root).unwrap();
        let map = TypeMap::new(&datatype);
        (map.entries().iter().map(|entry| entry.displacement).collect(), map.bounds())
    }

    #[test]
    fn strided_constructors() {
        let (map, bounds) = shorts(|types, short| types.vector(2, 3, 4, short).unwrap());
        assert_eq!(map, [0, 2, 4, 8, 10, 12]);
        assert_eq!((bounds.size, bounds.lb, bounds.ub), (12, 0, 14));
        let (map, bounds) = shorts(|types, short| types.hvector(3, 1, -5, short).unwrap());
        assert_eq!(map, [0, -5, -10]);
        assert_eq!((bounds.lb, bounds.extent(), bounds.true_ub), (-10, 12, 2));
        let (map, _) = shorts(|types, short| types.vector(2, 2, 0, short).unwrap());
        assert_eq!(map, [0, 2, 0, 2]);
    }

    #[test]
    fn lists_keep_their_order() {
        let (map, _) = shorts(|types, short| types.indexed(&[1, 0, 2], &[4, 9, -1], short).unwrap());
        assert_eq!(map, [8, -2, 0]);
        let (map, _) = shorts(|types, short| types.hindexed(&[2, 1], &[7, 0], short).unwrap());
        assert_eq!(map, [7, 9, 0]);
        let (map, _) = shorts(|types, short| types.indexed_block(2, &[3, 0], short).unwrap());
        assert_eq!(map, [6, 8, 0, 2]);
        let (map, _) = shorts(|types, short| types.hindexed_block(2, &[3, 0], short).unwrap());
        assert_eq!(map, [3, 5, 0, 2]);
    }

    #[test]
    fn boxes_in_both_orders() {
        let in_order =
            |order| shorts(move |types, short| types.subarray(&[3, 4], &[2, 2], &[1, 2], order, short).unwrap());
        let (map, bounds) = in_order(Order::C);
        assert_eq!(map, [12, 14, 20, 22]);
        assert_eq!((bounds.lb, bounds.ub, bounds.true_lb, bounds.true_ub), (0, 24, 12, 24));
        // Element (i, j) is at i + 3 j: (1, 2), (2, 2), (1, 3), (2, 3).
        assert_eq!(in_order(Order::Fortran).0, [14, 16, 20, 22]);
    }

    #[test]
    fn ranks_own_what_the_standard_deals_them() {
        let part = |rank, distributions: [Distribution; 2], order| {
            shorts(move |types, short| types.darray(6, rank, &[4, 7], &distributions, &[2, 3], order, short).unwrap()).0
        };
        // Rank 5 is process (1, 2): rows 2 and 3; with cyclic blocks of 2 over 3 processes, columns 4 and 5.
        let block_cyclic = [Distribution::Block(None), Distribution::Cyclic(Some(2))];
        assert_eq!(part(5, block_cyclic, Order::C), [36, 38, 50, 52]);
        // Process (0, 0): rows 0 and 1, columns 0, 1 and 6; the first axis is contiguous.
        assert_eq!(part(0, block_cyclic, Order::Fortran), [0, 2, 8, 10, 48, 50]);
        // Cyclic by ones: process (1, 1) owns rows 1 and 3, columns 1 and 4.
        assert_eq!(part(4, [Distribution::Cyclic(None); 2], Order::C), [16, 22, 44, 50]);
        // Blocks of 4 leave no columns for the third process.
        assert_eq!(part(2, [Distribution::Block(None), Distribution::Block(Some(4))], Order::C), [0i64; 0]);
    }

    #[test]
    fn bounds_are_sticky_padded_and_replaced() {
        let mut types = TypeBuilder::new();
        let double = types.named(Predefined::DOUBLE);
        let character = types.named(Predefined::CHAR);
        let padded = types.structure(&[1, 1], &[0, 8], &[double, character]).unwrap();
        let resized = types.resized(-3, 7, padded).unwrap();
        let sticky = types.structure(&[2, 1], &[10, 100], &[resized, double]).unwrap();
        let again = types.resized(1, 2, sticky).unwrap();
        let of = |id| TypeMap::new(&types.finish(id).unwrap()).bounds();
        assert_eq!((of(padded).lb, of(padded).ub, of(padded).true_ub), (0, 16, 9));
        assert_eq!((of(resized).lb, of(resized).ub), (-3, 4));
        // The copies are at 10 and 17; the double at 100 does not count for the bounds.
        assert_eq!((of(sticky).lb, of(sticky).ub, of(sticky).true_ub), (7, 21, 108));
        assert_eq!((of(again).lb, of(again).ub, of(again).size), (1, 3, 26));
    }

    #[test]
    fn pairs_have_holes_and_empty_types_nothing() {
        let mut types = TypeBuilder::new();
        let pair = types.named(Predefined::SHORT_INT);
        let pairs = types.contiguous(2, pair).unwrap();
        let nothing = types.contiguous(0, pairs).unwrap();
        let kept = types.resized(-1, 5, nothing).unwrap();
        let of = |id| types.finish(id).unwrap();
        assert_eq!(TypeMap::new(&of(pairs)).bytes(), [0, 1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15]);
        assert_eq!(
            TypeMap::new(&of(pairs)).entries()[3],
            Entry { displacement: 12, kind: Kind::I32, predefined: Predefined::SHORT_INT }
        );
        let empty = Bounds { size: 0, lb: 0, ub: 0, true_lb: 0, true_ub: 0, alignment: 1 };
        assert_eq!(TypeMap::new(&of(nothing)).bounds(), empty);
        assert_eq!(TypeMap::new(&of(kept)).bounds(), Bounds { lb: -1, ub: 4, ..empty });
    }

    #[test]
    fn runs_join_only_in_packed_order() {
        let mut types = TypeBuilder::new();
        let int = types.named(Predefined::INT);
        let swapped = types.indexed_block(1, &[1, 0, 1, 2], int).unwrap();
        let datatype = types.finish(swapped).unwrap();
        let mut runs = Vec::new();
        TypeMap::new(&datatype).for_each_run(|run| runs.push((run.displacement, run.length)));
        assert_eq!(runs, [(4, 4), (0, 12)]);
    }
}
