//! The constructors. A type without bytes is the null type, and a constructor that adds nothing returns its child.

use crate::shape::{Shape, Union, listed, listed_blocks};
use crate::status::{Status, copied};
use crate::types::{Form, Part, Shared, Type};

type Made = Result<Shared, Status>;

/// Which axis of a subarray is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    C,
    Fortran,
}

fn made(form: Form, shape: Option<Shape>) -> Made {
    Ok(Shared::new(Type::new(form, shape.ok_or(Status::Internal)?)))
}

fn count(argument: i64) -> Result<u64, Status> {
    u64::try_from(argument).map_err(|_| Status::Internal)
}

/// `count` copies of a type, one extent apart.
pub(crate) fn contiguous(copies: i64, child: Shared) -> Made {
    hvector(1, copies, 0, child)
}

/// `count` blocks of `blocklength` copies, `stride` bytes apart.
pub(crate) fn hvector(blocks: i64, blocklength: i64, stride: i64, child: Shared) -> Made {
    let (blocks, length) = (count(blocks)?, count(blocklength)?);
    if blocks == 0 || length == 0 || child.shape.size == 0 {
        return Ok(Shared::null());
    }
    if blocks == 1 && length == 1 {
        return Ok(child);
    }
    let shape = child.shape.block(length).and_then(|block| block.repeated(blocks, stride));
    made(Form::Strided { count: blocks, blocklength: length, stride, child }, shape)
}

/// The same with the stride in extents of the child.
pub(crate) fn vector(blocks: i64, blocklength: i64, stride: i64, child: Shared) -> Made {
    // Without a second block the stride may be anything.
    let stride = if blocks > 1 { stride.checked_mul(child.shape.extent()).ok_or(Status::Internal)? } else { 0 };
    hvector(blocks, blocklength, stride, child)
}

/// Blocks of one length at displacements in bytes.
pub(crate) fn hindexed_block(blocklength: i64, displacements: &[i64], child: Shared) -> Made {
    let length = count(blocklength)?;
    if displacements.is_empty() || length == 0 || child.shape.size == 0 {
        return Ok(Shared::null());
    }
    blocks(length, displacements, 1, child)
}

/// The same with displacements in extents of the child.
pub(crate) fn indexed_block(blocklength: i64, displacements: &[i64], child: Shared) -> Made {
    let length = count(blocklength)?;
    if displacements.is_empty() || length == 0 || child.shape.size == 0 {
        return Ok(Shared::null());
    }
    let unit = child.shape.extent();
    blocks(length, displacements, unit, child)
}

/// Blocks of one length that have bytes, at displacements in units of `unit` bytes. Regular ones are a vector, which has no
/// list.
fn blocks(blocklength: u64, displacements: &[i64], unit: i64, child: Shared) -> Made {
    if let Some(stride) = regular(displacements) {
        let stride = stride.checked_mul(unit).ok_or(Status::Internal)?;
        return hvector(displacements.len() as i64, blocklength as i64, stride, child);
    }
    let displacements = scaled(displacements, unit)?;
    let shape = child.shape.block(blocklength).and_then(|block| listed(&block, &displacements));
    made(Form::Blocks { blocklength, displacements, child }, shape)
}

/// The distance between displacements that begin at 0 and are all equally far apart.
fn regular(displacements: &[i64]) -> Option<i64> {
    let stride = displacements.get(1).map_or(0, |second| *second);
    let mut expected = 0i64;
    for &displacement in displacements {
        if displacement != expected {
            return None;
        }
        expected = expected.wrapping_add(stride);
    }
    Some(stride)
}

/// A list of displacements in bytes.
fn scaled(displacements: &[i64], unit: i64) -> Result<Box<[i64]>, Status> {
    // The extremes decide for all, so the rest need no check.
    let (low, high) = displacements.iter().fold((0, 0), |(low, high), &each| (each.min(low), each.max(high)));
    let fits = low.checked_mul(unit).is_some() && high.checked_mul(unit).is_some();
    if !fits {
        return Err(Status::Internal);
    }
    copied(displacements.iter().map(|displacement| displacement.wrapping_mul(unit)))
}

/// Blocks at displacements in bytes.
pub(crate) fn hindexed(blocklengths: &[i64], displacements: &[i64], child: Shared) -> Made {
    blocks_of(blocklengths, displacements, 1, child)
}

