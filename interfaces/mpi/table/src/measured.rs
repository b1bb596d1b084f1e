//! What is measured, and how a decision comes of it.

use crate::sizes::{SIZES, Sizes};
use std::fmt;

/// Bytes of the contiguous pieces that are measured. Longer ones are left to the MPI.
pub const PIECES: [i64; 10] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/// Time of the MPI over time with dtc from which on dtc does a call. Two measurements of one call differ by less, on a machine that
/// does nothing else.
const GAIN: f32 = 1.05;

/// One of so many calls of a size has to gain for datatypes that nobody has looked at to be looked at for calls of that size: a look costs as
/// much as a small message gains.
const SOME: usize = 16;

/// A use of a datatype that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// `MPI_Pack`.
    Pack,
    /// `MPI_Unpack`.
    Unpack,
    /// `MPI_Send` and `MPI_Recv`, one message at a time.
    Message,
    /// `MPI_Isend`, `MPI_Irecv` and `MPI_Waitall` in both directions, and collectives.
    Exchange,
}

impl Use {
    /// Every use, in the order of their values.
    pub const ALL: [Use; 4] = [Use::Pack, Use::Unpack, Use::Message, Use::Exchange];

    /// The name in a table.
    pub fn name(self) -> &'static str {
        ["pack", "unpack", "message", "exchange"][self as usize]
    }
}

/// How contiguous pieces follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrangement {
    /// Equal pieces at equal distances, as in a vector.
    Regular,
    /// By a list, whose description grows with the number of pieces.
    Listed,
    /// Pieces of several lengths at equal distances, or of elements of several kinds, as in an array of structures: MPIs go from member to member.
    Records,
}

impl Arrangement {
    /// Every arrangement, in the order of their values.
    pub const ALL: [Arrangement; 3] = [Arrangement::Regular, Arrangement::Listed, Arrangement::Records];

    /// The name in a table.
    pub fn name(self) -> &'static str {
        ["regular", "listed", "records"][self as usize]
    }
}

/// Packed bytes over those that elements reach over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Density {
    /// A half.
    Half,
    /// An eighth.
    Eighth,
}

impl Density {
    /// Every density, in the order of their values.
    pub const ALL: [Density; 2] = [Density::Half, Density::Eighth];

    /// The name in a table.
    pub fn name(self) -> &'static str {
        ["1/2", "1/8"][self as usize]
    }

    /// Bytes that elements reach over for each packed one.
    pub fn reach(self) -> i64 {
        [2, 8][self as usize]
    }

    /// The one that is closer, as a factor, to a share of packed bytes.
    fn nearest(share: f64) -> Density {
        if share >= 0.25 { Density::Half } else { Density::Eighth }
    }
}

/// The contiguous pieces of a datatype.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pieces {
    /// How they follow each other.
    pub arrangement: Arrangement,
    /// Bytes of one, on average.
    pub bytes: i64,
    /// Packed bytes over those that elements reach over, from 0 to 1.
    pub share: f64,
    /// Packed bytes of a loop over equal pieces that has fewer than [`Pieces::FEW`], which MPIs begin anew behind it; else `i64::MAX`.
    pub loop_bytes: i64,
}

/// What is known of a datatype: of one element, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Packed bytes.
    pub packed: i64,
    /// From one element to the next.
    pub extent: i64,
    /// From the first byte to one past the last.
    pub true_extent: i64,
    /// Contiguous pieces; `i64::MAX` if they are more than can be counted.
    pub blocks: i64,
    /// Bytes of the shortest piece.
    pub shortest_block: i64,
    /// Bytes of the longest piece.
    pub longest_block: i64,
    /// Bytes of a description as short as dtc knows one.
    pub described: i64,
    /// Whether basic elements are of several kinds.
    pub mixed: bool,
}

impl Pieces {
    /// Pieces of which any MPI goes through a list fast: fewer are not taken for listed.
    pub const FEW: i64 = 64;

    /// Bytes of the description of a vector, at least, and of each further dimension, by the lengths of their numbers.
    const OF_VECTOR: i64 = 49;
    const OF_DIMENSION: i64 = 12;

    /// Bytes of the longest description without a list. One of 64 pieces in a list has 178.
    const MOST_WITHOUT_LIST: i64 = 128;

