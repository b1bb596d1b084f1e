//! How the work of a kernel is spread over blocks.

use super::call::Call;

/// Which units of the packed bytes a call has. Units are counted from packed byte 0, unless it is said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    /// As many as its bytes fill, at least one: bytes at both ends are moved beside them.
    Filled,
    /// Those that it touches.
    Touched,
    /// Those that are inside the call, at least one: bytes at both ends are moved beside them.
    Inside,
    /// Those that it touches, counted from address 0 of the packed bytes.
    Addressed,
    /// As many as its bytes need, counted from its first byte.
    Needed,
}

/// How the work of a kernel is spread over blocks: units of packed bytes, and how many of them a block moves.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::{Direction, gpu::GpuPlan};
/// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
/// let plan = GpuPlan::new(&Layout::parse(text)?);
/// let kernels = plan.whole(Direction::Pack, 8);
/// // Words of eight bytes, from the first line of the packed bytes on.
/// assert!(kernels[0].grid.blocks(0, 32768) <= 4096 / u64::from(kernels[0].variant.threads()) + 1);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Packed bytes of a unit.
    pub unit: u64,
    /// What a unit counts for.
    pub share: u64,
    /// Packed bytes of a word, whose number modulo `line` says how far inside a line the packed bytes begin.
    pub word: u64,
    /// Words of a line; 1 where nothing begins at lines.
    pub line: u64,
    /// Rows of tiles, whose columns are the units; 0 for kernels without tiles.
    pub rows: u64,
    /// Units, or rows, of a block.
    pub each: u64,
    /// Which units a call has.
    pub(super) units: Units,
}

impl Grid {
    /// `each` units of `unit` packed bytes to a block.
    pub(crate) fn new(units: Units, unit: u64, each: u64) -> Grid {
        Grid { unit, share: 1, word: 1, line: 1, rows: 0, each, units }
    }

    /// Units more than the bytes of whole elements have, for ends inside a unit.
    ///
    /// ```
    /// # use dtc_compiler::layout::Layout;
    /// # use dtc_compiler::plan::{Direction, gpu::GpuPlan};
    /// # let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
    /// # let plan = GpuPlan::new(&Layout::parse(text)?);
    /// assert_eq!(plan.whole(Direction::Pack, 8)[0].grid.more(), 0);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn more(&self) -> u64 {
        u64::from(self.units == Units::Addressed)
    }

    /// The blocks for whole elements of `bytes` packed bytes at `packed`, an address: as many as [`GpuPlan::blocks`](super::GpuPlan::blocks) says, or one
    /// more. Programs that have no plan compute this.
    pub fn blocks(&self, packed: u64, bytes: u64) -> u64 {
        let units = bytes.div_ceil(self.unit).saturating_mul(self.share);
        let ahead = self.more() + packed / self.word % self.line;
        match self.rows {
            0 => (units + ahead).div_ceil(self.each),
            rows => units.saturating_mul((rows + ahead).div_ceil(self.each)),
        }
    }

    /// The blocks for a call of a kernel without tiles, or `None` when no grid is that large.
    pub(crate) fn blocks_of(&self, call: &Call) -> Option<u32> {
        let (unit, end) = (self.unit, call.first.checked_add(call.bytes)?);
        let units = match self.units {
            Units::Filled => (call.bytes / unit).max(1),
            Units::Touched => end.div_ceil(unit) - call.first / unit,
            Units::Inside => (end / unit).saturating_sub(call.first.div_ceil(unit)).max(1),
            Units::Addressed => (call.bytes + call.packed % unit).div_ceil(unit),
            Units::Needed => call.bytes.div_ceil(unit),
        };
        let ahead = call.packed.div_ceil(self.word) % self.line;
        launched((units.checked_mul(self.share)? + ahead).div_ceil(self.each))
    }
}

/// A number of blocks, if a grid may have as many.
pub(crate) fn launched(blocks: u64) -> Option<u32> {
    u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31)
}
