//! A model of Open MPI 4.1.
//!
//! Every constructor adds parts, one after the other, to an empty type. Markers are sticky. Without markers, the upper
//! bound is padded after each part, not only after the last.

use super::bounds::MpiBounds;
use super::parts::{Block, blocks, narrow, own, padded, reach};
use crate::datatype::{Constructor, Datatype, Predefined};
use std::collections::HashMap;

/// A type. Its spans are empty at first.
#[derive(Clone, Copy, Debug)]
struct OpenMpiType {
    size: u64,
    alignment: i128,
    bounds: Option<(i128, i128)>,
    marked: bool,
    elements: Option<(i128, i128)>,
}

impl OpenMpiType {
    /// The type that constructors without parts return.
    const NULL: OpenMpiType = OpenMpiType { size: 0, alignment: 1, bounds: None, marked: false, elements: None };

    fn of_predefined(predefined: Predefined) -> OpenMpiType {
        let end = predefined.fields().iter().map(|field| field.offset + field.kind.size() as i64).max();
        OpenMpiType {
            size: predefined.size(),
            alignment: predefined.alignment().into(),
            bounds: Some((0, predefined.extent().into())),
            marked: false,
            elements: end.map(|end| (0, end.into())),
        }
    }

    fn bounds(&self) -> (i128, i128) {
        self.bounds.unwrap_or((0, 0))
    }

    fn extent(&self) -> i128 {
        self.bounds().1 - self.bounds().0
    }

    /// Adds copies of a part, `stride` bytes apart; `None` if they leave 64 bits.
    fn add(&mut self, part: &OpenMpiType, copies: i128, at: i128, stride: i128) -> Option<()> {
        if copies == 0 {
            return Some(());
        }
        let span = stride.checked_mul(copies - 1).and_then(narrow)?;
        let spread = |(low, high): (i128, i128)| (low + at + span.min(0), high + at + span.max(0));
        let union = |one: Option<(i128, i128)>, other: (i128, i128)| {
            one.map_or(other, |one: (i128, i128)| (one.0.min(other.0), one.1.max(other.1)))
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
            self.bounds = Some((lb, padded(lb, ub, self.alignment)));
        }
        if let Some(elements) = part.elements {
            self.elements = Some(union(self.elements, spread(elements)));
        }
        // The constructor's own is known otherwise: whether there are bytes is what counts on the way.
        self.size = self.size.max(part.size);
        Some(())
    }

    /// `count` blocks of `blocklength` copies.
    fn strided(child: &OpenMpiType, count: i64, blocklength: i64, stride: i128) -> Option<OpenMpiType> {
        let (mut all, extent) = (OpenMpiType::NULL, child.extent());
        let (count, blocklength) = (i128::from(count), i128::from(blocklength));
        if blocklength * extent == stride || count <= 1 {
            all.add(child, count * blocklength, 0, extent)?;
        } else if blocklength == 1 {
            all.add(child, count, 0, stride)?;
        } else if blocklength > 0 {
            let mut block = OpenMpiType::NULL;
            block.add(child, blocklength, 0, extent)?;
            all.add(&block, count, 0, stride)?;
        }
        Some(all)
    }

    /// Blocks, each with its part and that part's name. A block that begins at the end of the previous one is added together with it.
    fn listed<'a>(blocks: impl Iterator<Item = (Block, &'a OpenMpiType, usize)>) -> Option<OpenMpiType> {
        let mut all = OpenMpiType::NULL;
        let mut open: Option<(i128, i128, &OpenMpiType, usize)> = None;
        for ((copies, at), part, name) in blocks {
            let copies = i128::from(copies);
            match &mut open {
                Some((length, start, before, same)) if *same == name && *start + *length * before.extent() == at => {
                    *length = narrow(*length + copies)?;
                }
                _ => {
                    if let Some((length, start, before, _)) = open.replace((copies, at, part, name)) {
                        all.add(before, length, start, before.extent())?;
                    }
                }
            }
        }
        if let Some((length, start, part, _)) = open {
            all.add(part, length, start, part.extent())?;
        }
        Some(all)
    }

    /// `None` if a number leaves 64 bits.
    fn answer(&self) -> Option<MpiBounds> {
        let fits = |number: i128| i64::try_from(number).ok();
        let ((lb, ub), (true_lb, true_ub)) = (self.bounds(), self.elements.unwrap_or((0, 0)));
        fits(ub - lb)?;
        Some(MpiBounds {
            size: self.size,
            lb: fits(lb)?,
            ub: fits(ub)?,
            true_lb: fits(true_lb)?,
            true_ub: fits(true_ub)?,
            alignment: u64::try_from(self.alignment).ok()?,
        })
    }
}

pub(super) fn bounds(datatype: &Datatype) -> Option<Vec<MpiBounds>> {
    let nodes = datatype.nodes();
    let (mut all, mut types): (Vec<MpiBounds>, Vec<OpenMpiType>) = (Vec::new(), Vec::new());
    // Handles are compared, and a predefined type has one handle.
    let (mut predefined, mut names): (HashMap<Predefined, usize>, Vec<usize>) = (HashMap::new(), Vec::new());
    for (at, node) in nodes.iter().enumerate() {
        let known = known(node, &|child| &types[nodes.place(child)], &|child| names[nodes.place(child)])?;
        all.push(known.answer()?);
        types.push(known);
        names.push(match node.constructor() {
            Constructor::Named(named) => *predefined.entry(*named).or_insert(at),
            _ => at,
        });
    }
    Some(all)
}

fn known<'a>(
    node: &Datatype,
    types: &impl Fn(&Datatype) -> &'a OpenMpiType,
    name: &impl Fn(&Datatype) -> usize,
) -> Option<OpenMpiType> {
    let children = node.children();
    let child = children.first().map_or(OpenMpiType::NULL, |child| *types(child));
    let extent = child.extent();
    let mut known = match node.constructor() {
        Constructor::Named(predefined) => OpenMpiType::of_predefined(*predefined),
        Constructor::Contiguous { .. } if child.size == 0 => OpenMpiType::NULL,
        Constructor::Contiguous { count } => OpenMpiType::strided(&child, 1, *count, 0)?,
        Constructor::Vector { count, blocklength, stride } => {
            OpenMpiType::strided(&child, *count, *blocklength, i128::from(*stride) * extent)?
        }
        Constructor::Hvector { count, blocklength, stride_bytes } => {
            OpenMpiType::strided(&child, *count, *blocklength, (*stride_bytes).into())?
        }
        Constructor::Indexed { .. } | Constructor::Hindexed { .. } if child.size == 0 => OpenMpiType::NULL,
        Constructor::Struct { blocklengths, displacements_bytes } => {
            let parts = blocklengths.iter().zip(displacements_bytes.iter()).zip(children);
            OpenMpiType::listed(parts.map(|((&copies, &at), child)| ((copies, at.into()), types(child), name(child))))?
        }
        array @ (Constructor::Subarray { .. } | Constructor::Darray { .. }) => {
            let mut known = OpenMpiType::NULL;
            if let Some((low, high)) = reach(array, extent)? {
                known.add(&child, 1, low, 0)?;
                known.add(&child, 1, high, 0)?;
            }
            known
        }
        Constructor::Resized { .. } | Constructor::Dup => child,
        list => {
            let blocks = blocks(list, extent)?.into_iter().filter(|(copies, _)| *copies > 0);
            OpenMpiType::listed(blocks.map(|block| (block, &child, 0)))?
        }
    };
    if let Some(own) = own(node, extent)? {
        (known.bounds, known.marked) = (Some(own), true);
    }
    known.size = node.facts().size;
    Some(known)
}
