//! Writes regular nests as subarrays and as parts of distributed arrays.

use super::writer::{Placed, Writer};
use dtc_compiler::datatype::{Distribution, Order};
use rand::Rng;

/// One axis of an array, and the selection along it.
struct Axis {
    /// Elements of the whole array.
    size: i64,
    /// First selected index.
    first: i64,
    /// Number of selected indices.
    count: i64,
    /// The distribution, processes and coordinate with which a distributed array has that selection.
    dealt: (Distribution, i64, i64),
}

/// `count` copies, `stride` bytes apart, as an array of some rank; `None` if the draw does not fit.
pub(super) fn repeat(writer: &mut Writer, child: Placed, count: i64, stride: i64) -> Option<Placed> {
    match writer.factors(count) {
        Some((outer, inner)) if writer.one_in(2) => {
            if writer.one_in(3) {
                block_cyclic(writer, child, [(outer, inner * stride), (inner, stride)])
            } else {
                nest(writer, child, &[(outer, inner * stride), (inner, stride)])
            }
        }
        _ => nest(writer, child, &[(count, stride)]),
    }
}

/// One copy, as an array with one selected element.
pub(super) fn single(writer: &mut Writer, child: Placed) -> Placed {
    let stride = writer.rng.random_range(-30..30);
    nest(writer, child, &[(1, stride)]).unwrap_or(child)
}

/// A nest of `(count, stride)` levels, slowest first, as a subarray or a darray with one axis for each level; `None` if
/// the strides are not those of an array, or the draw does not fit.
pub(super) fn nest(writer: &mut Writer, child: Placed, levels: &[(i64, i64)]) -> Option<Placed> {
    let dealt = writer.one_in(2);
    // Selected indices of an axis are `step` apart, as in a cyclic distribution over `step` processes.
    let steps: Vec<i64> =
        levels.iter().map(|_| if dealt && writer.one_in(2) { writer.rng.random_range(2..4) } else { 1 }).collect();
    let fastest = levels.len() - 1;
    if levels[fastest].1 % steps[fastest] != 0 {
        return None;
    }
    let extent = levels[fastest].1 / steps[fastest];
    // Axes are fastest first; `distance` is the distance of neighbours along the current axis.
    let mut distance = extent;
    let mut axes = Vec::new();
    for level in (0..levels.len()).rev() {
        let size = match level.checked_sub(1) {
            None => None,
            Some(slower) => {
                let next = distance * steps[slower];
                if next == 0 || levels[slower].1 % next != 0 {
                    return None;
                }
                Some(levels[slower].1 / next)
            }
        };
        let axis = if dealt {
            dealt_axis(writer, levels[level].0, steps[level], size)?
        } else {
            boxed_axis(writer, levels[level].0, size)?
        };
        let offset = axis.first.checked_mul(distance)?;
        distance = distance.checked_mul(axis.size)?;
        axes.push((axis, offset));
        if writer.one_in(8) {
            axes.push((Axis { size: 1, first: 0, count: 1, dealt: (Distribution::None, 1, 0) }, 0));
        }
    }
    let offset: i64 = axes.iter().map(|(_, offset)| offset).sum();
    let order = if writer.one_in(2) { Order::C } else { Order::Fortran };
    if order == Order::C {
        axes.reverse();
    }
    let unit = writer.with_extent(child.id, extent);
    let sizes: Vec<i64> = axes.iter().map(|(axis, _)| axis.size).collect();
    let built = if dealt {
        let distributions: Vec<Distribution> = axes.iter().map(|(axis, _)| axis.dealt.0).collect();
        let psizes: Vec<i64> = axes.iter().map(|(axis, _)| axis.dealt.1).collect();
        // Process grids are numbered with the last coordinate fastest.
        let rank = axes.iter().fold(0, |rank, (axis, _)| rank * axis.dealt.1 + axis.dealt.2);
        let size = psizes.iter().product();
        writer.types.darray(size, rank, &sizes, &distributions, &psizes, order, unit)
    } else {
        let starts: Vec<i64> = axes.iter().map(|(axis, _)| axis.first).collect();
        let subsizes: Vec<i64> = axes.iter().map(|(axis, _)| axis.count).collect();
        writer.types.subarray(&sizes, &subsizes, &starts, order, unit)
    };
    let id = built.unwrap_or_else(|error| panic!("the generator wrote an unsound array: {error}"));
    Some(Placed { id, shift: child.shift - offset })
}