    /// The pieces of a datatype that has some.
    ///
    /// ```
    /// use dtc_mpi_table::{Arrangement, Facts, Pieces};
    ///
    /// // 1,000 doubles, each at the beginning of 16 bytes.
    /// let facts = Facts {
    ///     packed: 8000,
    ///     extent: 15_992,
    ///     true_extent: 15_992,
    ///     blocks: 1000,
    ///     shortest_block: 8,
    ///     longest_block: 8,
    ///     described: 64,
    ///     mixed: false,
    /// };
    /// let pieces = Pieces::of(&facts);
    /// assert_eq!((pieces.arrangement, pieces.bytes), (Arrangement::Regular, 8));
    /// ```
    pub fn of(facts: &Facts) -> Pieces {
        let many = facts.blocks >= Pieces::FEW && facts.blocks < i64::MAX;
        // Elements that interleave are as far from a rule as a list.
        let interleaved = facts.extent > 0 && facts.extent < facts.true_extent / 2;
        let arrangement = if many && (interleaved || facts.described > facts.blocks / 2 + Pieces::MOST_WITHOUT_LIST) {
            Arrangement::Listed
        } else if facts.shortest_block < facts.longest_block || facts.mixed {
            Arrangement::Records
        } else {
            Arrangement::Regular
        };
        let reach = facts.extent.max(facts.true_extent).max(1);
        let share = facts.packed as f64 / reach as f64;
        let bytes = facts.packed / facts.blocks.max(1);
        Pieces { arrangement, bytes, share, loop_bytes: Pieces::loop_bytes(facts, bytes) }
    }

    /// Whether a call of `bytes` packed bytes goes through several short loops.
    fn has_several_loops(&self, bytes: i64) -> bool {
        self.arrangement == Arrangement::Regular
            && self.loop_bytes.checked_mul(2).is_some_and(|several| bytes >= several)
    }

    /// Packed bytes of a loop, where all loops of an element are taken for equally long.
    fn loop_bytes(facts: &Facts, bytes: i64) -> i64 {
        let loops = 1 + (facts.described - Pieces::OF_VECTOR).max(0) / Pieces::OF_DIMENSION;
        let length = (facts.blocks as f64).powf(1.0 / loops as f64);
        if length < Pieces::FEW as f64 { (length * bytes as f64) as i64 } else { i64::MAX }
    }
}

/// A measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// The call.
    pub r#use: Use,
    /// How the pieces follow each other.
    pub arrangement: Arrangement,
    /// How dense they are.
    pub density: Density,
    /// Bytes of a piece, one of [`PIECES`].
    pub piece: i64,
    /// Packed bytes, one of [`SIZES`].
    pub size: i64,
    /// Time of the MPI alone over time with dtc.
    pub gain: f32,
}

/// Whether dtc does a call with this gain. Not one that was not measured.
fn gains(gain: f32) -> bool {
    gain >= GAIN
}

impl Cell {
    /// Whether dtc does the call.
    pub fn gains(&self) -> bool {
        gains(self.gain)
    }
}

/// The gains of calls with pieces of one kind, by column; -1.0 where none was measured.
pub type Row = [f32; SIZES.len()];

/// The gain of what was not measured. No NaN: a comparison with one may raise the floating-point exception "invalid", which ends programs that trap it.
pub(crate) const UNMEASURED: f32 = -1.0;

const NOT_MEASURED: Row = [UNMEASURED; SIZES.len()];

/// What was measured of one MPI.
#[derive(Clone, PartialEq)]
pub struct Table {
    /// The MPI, as it names itself.
    pub mpi: String,
    /// The machine.
    pub machine: String,
    rows: Vec<Row>,
    /// The sizes at which dtc does calls of each row.
    served: Vec<Sizes>,
}

