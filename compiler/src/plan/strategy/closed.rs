//! How closed functions by LLVM move rows: with the vectors of a target, and without microkernels.
//!
//! Measured on a Zen 5 unless something else is said (`bench/results/2026-11-23-llvm.md`).

use super::{TRANSPOSED_PAIRS, TRANSPOSED_WORDS, WHOLE_ROWS_BYTES, ZEN_TRANSPOSED_BYTES};
use crate::plan::{Direction, Plan};
use std::ops::{Range, RangeInclusive};

/// Longest piece, in bytes, that straight code moves: a call of `memcpy` takes as long.
pub(crate) const CLOSED_INLINE_BYTES: u64 = 256;

/// Longest piece, in bytes, that a loop of such pieces moves: rows of 2,048 bytes took 1.2 to 1.5 times as long by `memcpy`.
pub(crate) const CLOSED_LOOP_BYTES: u64 = 2048;

/// Longest stride, in bytes, at which the bytes behind a row may be read: less than a page, so that a page of every byte that is
/// read holds a byte of a row.
const CLOSE: u64 = 4096 - 64;

/// Longest stride, in bytes, at which overlapping stores of whole vectors are faster than masked ones: 17 of 24 bytes took 0.75 of
/// the time, 12 of 128 bytes 1.8.
const DENSE: u64 = 64;

/// Fewest and most rows that are gathered or scattered. More, a page apart each, wait for the TLB, and take up to twice as long as
/// word by word.
const GATHERED_ROWS: RangeInclusive<u64> = 64..=1 << 14;

/// Shortest stride of rows that are gathered or scattered, in bytes. Several rows of a line are faster word by word, by up to 1.9 times.
const GATHERED_STRIDE: u64 = 128;

/// Longest stride, in bytes, at which one masked store is faster than two words, which are in two lines less often: rows of 40 bytes 0.5
/// to 4 KiB apart took 0.65 to 0.75 of the time by masks, 16 KiB apart 0.94, and 40 KiB apart 1.48.
const MASKED_STRIDE: u64 = 16 << 10;

/// Bytes of cache that a call takes up to which gathers, scatters and masked stores gain: the second-level cache. Beyond it, gathers took
/// 1.2 to 1.8 times as long as words, and masked stores 1.2 to 2.5 times.
const NEAR: u64 = 1 << 20;

/// The same for types without long gaps, whose stores reach each line one after the other: 17 of 24 bytes took 0.98 of the time in 10 MB
/// and 1.7 in 40.
const NEAR_DENSE: u64 = 16 << 20;

/// Lengths of rows, in bytes, that are moved by vectors of 32 bytes where they begin anywhere in a line: 256 and 1,024 bytes took 0.68 to
/// 0.78 of the time of vectors of 64 bytes, since each of those is in two lines.
const HALVED: RangeInclusive<u64> = 256..=CLOSED_LOOP_BYTES;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Most vectors of memory that a group of shuffled rows spans.
const MOST_VECTORS: u64 = 4;

/// The vectors of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vectors {
    /// Bytes of the widest.
    pub(crate) bytes: u64,
    /// Whether some bytes of a vector can be loaded alone.
    pub(crate) masked_loads: bool,
    /// Whether some bytes of a vector can be stored alone, as fast as all.
    pub(crate) masked_stores: bool,
    /// Whether single bytes can be shuffled across a whole vector.
    pub(crate) byte_shuffles: bool,
    /// Whether gathers and scatters are faster than single words where these miss the first-level cache.
    pub(crate) gathers: bool,
    /// Whether stores of whole vectors that overlap are faster than stores of rows alone: see
    /// [`Level::overhangs`](super::Level::overhangs).
    pub(crate) overhangs: bool,
}

impl Vectors {
    /// What is left of them beyond [`NEAR`].
    pub(crate) fn far(self) -> Vectors {
        Vectors { masked_stores: false, gathers: false, ..self }
    }

    /// The vectors for rows of a length at a stride.
    pub(crate) fn of_rows(self, stride: i64, bytes: u64) -> Vectors {
        let halved = HALVED.contains(&bytes) && !stride.unsigned_abs().is_multiple_of(LINE);
        Vectors { bytes: if halved { self.bytes.min(32) } else { self.bytes }, ..self }
    }
}

