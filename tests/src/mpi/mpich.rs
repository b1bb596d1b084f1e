//! A model of MPICH 4.0, whose bounds are Yaksa's.
//!
//! Every part counts for the bounds, with markers or without. Only structs are padded, unless their parts are all of
//! one type. A constructor that adds nothing returns its child. All types without bytes are one type, `null`.

use super::parts::{blocks, own, reach, size};
use crate::type_map::{Bounds, TypeMap};
use dtc_compiler::datatype::{Constructor, Datatype, Predefined};
use dtc_compiler::layout::Kind;

/// Identity of a type in MPICH.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    Null,
    /// Offsets and kinds of the fields of a predefined type.
    Predefined(Vec<(i64, String)>),
    Node(usize),
}

#[derive(Clone, Debug)]
struct Known {
    size: u64,
    alignment: i64,
    lb: i64,
    ub: i64,
    true_lb: i64,
    true_ub: i64,
    identity: Identity,
}

impl Known {
    fn null() -> Known {
        Known { size: 0, alignment: 1, lb: 0, ub: 0, true_lb: 0, true_ub: 0, identity: Identity::Null }
    }

    fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// The type with its bounds moved by `low` and its upper ends by `high`.
    fn moved(&self, low: i64, high: i64) -> Known {
        let ends = (self.lb + low, self.ub + high, self.true_lb + low, self.true_ub + high);
        let (lb, ub, true_lb, true_ub) = ends;
        Known { lb, ub, true_lb, true_ub, ..self.clone() }
    }

    /// A block. Without copies, it spans from the end of copy -1 to its begin.
    fn block(&self, copies: i64) -> Known {
        let reach = self.extent() * (copies - 1);
        if self.extent() >= 0 { self.moved(0, reach) } else { self.moved(reach, 0) }
    }

    fn include(&mut self, part: &Known) {
        (self.lb, self.ub) = (self.lb.min(part.lb), self.ub.max(part.ub));
        (self.true_lb, self.true_ub) = (self.true_lb.min(part.true_lb), self.true_ub.max(part.true_ub));
        self.alignment = self.alignment.max(part.alignment);
    }

    fn strided(&self, count: i64, blocklength: i64, stride: i64, id: usize) -> Known {
        if count == 0 || self.size == 0 {
            return Known::null();
        }
        if count == 1 && blocklength == 1 {
            return self.clone();
        }
        let reach = stride * (count - 1);
        let all = self.block(blocklength).moved(reach.min(0), reach.max(0));
        Known { identity: Identity::Node(id), ..all }
    }

    /// Blocks at displacements in bytes.
    fn listed(&self, blocks: &[(i64, i64)], id: usize) -> Known {
        if self.size == 0 || blocks.is_empty() {
            return Known::null();
        }
        if blocks == [(1, 0)] {
            return self.clone();
        }
        let mut parts = blocks.iter().map(|&(copies, at)| self.block(copies).moved(at, at));
        let mut all = parts.next().unwrap_or_else(Known::null);
        parts.for_each(|part| all.include(&part));
        Known { identity: Identity::Node(id), ..all }
    }
}

pub(super) fn bounds(datatype: &Datatype) -> Vec<Bounds> {
    let nodes = datatype.nodes();
    let (mut all, mut types): (Vec<Bounds>, Vec<Known>) = (Vec::new(), Vec::new());
    for (name, node) in nodes.iter().enumerate() {
        let map = TypeMap::with_bounds(datatype, all.clone());
        let known = known(node, name, &|child| &types[nodes.place(child)], &map);
        let Known { size, alignment, lb, ub, true_lb, true_ub, .. } = known;
        all.push(Bounds { size, lb, ub, true_lb, true_ub, alignment: alignment as u64 });
        types.push(known);
    }
    all
}

