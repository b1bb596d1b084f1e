//! The representation `external32`: the values of a type in packed order, and the position of each in both
//! representations.
//!
//! Displacements do not matter, because the packed bytes are converted. So every constructor but the struct is a number
//! of copies of its child. Consecutive values with the same conversion are one run, however deeply they were nested.
//!
//! # Standard sections
//!
//! MPI 4.1, 5.3 (`MPI_Pack_external`), 14.5.2 (the representation).

mod conversion;
mod cursor;

pub use conversion::{Conversion, ConversionRun};
pub use cursor::{Cursor, EqualRecords};

use crate::datatype::{Constructor, Datatype};

/// The values of a type in packed order. Building it takes memory and time linear in the length of the description.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_compiler::external32::{Conversion, External32, ConversionRun};
/// let mut types = TypeBuilder::new();
/// let pair = types.named(Predefined::LONG_INT);
/// let pairs = types.vector(3, 2, 5, pair)?;
/// let external = External32::new(&types.finish(pairs)?);
/// assert_eq!(external.size(), 6 * (4 + 4));
/// // The second byte of the int of the third pair: 2 whole pairs and a long come first.
/// let (cursor, skipped) = external.cursor(1, 21);
/// assert_eq!((cursor.packed(), skipped), (2 * 12 + 8, 1));
/// assert_eq!(cursor.run(), ConversionRun { conversion: Conversion::Big32, values: 1 });
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct External32 {
    nodes: Vec<ValueNode>,
    /// `None` without values.
    root: Option<ValuePart>,
    size: Bytes,
}

/// A length or a position in both representations.
///
/// ```
/// use dtc_compiler::external32::Bytes;
/// let long = Bytes { packed: 8, external: 4 };
/// # let _ = long;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// In packed bytes, whose values have the size they have in memory.
    pub packed: u64,
    /// In `external32` bytes.
    pub external: u64,
}

impl Bytes {
    fn times(self, copies: u64) -> Bytes {
        Bytes { packed: self.packed * copies, external: self.external * copies }
    }

    fn plus(self, other: Bytes) -> Bytes {
        Bytes { packed: self.packed + other.packed, external: self.external + other.external }
    }
}

/// A part of a type's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValuePart {
    ConversionRun(ConversionRun),
    Node(usize),
}

#[derive(Clone, Debug)]
enum ValueNode {
    /// Copies of a part that is not a single run, because copies of a run are a run.
    Repeat { count: u64, child: ValuePart, each: Bytes },
    /// At least two parts, each with its position.
    Sequence { parts: Box<[(Bytes, ValuePart)]>, size: Bytes },
    /// At least two runs, each with its position.
    Record { runs: Box<[(Bytes, ConversionRun)]>, size: Bytes },
}

