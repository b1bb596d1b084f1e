//! Device functions that tell where packed units are in memory, one for every node of a layout.

use super::tables::{self, ListName, Tables};
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::gpu::{AddressFunction, GpuPlan, number, signed};
use std::fmt::Write;

/// Runs of more units than this on average are found by search, shorter ones by rank.
const RANKED: u64 = 64;

/// Writes functions in terms of one unit of the packed bytes: a word, a byte, a row or a plane.
pub(super) struct Places<'a> {
    plan: &'a GpuPlan,
    tables: &'a mut Tables,
    text: String,
}

/// The units that address functions count in, and what they return beside an address.
#[derive(Clone, Copy)]
struct Terms {
    /// Bytes of a unit.
    unit: u64,
    /// Whether they also tell how many units are left of the run, and whether the unit is its first.
    run: bool,
    /// The beginning of their names.
    prefix: &'static str,
    /// The stream at whose copies they stop.
    stop: Option<NodeId>,
    /// Whether long lists of offsets leave the cache to what is there.
    once: bool,
}

impl Terms {
    fn parameters(self) -> &'static str {
        if self.run { "const u8 *tables, index at, index &left, bool &start" } else { "const u8 *tables, index at" }
    }
}

impl<'a> Places<'a> {
    pub(super) fn new(plan: &'a GpuPlan, tables: &'a mut Tables) -> Places<'a> {
        Places { plan, tables, text: String::new() }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Writes the functions that a template calls.
    pub(super) fn write(&mut self, function: AddressFunction) {
        match function {
            AddressFunction::Elements { unit, run } => self.elements(unit, run),
            AddressFunction::Records { record, size } => {
                let stop = Some(record);
                self.whole("outer", Terms { unit: size, run: false, prefix: "record", stop, once: false });
            }
            AddressFunction::Planes { word, stream, column } => self.planes(word.into(), stream, column),
            AddressFunction::InOrder { word, packed, memory } => {
                for (name, layout) in [("source", packed), ("target", memory)] {
                    self.in_order(name, layout, word.into());
                }
                self.tables.next_type();
            }
        }
    }

    /// `place(tables, at)`, or `place(tables, at, left, start)`: where unit `at` of all elements is.
    pub(super) fn elements(&mut self, unit: u64, run: bool) {
        let once = self.plan.disordered();
        self.whole("place", Terms { unit, run, prefix: "node", stop: None, once });
    }

    /// `place(tables, at)`, or `place(tables, at, left, start)`: where unit `at` of one element is.
    pub(super) fn one_element(&mut self, unit: u64, run: bool) {
        let terms = Terms { unit, run, prefix: "node", stop: None, once: false };
        let root = self.plan.layout().root();
        self.nodes(root.node, terms);
        let body = format!("    return {};", self.at(root, "at", terms));
        self.function("place", "one element", terms.parameters(), &body);
    }

    /// `outer(tables, plane)` and `place(tables, row)`: where a plane begins, and a word of a column in it.
    fn planes(&mut self, word: u64, stream: Option<NodeId>, column: Edge) {
        match stream {
            Some(stream) => {
                // A plane that the call alone bounds is the only one.
                let size = self.plan.layout().measure(stream).size;
                self.whole("outer", Terms { unit: size, run: false, prefix: "plane", stop: Some(stream), once: false });
            }
            None => {
                let body = "    return 0;".to_owned();
                self.function("outer", "the only plane", "const u8 *, index", &body);
            }
        }
        let terms = Terms { unit: word, run: false, prefix: "node", stop: None, once: false };
        self.nodes(column.node, terms);
        // Columns of a count begin at the root, which the other planes already include.
        let body = format!("    return {};", self.at(column, "at", terms));
        self.function("place", "a word of a column", terms.parameters(), &body);
    }

    /// `name(tables, at)`: where word `at` in the order of memory is in a layout of the same pieces, whose nodes have lists of their own.
    fn in_order(&mut self, name: &'static str, layout: Layout, word: u64) {
        self.tables.next_type();
        let plan = GpuPlan::regular(layout);
        let mut places = Places::new(&plan, self.tables);
        places.whole(name, Terms { unit: word, run: false, prefix: name, stop: None, once: true });
        self.text.push_str(&places.into_text());
    }

    fn whole(&mut self, name: &str, terms: Terms) {
        let layout = self.plan.layout();
        let root = layout.root();
        self.nodes(root.node, terms);
        let size = layout.size() / terms.unit;
        let body = if self.plan.continues() {
            format!("    return {};", self.at(root, "at", terms))
        } else {
            let (extent, rest) = (signed(layout.extent()), self.at(root, &remainder("at", "element", size), terms));
            format!("    const index element = {};\n    return (i64)element * {extent} + {rest};", quotient("at", size))
        };
        self.function(name, &format!("elements, {} bytes apart", layout.extent()), terms.parameters(), &body);
    }

