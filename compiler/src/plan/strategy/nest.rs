//! How nests of rows are moved: by which microkernel, and with which prefetches.
//!
//! The functions are inlined into the microkernels, which pass constants for the level and for most lengths; what is left of
//! a choice at a call is a few comparisons of counts and strides.

use super::shuffle::{self, Group};
use crate::plan::{Direction, Level};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a page.
const PAGE: usize = 4 << 10;

/// Planes of rows: row `i` of plane `p` is at `p * plane_stride + i * stride`, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nest {
    /// Bytes of a row.
    pub bytes: usize,
    /// Rows of a plane.
    pub rows: usize,
    /// Distance from row to row, in bytes.
    pub stride: isize,
    /// Planes; 1 for rows alone.
    pub planes: usize,
    /// Distance from plane to plane, in bytes.
    pub plane_stride: isize,
}

/// How a nest is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NestMethod {
    /// Row after row.
    Rows(RowLoop),
    /// Planes of this number of rows, each without a loop.
    Planes(usize),
    /// Groups of short rows, by byte shuffles of a few vectors.
    Shuffled(Group),
    /// Every other word of 1 to 8 bytes, by a fixed shuffle. Packs only.
    EveryOtherWord,
    /// Each row as a whole vector, whose end the next row overwrites. Packs only.
    Overhanging,
    /// Rows in reverse order without gaps, turned round in registers.
    Reversed,
    /// Planes that are neighbours in memory, in rectangles that are transposed in registers.
    Transposed,
    /// Two rows to a store. Packs only.
    Pairs,
    /// Sixteen words per iteration, across the ends of planes. For nests that are known as a whole.
    Sixteens,
    /// Sixty-four words per iteration, each by an instruction of its own. For nests that are known as a whole.
    SixtyFours,
    /// Sixteen words of 4 bytes by one gather. Packs only.
    Gathered,
}

/// A loop over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLoop {
    /// Rows per iteration.
    pub unrolled: usize,
    /// Which lines are prefetched.
    pub prefetch: Prefetch,
    /// Whether each row is left to the C library.
    pub library: bool,
}

impl RowLoop {
    /// Four rows per iteration, without prefetches.
    pub const PLAIN: RowLoop = RowLoop { unrolled: 4, prefetch: Prefetch::Off, library: false };
}

/// Which lines of the destination an unpack prefetches. Stores leave in order and wait for their lines one by one, where loads
/// overtake each other, so packs prefetch nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// None.
    Off,
    /// The line this many bytes ahead of each row.
    Ahead(isize),
    /// All lines of the next row.
    NextRow,
}

/// Fewest rows that repay setting up shuffles. Measured on Sapphire Rapids.
const SHUFFLED_ROWS: usize = 64;

/// Most neighbouring planes that are moved one by one where each can be shuffled by itself, and transposed in registers where not. Packs of
/// 2 and 3 took 0.1 to 1.0 of the time by shuffles, packs of 4 words of 4 bytes 1.3 to 1.5, on a Zen 4 and on Sapphire Rapids. Packs of 7
/// took 0.5 of the time on Sapphire Rapids and 1.8 on the Zen 4 (`bench/results/2026-11-26-transposes.md`).
const SHUFFLED_PLANES: usize = 3;

/// Most bytes of such planes that are moved one by one: 7 of single bytes took as long, 13 half of the time in registers.
const SHUFFLED_BYTES: usize = 8;

/// Bytes of a vector of the microkernel for reversed rows: the fewest that it moves.
const REVERSED_BYTES: usize = 32;

/// Fewest rows that are packed as whole vectors.
const OVERHANGING_ROWS: usize = 8;

/// Fewest rows that are packed in pairs.
const PAIRED_ROWS: usize = 4;

/// Fewest rows of planes that are packed in pairs. Planes of 2 rows of 16 bytes took 0.54 of the time, on a Zen 4.
const PAIRED_PLANE_ROWS: usize = 2;

/// Most rows of a plane that are moved without a loop over them. Planes of 4 rows of 16 bytes took 0.74 of the time, of 6 of 32 bytes 0.87 to
/// 0.9, on a Zen 4. The addresses of 8 rows at a stride need five registers.
pub const FEW_ROWS: usize = 8;

