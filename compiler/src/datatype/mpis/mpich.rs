//! A model of MPICH 4.0, whose bounds are Yaksa's.
//!
//! Every part counts for the bounds, with markers or without. Only structs are padded, unless their parts are all of
//! one type. A constructor that adds nothing returns its child. All types without bytes are one type, `null`.

use super::bounds::MpiBounds;
use super::parts::{Block, blocks, narrow, own, padded, reach};
use crate::datatype::{Constructor, Datatype, Predefined};
use crate::layout::Kind;

/// Identity of a type in MPICH.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    Null,
    Predefined(Predefined),
    Node(usize),
}

impl Identity {
    fn is(&self, other: &Identity) -> bool {
        match (self, other) {
            (Identity::Predefined(one), Identity::Predefined(other)) => is_one_type(*one, *other),
            _ => self == other,
        }
    }
}

#[derive(Clone, Debug)]
struct MpichType {
    size: u64,
    alignment: i128,
    lb: i128,
    ub: i128,
    true_lb: i128,
    true_ub: i128,
    identity: Identity,
}

impl MpichType {
    const NULL: MpichType =
        MpichType { size: 0, alignment: 1, lb: 0, ub: 0, true_lb: 0, true_ub: 0, identity: Identity::Null };

    fn of_predefined(predefined: Predefined) -> MpichType {
        let ends = predefined.fields().iter().map(|field| field.offset + field.kind.size() as i64);
        MpichType {
            size: predefined.size(),
            alignment: predefined.alignment().into(),
            ub: predefined.extent().into(),
            true_ub: ends.max().unwrap_or(0).into(),
            identity: Identity::Predefined(predefined),
            ..MpichType::NULL
        }
    }

    fn extent(&self) -> i128 {
        self.ub - self.lb
    }

    /// The type with its bounds moved by `low` and its upper ends by `high`.
    fn moved(&self, low: i128, high: i128) -> MpichType {
        let ends = (self.lb + low, self.ub + high, self.true_lb + low, self.true_ub + high);
        let (lb, ub, true_lb, true_ub) = ends;
        MpichType { lb, ub, true_lb, true_ub, ..self.clone() }
    }

    /// A block. Without copies, it spans from the end of copy -1 to its begin.
    fn block(&self, copies: i64) -> MpichType {
        let reach = self.extent() * (i128::from(copies) - 1);
        if self.extent() >= 0 { self.moved(0, reach) } else { self.moved(reach, 0) }
    }

    fn include(&mut self, part: &MpichType) {
        (self.lb, self.ub) = (self.lb.min(part.lb), self.ub.max(part.ub));
        (self.true_lb, self.true_ub) = (self.true_lb.min(part.true_lb), self.true_ub.max(part.true_ub));
        self.alignment = self.alignment.max(part.alignment);
    }

    /// `None` if the stride leaves 64 bits by itself.
    fn strided(&self, count: i64, blocklength: i64, stride: i128, id: usize) -> Option<MpichType> {
        if count == 0 || self.size == 0 {
            return Some(MpichType::NULL);
        }
        if count == 1 && blocklength == 1 {
            return Some(self.clone());
        }
        let reach = stride.checked_mul(i128::from(count) - 1).and_then(narrow)?;
        let all = self.block(blocklength).moved(reach.min(0), reach.max(0));
        Some(MpichType { identity: Identity::Node(id), ..all })
    }

    fn listed(&self, blocks: &[Block], id: usize) -> MpichType {
        if self.size == 0 || blocks.is_empty() {
            return MpichType::NULL;
        }
        if blocks == [(1, 0)] {
            return self.clone();
        }
        let mut parts = blocks.iter().map(|&(copies, at)| self.block(copies).moved(at, at));
        let mut all = parts.next().unwrap_or(MpichType::NULL);
        parts.for_each(|part| all.include(&part));
        MpichType { identity: Identity::Node(id), ..all }
    }

    /// `None` if a number leaves 64 bits.
    fn bounds(&self) -> Option<MpiBounds> {
        let fits = |number: i128| i64::try_from(number).ok();
        fits(self.extent())?;
        Some(MpiBounds {
            size: self.size,
            lb: fits(self.lb)?,
            ub: fits(self.ub)?,
            true_lb: fits(self.true_lb)?,
            true_ub: fits(self.true_ub)?,
            alignment: u64::try_from(self.alignment).ok()?,
        })
    }
}

