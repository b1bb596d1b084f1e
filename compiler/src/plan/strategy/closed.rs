//! How closed functions by LLVM move rows: with the vectors of a target, and without microkernels.
//!
//! Measured on a Zen 5 unless something else is said (`bench/results/2026-11-23-llvm.md`).

use crate::plan::Direction;

/// Longest piece, in bytes, that straight code moves: a call of `memcpy` takes as long.
pub(crate) const CLOSED_INLINE_BYTES: u64 = 256;

/// Longest piece, in bytes, that a loop of such pieces moves.
pub(crate) const CLOSED_LOOP_BYTES: u64 = 1024;

/// Longest stride, in bytes, at which the bytes behind a row may be read: less than a page, so that a page of every byte that is
/// read holds a byte of a row.
const CLOSE: u64 = 4096 - 64;

/// Longest stride, in bytes, at which overlapping stores of whole vectors are faster than masked ones: 17 of 24 bytes took 0.75 of
/// the time, 12 of 128 bytes 1.8.
const DENSE: u64 = 64;

/// Fewest and most rows that are gathered or scattered. More, a page apart each, wait for the TLB, and take up to twice as long as
/// word by word.
const GATHERED_ROWS: std::ops::RangeInclusive<u64> = 64..=1 << 14;

/// Shortest stride of rows that are gathered or scattered, in bytes. Several rows of a line are faster word by word, by up to 1.9 times.
const GATHERED_STRIDE: u64 = 128;

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
    match direction {
        Direction::Pack if apart && step <= DENSE && many >= 8 => RowsMethod::Overhanging { width },
        _ if vectors.masked_stores => RowsMethod::Masked,
        Direction::Pack if apart && step <= CLOSE && many >= 8 => RowsMethod::Overhanging { width },
        _ => RowsMethod::Words,
    }
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

/// Whether a tile is transposed in registers, in squares as long as a vector. With vectors of 32 bytes, a pack of words of 4 bytes took
/// 1.39 of the runtime's time in squares and 0.76 block by block, of 8 bytes 1.31 and 1.50.
pub(crate) fn is_transposed_closed(vectors: &Vectors, direction: Direction, plane_stride: i64, bytes: u64) -> bool {
    let serves = match bytes {
        4 => vectors.bytes == 64 || direction == Direction::Unpack,
        8 => true,
        16 => vectors.bytes == 64,
        _ => false,
    };
    serves && plane_stride == bytes as i64 && vectors.bytes >= 4 * bytes
}

/// Bytes of neighbouring planes from which on an unpack writes them one after the other, and not row after row.
const WIDE: u64 = 1024;

/// Whether squares follow each other along the rows of memory: a transpose is fastest in the order of what it writes. Elements of 16
/// bytes in 256 rows a multiple of 4 KiB apart took 0.75 of the runtime's time for a pack in that order and 2.9 in the other, 0.33 and
/// 1.0 for an unpack.
pub(crate) fn writes_rows_first(direction: Direction, planes: Option<u64>, bytes: u64) -> bool {
    direction == Direction::Unpack && planes.is_none_or(|planes| planes.saturating_mul(bytes) >= WIDE)
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

    const TARGETS: [Vectors; 3] = [
        Vectors { bytes: 16, masked_loads: false, masked_stores: false, byte_shuffles: false, gathers: false },
        Vectors { bytes: 32, masked_loads: false, masked_stores: false, byte_shuffles: false, gathers: false },
        Vectors { bytes: 64, masked_loads: true, masked_stores: true, byte_shuffles: true, gathers: true },
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
    fn vectors_hang_over_forward_rows_alone() {
        let methods = |stride| TARGETS.map(|target| closed_rows(&target, Direction::Pack, (Some(1000), stride, 12), 1));
        let [sse, ..] = methods(128);
        assert_eq!(sse, RowsMethod::Overhanging { width: 16 });
        for stride in [-128, 8, 0, 8192] {
            let overhangs = |method: &RowsMethod| matches!(method, RowsMethod::Overhanging { .. });
            assert!(!methods(stride).iter().any(overhangs), "{stride}");
        }
    }
}
