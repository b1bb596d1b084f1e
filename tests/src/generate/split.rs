//! Writes an enumerated sequence as a datatype: cut anywhere, grouped by any period, as a list, or as an array.

use super::arrays;
use super::sequence::Sequence;
use super::writer::{Placed, Writer};
use dtc_compiler::datatype::Datatype;
use rand::Rng;
use rand::rngs::SmallRng;

/// From this depth on, the rest is written as a list.
const DEEPEST: u32 = 5;

/// A random datatype with exactly this type map and these bounds.
pub fn datatype_of(sequence: &Sequence, rng: &mut SmallRng) -> Datatype {
    let mut writer = Writer::new(rng);
    let placed = express(&mut writer, &sequence.bytes, 0);
    writer.finish(placed, sequence.lb, sequence.extent)
}

/// A type for these bytes, at least one. It uses only the sequence, not the way it was drawn.
fn express(writer: &mut Writer, bytes: &[i64], depth: u32) -> Placed {
    let count = bytes.len();
    let first = bytes[0];
    let consecutive = bytes.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if count == 1 || consecutive && (depth >= DEEPEST || !writer.one_in(4)) {
        return writer.run(count as i64).moved(first);
    }
    if bytes.iter().zip([0, 1, 4, 5, 6, 7]).all(|(byte, offset)| byte - first == offset) && count == 6 {
        return writer.pair_with_a_hole().moved(first);
    }
    if depth >= DEEPEST {
        return writer.list(&runs(bytes));
    }
    // Cutting does not reveal patterns, so long sequences are mostly grouped, and short ones mostly cut.
    for _ in 0..4 {
        let placed = match writer.rng.random_range(0..10) {
            0..=3 => periodic(writer, bytes, depth),
            4..=5 => stretch(writer, bytes, depth),
            6 => boxed(writer, bytes, depth),
            7..=8 => Some(cut(writer, bytes, depth)),
            _ => Some(writer.list(&runs(bytes))),
        };
        if let Some(placed) = placed {
            return placed;
        }
    }
    writer.list(&runs(bytes))
}

/// The maximal runs: `(displacement, length)`.
fn runs(bytes: &[i64]) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for &byte in bytes {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == byte => *length += 1,
            _ => runs.push((byte, 1)),
        }
    }
    runs
}

/// Pieces cut at random positions, also inside elements and runs.
fn cut(writer: &mut Writer, bytes: &[i64], depth: u32) -> Placed {
    let count = bytes.len();
    let mut cuts = vec![0, count];
    for _ in 0..writer.rng.random_range(1..4) {
        cuts.push(writer.rng.random_range(1..count));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let pieces: Vec<Placed> = cuts.windows(2).map(|cut| express(writer, &bytes[cut[0]..cut[1]], depth + 1)).collect();
    writer.concatenation(&pieces)
}

/// The stride, if the whole consists of equidistant copies of its first `period` bytes.
fn stride_of(bytes: &[i64], period: usize) -> Option<i64> {
    let stride = bytes[period] - bytes[0];
    (period..bytes.len()).all(|at| bytes[at] - bytes[at - period] == stride).then_some(stride)
}

/// Periods of the sequence, with their strides.
fn periods(bytes: &[i64]) -> Vec<(usize, i64)> {
    let divides = |period: &usize| bytes.len().is_multiple_of(*period);
    (1..=bytes.len() / 2)
        .filter(divides)
        .filter_map(|period| stride_of(bytes, period).map(|stride| (period, stride)))
        .collect()
}

/// The sequence as copies of one of its periods.
fn periodic(writer: &mut Writer, bytes: &[i64], depth: u32) -> Option<Placed> {
    let periods = periods(bytes);
    if periods.is_empty() {
        return None;
    }
    let (period, stride) = periods[writer.rng.random_range(0..periods.len())];
    let copies = (bytes.len() / period) as i64;
    if writer.one_in(6) {
        // Both halves of the copies are written independently.
        let half = period * writer.rng.random_range(1..copies) as usize;
        let pieces = [&bytes[..half], &bytes[half..]].map(|piece| express(writer, piece, depth + 1));
        return Some(writer.concatenation(&pieces));
    }
    let child = express(writer, &bytes[..period], depth + 1);
    Some(writer.repeat(child, copies, stride))
}

/// A regular part in any phase, with the bytes before and after it.
fn stretch(writer: &mut Writer, bytes: &[i64], depth: u32) -> Option<Placed> {
    let count = bytes.len();
    let at = writer.rng.random_range(0..count - 1);
    let period = writer.rng.random_range(1..=(count - 1 - at).min(64));
    let stride = bytes[at + period] - bytes[at];
    let mut end = at + period;
    while end < count && bytes[end] - bytes[end - period] == stride {
        end += 1;
    }
    let copies = (end - at) / period;
    if copies < 2 {
        return None;
    }
    let end = at + copies * period;
    let mut pieces = Vec::new();
    if at > 0 {
        pieces.push(express(writer, &bytes[..at], depth + 1));
    }
    let child = express(writer, &bytes[at..at + period], depth + 1);
    pieces.push(writer.repeat(child, copies as i64, stride));
    if end < count {
        pieces.push(express(writer, &bytes[end..], depth + 1));
    }
    Some(writer.concatenation(&pieces))
}

/// Up to four nested periods, as one array.
fn boxed(writer: &mut Writer, bytes: &[i64], depth: u32) -> Option<Placed> {
    let mut levels = Vec::new();
    let mut rest = bytes;
    while levels.len() < 4 {
        let periods = periods(rest);
        if periods.is_empty() || !levels.is_empty() && writer.one_in(5) {
            break;
        }
        // The choice is mostly the largest period, which leaves more levels.
        let choice = if writer.one_in(3) { writer.rng.random_range(0..periods.len()) } else { periods.len() - 1 };
        let (period, stride) = periods[choice];
        levels.push(((rest.len() / period) as i64, stride));
        rest = &rest[..period];
    }
    if levels.is_empty() {
        return None;
    }
    let child = express(writer, rest, depth + 1);
    if let [outer, inner] = levels[..]
        && writer.one_in(2)
        && let Some(placed) = arrays::block_cyclic(writer, child, [outer, inner])
    {
        return Some(placed);
    }
    for _ in 0..4 {
        if let Some(placed) = arrays::nest(writer, child, &levels) {
            return Some(placed);
        }
    }
    None
}
