//! Where printed C text is: offsets, pointers, and names of variables.

use crate::description::{Bytes, Element};
use std::fmt::Write;

pub(super) const IN_MEMORY: &str = "writing to a string cannot fail";

const VARIABLES: [&str; 10] = ["i", "j", "k", "l", "m", "n", "o", "p", "q", "r"];

/// How the two pointers are typed at a place in the C text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Both point to `char`; elements that may be unaligned are copied one by one.
    Bytes,
    /// Both point to the element.
    Elements(Element),
}

impl View {
    pub(super) const fn c_type(self) -> &'static str {
        match self {
            Self::Bytes => "char",
            Self::Elements(element) => element.c_type,
        }
    }

    pub(super) const fn unit(self) -> Bytes {
        match self {
            Self::Bytes => 1,
            Self::Elements(element) => element.bytes,
        }
    }
}

/// A byte offset from the data pointer: a constant and terms of loop variables and list entries.
#[derive(Clone, Default)]
pub(super) struct Place {
    pub(super) constant: Bytes,
    pub(super) terms: Vec<(String, Bytes)>,
}

impl Place {
    pub(super) fn plus(&self, constant: Bytes) -> Self {
        Self { constant: self.constant + constant, terms: self.terms.clone() }
    }

    pub(super) fn with(&self, index: &str, scale: Bytes) -> Self {
        let mut place = self.clone();
        if scale != 0 {
            place.terms.push((index.to_owned(), scale));
        }
        place
    }

    pub(super) fn text(&self, unit: Bytes) -> String {
        let mut text = String::new();
        if self.constant != 0 || self.terms.is_empty() {
            // A long constant next to list entries, so that the sum of two ints does not overflow.
            let suffix = if self.terms.iter().any(|(index, _)| index.contains('[')) { "L" } else { "" };
            write!(text, "{}{suffix}", self.constant / unit).expect(IN_MEMORY);
        }
        for (index, scale) in &self.terms {
            let scale = scale / unit;
            let sign = match (text.is_empty(), scale < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text.push_str(sign);
            text.push_str(index);
            if scale.abs() != 1 {
                // A long constant, so that products of int list entries do not overflow.
                write!(text, " * {}L", scale.abs()).expect(IN_MEMORY);
            }
        }
        text
    }
}

/// Where in the C text we are.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    pub(super) view: View,
    /// Name of the pointer into memory.
    pub(super) data: &'static str,
    /// Name of the running pointer into the packed bytes.
    pub(super) stream: &'static str,
    /// Depth of loops, which picks the next variable.
    pub(super) loops: usize,
    /// Depth of braces.
    pub(super) indent: usize,
}

impl Scope {
    pub(super) fn variable(&self) -> String {
        VARIABLES.get(self.loops).map_or_else(|| format!("i{}", self.loops), |&name| name.to_owned())
    }

    pub(super) const fn inside(self) -> Self {
        Self { loops: self.loops + 1, indent: self.indent + 1, ..self }
    }
}