fn known<'a>(node: &Datatype, name: usize, types: &impl Fn(&Datatype) -> &'a Known, map: &TypeMap) -> Known {
    let children = node.children();
    let child = children.first().map_or_else(Known::null, |child| types(child).clone());
    let extent = child.extent();
    let mut known = match node.constructor() {
        Constructor::Named(predefined) => Known {
            size: predefined.size(),
            alignment: predefined.alignment() as i64,
            ub: predefined.extent() as i64,
            true_ub: predefined.fields().iter().map(|field| field.offset + field.kind.size() as i64).max().unwrap_or(0),
            identity: Identity::Predefined(match *predefined {
                Predefined::WCHAR => vec![(0, "wchar".into())],
                _ => predefined.fields().iter().map(|field| (field.offset, class(field.kind))).collect(),
            }),
            ..Known::null()
        },
        Constructor::Contiguous { count: 0 } => Known::null(),
        Constructor::Contiguous { count } => child.strided(1, *count, 0, name),
        Constructor::Vector { count, blocklength, stride } => {
            child.strided(*count, *blocklength, stride * extent, name)
        }
        Constructor::Hvector { count, blocklength, stride_bytes } => {
            child.strided(*count, *blocklength, *stride_bytes, name)
        }
        Constructor::Struct { blocklengths, displacements_bytes } => {
            let parts = || children.iter().map(types);
            let blocks: Vec<(i64, i64)> =
                blocklengths.iter().copied().zip(displacements_bytes.iter().copied()).collect();
            structure(&blocks, &parts().collect::<Vec<_>>(), name)
        }
        Constructor::Subarray { .. } | Constructor::Darray { .. } => match reach(node, map) {
            Some((low, high)) if child.size > 0 => {
                let mut all = child.moved(low, low);
                all.include(&child.moved(high, high));
                if (low, high, extent) != (0, 0, child.ub) {
                    all.identity = Identity::Node(name);
                }
                all
            }
            _ => Known::null(),
        },
        Constructor::Resized { .. } | Constructor::Dup => child.clone(),
        list => {
            let mut blocks = blocks(list, extent).unwrap_or_default();
            if matches!(list, Constructor::Indexed { .. } | Constructor::Hindexed { .. }) {
                blocks.retain(|(copies, _)| *copies > 0);
            }
            child.listed(&blocks, name)
        }
    };
    if let Some((lb, ub)) = own(node.constructor(), node.given(), extent)
        && (lb, ub) != (known.lb, known.ub)
    {
        known = Known { lb, ub, identity: Identity::Node(name), ..known };
    }
    known.size = match node.constructor() {
        Constructor::Named(predefined) => predefined.size(),
        _ => size(node, map),
    };
    known
}

fn structure(blocks: &[(i64, i64)], parts: &[&Known], name: usize) -> Known {
    let same = parts.windows(2).all(|pair| pair[0].identity == pair[1].identity);
    let full = |(block, _): &(&(i64, i64), &&Known)| block.0 > 0;
    if let (true, Some(first)) = (same, parts.first()) {
        let blocks: Vec<(i64, i64)> = blocks.iter().copied().filter(|block| block.0 > 0).collect();
        return first.listed(&blocks, name);
    }
    let mut placed = blocks
        .iter()
        .zip(parts)
        .filter(full)
        .map(|(&(copies, at), part)| Known { size: part.size, ..part.block(copies).moved(at, at) });
    let Some(mut all) = placed.next() else { return Known::null() };
    placed.for_each(|part| {
        all.include(&part);
        all.size += part.size;
    });
    if all.size == 0 {
        return Known::null();
    }
    // This is C's remainder: a negative extent gives a negative one.
    let rest = all.extent() % all.alignment;
    let ub = if rest == 0 { all.ub } else { all.ub + all.alignment - rest };
    Known { ub, identity: Identity::Node(name), ..all }
}

/// MPICH treats integers of one size as one type, signed or not, except `MPI_WCHAR`.
fn class(kind: Kind) -> String {
    match kind {
        Kind::Char | Kind::Byte | Kind::I8 | Kind::U8 | Kind::B8 => "8".into(),
        Kind::I16 | Kind::U16 | Kind::B16 => "16".into(),
        Kind::I32 | Kind::U32 | Kind::B32 => "32".into(),
        Kind::I64 | Kind::U64 | Kind::B64 => "64".into(),
        other => format!("{other:?}"),
    }
}