fn boxed_axis(writer: &mut Writer, count: i64, size: Option<i64>) -> Option<Axis> {
    let size = size.unwrap_or_else(|| count + writer.rng.random_range(0..4));
    if size < count {
        return None;
    }
    let first = writer.rng.random_range(0..=size - count);
    Some(Axis { size, first, count, dealt: (Distribution::None, 1, 0) })
}

/// An axis on which one process gets `count` indices, `step` apart.
fn dealt_axis(writer: &mut Writer, count: i64, step: i64, size: Option<i64>) -> Option<Axis> {
    let free = size.is_none();
    if step > 1 {
        let coordinate = writer.rng.random_range(0..step);
        let least = coordinate + step * (count - 1) + 1;
        let size = size.unwrap_or_else(|| least + writer.rng.random_range(0..step));
        if !(least..least + step).contains(&size) {
            return None;
        }
        let length = if writer.one_in(2) { None } else { Some(1) };
        return Some(Axis { size, first: coordinate, count, dealt: (Distribution::Cyclic(length), step, coordinate) });
    }
    let processes = writer.rng.random_range(1..5);
    let coordinate = writer.rng.random_range(0..processes);
    let size = size.unwrap_or_else(|| (coordinate + 1) * count + writer.rng.random_range(0..=count));
    if size == count && writer.one_in(2) {
        return Some(Axis { size, first: 0, count, dealt: (Distribution::None, 1, 0) });
    }
    // Either whole blocks of `count` and enough processes for the axis, or the last, shorter one of longer blocks.
    let blocks = (size + count - 1) / count;
    if !free && blocks <= coordinate || (coordinate + 1) * count > size {
        return None;
    }
    let processes = processes.max(blocks);
    let mut dealt = Distribution::Block(Some(count));
    if (size + processes - 1) / processes == count && writer.one_in(2) {
        dealt = Distribution::Block(None);
    } else if writer.one_in(2) {
        dealt = Distribution::Cyclic(Some(count));
    }
    let mut axis = Axis { size, first: coordinate * count, count, dealt: (dealt, processes, coordinate) };
    let before = size - count;
    if before > count && writer.one_in(2) {
        axis.first = before;
        axis.dealt = (Distribution::Block(Some(before)), 2, 1);
    }
    Some(axis)
}

/// Two levels as one axis with a cyclic distribution, in which one process gets the blocks of the outer level.
pub(super) fn block_cyclic(writer: &mut Writer, child: Placed, levels: [(i64, i64); 2]) -> Option<Placed> {
    let [(rounds, round_stride), (length, extent)] = levels;
    let block = length.checked_mul(extent)?;
    if block == 0 || round_stride % block != 0 || !(1..40).contains(&(round_stride / block)) {
        return None;
    }
    let processes = round_stride / block;
    let coordinate = writer.rng.random_range(0..processes);
    let least = length * (processes * (rounds - 1) + coordinate + 1);
    let size = least + writer.rng.random_range(0..=length * (processes - 1));
    let unit = writer.with_extent(child.id, extent);
    let distribution = Distribution::Cyclic(Some(length));
    let order = if writer.one_in(2) { Order::C } else { Order::Fortran };
    let built = writer.types.darray(processes, coordinate, &[size], &[distribution], &[processes], order, unit);
    let id = built.unwrap_or_else(|error| panic!("the generator wrote an unsound darray: {error}"));
    Some(Placed { id, shift: child.shift - coordinate * block })
}
