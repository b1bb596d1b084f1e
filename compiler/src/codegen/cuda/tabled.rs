//! Kernels that move words between places that index tables of the call lead to.

use super::accumulate;
use super::division::magic;
use super::kernel::Program;
use super::place::{Places, entry, quotient, remainder};
use super::tables::{ListName, Tables};
use super::template::{TemplateError, render};
use crate::layout::Layout;
use crate::plan::gpu::{GpuPlan, SECTOR, TabledVariant, WIDEST, is_searched, number, shortest_run, signed, word_type};
use crate::tabled::{TabledEdge, TabledLayout, TabledNode};
use minijinja::context;
use std::fmt::Write;

/// The name of the kernel.
pub const TABLED_ENTRY: &str = "dtc_tabled";

/// Numbers that a call passes, at most: what parameters of 4 KiB leave beside the others.
pub const TABLED_MOST_WORDS: usize = 480;

/// Which sides of a move have index tables. The other one is packed bytes.
#[derive(Clone, Copy, Debug)]
pub enum TabledSides<'a> {
    /// From elements to packed bytes.
    Pack(&'a TabledLayout),
    /// From packed bytes to elements.
    Unpack(&'a TabledLayout),
    /// From elements to elements of another type.
    Copy {
        /// The type that is read.
        source: &'a TabledLayout,
        /// The type that is written.
        target: &'a TabledLayout,
    },
}

/// An index table of a call, as a kernel reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TabledEntries {
    /// Where the first entry is, for the device.
    pub address: u64,
    /// Whether entries have 64 bits, and not 32.
    pub wide: bool,
    /// How many entries there are.
    pub length: u64,
}

/// The numbers of one side: which word of the call has what.
struct Numbers {
    /// How many tables the sides before have: faults count them all.
    tables_before: usize,
    /// The first table's address.
    tables: usize,
    /// A bit for each table: whether its entries have 64 bits.
    wide: usize,
    /// Of each node whose size depends on the tables: the multiplication that divides by the size, and the size.
    sizes: Vec<Option<usize>>,
    /// One past the last.
    end: usize,
}

/// The words before those of the sides: the first packed byte of the target of a copy, and where a fault is to be noted.
const COMMON_WORDS: usize = 2;

impl Numbers {
    fn new(layout: &TabledLayout, begin: usize, tables_before: usize) -> Numbers {
        let mut depends: Vec<bool> = Vec::with_capacity(layout.nodes().len());
        for node in layout.nodes() {
            let own = matches!(node, TabledNode::Table { .. } | TabledNode::Addresses { .. });
            depends.push(own || node.edges().iter().any(|edge| depends[edge.node.index()]));
        }
        let wide = begin + layout.tables().len();
        let mut end = wide + 1;
        let place = |depends: bool| {
            depends.then(|| {
                end += 3;
                end - 3
            })
        };
        let sizes = depends.into_iter().map(place).collect();
        Numbers { tables_before, tables: begin, wide, sizes, end }
    }
}

impl<'a> TabledSides<'a> {
    /// The layouts of source and target, with the names of their functions.
    fn layouts(self) -> Vec<(&'static str, &'a TabledLayout)> {
        match self {
            TabledSides::Pack(layout) => vec![("source", layout)],
            TabledSides::Unpack(layout) => vec![("target", layout)],
            TabledSides::Copy { source, target } => vec![("source", source), ("target", target)],
        }
    }

    fn numbers(self) -> (Vec<Numbers>, usize) {
        let mut end = COMMON_WORDS;
        let (mut all, mut tables) = (Vec::new(), 0);
        for (_, layout) in self.layouts() {
            let numbers = Numbers::new(layout, end, tables);
            end = numbers.end;
            tables += layout.tables().len();
            all.push(numbers);
        }
        (all, end)
    }

