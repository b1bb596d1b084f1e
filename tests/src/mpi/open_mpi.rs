//! A model of Open MPI 4.1.
//!
//! Every constructor adds parts, one after the other, to an empty type. Markers are sticky. Without markers, the upper
//! bound is padded after each part, not only after the last.

use super::parts::{blocks, own, reach, size};
use crate::type_map::{Bounds, TypeMap};
use dtc_compiler::datatype::{Constructor, Datatype, Predefined};

/// A type. Its spans are empty at first.
#[derive(Clone, Copy, Debug)]
struct Known {
    size: u64,
    alignment: i64,
    bounds: Option<(i64, i64)>,
    marked: bool,
    elements: Option<(i64, i64)>,
}

impl Known {
    /// The type that constructors without parts return.
    const NULL: Known = Known { size: 0, alignment: 1, bounds: None, marked: false, elements: None };

    fn of_predefined(predefined: Predefined) -> Known {
        let end = predefined.fields().iter().map(|field| field.offset + field.kind.size() as i64).max();
        Known {
            size: predefined.size(),
            alignment: predefined.alignment() as i64,
            bounds: Some((0, predefined.extent() as i64)),
            marked: false,
            elements: end.map(|end| (0, end)),
        }
    }

    fn bounds(&self) -> (i64, i64) {
        self.bounds.unwrap_or((0, 0))
    }

    fn extent(&self) -> i64 {
        self.bounds().1 - self.bounds().0
    }

    /// Adds copies of a part, `stride` bytes apart.
    fn add(&mut self, part: &Known, copies: i64, at: i64, stride: i64) {
        if copies == 0 {
            return;
        }
        let span = stride * (copies - 1);
        let spread = |(low, high)| (low + at + span.min(0), high + at + span.max(0));
        let union = |one: Option<(i64, i64)>, other: (i64, i64)| {
            one.map_or(other, |one: (i64, i64)| (one.0.min(other.0), one.1.max(other.1)))
        };
        let (lb, ub) = spread(part.bounds());
        self.bounds = match (self.marked, part.marked) {
            (true, false) => self.bounds,
            (false, true) => Some((lb, ub)),
            _ => Some(union(self.bounds, (lb, ub))),
        };
        self.marked |= part.marked;
        self.alignment = self.alignment.max(part.alignment);
        if let (false, Some((lb, ub))) = (self.marked, self.bounds) {
            let rest = (ub - lb) % self.alignment;
            self.bounds = Some((lb, if rest == 0 { ub } else { ub + self.alignment - rest }));
        }
        if let Some(elements) = part.elements {
            self.elements = Some(union(self.elements, spread(elements)));
        }
        self.size += part.size * copies as u64;
    }

    /// `count` blocks of `blocklength` copies.
    fn strided(child: &Known, count: i64, blocklength: i64, stride: i64) -> Known {
        let (mut all, extent) = (Known::NULL, child.extent());
        if blocklength * extent == stride || count <= 1 {
            all.add(child, count * blocklength, 0, extent);
        } else if blocklength == 1 {
            all.add(child, count, 0, stride);
        } else if blocklength > 0 {
            let mut block = Known::NULL;
            block.add(child, blocklength, 0, extent);
            all.add(&block, count, 0, stride);
        }
        all
    }

    /// Blocks at displacements in bytes. A block that begins at the end of the previous one is added together with it.
    fn listed<'a>(blocks: impl Iterator<Item = (i64, i64, &'a Known, usize)>) -> Known {
        let mut all = Known::NULL;
        let mut open: Option<(i64, i64, &Known, usize)> = None;
        for (copies, at, part, name) in blocks {
            match &mut open {
                Some((length, start, before, same)) if *same == name && *start + *length * before.extent() == at => {
                    *length += copies;
                }
                _ => {
                    if let Some((length, start, before, _)) = open.replace((copies, at, part, name)) {
                        all.add(before, length, start, before.extent());
                    }
                }
            }
        }
        if let Some((length, start, part, _)) = open {
            all.add(part, length, start, part.extent());
        }
        all
    }
}

pub(super) fn bounds(datatype: &Datatype) -> Vec<Bounds> {
    let nodes = datatype.nodes();
    let (mut all, mut types): (Vec<Bounds>, Vec<Known>) = (Vec::new(), Vec::new());
    for node in nodes.iter() {
        let map = TypeMap::with_bounds(datatype, all.clone());
        let known = known(node, &|child| &types[nodes.place(child)], &map);
        let ((lb, ub), (true_lb, true_ub)) = (known.bounds(), known.elements.unwrap_or((0, 0)));
        all.push(Bounds { size: known.size, lb, ub, true_lb, true_ub, alignment: known.alignment as u64 });
        types.push(known);
    }
    all
}

fn known<'a>(node: &Datatype, types: &impl Fn(&Datatype) -> &'a Known, map: &TypeMap) -> Known {
    let children = node.children();
    let child = children.first().map_or(Known::NULL, |child| *types(child));
    let extent = child.extent();
    let mut known = match node.constructor() {
        Constructor::Named(predefined) => Known::of_predefined(*predefined),
        Constructor::Contiguous { .. } if child.size == 0 => Known::NULL,
        Constructor::Contiguous { count } => Known::strided(&child, 1, *count, 0),
        Constructor::Vector { count, blocklength, stride } => {
            Known::strided(&child, *count, *blocklength, stride * extent)
        }
        Constructor::Hvector { count, blocklength, stride_bytes } => {
            Known::strided(&child, *count, *blocklength, *stride_bytes)
        }
        Constructor::Indexed { .. } | Constructor::Hindexed { .. } if child.size == 0 => Known::NULL,
        Constructor::Struct { blocklengths, displacements_bytes } => {
            // Handles are compared, and a predefined type has one handle.
            let name = |child: &Datatype| {
                let named = |other: &Datatype| match (child.constructor(), other.constructor()) {
                    (Constructor::Named(one), Constructor::Named(other)) => one == other,
                    _ => child.is(other),
                };
                children.iter().position(named).unwrap_or(0)
            };
            let parts = blocklengths.iter().zip(displacements_bytes).zip(children);
            Known::listed(parts.map(|((&copies, &at), child)| (copies, at, types(child), name(child))))
        }
        Constructor::Subarray { .. } | Constructor::Darray { .. } => {
            let mut known = Known::NULL;
            if let Some((low, high)) = reach(node, map) {
                known.add(&child, 1, low, 0);
                known.add(&child, 1, high, 0);
            }
            known
        }
        Constructor::Resized { .. } | Constructor::Dup => child,
        list => {
            let blocks = blocks(list, extent).unwrap_or_default();
            let blocks = blocks.into_iter().filter(|(copies, _)| *copies > 0);
            Known::listed(blocks.map(|(copies, at)| (copies, at, &child, 0)))
        }
    };
    if let Some(own) = own(node.constructor(), node.given(), extent) {
        (known.bounds, known.marked) = (Some(own), true);
    }
    if !matches!(node.constructor(), Constructor::Named(_)) {
        // Two corners represent all copies.
        known.size = size(node, map);
    }
    known
}
