//! Types with index tables as programs for the generic kernels that serve them.

use super::division::magic;
use super::program::{NODE, encode};
use super::tabled::TabledEntries;
use super::tables::append;
use super::template::{TemplateError, render};
use crate::plan::Direction;
use crate::plan::gpu::{LaunchShape, word_type};
use crate::tabled::{TabledEdge, TabledLayout, TabledNode};
use minijinja::context;
use std::fmt::Write;

/// Nodes of a program at most: the parameters of a launch hold no more.
const MOST_NODES: usize = 80;

/// Numbers of 64 bits before the nodes.
const HEAD: usize = 2;

/// Numbers of 64 bits of a node.
const NUMBERS: usize = NODE / 8;

/// How many numbers of 64 bits a program has.
const LENGTH: usize = HEAD + MOST_NODES * NUMBERS;

/// The last parameter of such a kernel, as 64-bit numbers.
pub type TabledParameter = [u64; LENGTH];

/// A generic kernel for types with index tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GenericTabled {
    /// The name in the module.
    pub entry: &'static str,
    /// Which way it moves words.
    pub direction: Direction,
    /// Bytes of a word.
    pub word: u32,
}

const fn kernel(entry: &'static str, direction: Direction, word: u32) -> GenericTabled {
    GenericTabled { entry, direction, word }
}

/// All of them, wider words first.
pub const GENERIC_TABLED: &[GenericTabled] = &[
    kernel("dtc_generic_tabled_pack_16", Direction::Pack, 16),
    kernel("dtc_generic_tabled_pack_4", Direction::Pack, 4),
    kernel("dtc_generic_tabled_pack_1", Direction::Pack, 1),
    kernel("dtc_generic_tabled_unpack_16", Direction::Unpack, 16),
    kernel("dtc_generic_tabled_unpack_4", Direction::Unpack, 4),
    kernel("dtc_generic_tabled_unpack_1", Direction::Unpack, 1),
];

impl GenericTabled {
    /// The one that moves words which are aligned to `word` bytes on both sides.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::GenericTabled;
    /// use dtc_compiler::plan::Direction;
    /// assert_eq!(GenericTabled::serving(Direction::Pack, 8).word, 4);
    /// ```
    pub fn serving(direction: Direction, word: u32) -> &'static GenericTabled {
        let serves = |kernel: &&GenericTabled| kernel.direction == direction && kernel.word <= word;
        GENERIC_TABLED.iter().find(serves).unwrap_or(&GENERIC_TABLED[0])
    }

    /// Threads of a block, and words of each.
    pub const SHAPE: LaunchShape = LaunchShape { threads: 128, unroll: 2 };

    /// Blocks of the work of `bytes` bytes, or `None` when no grid is that large.
    pub fn blocks(&self, bytes: u64) -> Option<u32> {
        GenericTabled::SHAPE.blocks(self.word, bytes)
    }
}

/// Where a kernel notes the first entry beyond the places of its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TabledReport {
    /// The address of 24 bytes of zeros, or 0 for no notes.
    pub address: u64,
    /// How many tables are counted before those of the type.
    pub tables_before: u32,
}

/// A type as these kernels interpret it, for any tables.
#[derive(Clone, Debug)]
pub struct TabledProgram {
    /// The nodes, as far as no table of a call changes them.
    nodes: Vec<[u64; NUMBERS]>,
    /// Of each node of the layout, the number of its first one here.
    numbers: Vec<usize>,
    root: usize,
    /// What the parameter `tables` points at, on a boundary of 16 bytes; empty when it is not read.
    pub lists: Vec<u8>,
}

/// The kinds of nodes above fixed layouts: as `interpreter.cu` and `interpreter_tabled.cu` number them.
#[derive(Clone, Copy)]
enum Kind {
    Stream = 1,
    Indexed = 2,
    Table = 5,
    Addresses = 6,
    Part = 7,
    Fixed = 8,
}

/// A node: kind, entries, child, what divides by the size, stride, and table.
fn node(kind: Kind, entries: u32, child: usize, stride: i64, table: u64) -> [u64; NUMBERS] {
    [kind as u64 | u64::from(entries) << 32, child as u64, 0, 0, stride as u64, table]
}

/// Has a node divide by the size of its child.
fn divide_by(node: &mut [u64; NUMBERS], size: u64) {
    let (magic, shift) = magic(size.max(1));
    node[1] = (node[1] & u64::from(u32::MAX)) | u64::from(shift) << 32;
    node[2] = size;
    node[3] = magic;
}