/// The same with displacements in extents of the child.
pub(crate) fn indexed(blocklengths: &[i64], displacements: &[i64], child: Shared) -> Made {
    let unit = child.shape.extent();
    blocks_of(blocklengths, displacements, unit, child)
}

fn blocks_of(blocklengths: &[i64], displacements: &[i64], unit: i64, child: Shared) -> Made {
    if blocklengths.contains(&0) {
        // The displacement of a block without copies may be anything.
        let kept = |list: &[i64]| {
            list.iter().zip(blocklengths).filter(|(_, length)| **length != 0).map(|(each, _)| *each).collect()
        };
        let (blocklengths, displacements): (Vec<i64>, Vec<i64>) = (kept(blocklengths), kept(displacements));
        return blocks_of(&blocklengths, &displacements, unit, child);
    }
    let Some(&first) = blocklengths.first() else { return Ok(Shared::null()) };
    if child.shape.size == 0 {
        return if blocklengths.iter().all(|&length| length > 0) { Ok(Shared::null()) } else { Err(Status::Internal) };
    }
    if blocklengths.iter().all(|&length| length == first) {
        return blocks(count(first)?, displacements, unit, child);
    }
    let displacements = scaled(displacements, unit)?;
    let shape = listed_blocks(&child.shape, blocklengths, &displacements);
    let blocklengths = copied(blocklengths.iter().copied())?;
    made(Form::Listed { blocklengths, displacements, child }, shape)
}

/// A struct; displacements are in bytes.
pub(crate) fn structure(
    blocklengths: &[i64],
    displacements: &[i64],
    children: impl IntoIterator<Item = Shared, IntoIter: ExactSizeIterator>,
) -> Made {
    let (mut position, mut same) = (0u64, true);
    let mut union = Union::new();
    let mut parts: Vec<Part> = Vec::new();
    let children = children.into_iter();
    parts.try_reserve_exact(children.len()).map_err(|_| Status::OutOfMemory)?;
    for ((&blocklength, &displacement), child) in blocklengths.iter().zip(displacements).zip(children) {
        same &= parts.last().is_none_or(|before| before.child.is_same(&child));
        let start = position;
        let length = count(blocklength)?;
        if length == 1 {
            union.add(&child.shape, displacement);
        } else if length > 1 {
            union.add(&child.shape.block(length).ok_or(Status::Internal)?, displacement);
        }
        position = position.wrapping_add(length.wrapping_mul(child.shape.size));
        parts.push(Part { blocklength, displacement, child, start });
    }
    // MPICH pads a struct of differing types alone.
    if same && let Some(first) = parts.first() {
        return hindexed(blocklengths, displacements, first.child.clone());
    }
    let shape = union.finish().ok_or(Status::Internal)?;
    if shape.size == 0 {
        return Ok(Shared::null());
    }
    made(Form::Struct { parts: parts.into_boxed_slice() }, shape.padded())
}

/// Other bounds.
pub(crate) fn resized(child: Shared, lb: i64, extent: i64) -> Made {
    if (child.shape.lb, child.shape.extent()) == (lb, extent) {
        return Ok(child);
    }
    let shape = child.shape.resized(lb, extent);
    made(Form::Resized { child }, shape)
}