/// Most elements of a call that is near: its lines and packed bytes stay in a cache.
pub(crate) fn near_elements(plan: &Plan) -> u64 {
    let (size, extent) = (plan.size(), plan.extent().unsigned_abs());
    let (cache, bytes) =
        if extent / 2 <= size { (NEAR_DENSE, size.saturating_add(extent)) } else { (NEAR, plan.footprint()) };
    cache / bytes.max(1)
}

/// How rows at one stride are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsMethod {
    /// One after the other, by the fewest words that cover a row.
    Words,
    /// One after the other, by one masked load and one masked store.
    Masked,
    /// One after the other, each as a whole vector of `width` bytes: what is stored behind a row is overwritten by the next.
    Overhanging { width: u64 },
    /// Several words in one vector, turned round.
    Reversed,
    /// Groups of rows in one vector of packed bytes, from and to a few neighbouring vectors of memory.
    Shuffled { rows: u64, vectors: u64 },
    /// A vector of words at a time.
    Gathered,
}

/// How rows are moved; `rows` is `None` where their number is known when the function is called, and `around` is how often the rows
/// are repeated.
pub(crate) fn closed_rows(
    vectors: &Vectors,
    direction: Direction,
    (rows, stride, bytes): (Option<u64>, i64, u64),
    around: u64,
) -> RowsMethod {
    let step = stride.unsigned_abs();
    let many = rows.unwrap_or(u64::MAX);
    let word = matches!(bytes, 1 | 2 | 4 | 8);
    if word && stride == -(bytes as i64) && many.saturating_mul(bytes) >= 16 {
        return RowsMethod::Reversed;
    }
    let apart = stride > 0 && step > bytes;
    if apart && step <= 64 && 2 * bytes <= vectors.bytes {
        let (rows, vectors) = group(vectors, direction, bytes, step);
        if rows > 0 && many >= 2 * rows {
            return RowsMethod::Shuffled { rows, vectors };
        }
    }
    let known = rows.map_or(0, |rows| rows.saturating_mul(around));
    if vectors.gathers
        && matches!(bytes, 4 | 8)
        && step >= GATHERED_STRIDE
        && many >= 16
        && GATHERED_ROWS.contains(&known)
    {
        return RowsMethod::Gathered;
    }
    let width = bytes.next_power_of_two();
    if word || bytes == width || width > vectors.bytes {
        return RowsMethod::Words;
    }
    let overhangs = vectors.overhangs && direction == Direction::Pack && apart && many >= 8;
    if overhangs && step <= DENSE {
        return RowsMethod::Overhanging { width };
    }
    if vectors.masked_stores {
        let serves = match bytes {
            24 => false,
            40 | 48 => step <= MASKED_STRIDE,
            _ => true,
        };
        return if serves { RowsMethod::Masked } else { RowsMethod::Words };
    }
    if overhangs && step <= CLOSE {
        return RowsMethod::Overhanging { width };
    }
    RowsMethod::Words
}

/// How blocks at listed offsets are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMethod {
    /// By the fewest words that cover a block.
    Words,
    /// By one masked load and one masked store.
    Masked,
    /// By one masked load and one store of a whole vector, whose end is overwritten by the next block.
    Overhanging { width: u64 },
}

/// How blocks at listed offsets are moved.
pub(crate) fn closed_list(vectors: &Vectors, direction: Direction, bytes: u64) -> ListMethod {
    let width = bytes.next_power_of_two();
    match direction {
        _ if bytes == width || width < 16 || width > vectors.bytes => ListMethod::Words,
        Direction::Pack if vectors.masked_loads => ListMethod::Overhanging { width },
        Direction::Unpack if vectors.masked_stores => ListMethod::Masked,
        _ => ListMethod::Words,
    }
}