    /// Whether there is a kernel: a launch has room for the numbers of all parts whose sizes depend on tables.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::TabledSides;
    /// use dtc_compiler::tabled::TabledLayout;
    /// let layout = TabledLayout::new(&"table 0 8 4 64 double".parse()?);
    /// assert!(TabledSides::Pack(&layout).has_kernel());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn has_kernel(self) -> bool {
        self.words() <= TABLED_MOST_WORDS
    }

    /// Numbers of 64 bits that a kernel has of a call.
    pub fn words(self) -> usize {
        self.numbers().1
    }

    /// The last parameter of a kernel for words of a size. `tables`: those of each side, source before target. `target_first`: the first
    /// packed byte of the target, for a copy. `report`: 24 bytes of zeros where a checked kernel notes the first entry beyond the places of its
    /// table, or 0. Nothing where a type has too many parts whose sizes depend on tables, or tables are too long.
    pub fn parameter(self, word: u32, tables: &[&[TabledEntries]], target_first: u64, report: u64) -> Option<Vec<u64>> {
        let (all, end) = self.numbers();
        if end > TABLED_MOST_WORDS {
            return None;
        }
        let mut words = vec![0; end];
        words[..COMMON_WORDS].copy_from_slice(&[target_first, report]);
        for (((_, layout), numbers), tables) in self.layouts().into_iter().zip(all).zip(tables) {
            let lengths: Vec<u64> = tables.iter().map(|table| table.length).collect();
            let sizes = layout.sizes(&lengths)?;
            for (number, table) in tables.iter().enumerate() {
                words[numbers.tables + number] = table.address;
                words[numbers.wide] |= u64::from(table.wide) << number;
            }
            for (at, size) in numbers.sizes.iter().zip(sizes) {
                if let &Some(at) = at {
                    let size = size / u64::from(word);
                    let (magic, shift) = magic(size);
                    words[at..at + 3].copy_from_slice(&[magic, shift.into(), size]);
                }
            }
        }
        Some(words)
    }
}

/// Writes the kernel of a variant.
///
/// # Errors
///
/// A type has too many parts whose sizes depend on tables.
///
/// # Example
///
/// ```
/// use dtc_compiler::codegen::cuda::{TabledSides, tabled};
/// use dtc_compiler::datatype::TabledDatatype;
/// use dtc_compiler::plan::gpu::TabledVariant;
/// use dtc_compiler::tabled::TabledLayout;
/// let pages: TabledDatatype = "table 0 1024 64 65536 (contiguous 8192 double)".parse()?;
/// let layout = TabledLayout::new(&pages);
/// let variant = TabledVariant::new(16, layout.most_bytes(), false);
/// assert!(tabled(TabledSides::Pack(&layout), &variant)?.source.contains("dtc_tabled(u8 *memory"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tabled(sides: TabledSides<'_>, variant: &TabledVariant) -> Result<Program, TemplateError> {
    let mut tables = Tables::default();
    let mut text = header(sides);
    text.push_str(dtc_templates::PRELUDE);
    if variant.reduction.is_some() {
        text.push_str(&accumulate::library());
        text.push_str(dtc_templates::LOAD_VALUE);
    }
    if prefetches(sides, variant) {
        text.push_str(dtc_templates::PREFETCH);
        text.push_str(dtc_templates::PREFETCH_ENDS);
    }
    let beyond = if variant.checked { dtc_templates::BEYOND } else { "" };
    text.push_str(&block(sides, variant, beyond, &mut tables)?);
    let TabledVariant { shape, capped, .. } = *variant;
    let entry = context! {
        entry => TABLED_ENTRY, threads => shape.threads, resident => 1, shared => false, capped, call => "Tabled",
    };
    text.push_str(&render("entry", &entry)?);
    text.push_str("\n}\n");
    Ok(Program { source: text, tables: tables.into_bytes() })
}

/// A namespace with what a block of a batch does for such a call, whose `Tabled` the item's program is. Lists are those of another type.
pub(super) fn item(
    sides: TabledSides<'_>,
    variant: &TabledVariant,
    namespace: &str,
    tables: &mut Tables,
) -> Result<String, TemplateError> {
    tables.next_type();
    let body = block(sides, variant, "", tables)?;
    let mut text = String::from("\n");
    for (name, layout) in sides.layouts() {
        let _ = writeln!(text, "// {name}: {}", abridged(layout).join("\n// "));
    }
    let _ = write!(text, "namespace {namespace} {{\n{body}\n}}\n}}\n");
    Ok(text)
}