    fn function(&mut self, name: &str, comment: &str, parameters: &str, body: &str) {
        let _ = write!(
            self.text,
            "// {comment}\nstatic __device__ __forceinline__ i64 {name}({parameters})\n{{\n{body}\n}}\n\n"
        );
    }

    /// An expression for where unit `at` of a child is.
    fn at(&self, child: Edge, at: &str, terms: Terms) -> String {
        let run = if terms.run { ", left, start" } else { "" };
        let call = format!("{}_{}(tables, {at}{run})", terms.prefix, child.node.index());
        if child.offset == 0 { call } else { format!("{} + {call}", signed(child.offset)) }
    }

    /// The functions of a node and of those below it, each once.
    fn nodes(&mut self, root: NodeId, terms: Terms) {
        let layout = self.plan.layout();
        let mut needed = vec![false; root.index() + 1];
        needed[root.index()] = true;
        let below: Vec<(NodeId, &Node)> = layout.nodes().take(root.index() + 1).collect();
        for (id, node) in below.iter().rev() {
            if needed[id.index()] && terms.stop != Some(*id) {
                node.edges().iter().for_each(|edge| needed[edge.node.index()] = true);
            }
        }
        for (id, node) in below {
            if needed[id.index()] {
                self.node(id, node, terms);
            }
        }
    }

    fn node(&mut self, id: NodeId, node: &Node, terms: Terms) {
        let size_of = |id: NodeId| self.plan.layout().measure(id).size / terms.unit;
        let size = size_of(id);
        let unit = terms.unit;
        let (comment, body) = if terms.stop == Some(id) {
            (format!("a {}", terms.prefix), "    return 0;".to_owned())
        } else {
            match node {
                Node::Dense { .. } => {
                    let rest = format!("{} - at", number(size));
                    let left = if terms.run { run(&rest, size > u64::from(u32::MAX), "0") } else { String::new() };
                    (format!("dense {} bytes", size * unit), format!("{left}    return {};", scaled("at", unit)))
                }
                Node::Stream { count, stride, child } => {
                    let copy = size_of(child.node);
                    let rest = self.at(*child, &remainder("at", "copy", copy), terms);
                    let body = format!(
                        "    const index copy = {};\n    return (i64)copy * {} + {rest};",
                        quotient("at", copy),
                        signed(*stride)
                    );
                    (format!("stream {count} x {stride} of %{}", child.node.index()), body)
                }
                Node::Indexed { offsets, child } => {
                    let shifted = offsets.iter().map(|offset| offset + child.offset);
                    let scale = common_divisor(shifted.clone());
                    let scaled = shifted.map(|offset| offset / scale);
                    let (table, wide) = self.tables.signed(ListName::Offsets(id, scale), scaled);
                    let copy = size_of(child.node);
                    let rest = self.at(Edge { offset: 0, ..*child }, &remainder("at", "copy", copy), terms);
                    let entry = entry(
                        table,
                        wide,
                        "copy",
                        terms.once && offsets.len() >= self.plan.analysis().tuning.words.long_list,
                    );
                    let body = format!(
                        "    const index copy = {};\n    return {entry} * {} + {rest};",
                        quotient("at", copy),
                        signed(scale)
                    );
                    (format!("indexed, {} offsets, of %{}", offsets.len(), child.node.index()), body)
                }
                Node::Runs { runs, kind } => {
                    let starts = self.tables.starts(id, runs, kind.size(), unit);
                    let body = if terms.run || size / runs.len() as u64 > RANKED {
                        let offsets = runs.iter().map(|run| run.offset);
                        self.searched(id, &starts, offsets, terms)
                    } else {
                        let offsets = runs.iter().map(|run| run.offset);
                        self.ranked(id, &starts, offsets, unit)
                    };
                    (format!("runs, {} of them", runs.len()), body)
                }
                Node::Record { parts } => {
                    let mut starts = vec![0];
                    starts.extend(parts.iter().scan(0, |at, part| {
                        *at += size_of(part.node);
                        Some(*at)
                    }));
                    let mut body = String::new();
                    self.bisect(parts, &starts, 1, terms, &mut body);
                    (format!("record of {}", parts.len()), body.trim_end().to_owned())
                }
            }
        };
        let name = format!("{}_{}", terms.prefix, id.index());
        self.function(&name, &comment, terms.parameters(), &body);
    }