/// Packed bytes of tiles that are moved block by block; others are transposed in registers, in squares as long as a vector. `None` for
/// tiles that cannot be.
pub(crate) fn blockwise_bytes(
    vectors: &Vectors,
    direction: Direction,
    plane_stride: i64,
    bytes: u64,
) -> Option<Range<u64>> {
    let none = 0..0;
    // With vectors of 32 bytes, a pack of words of 4 bytes took 1.39 of the runtime's time in squares and 0.76 block by block, of 8 bytes
    // 1.31 and 1.50.
    let (whole, zen) = (vectors.bytes == 64, vectors.overhangs);
    let least = if bytes == 4 { 16 } else { 32 };
    match (bytes, direction) {
        _ if plane_stride != bytes as i64 || vectors.bytes < least => None,
        (4 | 16, Direction::Pack) if zen => Some(0..ZEN_TRANSPOSED_BYTES as u64),
        (4, Direction::Pack) => whole.then_some(none),
        (4 | 8 | 16, Direction::Unpack) => Some(none),
        (8, Direction::Pack) if whole && !zen => Some(TRANSPOSED_WORDS as u64 * 8..u64::MAX),
        (8, Direction::Pack) => Some(none),
        (16, Direction::Pack) => whole.then_some(TRANSPOSED_PAIRS as u64 * 16..WHOLE_ROWS_BYTES as u64),
        _ => None,
    }
}

/// Rows of a group and the vectors of memory that they span; no rows if each is better moved by itself.
fn group(vectors: &Vectors, direction: Direction, bytes: u64, stride: u64) -> (u64, u64) {
    let aligned = (bytes | stride).is_multiple_of(4);
    if !(vectors.byte_shuffles || aligned && direction == Direction::Pack)
        || direction == Direction::Unpack && !vectors.masked_stores
    {
        return (0, 0);
    }
    // Tenths of a cycle for the packed side of a group, a vector of its span, and a row that is moved by itself.
    let [packed, vector, alone] = match direction {
        Direction::Pack => [10, 22, 7],
        Direction::Unpack => [20, 10, 9],
    };
    let (mut best, mut least) = ((0, 0), alone);
    let mut of_best = 1;
    for count in 1..=MOST_VECTORS {
        let rows = ((count * vectors.bytes - bytes) / stride + 1).min(vectors.bytes / bytes);
        let cost = packed + count * vector;
        if rows > 1 && cost * of_best < least * rows {
            (best, least, of_best) = ((rows, count), cost, rows);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pipeline;
    use crate::datatype::text;

    const NARROW: Vectors = Vectors {
        bytes: 16,
        masked_loads: false,
        masked_stores: false,
        byte_shuffles: false,
        gathers: false,
        overhangs: false,
    };

    const TARGETS: [Vectors; 3] = [
        NARROW,
        Vectors { bytes: 32, ..NARROW },
        Vectors {
            bytes: 64,
            masked_loads: true,
            masked_stores: true,
            byte_shuffles: true,
            gathers: true,
            overhangs: true,
        },
    ];

    #[test]
    fn groups_of_rows_fit_their_vectors() {
        let mut groups = 0;
        for target in TARGETS {
            for direction in [Direction::Pack, Direction::Unpack] {
                for (bytes, stride) in (1..32).flat_map(|bytes| (bytes + 1..=64).map(move |stride| (bytes, stride))) {
                    let method = closed_rows(&target, direction, (Some(1000), stride as i64, bytes), 1);
                    let RowsMethod::Shuffled { rows, vectors } = method else { continue };
                    groups += 1;
                    assert!(rows > 1 && rows * bytes <= target.bytes, "{bytes} of {stride}");
                    assert!((rows - 1) * stride + bytes <= vectors * target.bytes, "{bytes} of {stride}");
                }
            }
        }
        assert!(groups > 500, "{groups}");
    }

    #[test]
    fn types_with_long_gaps_leave_the_caches_sooner() {
        let near = |notation| near_elements(Pipeline::new(text::parse(notation).expect(notation)).plan());
        // 12 lines and 480 packed bytes, then 17 packed bytes of 24.
        assert_eq!(near("vector 12 1 14 (contiguous 5 double)"), NEAR / (12 * 64 + 480));
        assert_eq!(near("resized 0 24 (contiguous 17 char)"), NEAR_DENSE / (17 + 24));
        assert_eq!(near("vector 100000 1 100 double"), 0);
    }

    #[test]
    fn vectors_hang_over_forward_rows_alone() {
        let zen = TARGETS[2].far();
        let method = |stride| closed_rows(&zen, Direction::Pack, (Some(1000), stride, 12), 1);
        assert_eq!(method(128), RowsMethod::Overhanging { width: 16 });
        for stride in [-128, 8, 0, 8192] {
            assert!(!matches!(method(stride), RowsMethod::Overhanging { .. }), "{stride}");
        }
    }
}
