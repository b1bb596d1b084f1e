//! The address function: where a packed byte is in memory.

use super::outline::{Body, NodePart, NodeShape, Outline};
use super::tables::ArrayNames;
use super::text::{Text, constant, plus, plus_product};
use crate::layout::NodeId;

/// What the address functions of a language look like.
pub(super) struct Address<'a> {
    pub(super) outline: &'a Outline,
    pub(super) tables: &'a ArrayNames,
    /// The type of offsets in memory.
    pub(super) signed: &'static str,
    /// The type of packed positions.
    pub(super) index: &'static str,
    /// Whether the functions also tell in `*run` how many bytes follow in memory.
    pub(super) run: bool,
    /// What the names of functions begin with.
    pub(super) name: &'a str,
}

impl Address<'_> {
    /// The function of a node that has one.
    pub(super) fn part(&self, number: usize) -> String {
        format!("{}place_in_part_{number}", self.name)
    }

    /// Statements that return where byte `at` of a node is, when the first byte of the node is at an offset.
    pub(super) fn node(&self, id: NodeId, offset: i64, text: &mut Text) {
        self.from(id, At { offset, declared: false }, text);
    }

    /// Statements that return where byte `at` of all elements is.
    pub(super) fn elements(&self, text: &mut Text) {
        let (layout, root) = (self.outline.layout(), self.outline.root());
        let (size, extent) = (layout.size(), layout.extent());
        let mut at = At { offset: self.outline.origin(), declared: false };
        // The outermost loop, or the one run, goes on in the next element.
        let continues = match self.outline.shape(root) {
            NodeShape::Bytes(bytes) => i128::from(bytes) == i128::from(extent),
            NodeShape::Repeat { count, stride, .. } => i128::from(count) * i128::from(stride) == i128::from(extent),
            _ => false,
        };
        if !continues {
            let number = if size == 1 { "at".to_owned() } else { format!("(at / {size})") };
            self.add(&mut at, |place| plus_product(place, &format!("({}){number}", self.signed), extent), text);
            text.line(if size == 1 { "at = 0;".to_owned() } else { format!("at %= {size};") });
        }
        self.from(root, at, text);
    }

    fn from(&self, mut id: NodeId, mut at: At, text: &mut Text) {
        // Loops follow each other, so that only parts nest.
        loop {
            let child = match self.outline.shape(id) {
                NodeShape::Empty => return text.line("return 0;"),
                NodeShape::Bytes(bytes) => return self.bytes(bytes, at, text),
                NodeShape::Parts(parts) => return self.parts(&parts, at, text),
                NodeShape::Runs(runs) => return self.runs(id, runs.len(), at, text),
                NodeShape::Repeat { stride, child, .. } => {
                    let copy = self.quotient(child);
                    self.add(&mut at, |place| plus_product(place, &copy, stride), text);
                    child
                }
                NodeShape::Listed { child, .. } => {
                    let list = self.tables.name(id);
                    let copy = match self.outline.size(child) {
                        1 => "at".to_owned(),
                        size => format!("at / {size}"),
                    };
                    self.add(&mut at, |place| format!("{place} + {list}[{copy}]"), text);
                    child
                }
            };
            match self.outline.size(child) {
                1 => text.line("at = 0;"),
                size => text.line(format_args!("at %= {size};")),
            }
            if let Some(number) = self.outline.function(child) {
                return self.call(number, at, text);
            }
            id = child;
        }
    }

    /// The number of a copy, as a signed number.
    fn quotient(&self, copy: NodeId) -> String {
        match self.outline.size(copy) {
            1 => format!("({})at", self.signed),
            size => format!("({})(at / {size})", self.signed),
        }
    }

    /// Adds a term to the place so far.
    fn add(&self, at: &mut At, sum: impl Fn(&str) -> String, text: &mut Text) {
        let sum = simplified(&sum(&at.written()));
        let subtracted = sum.strip_prefix("place - ").filter(|term| !term.contains(" + ") && !term.contains(" - "));
        match (sum.strip_prefix("place + "), subtracted) {
            _ if !at.declared => text.line(format_args!("{} place = {sum};", self.signed)),
            (Some(term), _) => text.line(format_args!("place += {term};")),
            (None, Some(term)) => text.line(format_args!("place -= {term};")),
            (None, None) => text.line(format_args!("place = {sum};")),
        }
        *at = At { offset: 0, declared: true };
    }

    fn bytes(&self, bytes: u64, at: At, text: &mut Text) {
        self.left(&format!("{bytes} - at"), text);
        let sum = format!("{} + ({})at", at.written(), self.signed);
        text.line(format_args!("return {};", simplified(&sum)));
    }

    fn left(&self, bytes: &str, text: &mut Text) {
        if self.run {
            text.line(format_args!("*run = {bytes};"));
        }
    }

    fn call(&self, number: usize, at: At, text: &mut Text) {
        let run = if self.run { ", run" } else { "" };
        let sum = format!("{} + {}(at{run})", at.written(), self.part(number));
        text.line(format_args!("return {};", simplified(&sum)));
    }

    fn runs(&self, id: NodeId, count: usize, at: At, text: &mut Text) {
        let (runs, index, signed) = (self.tables.name(id), self.index, self.signed);
        text.line("/* The last run that begins at this byte or before it. */");
        text.line(format_args!("{index} run_at = 0;"));
        text.line(format_args!("{index} end = {count};"));
        text.open("while (end - run_at > 1)");
        text.line(format_args!("const {index} middle = run_at + (end - run_at) / 2;"));
        text.open(format_args!("if ({runs}[middle].packed <= at)"));
        text.line("run_at = middle;");
        text.close("} else {");
        text.indent();
        text.line("end = middle;");
        text.close("}");
        text.close("}");
        self.left(&format!("{runs}[run_at + 1].packed - at"), text);
        let sum = format!("{} + {runs}[run_at].memory + ({signed})(at - {runs}[run_at].packed)", at.written());
        text.line(format_args!("return {};", simplified(&sum)));
    }

    /// Parts, found by halves.
    fn parts(&self, parts: &[NodePart], at: At, text: &mut Text) {
        let Some((first, others)) = parts.split_first() else { return text.line("return 0;") };
        if others.is_empty() {
            let at = at.shifted(first.offset);
            return match first.body {
                Body::Bytes(bytes) => self.bytes(bytes, at, text),
                Body::Node(id) => match self.outline.function(id) {
                    Some(number) => self.call(number, at, text),
                    None => self.from(id, at, text),
                },
            };
        }
        let (low, high) = parts.split_at(parts.len() / 2);
        let bytes: u64 = low.iter().map(|part| self.outline.size_of(part.body)).sum();
        text.open(format_args!("if (at < {bytes})"));
        self.parts(low, at, text);
        text.close("}");
        text.line(format_args!("at -= {bytes};"));
        self.parts(high, at, text);
    }
}

/// What is known of a place: the variable `place`, if it is declared, and an offset.
#[derive(Clone, Copy)]
struct At {
    offset: i64,
    declared: bool,
}

impl At {
    fn shifted(self, offset: i64) -> At {
        At { offset: self.offset.wrapping_add(offset), ..self }
    }

    fn written(self) -> String {
        if self.declared { plus("place", self.offset) } else { constant(self.offset) }
    }
}

/// A sum without a leading zero.
fn simplified(sum: &str) -> String {
    match (sum.strip_prefix("0 + "), sum.strip_prefix("0 - ")) {
        (Some(rest), _) => rest.to_owned(),
        (None, Some(rest)) => format!("-{rest}"),
        (None, None) => sum.to_owned(),
    }
}