/// A box in an array: vectors of vectors, moved to where the box begins, with the bounds of the array.
pub(crate) fn subarray(sizes: &[i64], subsizes: &[i64], starts: &[i64], order: Order, child: Shared) -> Made {
    let element = child.shape.extent();
    let axes: &mut dyn Iterator<Item = usize> = match order {
        Order::C => &mut (0..sizes.len()).rev(),
        Order::Fortran => &mut (0..sizes.len()),
    };
    let (mut inner, mut stride, mut begin) = (child, element, 0i64);
    let product = |one: i64, other: i64| one.checked_mul(other).ok_or(Status::Internal);
    for (level, axis) in axes.enumerate() {
        let (size, subsize, start) = (sizes[axis], subsizes[axis], starts[axis]);
        let inside =
            size >= 0 && subsize >= 0 && start >= 0 && start.checked_add(subsize).is_some_and(|end| end <= size);
        if !inside {
            return Err(Status::Internal);
        }
        inner = if level == 0 { contiguous(subsize, inner)? } else { hvector(subsize, 1, stride, inner)? };
        begin = product(start, stride)?.checked_add(begin).ok_or(Status::Internal)?;
        stride = product(stride, size)?;
    }
    if sizes.is_empty() || inner.shape.size == 0 {
        return Ok(Shared::null());
    }
    resized(hindexed_block(1, &[begin], inner)?, 0, stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(handle: u64) -> Shared {
        // SAFETY: the handle of a builtin.
        unsafe { Shared::from_handle(handle) }
    }

    const INT: u64 = 14;
    const CHAR: u64 = 2;
    const DOUBLE: u64 = 46;

    #[test]
    fn what_adds_nothing_is_its_child() {
        let int = builtin(INT);
        assert_eq!(contiguous(1, int.clone()).unwrap().address(), int.address());
        assert_eq!(hvector(1, 1, 99, int.clone()).unwrap().address(), int.address());
        assert_eq!(indexed(&[1], &[0], int.clone()).unwrap().address(), int.address());
        assert_eq!(resized(int.clone(), 0, 4).unwrap().address(), int.address());
    }

    #[test]
    fn what_has_no_bytes_is_null() {
        let int = builtin(INT);
        let null = Shared::null();
        for empty in [
            contiguous(0, int.clone()),
            hvector(3, 0, 8, int.clone()),
            indexed(&[0, 0], &[1, 2], int.clone()),
            structure(&[0, 0], &[0, 8], [int.clone(), builtin(DOUBLE)]),
            subarray(&[4, 4], &[2, 0], &[0, 0], Order::C, int.clone()),
            contiguous(3, null.clone()),
        ] {
            assert_eq!(empty.unwrap().address(), null.address());
        }
        assert_eq!(resized(null, 0, 16).unwrap().shape.extent(), 16);
    }

    #[test]
    fn structs_of_differing_types_are_padded() {
        let two = |second| structure(&[1, 1], &[0, 8], [builtin(DOUBLE), builtin(second)]).unwrap().shape;
        assert_eq!((two(CHAR).size, two(CHAR).extent()), (9, 16));
        let chars = structure(&[1, 1], &[0, 8], [builtin(CHAR), builtin(3)]).unwrap();
        assert_eq!(chars.shape.extent(), 9);
    }

    #[test]
    fn a_subarray_lies_where_it_begins() {
        let corner = subarray(&[4, 6], &[2, 3], &[1, 2], Order::C, builtin(INT)).unwrap().shape;
        assert_eq!((corner.size, corner.lb, corner.ub), (24, 0, 96));
        assert_eq!((corner.true_lb, corner.true_ub, corner.segments), (32, 68, 2));
        let fortran = subarray(&[6, 4], &[3, 2], &[2, 1], Order::Fortran, builtin(INT)).unwrap().shape;
        assert_eq!(fortran, corner);
        assert!(subarray(&[4], &[3], &[2], Order::C, builtin(INT)).is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        assert!(contiguous(-1, builtin(INT)).is_err());
        assert!(indexed(&[1, -1], &[0, 1], builtin(INT)).is_err());
        assert!(vector(2, 1, i64::MAX, builtin(INT)).is_err());
        assert!(vector(1, 2, i64::MAX, builtin(INT)).is_ok());
        assert!(indexed_block(1, &[i64::MAX], builtin(INT)).is_err());
        assert!(indexed(&[0, 2, 1], &[1, 2, i64::MAX], builtin(INT)).is_err());
    }

    #[test]
    fn blocks_without_copies_lie_anywhere() {
        let list = indexed(&[0, 2, 0, 1], &[i64::MAX, 1, i64::MIN, 9], builtin(INT)).unwrap();
        assert_eq!(list.shape, indexed(&[2, 1], &[1, 9], builtin(INT)).unwrap().shape);
        assert_eq!(indexed(&[0, 3, 0], &[-7, 0, 9], builtin(INT)).unwrap().shape.segments, 1);
        let parts = [builtin(INT), builtin(DOUBLE), builtin(CHAR)];
        let fields = structure(&[0, 1, 1], &[i64::MIN, 0, 8], parts).unwrap();
        assert_eq!((fields.shape.lb, fields.shape.extent(), fields.shape.segments), (0, 16, 1));
        assert!(fields.committed().is_ok());
    }
}
