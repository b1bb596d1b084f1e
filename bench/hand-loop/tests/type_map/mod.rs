//! The slow and obvious expansion of a datatype: its type map, entry by entry, as the MPI standard writes it down.
//!
//! Bounds are entries too (the standard's lb_marker and ub_marker, and the ends of parts), so that sticky bounds follow from the
//! definition and not from a rule. It shares nothing with the program under test but the JSON library.

use serde_json::Value;
use std::collections::HashMap;

/// What stands at a displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A basic element of some bytes, with its alignment.
    Element {
        /// Its size.
        bytes: i64,
        /// Its alignment.
        alignment: i64,
    },
    /// A lower bound set explicitly.
    LowerMarker,
    /// An upper bound set explicitly.
    UpperMarker,
    /// Where a part begins.
    Begin,
    /// Where a part ends, padding included.
    End,
}

/// A type map: entries and their displacements, in order.
#[derive(Clone, Debug, Default)]
pub struct TypeMap(pub Vec<(i64, Entry)>);

impl TypeMap {
    /// The lower bound.
    pub fn lower(&self) -> i64 {
        let marked = self.0.iter().filter(|(_, entry)| *entry == Entry::LowerMarker).map(|(at, _)| *at).min();
        marked.or_else(|| self.0.iter().map(|(at, _)| *at).min()).unwrap_or(0)
    }

    /// The upper bound, padding included.
    pub fn upper(&self) -> i64 {
        let marked = self.0.iter().filter(|(_, entry)| *entry == Entry::UpperMarker).map(|(at, _)| *at).max();
        if let Some(upper) = marked {
            return upper;
        }
        let (mut upper, mut strictest) = (self.lower(), 1);
        for (at, entry) in &self.0 {
            match entry {
                Entry::Element { bytes, alignment } => {
                    upper = upper.max(at + bytes);
                    strictest = strictest.max(*alignment);
                }
                Entry::End => upper = upper.max(*at),
                _ => {}
            }
        }
        while (upper - self.lower()) % strictest != 0 {
            upper += 1;
        }
        upper
    }

    /// Bytes from one copy to the next.
    pub fn extent(&self) -> i64 {
        self.upper() - self.lower()
    }

    /// As a part of other types: its own parts are forgotten, its bounds are not. Without elements, all bounds are forgotten.
    fn into_part(mut self) -> Self {
        if !self.0.iter().any(|(_, entry)| matches!(entry, Entry::Element { .. })) {
            return Self(vec![(0, Entry::Begin), (0, Entry::End)]);
        }
        let (lower, upper) = (self.lower(), self.upper());
        self.0.retain(|(_, entry)| !matches!(entry, Entry::Begin | Entry::End));
        self.0.extend([(lower, Entry::Begin), (upper, Entry::End)]);
        self
    }

    /// Appends a copy of `other`, moved.
    fn append(&mut self, other: &Self, displacement: i64) {
        self.0.extend(other.0.iter().map(|(at, entry)| (at + displacement, *entry)));
    }

    /// Appends a block: copies one extent apart.
    fn append_block(&mut self, other: &Self, length: i64, displacement: i64, extent: i64) {
        for copy in 0..length {
            self.append(other, displacement + copy * extent);
        }
    }

    fn set_bounds(mut self, lower: i64, upper: i64) -> Self {
        self.0.retain(|(_, entry)| matches!(entry, Entry::Element { .. }));
        self.0.push((lower, Entry::LowerMarker));
        self.0.push((upper, Entry::UpperMarker));
        self
    }

    /// The displacements of all packed bytes of `count` copies, in packed order, as runs.
    pub fn bytes(&self, count: i64) -> Vec<(i64, i64)> {
        let extent = self.extent();
        let mut runs = Vec::new();
        for copy in 0..count {
            for (at, entry) in &self.0 {
                if let Entry::Element { bytes, .. } = entry {
                    runs.push((at + copy * extent, *bytes));
                }
            }
        }
        runs
    }
}

/// The type map of a description.
pub fn expand(document: &Value) -> TypeMap {
    let mut named = HashMap::new();
    if let Some(tree) = document.get("type") {
        tree_map(tree, document, &mut named)
    } else {
        reference(document["root"].as_str().unwrap(), document, &mut named)
    }
}

fn reference(name: &str, document: &Value, named: &mut HashMap<String, TypeMap>) -> TypeMap {
    if let Some(map) = named.get(name) {
        return map.clone();
    }
    let map = tree_map(&document["types"][name], document, named);
    named.insert(name.to_owned(), map.clone());
    map
}