pub(super) fn bounds(datatype: &Datatype) -> Option<Vec<MpiBounds>> {
    let nodes = datatype.nodes();
    let (mut all, mut types): (Vec<MpiBounds>, Vec<MpichType>) = (Vec::new(), Vec::new());
    for (name, node) in nodes.iter().enumerate() {
        let known = known(node, name, &|child| &types[nodes.place(child)])?;
        all.push(known.bounds()?);
        types.push(known);
    }
    Some(all)
}

fn known<'a>(node: &Datatype, name: usize, types: &impl Fn(&Datatype) -> &'a MpichType) -> Option<MpichType> {
    let children = node.children();
    let child = children.first().map_or(MpichType::NULL, |child| types(child).clone());
    let extent = child.extent();
    let mut known = match node.constructor() {
        Constructor::Named(predefined) => MpichType::of_predefined(*predefined),
        Constructor::Contiguous { count: 0 } => MpichType::NULL,
        Constructor::Contiguous { count } => child.strided(1, *count, 0, name)?,
        Constructor::Vector { count, blocklength, stride } => {
            child.strided(*count, *blocklength, i128::from(*stride) * extent, name)?
        }
        Constructor::Hvector { count, blocklength, stride_bytes } => {
            child.strided(*count, *blocklength, (*stride_bytes).into(), name)?
        }
        Constructor::Struct { blocklengths, displacements_bytes } => {
            let places = displacements_bytes.iter().map(|&at| i128::from(at));
            let blocks: Vec<Block> = blocklengths.iter().copied().zip(places).collect();
            let parts: Vec<&MpichType> = children.iter().map(types).collect();
            structure(&blocks, &parts, name)
        }
        array @ (Constructor::Subarray { .. } | Constructor::Darray { .. }) => match reach(array, extent)? {
            Some((low, high)) if child.size > 0 => {
                let mut all = child.moved(low, low);
                all.include(&child.moved(high, high));
                if (low, high, extent) != (0, 0, child.ub) {
                    all.identity = Identity::Node(name);
                }
                all
            }
            _ => MpichType::NULL,
        },
        Constructor::Resized { .. } | Constructor::Dup => child.clone(),
        list => {
            let mut blocks = blocks(list, extent)?;
            if matches!(list, Constructor::Indexed { .. } | Constructor::Hindexed { .. }) {
                blocks.retain(|(copies, _)| *copies > 0);
            }
            child.listed(&blocks, name)
        }
    };
    if let Some((lb, ub)) = own(node, extent)?
        && (lb, ub) != (known.lb, known.ub)
    {
        known = MpichType { lb, ub, identity: Identity::Node(name), ..known };
    }
    known.size = node.facts().size;
    Some(known)
}

fn structure(blocks: &[Block], parts: &[&MpichType], name: usize) -> MpichType {
    let same = parts.windows(2).all(|pair| pair[0].identity.is(&pair[1].identity));
    if let (true, Some(first)) = (same, parts.first()) {
        let blocks: Vec<Block> = blocks.iter().copied().filter(|block| block.0 > 0).collect();
        return first.listed(&blocks, name);
    }
    let full = blocks.iter().zip(parts).filter(|(block, _)| block.0 > 0);
    let mut placed = full.map(|(&(copies, at), part)| part.block(copies).moved(at, at));
    let Some(mut all) = placed.next() else { return MpichType::NULL };
    let mut has_bytes = all.size > 0;
    placed.for_each(|part| {
        all.include(&part);
        has_bytes |= part.size > 0;
    });
    if !has_bytes {
        return MpichType::NULL;
    }
    let ub = padded(all.lb, all.ub, all.alignment);
    MpichType { ub, identity: Identity::Node(name), ..all }
}

/// Whether MPICH treats predefined types as one: by offsets and kinds of their fields.
fn is_one_type(one: Predefined, other: Predefined) -> bool {
    let fields = |of: Predefined| of.fields().iter().map(|field| (field.offset, class(field.kind)));
    one == other || (one != Predefined::WCHAR && other != Predefined::WCHAR && fields(one).eq(fields(other)))
}

/// MPICH treats integers of one size as one type, signed or not, except `MPI_WCHAR`.
fn class(kind: Kind) -> Kind {
    match kind {
        Kind::Char | Kind::Byte | Kind::I8 | Kind::U8 | Kind::B8 => Kind::U8,
        Kind::I16 | Kind::U16 | Kind::B16 => Kind::U16,
        Kind::I32 | Kind::U32 | Kind::B32 => Kind::U32,
        Kind::I64 | Kind::U64 | Kind::B64 => Kind::U64,
        other => other,
    }
}
