//! The roofline of a call with index tables: what its entries touch.

use super::{Entries, TabledCopy, TabledLayout};
use crate::layout::Layout;
use crate::plan::gpu::{Footprint, GRANULE, Roofline, SECTOR};

/// Runs of a call, before neighbours are joined, that are looked at, at most: each takes some nanoseconds, and 16 bytes until all are sorted.
const MOST_RUNS: usize = 1 << 22;

/// What a call with index tables moves, and the least traffic of it.
///
/// # Example
///
/// ```
/// use dtc_compiler::plan::Direction;
/// use dtc_compiler::tabled::{Entries, TabledLayout, TabledRoofline};
/// let rows = TabledLayout::new(&"table 0 64 8 32 (contiguous 4 double)".parse()?);
/// let found = TabledRoofline::of(&rows, &[Entries::Wide(&[7, 3, 4, -1])], 0).unwrap();
/// // Rows 3 and 4 follow each other, and the last entry is skipped.
/// assert_eq!((found.bytes, found.pieces), (96, 2));
/// assert_eq!(found.roofline.footprint().sectors, 3);
/// assert_eq!(found.roofline.traffic(Direction::Pack).read, 3 * 64);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TabledRoofline {
    /// Packed bytes that are moved: those of skipped entries are not.
    pub bytes: u64,
    /// Copies that would move the same: consecutive bytes on both sides.
    pub pieces: u64,
    /// The traffic.
    pub roofline: Roofline,
}

impl TabledRoofline {
    /// That of a whole call with these tables. `address`: of the memory that offsets are relative to. `None` where the number of tables or a length
    /// is wrong, and for calls of more than 4,194,304 runs.
    pub fn of(layout: &TabledLayout, tables: &[Entries<'_>], address: u64) -> Option<TabledRoofline> {
        let lengths: Vec<u64> = tables.iter().map(|table| table.len() as u64).collect();
        let total = layout.size(&lengths)?;
        let fixed: Vec<FixedRuns> = layout.fixed_layouts().iter().map(FixedRuns::of).collect::<Option<_>>()?;
        let mut call = CallRuns { address, bytes: 0, pieces: 0, end: None, runs: Vec::new(), seen: 0 };
        for block in layout.blocks(tables, 0, total) {
            call.look_at(1)?;
            for copy in block.copies() {
                call.add(copy, &fixed[block.fixed])?;
            }
        }
        let CallRuns { bytes, pieces, runs, .. } = call;
        Some(TabledRoofline { bytes, pieces, roofline: Roofline::new(bytes, footprint(runs)) })
    }
}

/// The runs of a fixed layout: offset and bytes.
struct FixedRuns(Vec<(i64, u64)>);

impl FixedRuns {
    /// Nothing if there are too many.
    fn of(layout: &Layout) -> Option<FixedRuns> {
        let mut runs: Vec<(i64, u64)> = Vec::new();
        for (number, piece) in layout.walk().enumerate() {
            if number == MOST_RUNS {
                return None;
            }
            match runs.last_mut() {
                Some((offset, bytes)) if offset.wrapping_add(*bytes as i64) == piece.offset => *bytes += piece.bytes(),
                _ => runs.push((piece.offset, piece.bytes())),
            }
        }
        Some(FixedRuns(runs))
    }
}

/// What has been found of a call.
struct CallRuns {
    address: u64,
    bytes: u64,
    pieces: u64,
    /// One past the last piece: in the packed bytes, and in memory.
    end: Option<(u64, u64)>,
    /// Address and bytes, in packed order.
    runs: Vec<(u64, u64)>,
    /// Runs that were looked at, before neighbours were joined, and blocks, whose copies may all be skipped.
    seen: usize,
}

impl CallRuns {
    /// Counts runs that are looked at; nothing if they are too many.
    fn look_at(&mut self, runs: usize) -> Option<()> {
        self.seen += runs;
        (self.seen <= MOST_RUNS).then_some(())
    }

    /// Adds a copy of a fixed layout; nothing if the call has too many runs.
    fn add(&mut self, copy: TabledCopy, of: &FixedRuns) -> Option<()> {
        let base = if copy.absolute { copy.place } else { copy.place.wrapping_add(self.address) };
        let mut position = copy.position;
        self.look_at(of.0.len())?;
        for &(offset, bytes) in &of.0 {
            let place = base.wrapping_add(offset as u64);
            match self.runs.last_mut() {
                Some((_, length)) if self.end == Some((position, place)) => *length += bytes,
                _ => {
                    self.runs.push((place, bytes));
                    self.pieces += 1;
                }
            }
            position += bytes;
            self.bytes += bytes;
            self.end = Some((position, place.wrapping_add(bytes)));
        }
        Some(())
    }
}

/// What runs touch, each place once.
fn footprint(mut runs: Vec<(u64, u64)>) -> Footprint {
    runs.sort_unstable();
    let (mut granules, mut sectors) = (TouchedUnits::new(GRANULE), TouchedUnits::new(SECTOR));
    let mut full_sectors = 0;
    let mut runs = runs.into_iter().peekable();
    while let Some((begin, bytes)) = runs.next() {
        let mut end = begin.saturating_add(bytes);
        while let Some((next, bytes)) = runs.next_if(|&(next, _)| next <= end) {
            end = end.max(next.saturating_add(bytes));
        }
        granules.touch(begin, end);
        sectors.touch(begin, end);
        full_sectors += (end / SECTOR).saturating_sub(begin.div_ceil(SECTOR));
    }
    Footprint { granules: granules.count, sectors: sectors.count, full_sectors, error: 0.0 }
}

/// Aligned units of memory that rising ranges touch.
struct TouchedUnits {
    bytes: u64,
    count: u64,
    /// The first that was not counted.
    next: u64,
}

impl TouchedUnits {
    fn new(bytes: u64) -> TouchedUnits {
        TouchedUnits { bytes, count: 0, next: 0 }
    }

    fn touch(&mut self, begin: u64, end: u64) {
        let (first, last) = ((begin / self.bytes).max(self.next), end.div_ceil(self.bytes));
        self.count += last.saturating_sub(first);
        self.next = self.next.max(last);
    }
}
