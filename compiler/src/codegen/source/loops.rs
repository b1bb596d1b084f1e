//! Loops that pack or unpack a node, in C.

use super::outline::{Body, NodeShape, Outline};
use super::tables::ArrayNames;
use super::text::{Behind, Text, plus, plus_product};
use crate::layout::NodeId;
use crate::plan::Direction;

/// Names of loop counters, outermost first. Nodes deeper than that are functions.
const COUNTERS: [&str; 6] = ["i", "j", "k", "l", "m", "n"];

/// Writes the bodies of functions with the parameters `memory` and `packed`, which point to bytes.
pub(super) struct Loops<'a> {
    pub(super) outline: &'a Outline,
    pub(super) tables: &'a ArrayNames,
    pub(super) name: &'a str,
    pub(super) direction: Direction,
}

/// A function being written.
struct FunctionWriter<'a, 'b> {
    loops: &'b Loops<'a>,
    text: &'b mut Text,
    /// Packed bytes that `packed` is behind.
    behind: u64,
    /// Loops around.
    depth: usize,
}

impl Loops<'_> {
    /// The function that a node is, by its number.
    pub(super) fn part(&self, number: usize) -> String {
        format!("{}_{}_part_{number}", self.name, self.direction)
    }

    /// Parameters for the bytes of a node.
    pub(super) fn parameters(&self) -> &'static str {
        match self.direction {
            Direction::Pack => "const unsigned char *restrict memory, unsigned char *restrict packed",
            Direction::Unpack => "unsigned char *restrict memory, const unsigned char *restrict packed",
        }
    }

    /// Statements that move all of a node.
    pub(super) fn whole(&self, id: NodeId, text: &mut Text) {
        let mut writer = FunctionWriter { loops: self, text, behind: 0, depth: 0 };
        writer.node(id, "memory", 0);
    }

    /// Statements that move iterations `first` to `last` of a loop, which the node is.
    pub(super) fn iterations(&self, id: NodeId, text: &mut Text) {
        let mut writer = FunctionWriter { loops: self, text, behind: 0, depth: 0 };
        writer.repeated(id, "first", "last", "memory");
    }

    /// A statement that moves bytes.
    pub(super) fn copy(&self, memory: &str, packed: &str, bytes: &str) -> String {
        match self.direction {
            Direction::Pack => format!("memcpy({packed}, {memory}, {bytes});"),
            Direction::Unpack => format!("memcpy({memory}, {packed}, {bytes});"),
        }
    }
}

impl FunctionWriter<'_, '_> {
    /// Moves a node whose first byte is at `base` and an offset.
    fn node(&mut self, id: NodeId, base: &str, offset: i64) {
        let at = plus(base, offset);
        match self.loops.outline.shape(id) {
            NodeShape::Empty => {}
            NodeShape::Bytes(bytes) => self.bytes(&at, bytes),
            NodeShape::Repeat { count, .. } => self.repeated(id, "0", &count.to_string(), &at),
            NodeShape::Listed { offsets, .. } => self.repeated(id, "0", &offsets.len().to_string(), &at),
            NodeShape::Runs(runs) => self.runs(id, runs.len(), &at),
            NodeShape::Parts(parts) => {
                for part in parts {
                    self.body(part.body, base, offset.wrapping_add(part.offset));
                }
            }
        }
    }

    /// Moves a part, by a call if it is a function.
    fn body(&mut self, body: Body, base: &str, offset: i64) {
        match body {
            Body::Bytes(bytes) => self.bytes(&plus(base, offset), bytes),
            Body::Node(id) => match self.loops.outline.function(id) {
                None => self.node(id, base, offset),
                Some(number) => {
                    let (function, at) = (self.loops.part(number), plus(base, offset));
                    self.text.line(format_args!("{function}({at}, {});", Behind("packed", self.behind)));
                    self.behind += self.loops.outline.size(id);
                }
            },
        }
    }

    fn bytes(&mut self, at: &str, bytes: u64) {
        let packed = Behind("packed", self.behind).to_string();
        self.text.line(self.loops.copy(at, &packed, &bytes.to_string()));
        self.behind += bytes;
    }

    /// Moves `packed` behind what was moved.
    fn catch_up(&mut self) {
        if self.behind > 0 {
            self.text.line(format_args!("packed += {};", self.behind));
            self.behind = 0;
        }
    }

    fn open_loop(&mut self, first: &str, last: &str) -> &'static str {
        self.catch_up();
        let counter = COUNTERS.get(self.depth).copied().unwrap_or("o");
        self.text.open(format_args!("for (ptrdiff_t {counter} = {first}; {counter} < {last}; {counter}++)"));
        self.depth += 1;
        counter
    }

    fn close_loop(&mut self) {
        self.depth -= 1;
        self.text.close("}");
    }

    /// Moves some iterations of a loop.
    fn repeated(&mut self, id: NodeId, first: &str, last: &str, at: &str) {
        let counter = self.open_loop(first, last);
        let (at, child) = match self.loops.outline.shape(id) {
            NodeShape::Repeat { stride, child, .. } => (plus_product(at, counter, stride), child),
            NodeShape::Listed { child, .. } => (format!("{at} + {}[{counter}]", self.loops.tables.name(id)), child),
            _ => return,
        };
        self.body(self.loops.outline.body(child), &at, 0);
        self.catch_up();
        self.close_loop();
    }

    /// Moves runs of a list.
    fn runs(&mut self, id: NodeId, count: usize, at: &str) {
        let counter = self.open_loop("0", &count.to_string());
        let runs = self.loops.tables.name(id);
        let packed = format!("packed + {runs}[{counter}].packed");
        let memory = format!("{at} + {runs}[{counter}].memory");
        let bytes = format!("{runs}[{counter} + 1].packed - {runs}[{counter}].packed");
        self.text.line(self.loops.copy(&memory, &packed, &bytes));
        self.close_loop();
        self.behind += self.loops.outline.size(id);
    }
}
