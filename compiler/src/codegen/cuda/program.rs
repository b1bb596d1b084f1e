//! Layouts as programs for the generic kernels: what these have as their last parameter, and what they read beside it.

use super::accumulate::generic_reduction;
use super::division::magic;
use super::tables::{append, chunks, starts};
use super::{interpreted_columns, interpreted_fields, interpreted_groups, interpreted_tiles};
use crate::layout::{Layout, Node};
use crate::operation::Reduction;
use crate::plan::Direction;
use crate::plan::gpu::{Call, Columns, Family, Fields, Generic, GpuPlan, Groups, Tiles, Variant};

/// Nodes that the parameters of a launch hold.
pub(super) const INLINE_NODES: usize = 22;

/// Bytes of a node.
pub(super) const NODE: usize = 48;

/// Packed bytes of an element that has no end: more than a call can name, so that every position is in the first element.
const ENDLESS: u64 = 1 << 63;

/// Bytes before the nodes of a program.
const HEAD: usize = 64;

/// Where a program has the tiles, the fields or the groups of a call, in numbers of 64 bits.
const OF_CALL: usize = (HEAD + INLINE_NODES * NODE) / 8;

/// How many numbers of 64 bits a program has.
pub(super) const LENGTH: usize =
    OF_CALL + max(interpreted_tiles::NUMBERS, max(interpreted_fields::NUMBERS, interpreted_groups::NUMBERS));

const fn max(one: usize, other: usize) -> usize {
    if one > other { one } else { other }
}

/// The last parameter of a generic kernel, as 64-bit numbers.
pub type Parameter = [u64; LENGTH];

/// A layout as the generic kernels interpret it.
#[derive(Clone, Debug)]
pub struct Interpreted {
    /// What the last parameter of a generic kernel is made from.
    pub program: InterpreterProgram,
    /// What the parameter `tables` points at, on a boundary of 16 bytes; empty when it is not read.
    pub tables: Vec<u8>,
}

impl Interpreted {
    /// Writes the program of a plan's layout.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::Interpreted;
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::GpuPlan;
    /// let text = "layout lb 0 extent 64 {\n  %0 = dense 8 x byte\n  %1 = stream 4 x 16 of %0\n  root %1\n}";
    /// let program = Interpreted::new(&GpuPlan::new(&Layout::parse(text)?));
    /// assert!(program.tables.is_empty());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn new(plan: &GpuPlan) -> Interpreted {
        Interpreted::within(plan, Vec::new())
    }

    /// As [`Interpreted::new`], with tables in the memory of a vector whose contents are of no use any more: of a long list, the system takes longer to
    /// give memory than the list takes to be copied.
    pub fn within(plan: &GpuPlan, mut tables: Vec<u8>) -> Interpreted {
        let layout = plan.layout();
        let count = layout.nodes().len();
        let inline = count <= INLINE_NODES;
        tables.clear();
        tables.resize(if inline { 0 } else { count * NODE }, 0);
        let mut nodes = Vec::with_capacity(count * NODE);
        for (_, node) in layout.nodes() {
            let node = encode(layout, node, 0, &mut tables);
            nodes.extend_from_slice(&node);
        }
        // Copies of a stream without a seam never end; a dense element tells what is left of it.
        let size = if plan.continues() && !plan.is_contiguous() { ENDLESS } else { layout.size().max(1) };
        let (magic, shift) = magic(size);
        let root = layout.root();
        let mut bytes = Vec::with_capacity(HEAD + INLINE_NODES * NODE);
        bytes.extend_from_slice(&[0; 16]);
        for number in [size, magic, layout.extent() as u64, root.offset as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        // The last is the reduction, if there is one.
        for number in [shift, root.node.index() as u32, count as u32, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        if inline {
            bytes.extend_from_slice(&nodes);
        } else {
            tables[..nodes.len()].copy_from_slice(&nodes);
        }
        let mut program: Parameter = [0; LENGTH];
        for (word, eight) in program.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*eight);
        }
        let columns = plan.found::<Columns>().filter(|columns| columns.are_elements(layout)).map(|columns| {
            let of = |direction| {
                let prefetches = direction == Direction::Unpack && columns.mostly_in_part();
                interpreted_columns::numbers(columns, (layout.extent(), root.offset), direction, prefetches)
            };
            Box::new([of(Direction::Pack), of(Direction::Unpack)])
        });
        let tiles = plan.found::<Tiles>().map(|tiles| (*tiles, prefetches(plan, Generic::Tiles)));
        let fields = plan.found::<Fields>().filter(|_| plan.analysis().has_lists());
        let fields = fields.map(|fields| (fields.clone(), interpreted_fields::append_fields(fields, &mut tables)));
        let groups = plan.found::<Groups>().filter(|_| plan.analysis().has_lists()).map(|groups| {
            let words = interpreted_groups::append_words(groups, &mut tables);
            InterpretedGroups { groups: groups.clone(), words, prefetches: prefetches(plan, Generic::Groups) }
        });
        Interpreted { program: InterpreterProgram { program, columns, tiles, fields, groups }, tables }
    }
}

/// Whether the generic kernel that unpacks brings lines of memory to the cache.
fn prefetches(plan: &GpuPlan, kernel: Generic) -> bool {
    let direction = Direction::Unpack;
    let variant = Variant { direction, family: kernel.family(direction), wide: true, capped: false };
    variant.family.kernel().prefetches(&plan.instance(&variant, variant.threads()))
}