/// Longest row, in bytes, of such planes of more than three rows: a vector of AVX2.
pub const FEW_BYTES: usize = 32;

/// Most rows of a plane that are moved without a loop whatever their length, and where they are not repeated.
const FEW_LONG_ROWS: usize = 3;

/// Words of 4 bytes in a gather, the fewest that it packs.
const GATHERED_ROWS: usize = 16;

/// Most rows whose lines the second-level cache holds: 1 MiB. Gathers of more were slower than single loads on Sapphire Rapids.
const GATHERED_MOST_ROWS: usize = 1 << 14;

/// Longest stride at which the offsets of a gather fit 32 bits.
const GATHERED_STRIDE: usize = 1 << 26;

/// Fewest rows, each in a line of its own, that a prefetch gains by: 32 KiB, so that lines are in the second-level cache at best.
/// 3,000 words at random places of 72 KiB took 3.6 us without and 2.2 us with prefetches, on Sapphire Rapids.
const FAR_ROWS: usize = 512;

/// Rows prefetched ahead of the current one.
const AHEAD: usize = 16;

/// Longest row that is prefetched by one line. Longer ones often are in two.
const FAR_BYTES: usize = 16;

/// Shortest stride, in bytes, that the hardware does not follow by itself: prefetches of closer rows cost 20 %.
const FAR_STRIDE: usize = 4 * LINE;

/// Most rows of a plane for which the same row of a later plane is prefetched: rows ahead would leave out the first of each plane.
const SHORT_PLANE: usize = 128;

/// Reach of the second-level TLB, in pages. Prefetches beyond it miss the TLB as the stores do: 20 % slower on Sapphire Rapids.
const TLB_PAGES: usize = 2048;

/// Longest stride, in bytes, at which prefetches gain beyond the reach of the TLB.
const CLOSE_STRIDE: usize = 1 << 10;

/// From this many rows on, strides that are multiples of half a page conflict in a few cache sets, and prefetches gain 33 %.
const CONFLICTING_ROWS: usize = 1 << 17;

/// Packed bytes of rows whose destination an unpack finds in the second-level cache: of more, memory decides; fewer are in the
/// first level.
const NEXT_ROW_TOTAL: std::ops::RangeInclusive<usize> = 32 << 10..=1 << 20;

/// Shortest row, in bytes, that is moved by a loop of its own or by the C library.
#[inline(always)]
fn long_row(level: Level) -> usize {
    match level {
        Level::Portable => 65,
        Level::Avx2 => 129,
        Level::Avx512 | Level::Zen4 | Level::Zen5 => 256,
    }
}

/// Longest row whose successor is prefetched, in bytes. Longer ones would evict each other.
const NEXT_ROW_BYTES: usize = 8 << 10;

/// Packed bytes from which rows of at least [`library_row`] bytes are left to the C library, which copies them by string
/// instructions.
#[inline(always)]
fn library_total(level: Level) -> usize {
    match level {
        // Beyond the first-level cache. 64 rows of 3 KiB in the second level took 0.72 to 0.89 of the time, of 16 KiB 0.6; 8 rows of
        // 3 KiB in the first level took 1.24 to 1.45.
        Level::Zen5 => 48 << 10,
        // 4 MiB in the third-level cache took 0.96 of the time, and in the second level 1.1, on Sapphire Rapids.
        _ => 3 << 19,
    }
}

/// Bytes of a row from which the C library uses string instructions. See [`library_total`].
#[inline(always)]
fn library_row(level: Level) -> usize {
    match level {
        Level::Zen5 => 2112,
        _ => 2 << 10,
    }
}

/// Longest row that is moved by four per iteration on Zen, whose prefetcher follows the stride of one load: 987 rows of 64 bytes in
/// the second-level cache took 0.89 us one at a time and 1.04 us by four.
const ZEN_UNROLLED_BYTES: usize = 32;

/// Words whose lines the first-level cache of Zen 5 holds no longer: 48 KiB.
const BEYOND_FIRST_LEVEL: usize = 768;