impl TabledProgram {
    /// Writes the program of a layout; nothing if the parameters of a launch do not hold it.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::TabledProgram;
    /// use dtc_compiler::tabled::TabledLayout;
    /// let pages = TabledLayout::new(&"table 0 1024 64 65536 (contiguous 8192 double)".parse()?);
    /// assert!(TabledProgram::new(&pages).unwrap().lists.is_empty());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn new(layout: &TabledLayout) -> Option<TabledProgram> {
        let (mut nodes, mut numbers, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        for each in layout.nodes() {
            let child = |edge: &TabledEdge| -> usize { numbers[edge.node.index()] };
            let first = nodes.len();
            let mut number = first;
            match each {
                TabledNode::Fixed { fixed } => {
                    let fixed = &layout.fixed_layouts()[*fixed];
                    for (_, node) in fixed.nodes() {
                        let bytes = encode(fixed, node, first, &mut lists);
                        let mut numbers = [0; NUMBERS];
                        numbers
                            .iter_mut()
                            .zip(bytes.as_chunks().0)
                            .for_each(|(to, from)| *to = u64::from_le_bytes(*from));
                        nodes.push(numbers);
                    }
                    number = nodes.len();
                    let root = fixed.root();
                    nodes.push(node(Kind::Fixed, 0, first + root.node.index(), root.offset, 0));
                }
                TabledNode::Stream { stride, child: edge, .. } => {
                    nodes.push(node(Kind::Stream, 0, child(edge), *stride, 0));
                }
                TabledNode::Indexed { offsets, child: edge } => {
                    lists.resize(lists.len().next_multiple_of(16), 0);
                    let table = lists.len() as u64;
                    append(&mut lists, offsets.iter().map(|offset| offset.to_le_bytes()));
                    nodes.push(node(Kind::Indexed, offsets.len() as u32, child(edge), 0, table));
                }
                TabledNode::Table { table, places, pitch, child: edge } => {
                    nodes.push(node(Kind::Table, 0, child(edge), *pitch, 0));
                    // Places, and the number of the table for faults.
                    nodes.push([u64::from(*table as u32) << 32, 0, *places, 0, 0, 0]);
                }
                TabledNode::Addresses { child: edge, .. } => nodes.push(node(Kind::Addresses, 0, child(edge), 0, 0)),
                TabledNode::Record { parts } => {
                    nodes.extend(parts.iter().map(|part| node(Kind::Part, 0, child(part), part.offset, 0)));
                }
            }
            if nodes.len() > MOST_NODES {
                return None;
            }
            numbers.push(number);
        }
        let root = numbers[layout.root().node.index()];
        // Parts of a record that has none hold no byte of any call.
        let offset = layout.root().offset;
        let mut program = TabledProgram { nodes, numbers, root, lists };
        if offset != 0 {
            program.root = program.nodes.len();
            let mut part = node(Kind::Part, 0, root, offset, 0);
            part[2] = u64::MAX;
            program.nodes.push(part);
        }
        (program.nodes.len() <= MOST_NODES).then_some(program)
    }

    /// The last parameter of a kernel for the layout that this program was written for. Nothing where tables are missing or too long.
    pub fn parameter(
        &self,
        layout: &TabledLayout,
        tables: &[TabledEntries],
        report: TabledReport,
    ) -> Option<TabledParameter> {
        let lengths: Vec<u64> = tables.iter().map(|table| table.length).collect();
        let sizes = layout.sizes(&lengths)?;
        let mut program = [0; LENGTH];
        program[0] = report.address;
        program[1] = self.root as u64;
        let (nodes, _) = program[HEAD..].as_chunks_mut::<NUMBERS>();
        nodes[..self.nodes.len()].copy_from_slice(&self.nodes);
        for (each, &number) in layout.nodes().iter().zip(&self.numbers) {
            match each {
                TabledNode::Fixed { .. } => {}
                TabledNode::Stream { child, .. } | TabledNode::Indexed { child, .. } => {
                    divide_by(&mut nodes[number], sizes[child.node.index()]);
                }
                TabledNode::Table { table, child, .. } | TabledNode::Addresses { table, child } => {
                    if matches!(each, TabledNode::Table { .. }) {
                        nodes[number + 1][0] += u64::from(report.tables_before) << 32;
                    }
                    let TabledEntries { address, wide, .. } = tables[*table];
                    divide_by(&mut nodes[number], sizes[child.node.index()]);
                    nodes[number][0] |= u64::from(wide) << 32;
                    nodes[number][5] = address;
                }
                TabledNode::Record { parts } => {
                    for (node, part) in nodes[number..].iter_mut().zip(parts.iter()) {
                        node[2] = sizes[part.node.index()];
                    }
                }
            }
        }
        Some(program)
    }
}

/// The text of the generic kernels for types with index tables.
pub(super) fn generic() -> Result<String, TemplateError> {
    let mut source = format!(
        "{}\nenum {{ TABLED_NODES = {MOST_NODES} }};\n\n{}",
        dtc_templates::BEYOND,
        dtc_templates::INTERPRETER_TABLED
    );
    let LaunchShape { threads, unroll } = GenericTabled::SHAPE;
    for GenericTabled { entry, direction, word } in GENERIC_TABLED {
        let packed = format!("(u64)packed + at * {word} - first");
        let (from, to, found) = match direction {
            Direction::Pack => ("(u64)memory", &*packed, "from"),
            Direction::Unpack => (&*packed, "(u64)memory", "to"),
        };
        let _ = write!(
            source,
            "\nnamespace {} {{\n\nstatic __device__ __forceinline__ bool places(\n    u8 *memory, u8 *packed, const u8 *tables, u64 first, \
             const Tabled &call, index at, u64 &from, u64 &to)\n{{\n    from = {from};\n    to = {to};\n    \
             return place_by_tables(call, tables, (u64)memory, at * {word}, {found});\n}}\n\n",
            entry.trim_start_matches("dtc_")
        );
        let values = context! {
            word, threads, unroll, word_type => word_type(*word), copy => false, combined => false, prefetched => false,
        };
        source.push_str(&render("tabled", &values)?);
        let values = context! { entry, threads, resident => 1, shared => false, capped => true, call => "Tabled" };
        let _ = write!(source, "\n{}\n}}\n", render("entry", &values)?);
    }
    Ok(source)
}