/// Whether a kernel brings sectors of elements to the L2 cache before it stores parts of them. Not where runs may be inside of a sector, far from each other:
/// the request would cost as much as the store. Kernels on few multiprocessors may store to pinned memory of the host.
pub(super) fn prefetches(sides: TabledSides<'_>, variant: &TabledVariant) -> bool {
    let stored = match sides {
        TabledSides::Pack(_) => None,
        TabledSides::Unpack(layout) | TabledSides::Copy { target: layout, .. } => Some(layout),
    };
    let long = |layout: &Layout| {
        let measure = layout.measure(layout.root().node);
        measure.size > SECTOR * measure.runs
    };
    let plain = !variant.capped && variant.reduction.is_none();
    plain && stored.is_some_and(|layout| layout.fixed_layouts().iter().all(long))
}

/// Whether a pack stores vectors of 16 bytes. Runs are long enough that each vector has parts of two runs at most.
fn stores_vectors(sides: TabledSides<'_>, variant: &TabledVariant) -> bool {
    let long = |layout: &Layout| !is_searched(layout) && shortest_run(layout) >= (WIDEST - variant.word).into();
    let plain = !variant.capped && variant.reduction.is_none() && matches!(variant.word, 4 | 8);
    matches!(sides, TabledSides::Pack(layout) if plain && layout.fixed_layouts().iter().all(long))
}

/// What a call says of its tables, the functions of both sides, and what a block does, in a namespace that is left open. `beyond`: what a checked kernel
/// needs, if it is not there.
fn block(
    sides: TabledSides<'_>,
    variant: &TabledVariant,
    beyond: &str,
    tables: &mut Tables,
) -> Result<String, TemplateError> {
    let (numbers, words) = sides.numbers();
    if words > TABLED_MOST_WORDS {
        let limit = format!(
            "a kernel of a type with index tables: expected at most {TABLED_MOST_WORDS} numbers, found {words}"
        );
        return Err(TemplateError(limit));
    }
    let TabledVariant { word, shape, wide, checked, reduction, .. } = *variant;
    let vectors = stores_vectors(sides, variant);
    let mut text = render("tabled_call", &context! { words })?;
    if !beyond.is_empty() {
        let _ = write!(text, "\n\n{}", beyond.trim_end());
    }
    let _ = write!(text, "\n\ntypedef {} index;\n\n", if wide { "u64" } else { "u32" });
    for ((name, layout), numbers) in sides.layouts().into_iter().zip(&numbers) {
        let fixed_sizes = layout.sizes(&vec![0; layout.tables().len()]).unwrap_or_default();
        let side = Side { layout, numbers, fixed_sizes, word: word.into(), checked, run: vectors };
        let _ = write!(text, "namespace {name} {{\n\n{}}}\n\n", side.functions(tables));
    }
    let copy = matches!(sides, TabledSides::Copy { .. });
    let places = if vectors { String::new() } else { places(sides, word) };
    let _ = write!(text, "namespace tabled {{\n\n{places}");
    let values = context! {
        word, copy,
        word_type => word_type(word),
        threads => shape.threads,
        unroll => shape.unroll,
        steps => (shape.unroll * word / WIDEST).max(1),
        prefetched => prefetches(sides, variant),
        combined => reduction.is_some(),
        operation => reduction.map(|reduction| format!("{:?}", reduction.operation())),
        element => reduction.map(|reduction| format!("{:?}", reduction.element())),
    };
    text.push_str(&render(if vectors { "tabled_vectors" } else { "tabled" }, &values)?);
    Ok(text)
}

/// The layouts, as a comment.
fn header(sides: TabledSides<'_>) -> String {
    let mut text = "// A kernel by dtc, for\n".to_owned();
    for (name, layout) in sides.layouts() {
        let _ = writeln!(text, "//\n//     {name}: {}", abridged(layout).join("\n//     "));
    }
    text.push_str("//\n\n");
    text
}