impl External32 {
    /// The values of a datatype.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::external32::External32;
    /// let mut types = TypeBuilder::new();
    /// let wide = types.named(Predefined::WCHAR);
    /// assert_eq!(External32::new(&types.finish(wide)?).size(), 2);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn new(datatype: &Datatype) -> External32 {
        let mut external = External32 { nodes: Vec::new(), root: None, size: Bytes::default() };
        let nodes = datatype.nodes();
        let mut parts = Vec::with_capacity(nodes.len());
        for node in nodes.iter() {
            parts.push(external.part(node, |child| parts[nodes.place(child)]));
        }
        external.root = parts.pop().flatten();
        external.size = external.root.map_or(Bytes::default(), |root| external.bytes(root));
        external
    }

    /// Bytes of one element in `external32`.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::external32::External32;
    /// let mut types = TypeBuilder::new();
    /// let pair = types.named(Predefined::LONG_DOUBLE_INT);
    /// assert_eq!(External32::new(&types.finish(pair)?).size(), 20);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn size(&self) -> u64 {
        self.size.external
    }

    /// Whether no value needs a conversion.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::external32::External32;
    /// let mut types = TypeBuilder::new();
    /// let character = types.named(Predefined::CHAR);
    /// assert!(External32::new(&types.finish(character)?).is_bytes());
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn is_bytes(&self) -> bool {
        matches!(self.root, None | Some(ValuePart::ConversionRun(ConversionRun { conversion: Conversion::Bytes, .. })))
    }

    fn bytes(&self, part: ValuePart) -> Bytes {
        match part {
            ValuePart::ConversionRun(ConversionRun { conversion, values }) => {
                Bytes { packed: conversion.packed_size(), external: conversion.external_size() }.times(values)
            }
            ValuePart::Node(at) => match &self.nodes[at] {
                ValueNode::Repeat { count, each, .. } => each.times(*count),
                ValueNode::Sequence { size, .. } | ValueNode::Record { size, .. } => *size,
            },
        }
    }

    /// The part for a node of a datatype; `known` returns the parts of its children.
    fn part(&mut self, node: &Datatype, known: impl Fn(&Datatype) -> Option<ValuePart>) -> Option<ValuePart> {
        match node.constructor() {
            Constructor::Named(predefined) => {
                let runs = predefined
                    .fields()
                    .iter()
                    .map(|&field| (ValuePart::ConversionRun(ConversionRun::of(*predefined, field)), 1));
                self.sequence(runs)
            }
            Constructor::Struct { blocklengths, .. } => {
                let blocks =
                    node.children().iter().zip(blocklengths.iter()).filter(|&(_, &blocklength)| blocklength > 0);
                let blocks = blocks.filter_map(|(child, &blocklength)| Some((known(child)?, blocklength as u64)));
                self.sequence(blocks)
            }
            _ => {
                let child = node.children().first()?;
                let part = known(child)?;
                let copies = node.facts().size.checked_div(child.facts().size)?;
                self.sequence(std::iter::once((part, copies)))
            }
        }
    }

    /// Copies of parts, in sequence.
    fn sequence(&mut self, parts: impl Iterator<Item = (ValuePart, u64)>) -> Option<ValuePart> {
        let mut merged: Vec<(ValuePart, u64)> = Vec::new();
        for (part, copies) in parts.filter(|&(_, copies)| copies > 0) {
            match (merged.last_mut(), part) {
                (Some((ValuePart::ConversionRun(last), _)), ValuePart::ConversionRun(run))
                    if last.conversion == run.conversion =>
                {
                    last.values += run.values * copies;
                }
                (_, ValuePart::ConversionRun(run)) => {
                    merged.push((ValuePart::ConversionRun(ConversionRun { values: run.values * copies, ..run }), 1))
                }
                (Some((last, known)), _) if *last == part => *known += copies,
                _ => merged.push((part, copies)),
            }
        }
        let mut size = Bytes::default();
        let mut parts = Vec::with_capacity(merged.len());
        for (part, copies) in merged {
            let part = self.repeat(part, copies);
            parts.push((size, part));
            size = size.plus(self.bytes(part));
        }
        match parts[..] {
            [] => None,
            [(_, only)] => Some(only),
            _ => {
                let run = |&(start, part): &(Bytes, ValuePart)| {
                    if let ValuePart::ConversionRun(run) = part { Some((start, run)) } else { None }
                };
                let runs: Option<Box<[(Bytes, ConversionRun)]>> = parts.iter().map(run).collect();
                Some(self.insert(match runs {
                    Some(runs) => ValueNode::Record { runs, size },
                    None => ValueNode::Sequence { parts: parts.into(), size },
                }))
            }
        }
    }

    fn repeat(&mut self, part: ValuePart, copies: u64) -> ValuePart {
        let ValuePart::Node(at) = part else { return part };
        match self.nodes[at] {
            _ if copies == 1 => part,
            ValueNode::Repeat { count, child, each } => {
                self.insert(ValueNode::Repeat { count: count * copies, child, each })
            }
            ValueNode::Sequence { size, .. } | ValueNode::Record { size, .. } => {
                self.insert(ValueNode::Repeat { count: copies, child: part, each: size })
            }
        }
    }

    fn insert(&mut self, node: ValueNode) -> ValuePart {
        self.nodes.push(node);
        ValuePart::Node(self.nodes.len() - 1)
    }
}