/// How a microkernel for any nest of such rows moves this one. `bytes` is never 0 where rows are shuffled.
#[inline(always)]
#[must_use]
pub fn nest(level: Level, direction: Direction, nest: &Nest) -> NestMethod {
    let Nest { bytes, rows, stride, planes, .. } = *nest;
    let pack = matches!(direction, Direction::Pack);
    let transposed = is_transposed(level, direction, nest);
    if transposed && planes > SHUFFLED_PLANES && planes.saturating_mul(bytes) > SHUFFLED_BYTES {
        return NestMethod::Transposed;
    }
    if pack && level >= Level::Avx512 && is_every_other_word(nest) {
        return NestMethod::EveryOtherWord;
    }
    if level >= Level::Avx512
        && bytes <= shuffle::LONGEST
        && (pack || level.stores_masks())
        && rows >= SHUFFLED_ROWS
        && bytes > 0
        && stride >= bytes as isize
        && stride <= shuffle::FARTHEST as isize
    {
        let group = shuffle::group(direction, bytes, stride as usize);
        if group.vectors > 0 {
            return NestMethod::Shuffled(group);
        }
    }
    if transposed {
        return NestMethod::Transposed;
    }
    if pack
        && level.overhangs()
        && !bytes.is_power_of_two()
        && (3..LINE).contains(&bytes)
        && rows >= OVERHANGING_ROWS
        && stride > bytes as isize
        && stride <= LINE as isize
    {
        return NestMethod::Overhanging;
    }
    if level >= Level::Avx2
        && matches!(bytes, 1 | 2 | 4 | 8)
        && stride == -(bytes as isize)
        && rows * bytes >= REVERSED_BYTES
    {
        return NestMethod::Reversed;
    }
    if pack
        && level >= Level::Avx512
        && matches!(bytes, 8 | 16)
        && rows >= if planes > 1 { PAIRED_PLANE_ROWS } else { PAIRED_ROWS }
        && !is_beyond_tlb(planes.saturating_mul(rows), stride.unsigned_abs())
    {
        return NestMethod::Pairs;
    }
    if pack
        && level.gathers()
        && bytes == 4
        && rows >= GATHERED_ROWS
        && stride.unsigned_abs() <= GATHERED_STRIDE
        && planes.saturating_mul(rows) <= GATHERED_MOST_ROWS
    {
        return NestMethod::Gathered;
    }
    one_by_one(level, direction, nest)
}

/// How rows are moved one after the other, or planes of few rows at a time.
#[inline(always)]
fn one_by_one(level: Level, direction: Direction, nest: &Nest) -> NestMethod {
    let Nest { bytes, rows, planes, .. } = *nest;
    let how = row_loop(level, direction, nest);
    let most = if planes > 1 && bytes <= FEW_BYTES { FEW_ROWS } else { FEW_LONG_ROWS };
    if rows >= 2 && rows <= most && bytes < long_row(level) && how.prefetch == Prefetch::Off {
        return NestMethod::Planes(rows);
    }
    NestMethod::Rows(how)
}

/// Whether each plane has a vector or more of words, with a gap of a word behind each. The shuffle is constant, so that planes of few rows
/// gain as well: 23 planes of 58 words of 4 bytes took 0.3 of the time, 49 of 19 words 0.6, on a Zen 4.
#[inline(always)]
fn is_every_other_word(nest: &Nest) -> bool {
    let Nest { bytes, rows, stride, .. } = *nest;
    matches!(bytes, 1 | 2 | 4 | 8) && stride == 2 * bytes as isize && rows >= LINE / bytes
}

/// Whether a nest of planes that are neighbours in memory is transposed in registers, in rectangles of vectors of 16 bytes.
#[inline(always)]
fn is_transposed(level: Level, direction: Direction, nest: &Nest) -> bool {
    let Nest { bytes, rows, stride, planes, plane_stride } = *nest;
    // Planes that reach into the next rows are unpacked one after the other.
    let pack = matches!(direction, Direction::Pack);
    let apart = pack || stride.unsigned_abs() >= planes.saturating_mul(bytes);
    // Packs of words of 8 bytes took 0.5 to 1.0 of the time in pairs, on Sapphire Rapids.
    let pairs = pack && bytes == 8 && rows >= PAIRED_ROWS && matches!(level, Level::Avx512);
    level >= Level::Avx2
        && apart
        && !pairs
        && matches!(bytes, 1 | 2 | 4 | 8)
        && plane_stride == bytes as isize
        && planes >= 2
        && rows >= 2
}