/// The lines of a layout, the long ones cut: lists are tables of the kernel.
fn abridged(layout: &TabledLayout) -> Vec<String> {
    const LONGEST: usize = 140;
    let cut = |line: &str| match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_owned(),
    };
    layout.to_string().lines().map(cut).collect()
}

/// Where a word is on both sides.
fn places(sides: TabledSides<'_>, word: u32) -> String {
    let packed = format!("(u64)packed + (u64)at * {word} - first");
    let (ahead, from, to, found) = match sides {
        TabledSides::Pack(_) => ("", "(u64)memory", &*packed, "source::place(call, tables, (u64)memory, at, from)"),
        TabledSides::Unpack(_) => ("", &*packed, "(u64)memory", "target::place(call, tables, (u64)memory, at, to)"),
        TabledSides::Copy { .. } => (
            ", index ahead",
            "(u64)memory",
            "(u64)packed",
            "source::place(call, tables, (u64)memory, at, from)\n        && target::place(call, tables, (u64)packed, at + ahead, to)",
        ),
    };
    format!(
        "// Where word `at` is on both sides; false if an entry skips it.\nstatic __device__ __forceinline__ bool places(\n    \
         u8 *memory, u8 *packed, const u8 *tables, u64 first, const Tabled &call, index at{ahead}, u64 &from, u64 &to)\n{{\n    \
         from = {from};\n    to = {to};\n    return {found};\n}}\n\n"
    )
}

/// The functions of one side.
struct Side<'a> {
    layout: &'a TabledLayout,
    numbers: &'a Numbers,
    /// Packed bytes of each node, with tables that have no entries.
    fixed_sizes: Vec<u64>,
    /// Bytes of a word.
    word: u64,
    checked: bool,
    /// Whether functions also tell how many words are left of a run, or of what an entry skips.
    run: bool,
}