/// What a layout is to the generic kernels.
#[derive(Clone, Debug)]
pub struct InterpreterProgram {
    /// Its nodes, or where the tables hold them.
    program: Parameter,
    /// Its columns, to packs and to unpacks.
    columns: Option<Box<[[u64; interpreted_columns::NUMBERS]; 2]>>,
    /// Its tiles, and whether unpacks bring lines of memory to the cache.
    tiles: Option<(Tiles, bool)>,
    /// Its records whose fields are in arrays of their own, and where the tables have these.
    fields: Option<(Fields, u64)>,
    /// Its groups of runs.
    groups: Option<InterpretedGroups>,
}

/// Groups of runs, as the generic kernels move them.
#[derive(Clone, Debug)]
struct InterpretedGroups {
    groups: Groups,
    /// Where the tables have the words of a group, for packs and for unpacks.
    words: [u64; 2],
    /// Whether unpacks bring lines of memory to the cache.
    prefetches: bool,
}

impl InterpreterProgram {
    /// The last parameter of the generic kernel of a variant that serves a call, for elements that span these displacements in memory.
    pub fn parameter(&self, variant: &Variant, call: &Call, low: i64, high: i64) -> Parameter {
        let Variant { direction, family, .. } = *variant;
        let mut parameter = self.program;
        if let (Some(columns), Family::Columns(_)) = (&self.columns, family) {
            parameter[..interpreted_columns::NUMBERS]
                .copy_from_slice(&columns[(direction == Direction::Unpack) as usize]);
        }
        if let (Some((tiles, prefetches)), Family::Tiles(_)) = (&self.tiles, family) {
            parameter[OF_CALL..][..interpreted_tiles::NUMBERS].copy_from_slice(&interpreted_tiles::numbers(
                tiles,
                direction,
                *prefetches,
                call,
            ));
        }
        if let (Some((fields, table)), Family::Fields(_)) = (&self.fields, family) {
            parameter[OF_CALL..][..interpreted_fields::NUMBERS]
                .copy_from_slice(&interpreted_fields::numbers(fields, *table, call));
        }
        if let (Some(its), Family::Groups(_)) = (&self.groups, family) {
            let words = its.words[(direction == Direction::Unpack) as usize];
            parameter[OF_CALL..][..interpreted_groups::NUMBERS].copy_from_slice(&interpreted_groups::numbers(
                &its.groups,
                words,
                direction,
                its.prefetches,
                call,
            ));
        }
        parameter[0] = low as u64;
        parameter[1] = high as u64;
        parameter
    }

    /// The program for elements of any span: what the generic kernels for batches and for copies read.
    pub fn nodes(&self) -> Parameter {
        self.program
    }

    /// The last parameter of the generic kernel that unpacks with an operation.
    pub fn accumulating(&self, reduction: Reduction) -> Parameter {
        let mut program = self.program;
        let last = &mut program[HEAD / 8 - 1];
        *last = (*last & u64::from(u32::MAX)) | u64::from(generic_reduction(reduction)) << 32;
        program
    }
}

/// A node as kernels read it. `first`: the number of the layout's first node among all.
pub(super) fn encode(layout: &Layout, node: &Node, first: usize, tables: &mut Vec<u8>) -> Vec<u8> {
    let number = |edge: &crate::layout::Edge| first + edge.node.index();
    let size_of = |edge: &crate::layout::Edge| layout.measure(edge.node).size;
    let mut begin = || {
        tables.resize(tables.len().next_multiple_of(16), 0);
        tables.len() as u64
    };
    let (kind, entries, child, size, stride, table, shift) = match node {
        Node::Dense { count, kind } => (0, 0, 0, count * kind.size(), 0, 0, None),
        Node::Stream { stride, child, .. } => (1, 0, number(child), size_of(child), *stride, 0, None),
        Node::Indexed { offsets, child } => {
            let table = begin();
            append(tables, offsets.iter().map(|offset| (offset + child.offset).to_le_bytes()));
            (2, offsets.len(), number(child), size_of(child), 0, table, None)
        }
        Node::Runs { runs, kind } => {
            let table = begin();
            let starts = starts(runs, kind.size(), 1);
            let (shift, chunks) = chunks(&starts);
            append(tables, starts.iter().map(|start| start.to_le_bytes()));
            append(tables, runs.iter().map(|run| run.offset.to_le_bytes()));
            append(tables, chunks.iter().map(|&run| (run as u32).to_le_bytes()));
            (3, runs.len(), 0, 1, 0, table, Some(shift))
        }
        Node::Record { parts } => {
            let table = begin();
            let mut at = 0;
            let position = |part| {
                let position = at;
                at += size_of(part);
                position.to_le_bytes()
            };
            append(tables, parts.iter().map(position));
            append(tables, parts.iter().map(|part| part.offset.to_le_bytes()));
            append(tables, parts.iter().map(|part| (number(part) as u32).to_le_bytes()));
            (4, parts.len(), 0, 1, 0, table, None)
        }
    };
    let (magic, division) = magic(size);
    let mut bytes = Vec::with_capacity(NODE);
    for number in [kind, entries as u32, child as u32, shift.unwrap_or(division)] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [size, magic, stride as u64, table] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}