impl fmt::Debug for Table {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

fn row_at(of: Use, arrangement: Arrangement, density: Density, piece: usize) -> usize {
    let kind = of as usize * Arrangement::ALL.len() + arrangement as usize;
    (kind * Density::ALL.len() + density as usize) * PIECES.len() + piece
}

/// The rows of a use: arrangement, density, and the place of a length in [`PIECES`].
fn kinds() -> impl Iterator<Item = (Arrangement, Density, usize)> {
    let densities = |arrangement| Density::ALL.map(|density| (arrangement, density));
    let kinds = Arrangement::ALL.into_iter().flat_map(densities);
    kinds.flat_map(|(arrangement, density)| (0..PIECES.len()).map(move |at| (arrangement, density, at)))
}

impl Table {
    /// A table without measurements, of which every call is left to the MPI.
    pub fn new(mpi: &str, machine: &str) -> Table {
        let rows = Use::ALL.len() * Arrangement::ALL.len() * Density::ALL.len() * PIECES.len();
        let (mpi, machine) = (mpi.to_owned(), machine.to_owned());
        Table { mpi, machine, rows: vec![NOT_MEASURED; rows], served: vec![Sizes::NONE; rows] }
    }

    /// The gains of calls with pieces of `PIECES[piece]` bytes; none are measured of pieces that the table does not have.
    pub fn row(&self, of: Use, arrangement: Arrangement, density: Density, piece: usize) -> &Row {
        let known = (piece < PIECES.len()).then(|| row_at(of, arrangement, density, piece));
        known.and_then(|at| self.rows.get(at)).unwrap_or(&NOT_MEASURED)
    }