fn list(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

fn tree_map(tree: &Value, document: &Value, named: &mut HashMap<String, TypeMap>) -> TypeMap {
    if let Some(name) = tree.get("ref") {
        return reference(name.as_str().unwrap(), document, named);
    }
    let number = |field: &str| tree[field].as_i64().unwrap();
    let kind = tree["kind"].as_str().unwrap();
    let mut map = TypeMap::default();
    match kind {
        "named" => return predefined(tree["name"].as_str().unwrap()).into_part(),
        "struct" => {
            let (lengths, displacements) = (list(&tree["blocklengths"]), list(&tree["displacements_bytes"]));
            for (index, child) in tree["children"].as_array().unwrap().iter().enumerate() {
                let child = tree_map(child, document, named);
                map.append_block(&child, lengths[index], displacements[index], child.extent());
            }
            return map.into_part();
        }
        _ => {}
    }
    let child = tree_map(&tree["child"], document, named);
    let extent = child.extent();
    match kind {
        "contiguous" => map.append_block(&child, number("count"), 0, extent),
        "vector" | "hvector" => {
            let stride = if kind == "vector" { number("stride") * extent } else { number("stride_bytes") };
            for block in 0..number("count") {
                map.append_block(&child, number("blocklength"), block * stride, extent);
            }
        }
        "indexed" | "hindexed" | "indexed_block" | "hindexed_block" => {
            let displacements: Vec<i64> = match kind {
                "indexed" | "indexed_block" => list(&tree["displacements"]).iter().map(|at| at * extent).collect(),
                _ => list(&tree["displacements_bytes"]),
            };
            for (block, displacement) in displacements.iter().enumerate() {
                let length =
                    if kind.ends_with("block") { number("blocklength") } else { list(&tree["blocklengths"])[block] };
                map.append_block(&child, length, *displacement, extent);
            }
        }
        "subarray" => {
            let (sizes, subsizes, starts) = (list(&tree["sizes"]), list(&tree["subsizes"]), list(&tree["starts"]));
            let wanted = (0..sizes.len())
                .map(|dimension| (starts[dimension]..starts[dimension] + subsizes[dimension]).collect())
                .collect();
            return grid(&child, &sizes, wanted, tree["order"].as_str().unwrap());
        }
        "darray" => {
            let (sizes, processes) = (list(&tree["gsizes"]), list(&tree["psizes"]));
            // The process of a rank: coordinates in row-major order.
            let mut coordinates = vec![0; sizes.len()];
            for _ in 0..number("rank") {
                let mut dimension = sizes.len() - 1;
                coordinates[dimension] += 1;
                while coordinates[dimension] == processes[dimension] {
                    coordinates[dimension] = 0;
                    dimension -= 1;
                    coordinates[dimension] += 1;
                }
            }
            let wanted = (0..sizes.len())
                .map(|dimension| {
                    let (size, along) = (sizes[dimension], processes[dimension]);
                    let distribution = &tree["distributions"][dimension];
                    let block = match distribution.as_str() {
                        Some("none") => size,
                        Some("block") => size.div_euclid(along) + i64::from(size % along != 0),
                        Some("cyclic") => 1,
                        _ => distribution.as_object().unwrap().values().next().unwrap().as_i64().unwrap(),
                    };
                    // Index i is in block i / k, and blocks are dealt out to the processes in turn.
                    (0..size).filter(|index| index / block % along == coordinates[dimension]).collect()
                })
                .collect();
            return grid(&child, &sizes, wanted, tree["order"].as_str().unwrap());
        }
        "resized" => return child.set_bounds(number("lb"), number("lb") + number("extent")),
        "dup" => return child,
        _ => panic!("there is no kind {kind}"),
    }
    map.into_part()
}

/// The wanted indices of each dimension, visited like an odometer whose fastest wheel depends on the order.
fn grid(child: &TypeMap, sizes: &[i64], mut wanted: Vec<Vec<i64>>, order: &str) -> TypeMap {
    let mut sizes = sizes.to_vec();
    if order == "Fortran" {
        sizes.reverse();
        wanted.reverse();
    }
    let extent = child.extent();
    let mut map = TypeMap::default();
    let total: usize = wanted.iter().map(Vec::len).product();
    for number in 0..total {
        let (mut rest, mut displacement, mut stride) = (number, 0, extent);
        for dimension in (0..sizes.len()).rev() {
            let choices = &wanted[dimension];
            displacement += choices[rest % choices.len()] * stride;
            rest /= choices.len();
            stride *= sizes[dimension];
        }
        map.append(child, displacement);
    }
    map.set_bounds(0, sizes.iter().product::<i64>() * extent)
}

fn predefined(name: &str) -> TypeMap {
    let plain = |bytes| TypeMap(vec![(0, Entry::Element { bytes, alignment: bytes })]);
    let complex = |bytes| TypeMap(vec![(0, Entry::Element { bytes, alignment: bytes / 2 })]);
    let pair = |bytes| {
        let first = Entry::Element { bytes, alignment: bytes };
        TypeMap(vec![(0, first), (bytes.max(4), Entry::Element { bytes: 4, alignment: 4 })])
    };
    match name {
        "MPI_CHAR" | "MPI_UNSIGNED_CHAR" | "MPI_BYTE" => plain(1),
        "MPI_SHORT" => plain(2),
        "MPI_INT" | "MPI_FLOAT" => plain(4),
        "MPI_LONG" | "MPI_DOUBLE" => plain(8),
        "MPI_LONG_DOUBLE" => plain(16),
        "MPI_C_COMPLEX" => complex(8),
        "MPI_C_DOUBLE_COMPLEX" => complex(16),
        "MPI_SHORT_INT" => pair(2),
        "MPI_FLOAT_INT" => pair(4),
        "MPI_DOUBLE_INT" => pair(8),
        "MPI_LONG_DOUBLE_INT" => pair(16),
        _ => panic!("the tests use no type {name}"),
    }
}
