//! Reads a type description and works out the facts a loop needs: sizes, extents, alignments, what is contiguous.
//!
//! Nothing here is shared with dtc. A peer that were printed from the same facts would share the same mistakes.

mod axes;
mod fields;
mod predefined;

pub use axes::Axis;
pub use predefined::{Bytes, Element};

use axes::{darray, subarray};
use fields::{number, numbers, text};
use predefined::predefined;
use serde_json::Value;
use std::collections::HashMap;

/// The place of a node in [`Description::nodes`]; children stand before their parents.
pub type NodeId = usize;

/// How many copies of the child each block of a list holds.
#[derive(Clone, Debug)]
pub enum Lengths {
    /// Every block holds the same number.
    Equal(i64),
    /// Each block has its own number.
    Each(Vec<i64>),
}

/// What a node is made of. Constructors that mean the same loops share a form.
#[derive(Clone, Debug)]
pub enum Form {
    /// A predefined type: displacement, element and number of elements of each part.
    Named(Vec<(Bytes, Element, i64)>),
    /// `count` blocks, `stride_bytes` apart, of `blocklength` copies of the child.
    Repeat {
        /// Number of blocks.
        count: i64,
        /// Copies of the child in a block.
        blocklength: i64,
        /// Bytes between the starts of blocks.
        stride_bytes: Bytes,
        /// The child.
        child: NodeId,
    },
    /// Blocks at listed displacements.
    List {
        /// Copies of the child in each block.
        lengths: Lengths,
        /// Where each block starts, counted in `unit_bytes`.
        displacements: Vec<i64>,
        /// Bytes of one unit of displacement.
        unit_bytes: Bytes,
        /// The child.
        child: NodeId,
    },
    /// Fields: blocklength, displacement and child of each.
    Struct(Vec<(i64, Bytes, NodeId)>),
    /// A box or a block-cyclic piece of an array.
    Grid {
        /// The axes, outermost first.
        axes: Vec<Axis>,
        /// The child.
        child: NodeId,
    },
    /// The child with other bounds, or the same child once more.
    Wrapped(NodeId),
}

/// What is known of a node.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Packed bytes.
    pub size: Bytes,
    /// Lower bound.
    pub lower: Bytes,
    /// Upper bound before padding; parents see it with the padding.
    pub upper: Bytes,
    /// Whether the bounds were set by resized, subarray or darray; such bounds outrank computed ones.
    pub bounds_are_set: bool,
    /// Whether there is neither a part nor a set bound.
    pub is_empty: bool,
    /// Strictest alignment of its elements.
    pub alignment: Bytes,
    /// First data byte.
    pub true_lower: Bytes,
    /// One past the last data byte.
    pub true_upper: Bytes,
    /// The element, where all are the same.
    pub element: Option<Element>,
    /// Number of elements where they follow each other without a gap from displacement 0.
    pub dense: Option<i64>,
    /// Greatest common divisor of all strides and displacements inside.
    pub step: Bytes,
    /// The same of the node alone, without what its children do inside.
    pub own_step: Bytes,
}

impl Facts {
    /// Bytes from one copy to the next.
    pub fn extent(&self) -> Bytes {
        let span = self.upper - self.lower;
        if self.bounds_are_set || self.alignment <= 1 {
            span
        } else {
            span + (self.alignment - span.rem_euclid(self.alignment)) % self.alignment
        }
    }

    const fn nothing() -> Self {
        Self {
            size: 0,
            lower: 0,
            upper: 0,
            bounds_are_set: false,
            is_empty: true,
            alignment: 1,
            true_lower: 0,
            true_upper: 0,
            element: None,
            dense: None,
            step: 0,
            own_step: 0,
        }
    }