/// The microkernel specialised for this nest's counts and strides, or `None` if that for any nest of such rows is as fast.
#[must_use]
pub fn whole_nest(level: Level, direction: Direction, nest: &Nest) -> Option<NestMethod> {
    let Nest { bytes, rows, stride, planes, .. } = *nest;
    let (pack, step) = (direction == Direction::Pack, stride.unsigned_abs());
    if level < Level::Avx512 || !matches!(bytes, 8 | 16) || is_transposed(level, direction, nest) {
        return None;
    }
    if step <= shuffle::FARTHEST {
        return None;
    }
    let words = planes.saturating_mul(rows);
    let prefetch = prefetch(level, direction, nest);
    match (bytes, pack) {
        (_, false) if prefetch != Prefetch::Off => None,
        (_, true) if is_beyond_tlb(words, step) => None,
        // Beyond the reach of the TLB, 262,144 words take 1.5 times as long as by sixteens.
        (8, _)
            if !level.prefetches()
                && rows.is_multiple_of(64)
                && words > BEYOND_FIRST_LEVEL
                && !is_beyond_tlb(words, step) =>
        {
            Some(NestMethod::SixtyFours)
        }
        (8, _) if rows.is_multiple_of(16) => Some(NestMethod::Sixteens),
        (_, true) => Some(NestMethod::Pairs),
        (8, false) => Some(one_by_one(level, direction, nest)),
        _ => None,
    }
}

/// How rows are moved one after the other.
#[inline(always)]
fn row_loop(level: Level, direction: Direction, nest: &Nest) -> RowLoop {
    let Nest { bytes, rows, planes, .. } = *nest;
    let total = planes.saturating_mul(rows.wrapping_mul(bytes));
    RowLoop {
        unrolled: if !level.prefetches() && bytes > ZEN_UNROLLED_BYTES { 1 } else { 4 },
        prefetch: prefetch(level, direction, nest),
        library: bytes >= library_row(level) && total >= library_total(level),
    }
}

#[inline(always)]
fn prefetch(level: Level, direction: Direction, nest: &Nest) -> Prefetch {
    let Nest { bytes, rows, stride, planes, plane_stride } = *nest;
    if matches!(direction, Direction::Pack) || !level.prefetches() {
        return Prefetch::Off;
    }
    let (step, lines) = (stride.unsigned_abs(), planes.saturating_mul(rows));
    if bytes >= long_row(level) {
        // Shorter rows than half of a page at multiples of a page conflict in a few cache sets.
        let conflicting = step.is_multiple_of(PAGE) && bytes < PAGE / 2;
        let serves = bytes <= NEXT_ROW_BYTES && NEXT_ROW_TOTAL.contains(&(rows.wrapping_mul(bytes))) && !conflicting;
        return if serves { Prefetch::NextRow } else { Prefetch::Off };
    }
    if bytes > FAR_BYTES || !bytes.is_power_of_two() {
        return Prefetch::Off;
    }
    let apart = step >= FAR_STRIDE && (planes == 1 || plane_stride.unsigned_abs() >= FAR_STRIDE);
    let conflicting = step.is_multiple_of(PAGE / 2) && lines > CONFLICTING_ROWS;
    if !apart || lines < FAR_ROWS || is_beyond_tlb(lines, step) && !conflicting {
        Prefetch::Off
    } else if planes > 1 && rows <= SHORT_PLANE {
        Prefetch::Ahead(plane_stride.wrapping_mul(AHEAD.div_ceil(rows.max(1)) as isize))
    } else {
        Prefetch::Ahead(stride.wrapping_mul(AHEAD as isize))
    }
}

/// Whether rows at a stride, in bytes, are not close together and are in more pages than the TLB reaches.
#[inline(always)]
fn is_beyond_tlb(rows: usize, stride: usize) -> bool {
    stride > CLOSE_STRIDE && rows.saturating_mul(stride.min(PAGE)) > TLB_PAGES * PAGE
}