impl Side<'_> {
    /// One function for each node, and `place` for the root.
    fn functions(&self, tables: &mut Tables) -> String {
        let mut text = String::new();
        for (number, fixed) in self.layout.fixed_layouts().iter().enumerate() {
            tables.next_type();
            let plan = GpuPlan::new(fixed);
            let mut places = Places::new(&plan, tables);
            places.one_element(self.word, self.run);
            let _ = write!(text, "namespace fixed_{number} {{\n\n{}}}\n\n", places.into_text());
        }
        tables.next_type();
        for (index, node) in self.layout.nodes().iter().enumerate() {
            let body = self.body(index, node, tables);
            self.function(&mut text, &format!("node_{index}"), &body);
        }
        let root = self.layout.root();
        let body = format!("    place += {};\n    return {};\n", signed(root.offset), self.below(root, "at"));
        self.function(&mut text, "place", &body);
        text
    }

    fn function(&self, text: &mut String, name: &str, body: &str) {
        let _ = write!(
            text,
            "static __device__ __forceinline__ bool {name}(const Tabled &call, const u8 *tables, u64 memory, index at, u64 &place{})\n\
             {{\n{body}}}\n\n",
            if self.run { ", index &left" } else { "" }
        );
    }

    /// What functions have beside a place.
    fn left(&self) -> &'static str {
        if self.run { ", left" } else { "" }
    }

    /// The call of a child's function. Children of the normal form lie at the origin, but those of records.
    fn below(&self, child: TabledEdge, at: &str) -> String {
        format!("node_{}(call, tables, memory, {at}, place{})", child.node.index(), self.left())
    }

    /// Which copy of a child a word is in, as the number `copy`, and the word within it.
    fn copies(&self, child: TabledEdge) -> (String, String) {
        match self.numbers.sizes[child.node.index()] {
            Some(words) => (
                format!("    const index copy = (index)divided(at, call.words[{words}], call.words[{}]);\n", words + 1),
                format!("at - copy * (index)call.words[{}]", words + 2),
            ),
            None => {
                let size = self.size(child);
                (format!("    const index copy = {};\n", quotient("at", size)), remainder("at", "copy", size))
            }
        }
    }

    /// What an entry that is none says of the words behind: those of the child are skipped, too.
    fn skipped(&self, child: TabledEdge, rest: &str) -> String {
        let size = match self.numbers.sizes[child.node.index()] {
            Some(words) => format!("(index)call.words[{}]", words + 2),
            None => number(self.size(child)),
        };
        if self.run { format!("        left = {size} - ({rest});\n") } else { String::new() }
    }

    /// Words of a node that no table moves: `copies` and `record` take the sizes of others from the call.
    fn size(&self, child: TabledEdge) -> u64 {
        self.fixed_sizes.get(child.node.index()).map_or(0, |bytes| bytes / self.word)
    }

    fn body(&self, index: usize, node: &TabledNode, tables: &mut Tables) -> String {
        match node {
            TabledNode::Fixed { fixed } => {
                let (start, run) = if self.run { ("    bool start;\n", ", left, start") } else { ("", "") };
                format!("{start}    place += fixed_{fixed}::place(tables, at{run});\n    return true;\n")
            }
            TabledNode::Stream { stride, child, .. } => {
                let (copy, rest) = self.copies(*child);
                let below = self.below(*child, &rest);
                format!("{copy}    place += (i64)copy * {};\n    return {below};\n", signed(*stride))
            }
            TabledNode::Indexed { offsets, child } => {
                let (list, wide) = tables.signed(ListName::Tabled(index), offsets.iter().copied());
                let (copy, rest) = self.copies(*child);
                let below = self.below(*child, &rest);
                format!("{copy}    place += {};\n    return {below};\n", entry(list, wide, "copy", false))
            }
            TabledNode::Table { table, places, pitch, child } => {
                let (copy, rest) = self.copies(*child);
                let Numbers { tables: first, wide, .. } = self.numbers;
                let skipped = self.skipped(*child, &rest);
                let report = if self.checked {
                    format!(
                        "        if (entry >= 0 && call.words[1] != 0)\n            beyond(call.words[1], {}, copy, entry);\n",
                        table + self.numbers.tables_before
                    )
                } else {
                    String::new()
                };
                format!(
                    "{copy}    const i64 entry = entry_of(call.words[{}], call.words[{wide}] >> {table} & 1, copy);\n    \
                     if ((u64)entry >= {}) {{\n{report}{skipped}        return false;\n    }}\n    \
                     place += entry * {};\n    return {};\n",
                    first + table,
                    number(*places),
                    signed(*pitch),
                    self.below(*child, &rest)
                )
            }
            TabledNode::Addresses { table, child } => {
                let (copy, rest) = self.copies(*child);
                format!(
                    "{copy}    const i64 entry = entry_of(call.words[{}], 1, copy);\n    \
                     if (entry == 0) {{\n{}        return false;\n    }}\n    place += entry - memory;\n    return {};\n",
                    self.numbers.tables + table,
                    self.skipped(*child, &rest),
                    self.below(*child, &rest)
                )
            }
            TabledNode::Record { parts } => self.record(parts),
        }
    }

    /// The part of a record that holds a word, one after the other.
    fn record(&self, parts: &[TabledEdge]) -> String {
        let mut body = String::new();
        for (index, part) in parts.iter().enumerate() {
            let found = format!("place += {};", signed(part.offset));
            let below = self.below(*part, "at");
            if index + 1 == parts.len() {
                let _ = write!(body, "    {found}\n    return {below};\n");
                break;
            }
            let size = match self.numbers.sizes[part.node.index()] {
                Some(words) => format!("(index)call.words[{}]", words + 2),
                None => number(self.size(*part)),
            };
            let _ = write!(
                body,
                "    if (at < {size}) {{\n        {found}\n        return {below};\n    }}\n    at -= {size};\n"
            );
        }
        if parts.is_empty() {
            body.push_str("    return false;\n");
        }
        body
    }
}