    /// Takes in copies of a child whose displacements run from `first` to `last`.
    fn place(&mut self, child: &Self, first: Bytes, last: Bytes, copies: i64) {
        if copies == 0 {
            return;
        }
        if child.size > 0 {
            let (lower, upper) = (first + child.true_lower, last + child.true_upper);
            if self.size == 0 {
                (self.true_lower, self.true_upper, self.element) = (lower, upper, child.element);
            } else {
                self.true_lower = self.true_lower.min(lower);
                self.true_upper = self.true_upper.max(upper);
                if self.element != child.element {
                    self.element = None;
                }
            }
        }
        self.size += child.size * copies;
        self.alignment = self.alignment.max(child.alignment);
        self.step = common_divisor(self.step, child.step);
        let (lower, upper) = (first + child.lower, last + child.lower + child.extent());
        if self.is_empty || (child.bounds_are_set && !self.bounds_are_set) {
            (self.lower, self.upper) = (lower, upper);
        } else if child.bounds_are_set || !self.bounds_are_set {
            self.lower = self.lower.min(lower);
            self.upper = self.upper.max(upper);
        }
        self.bounds_are_set |= child.bounds_are_set;
        self.is_empty = false;
    }

    /// Drops the bounds of the parts of a type that has no bytes.
    fn without_bounds_if_empty(self) -> Self {
        if self.size == 0 { Self::nothing() } else { self }
    }
}

/// A node of the description.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is made of.
    pub form: Form,
    /// What is known of it.
    pub facts: Facts,
    /// Its name where the file gives one.
    pub name: Option<String>,
    /// How many places refer to it.
    pub references: usize,
}

/// A type description, read.
#[derive(Debug)]
pub struct Description {
    /// All nodes, children before parents.
    pub nodes: Vec<Node>,
    /// The type that is transferred.
    pub root: NodeId,
    /// Where address 0 of the type is in the buffer.
    pub origin_bytes: Bytes,
    /// The line that says what exchange this is.
    pub story: String,
}

/// The greatest common divisor, where 0 stands for "no constraint".
pub fn common_divisor(first: i64, second: i64) -> i64 {
    let (mut first, mut second) = (first.abs(), second.abs());
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first
}

/// Reads a description from a JSON document: `type`, or `types` and `root`, or `tree` as in a collection of cases.
pub fn read(document: &Value) -> Result<Description, String> {
    let mut reader = Reader { nodes: Vec::new(), types: document.get("types"), named: HashMap::new() };
    let root = if document.get("types").is_some() {
        let name = document.get("root").and_then(Value::as_str).ok_or("root: expected the name of a type")?;
        reader.reference(name, "root")?
    } else if let Some(tree) = document.get("type") {
        reader.node(tree, "type")?
    } else if let Some(tree) = document.get("tree") {
        reader.node(tree, "tree")?
    } else {
        return Err("expected `type`, `types` and `root`, or `tree`".into());
    };
    let origin = document.get("origin_bytes").or_else(|| document.get("send_origin_bytes"));
    let story = document.get("story").or_else(|| document.get("app")).and_then(Value::as_str);
    Ok(Description {
        nodes: reader.nodes,
        root,
        origin_bytes: origin.and_then(Value::as_i64).unwrap_or(0),
        story: story.unwrap_or("a type without a story").to_owned(),
    })
}

struct Reader<'document> {
    nodes: Vec<Node>,
    types: Option<&'document Value>,
    /// Nodes by name; none while the name is being read, so that a cycle is noticed.
    named: HashMap<String, Option<NodeId>>,
}