    /// Runs of few units: one look-up of the rank table.
    fn ranked(
        &mut self,
        id: NodeId,
        starts: &[u64],
        offsets: impl ExactSizeIterator<Item = i64> + Clone,
        unit: u64,
    ) -> String {
        let rank = self.tables.rank(ListName::Rank(id, unit), starts);
        let shifts = offsets.zip(starts).map(|(offset, start)| (offset >> unit.trailing_zeros()) - *start as i64);
        let (table, wide) = self.tables.signed(ListName::Shifts(id, unit), shifts);
        format!(
            "    const uint2 rank = __ldg((const uint2 *)(tables + {rank}) + (at >> 5));\n    \
             const u32 run = rank.y + __popc(rank.x & 0xffffffffu >> (31 - (u32)(at & 31)));\n    \
             return ({} + (i64)at) * {unit};",
            entry(table, wide, "run", false)
        )
    }

    /// Long runs, or ones whose end matters: a search among the runs of a chunk.
    fn searched(
        &mut self,
        id: NodeId,
        starts: &[u64],
        offsets: impl ExactSizeIterator<Item = i64> + Clone,
        terms: Terms,
    ) -> String {
        let unit = terms.unit;
        let (shift, chunks) = tables::chunks(starts);
        let (chunks, _) = self.tables.rising(ListName::Chunks(id, unit), &chunks);
        let (starts, wide) = self.tables.rising(ListName::Starts(id, unit), starts);
        let number = if wide { "u64" } else { "u32" };
        let (offsets, wide) = self.tables.signed(ListName::Places(id), offsets);
        let left = if terms.run { run("starts[run + 1] - at", number == "u64", "starts[run]") } else { String::new() };
        // An index of 32 bits cannot be shifted by more.
        let at = if shift < 32 { "at" } else { "(u64)at" };
        format!(
            "    const u32 *chunks = (const u32 *)(tables + {chunks}) + ({at} >> {shift});\n    \
             const {number} *starts = (const {number} *)(tables + {starts});\n    \
             u32 run = __ldg(chunks), last = __ldg(chunks + 1);\n    \
             while (run < last) {{\n        \
             const u32 middle = run + (last - run + 1) / 2;\n        \
             if (__ldg(starts + middle) <= at)\n            run = middle;\n        \
             else\n            last = middle - 1;\n    }}\n{left}    \
             return {} + (i64)(at - starts[run]) * {unit};",
            entry(offsets, wide, "run", false)
        )
    }

    /// The part of a record that holds a unit, by halves.
    fn bisect(&self, parts: &[Edge], starts: &[u64], depth: usize, terms: Terms, body: &mut String) {
        let indent = "    ".repeat(depth);
        match parts {
            [] => {
                let _ = writeln!(body, "{indent}return 0;");
            }
            [part] => {
                let at = if starts[0] == 0 { "at".to_owned() } else { format!("at - {}", number(starts[0])) };
                let _ = writeln!(body, "{indent}return {};", self.at(*part, &at, terms));
            }
            _ => {
                let middle = parts.len() / 2;
                let _ = writeln!(body, "{indent}if (at < {}) {{", number(starts[middle]));
                self.bisect(&parts[..middle], &starts[..middle], depth + 1, terms, body);
                let _ = writeln!(body, "{indent}}}");
                self.bisect(&parts[middle..], &starts[middle..], depth, terms, body);
            }
        }
    }
}

/// The largest number that divides all: 1 for none, or for numbers of which one is 0 alone.
fn common_divisor(numbers: impl Iterator<Item = i64>) -> i64 {
    let mut divisor = 0u64;
    for number in numbers {
        let mut rest = number.unsigned_abs();
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
    }
    i64::try_from(divisor).unwrap_or(1).max(1)
}

/// Tells what is left of a run, and whether the unit is its first. No kernel asks for more than 32 bytes, so that is enough
/// of what an index may not hold.
fn run(rest: &str, long: bool, first: &str) -> String {
    let left = if long { format!("(index)min({rest}, 32ull)") } else { format!("(index)({rest})") };
    format!("    left = {left};\n    start = at == {first};\n")
}

pub(super) fn quotient(at: &str, size: u64) -> String {
    if size == 1 { at.to_owned() } else { format!("{at} / {}", number(size)) }
}

/// What is left of `at` after `copy` whole units of a size.
pub(super) fn remainder(at: &str, copy: &str, size: u64) -> String {
    if size == 1 { "0".to_owned() } else { format!("{at} - {copy} * {}", number(size)) }
}

fn scaled(at: &str, unit: u64) -> String {
    if unit == 1 { format!("(i64){at}") } else { format!("(i64){at} * {unit}") }
}

pub(super) fn entry(table: u64, wide: bool, index: &str, once: bool) -> String {
    let number = if wide { "i64" } else { "int" };
    let load = if once { "__ldcs" } else { "__ldg" };
    format!("(i64){load}((const {number} *)(tables + {table}) + {index})")
}