    /// Changes the gain of a cell; false if the table has none for its piece or its size.
    fn change(&mut self, cell: &Cell, gain: impl FnOnce(f32) -> f32) -> bool {
        let piece = PIECES.iter().position(|bytes| *bytes == cell.piece);
        let size = SIZES.iter().position(|bytes| *bytes == cell.size);
        let (Some(piece), Some(size)) = (piece, size) else { return false };
        let at = row_at(cell.r#use, cell.arrangement, cell.density, piece);
        self.rows[at][size] = gain(self.rows[at][size]);
        self.served[at] = Sizes::of_columns(self.rows[at].map(gains));
        true
    }

    /// Puts a measurement into its cell; false if the table has none for its piece or its size.
    pub fn put(&mut self, cell: &Cell) -> bool {
        self.change(cell, |_| cell.gain)
    }

    /// The same, if it is the first of its cell or lower than what was measured before.
    pub fn lower(&mut self, cell: &Cell) -> bool {
        self.change(cell, |before| if before < 0.0 { cell.gain } else { cell.gain.min(before) })
    }

    /// Everything that was measured.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        let rows = Use::ALL.into_iter().flat_map(|of| kinds().map(move |kind| (of, kind)));
        rows.flat_map(move |(of, (arrangement, density, at))| {
            let row = *self.row(of, arrangement, density, at);
            let cell = move |(size, gain)| Cell { r#use: of, arrangement, density, piece: PIECES[at], size, gain };
            SIZES.into_iter().zip(row).map(cell).filter(|cell| cell.gain >= 0.0)
        })
    }

    /// The measured lengths of pieces on either side of a length, by their places in [`PIECES`]; none of longer ones.
    fn around(bytes: i64) -> Option<[usize; 2]> {
        let above = PIECES.iter().position(|piece| *piece >= bytes)?;
        let below = if PIECES[above] == bytes { above } else { above.saturating_sub(1) };
        Some([below, above])
    }

    /// Time of the MPI over time with dtc of a call with so many packed bytes: the lower of the measured ones on either side. 0 of one
    /// that was not measured.
    pub fn gain(&self, of: Use, pieces: &Pieces, bytes: i64) -> f32 {
        let gain = self.gain_of(of, pieces, pieces.arrangement, bytes);
        if pieces.has_several_loops(bytes) {
            gain.max(self.gain_of(of, pieces, Arrangement::Records, bytes))
        } else {
            gain
        }
    }

    fn gain_of(&self, of: Use, pieces: &Pieces, arrangement: Arrangement, bytes: i64) -> f32 {
        let Some(around) = Table::around(pieces.bytes) else { return 0.0 };
        let density = Density::nearest(pieces.share);
        let above = SIZES.iter().position(|size| *size >= bytes).unwrap_or(SIZES.len() - 1);
        let below = if SIZES[above] <= bytes { above } else { above.saturating_sub(1) };
        let cell = |piece: usize, size: usize| self.row(of, arrangement, density, piece)[size];
        let cells = around.into_iter().flat_map(|piece| [cell(piece, below), cell(piece, above)]);
        cells.map(|gain| gain.max(0.0)).fold(f32::MAX, f32::min)
    }

    /// What a call gains whose pieces are not known, if dtc does it: half of the calls of its size that dtc does gain more. 0 if there
    /// are none.
    pub fn usual_gain(&self, of: Use, bytes: i64) -> f32 {
        let size = SIZES.iter().rposition(|size| *size <= bytes).unwrap_or(0);
        let cells = kinds().map(|(arrangement, density, piece)| self.row(of, arrangement, density, piece)[size]);
        let mut cells: Vec<f32> = cells.filter(|gain| gains(*gain)).collect();
        cells.sort_unstable_by(f32::total_cmp);
        cells.get(cells.len() / 2).copied().unwrap_or(0.0)
    }

    /// The sizes of calls that dtc does: those where the measured cells on either side, by bytes of a piece and by size, have a gain. Calls of several
    /// short loops are as slow in MPIs as those of records.
    pub fn sizes(&self, of: Use, pieces: &Pieces) -> Sizes {
        let served = self.sizes_of(of, pieces, pieces.arrangement);
        match pieces.loop_bytes.checked_mul(2) {
            Some(several) if pieces.arrangement == Arrangement::Regular => {
                served.or(self.sizes_of(of, pieces, Arrangement::Records).from(several))
            }
            _ => served,
        }
    }

    fn sizes_of(&self, of: Use, pieces: &Pieces, arrangement: Arrangement) -> Sizes {
        let Some([below, above]) = Table::around(pieces.bytes) else { return Sizes::NONE };
        let density = Density::nearest(pieces.share);
        let served = |piece| self.served[row_at(of, arrangement, density, piece)];
        served(below).and(served(above))
    }

    /// The sizes at which dtc does some calls of this kind: of those that were measured, one in 16.
    pub fn any(&self, of: Use) -> Sizes {
        let column =
            |at: usize| kinds().map(move |(arrangement, density, piece)| self.row(of, arrangement, density, piece)[at]);
        let done = |at: usize| {
            let measured = column(at).filter(|gain| *gain >= 0.0).count();
            let done = column(at).filter(|gain| gains(*gain)).count();
            done > 0 && done * SOME >= measured
        };
        Sizes::of_columns(std::array::from_fn(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(gains: &[(i64, i64, f32)]) -> Table {
        let mut table = Table::new("an MPI", "a machine");
        for &(piece, size, gain) in gains {
            let (arrangement, density) = (Arrangement::Regular, Density::Half);
            assert!(table.put(&Cell { r#use: Use::Pack, arrangement, density, piece, size, gain }));
        }
        table
    }

    fn of(bytes: i64) -> Pieces {
        Pieces { arrangement: Arrangement::Regular, bytes, share: 0.5, loop_bytes: i64::MAX }
    }

    #[test]
    fn a_call_between_two_cells_needs_a_gain_in_both() {
        let table = table(&[(8, 1024, 2.0), (8, 4096, 2.0), (16, 1024, 1.06), (16, 4096, 1.04), (32, 1024, 0.5)]);
        let pack = |bytes| table.sizes(Use::Pack, &of(bytes));
        assert!(pack(8).hold(1024) && pack(8).hold(3000) && pack(8).hold(4096));
        assert!(!pack(8).hold(1023) && !pack(8).hold(4097) && !pack(8).hold(i64::MAX));
        assert!(pack(12).hold(1024) && !pack(12).hold(1025), "16 bytes gain nothing at 4096");
        assert_eq!(pack(24), Sizes::NONE);
        assert_eq!(pack(PIECES[PIECES.len() - 1] + 1), Sizes::NONE);
        assert_eq!(table.sizes(Use::Unpack, &of(8)), Sizes::NONE, "not measured");
        assert_eq!(table.sizes(Use::Pack, &Pieces { share: 0.2, ..of(8) }), Sizes::NONE, "not measured");
        assert_eq!((table.any(Use::Pack).smallest(), table.any(Use::Unpack)), (Some(1024), Sizes::NONE));
    }

    #[test]
    fn gains_are_those_of_the_cells_around() {
        let table = table(&[(8, 1024, 2.0), (8, 4096, 3.0), (16, 1024, 1.5), (16, 4096, 1.4), (32, 1024, 0.5)]);
        let gain = |piece, bytes| table.gain(Use::Pack, &of(piece), bytes);
        assert_eq!((gain(8, 1024), gain(8, 2000), gain(8, 4096), gain(12, 2000)), (2.0, 2.0, 3.0, 1.4));
        assert_eq!((gain(8, 5000), gain(8, 100), gain(4096, 1024)), (0.0, 0.0, 0.0));
        assert_eq!((gain(24, 1024), table.usual_gain(Use::Pack, 3000)), (0.5, 2.0));
        assert_eq!(table.usual_gain(Use::Unpack, 3000), 0.0);
    }

    #[test]
    fn several_short_loops_are_records() {
        let mut table = table(&[(8, 1024, 1.0), (8, 4096, 1.0), (8, 1 << 14, 2.0)]);
        let (r#use, arrangement, density) = (Use::Pack, Arrangement::Records, Density::Half);
        for size in [1024, 4096] {
            assert!(table.put(&Cell { r#use, arrangement, density, piece: 8, size, gain: 2.0 }));
        }
        let holds = |loop_bytes| {
            let sizes = table.sizes(r#use, &Pieces { loop_bytes, ..of(8) });
            [1024, 4096, 1 << 14].map(|bytes| sizes.hold(bytes))
        };
        assert_eq!(holds(i64::MAX), [false, false, true]);
        assert_eq!((holds(512), holds(513)), ([true; 3], [false, true, true]));
        let gain = |loop_bytes| table.gain(r#use, &Pieces { loop_bytes, ..of(8) }, 1024);
        assert_eq!((gain(512), gain(513)), (2.0, 1.0));
    }

    #[test]
    fn arrangements_follow_from_facts() {
        let vector = Facts {
            packed: 8000,
            extent: 32_000,
            true_extent: 32_000,
            blocks: 1000,
            shortest_block: 8,
            longest_block: 8,
            described: 64,
            mixed: false,
        };
        let of = |facts: &Facts| Pieces::of(facts).arrangement;
        assert_eq!((Pieces::of(&vector).share, of(&vector)), (0.25, Arrangement::Regular));
        let loops =
            |blocks, described| Pieces::of(&Facts { packed: 8 * blocks, blocks, described, ..vector }).loop_bytes;
        assert_eq!((loops(63, 0), loops(64, 60), loops(256, 64), loops(4096, 69)), (504, i64::MAX, 128, i64::MAX));
        assert_eq!(of(&Facts { described: 8000, ..vector }), Arrangement::Listed);
        assert_eq!(of(&Facts { described: 8000, blocks: 63, ..vector }), Arrangement::Regular);
        assert_eq!(of(&Facts { described: 80, blocks: 64, ..vector }), Arrangement::Regular, "a subarray");
        assert_eq!(of(&Facts { described: 178, blocks: 64, ..vector }), Arrangement::Listed);
        assert_eq!(of(&Facts { extent: 8, ..vector }), Arrangement::Listed);
        assert_eq!(of(&Facts { blocks: 2, longest_block: 16, ..vector }), Arrangement::Records);
        assert_eq!(
            of(&Facts { blocks: 1, mixed: true, ..vector }),
            Arrangement::Records,
            "a double and a long, 24 bytes apart"
        );
        assert_eq!(of(&Facts { described: 8000, mixed: true, ..vector }), Arrangement::Listed);
        assert_eq!(Pieces::of(&Facts { blocks: 0, packed: 0, extent: 0, true_extent: 0, ..vector }).bytes, 0);
    }

    #[test]
    fn the_shortest_pieces_stand_for_shorter_ones_and_the_largest_calls_for_larger() {
        let table = table(&[(4, 1 << 24, 2.0)]);
        assert!(table.sizes(Use::Pack, &of(1)).hold(1 << 24));
        assert!(table.sizes(Use::Pack, &of(4)).hold(1 << 40));
        assert!(!table.sizes(Use::Pack, &of(4)).hold((1 << 24) - 1));
    }
}