impl Reader<'_> {
    fn reference(&mut self, name: &str, path: &str) -> Result<NodeId, String> {
        match self.named.get(name) {
            Some(Some(id)) => return Ok(*id),
            Some(None) => return Err(format!("{path}: the type {name} contains itself")),
            None => {}
        }
        let tree = self
            .types
            .and_then(|types| types.get(name))
            .ok_or_else(|| format!("{path}: there is no type named {name}"))?;
        self.named.insert(name.to_owned(), None);
        let id = self.node(tree, &format!("types.{name}"))?;
        self.nodes[id].name = Some(name.to_owned());
        self.named.insert(name.to_owned(), Some(id));
        Ok(id)
    }

    fn add(&mut self, form: Form, facts: Facts) -> NodeId {
        match &form {
            Form::Named(_) => {}
            Form::Repeat { child, .. } | Form::List { child, .. } | Form::Grid { child, .. } | Form::Wrapped(child) => {
                self.nodes[*child].references += 1;
            }
            Form::Struct(fields) => {
                for (_, _, child) in fields {
                    self.nodes[*child].references += 1;
                }
            }
        }
        self.nodes.push(Node { form, facts, name: None, references: 0 });
        self.nodes.len() - 1
    }

    fn node(&mut self, tree: &Value, path: &str) -> Result<NodeId, String> {
        if let Some(name) = tree.get("ref").and_then(Value::as_str) {
            return self.reference(name, path);
        }
        let kind = text(tree, "kind", path)?;
        match kind {
            "named" => self.predefined(text(tree, "name", path)?, path),
            "struct" => self.structure(tree, path),
            _ => {
                let child = tree.get("child").ok_or_else(|| format!("{path}.child: expected a type"))?;
                let child = self.node(child, &format!("{path}.child"))?;
                self.with_one_child(kind, tree, child, path)
            }
        }
    }

    fn predefined(&mut self, name: &str, path: &str) -> Result<NodeId, String> {
        let parts = predefined(name).ok_or_else(|| format!("{path}.name: no predefined type is named {name}"))?;
        let mut facts = Facts::nothing();
        for &(displacement, element, count) in &parts {
            let part = Facts {
                size: element.bytes * count,
                upper: element.bytes * count,
                true_upper: element.bytes * count,
                is_empty: false,
                alignment: element.bytes,
                element: Some(element),
                ..Facts::nothing()
            };
            facts.place(&part, displacement, displacement, 1);
            facts.step = common_divisor(facts.step, displacement);
        }
        if let [(0, _, count)] = parts[..] {
            facts.dense = Some(count);
        }
        Ok(self.add(Form::Named(parts), facts))
    }

    fn structure(&mut self, tree: &Value, path: &str) -> Result<NodeId, String> {
        let lengths = numbers(tree, "blocklengths", path)?;
        let displacements = numbers(tree, "displacements_bytes", path)?;
        let children = tree
            .get("children")
            .and_then(Value::as_array)
            .ok_or_else(|| format!("{path}.children: expected a list of types"))?;
        if lengths.len() != children.len() || displacements.len() != children.len() {
            return Err(format!("{path}: blocklengths, displacements_bytes and children differ in length"));
        }
        let mut fields = Vec::new();
        let mut facts = Facts::nothing();
        for (index, child) in children.iter().enumerate() {
            let child = self.node(child, &format!("{path}.children[{index}]"))?;
            let (length, displacement) = (lengths[index], displacements[index]);
            let below = self.nodes[child].facts.clone();
            let reach = (length - 1).max(0) * below.extent();
            facts.place(&below, displacement + reach.min(0), displacement + reach.max(0), length);
            if length > 0 {
                facts.step = common_divisor(facts.step, displacement);
            }
            if length > 1 {
                facts.step = common_divisor(facts.step, below.extent());
            }
            fields.push((length, displacement, child));
        }
        Ok(self.add(Form::Struct(fields), facts.without_bounds_if_empty()))
    }

    fn with_one_child(&mut self, kind: &str, tree: &Value, child: NodeId, path: &str) -> Result<NodeId, String> {
        let extent = self.nodes[child].facts.extent();
        let form = match kind {
            "contiguous" => {
                Form::Repeat { count: 1, blocklength: number(tree, "count", path)?, stride_bytes: 0, child }
            }
            "vector" | "hvector" => {
                let stride_bytes = match kind {
                    "vector" => number(tree, "stride", path)? * extent,
                    _ => number(tree, "stride_bytes", path)?,
                };
                let (count, blocklength) = (number(tree, "count", path)?, number(tree, "blocklength", path)?);
                Form::Repeat { count, blocklength, stride_bytes, child }
            }
            "indexed" | "hindexed" | "indexed_block" | "hindexed_block" => {
                let (field, unit_bytes) =
                    if kind.starts_with('h') { ("displacements_bytes", 1) } else { ("displacements", extent) };
                let displacements = numbers(tree, field, path)?;
                let lengths = if kind.ends_with("block") {
                    Lengths::Equal(number(tree, "blocklength", path)?)
                } else {
                    let lengths = numbers(tree, "blocklengths", path)?;
                    if lengths.len() != displacements.len() {
                        return Err(format!("{path}: blocklengths and {field} differ in length"));
                    }
                    Lengths::Each(lengths)
                };
                Form::List { lengths, displacements, unit_bytes, child }
            }
            "subarray" => Form::Grid { axes: subarray(tree, extent, path)?, child },
            "darray" => Form::Grid { axes: darray(tree, extent, path)?, child },
            "resized" | "dup" => Form::Wrapped(child),
            _ => return Err(format!("{path}.kind: there is no kind {kind}")),
        };
        let mut facts = self.facts_with_one_child(&form, child);
        match kind {
            "resized" => {
                let lower = number(tree, "lb", path)?;
                set_bounds(&mut facts, lower, lower + number(tree, "extent", path)?);
            }
            "subarray" => set_bounds(&mut facts, 0, product(&numbers(tree, "sizes", path)?) * extent),
            "darray" => set_bounds(&mut facts, 0, product(&numbers(tree, "gsizes", path)?) * extent),
            _ => {}
        }
        Ok(self.add(form, facts))
    }

    fn facts_with_one_child(&self, form: &Form, child: NodeId) -> Facts {
        let below = &self.nodes[child].facts;
        let extent = below.extent();
        let mut facts = Facts::nothing();
        let dense = below.dense.filter(|_| extent == below.size);
        match form {
            Form::Wrapped(_) => return below.clone(),
            Form::Named(_) | Form::Struct(_) => {}
            Form::Repeat { count, blocklength, stride_bytes, .. } => {
                let copies = count.max(&0) * blocklength.max(&0);
                let reach = [(count - 1).max(0) * stride_bytes, (blocklength - 1).max(0) * extent];
                let first: Bytes = reach.iter().map(|reach| reach.min(&0)).sum();
                let last: Bytes = reach.iter().map(|reach| reach.max(&0)).sum();
                facts.place(below, first, last, copies);
                if *count > 1 {
                    facts.own_step = common_divisor(facts.own_step, *stride_bytes);
                }
                if *blocklength > 1 {
                    facts.own_step = common_divisor(facts.own_step, extent);
                }
                // Adjacent blocks and single copies are one run; a person writes one loop for them.
                if copies > 0 && (*count == 1 || blocklength * extent == *stride_bytes) {
                    facts.dense = if copies == 1 { below.dense } else { dense.map(|elements| elements * copies) };
                }
            }
            Form::List { lengths, displacements, unit_bytes, .. } => {
                for (index, displacement) in displacements.iter().enumerate() {
                    let length = match lengths {
                        Lengths::Equal(length) => *length,
                        Lengths::Each(lengths) => lengths[index],
                    };
                    let start = displacement * unit_bytes;
                    let reach = (length - 1).max(0) * extent;
                    facts.place(below, start + reach.min(0), start + reach.max(0), length);
                    facts.own_step =
                        common_divisor(facts.own_step, if *unit_bytes == 1 { *displacement } else { *unit_bytes });
                    if length > 1 {
                        facts.own_step = common_divisor(facts.own_step, extent);
                    }
                }
            }
            Form::Grid { axes, .. } => {
                let (mut first, mut last, mut copies) = (0, 0, 1);
                for axis in axes {
                    let indices = axis.indices();
                    copies *= indices.map_or(0, |(number, ..)| number);
                    if let Some((_, low, high)) = indices {
                        let ends = [low * axis.stride_bytes, high * axis.stride_bytes];
                        first += ends[0].min(ends[1]);
                        last += ends[0].max(ends[1]);
                    }
                    facts.own_step = common_divisor(facts.own_step, axis.stride_bytes);
                }
                facts.place(below, first, last, copies);
            }
        }
        facts.step = common_divisor(facts.step, facts.own_step);
        facts.without_bounds_if_empty()
    }
}

fn set_bounds(facts: &mut Facts, lower: Bytes, upper: Bytes) {
    (facts.lower, facts.upper) = (lower, upper);
    facts.bounds_are_set = true;
    facts.is_empty = false;
}

fn product(numbers: &[i64]) -> i64 {
    numbers.iter().product()
}
