//! Which calls dtc does faster than the MPI of the process, by the table that was measured of it ([`dtc_mpi_table`]).

use crate::{find, print, settings};
use dtc_mpi_table::{Pieces, SIZES, Sizes, Table, Use, text};
use once_cell::race::OnceBox;
use std::io::Read as _;

pub use dtc_mpi_table::LARGEST_MESSAGE;

/// One of this many bytes of a collective, at least, is one that dtc moves faster: the others are copied once more than the MPI would.
const SHARE: i64 = 2;

/// Picoseconds that dtc takes for a packed byte of a call, at least: messages of 16 KiB to 1 MiB between two processes of a Zen 4 took 100
/// to 300, by the measurement of the tables.
const PICOSECONDS_OF_BYTE: f32 = 100.0;

/// The variable that names a table.
const TABLE: &str = "DTC_MPI_TABLE";

/// What dtc does, and what it leaves to the MPI.
#[derive(Debug)]
pub struct Limits {
    table: Table,
    /// Whether dtc does all that it can, for tests.
    all: bool,
    /// The sizes of calls that dtc does with some pieces, by their use.
    any: [Sizes; Use::ALL.len()],
    /// What calls gain whose pieces are not known, by their use and the column of their size.
    usual: [[f32; SIZES.len()]; Use::ALL.len()],
    /// One of this many bytes of a collective, at least, is one that dtc moves faster.
    pub share: i64,
    /// Whether contiguous datatypes are left to the MPI, and others decoded only when their uses pay for it ([`rent`](crate::rent)).
    pub leaves_whole: bool,
}

/// The limits of the MPI of the process. The table is read when they are first asked for.
#[inline]
pub fn limits() -> &'static Limits {
    static LIMITS: OnceBox<Limits> = OnceBox::new();
    LIMITS.get_or_init(|| Box::new(Limits::of_process()))
}

/// The table that the environment names, or what is wrong with it; none if it names none.
fn named_table() -> Option<Result<Table, String>> {
    let path = std::env::var_os(TABLE).filter(|path| !path.is_empty())?;
    let read = || {
        let mut found = String::new();
        let file = std::fs::File::open(&path).map_err(|error| error.to_string())?;
        file.take(text::LONGEST as u64 + 1).read_to_string(&mut found).map_err(|error| error.to_string())?;
        found.parse::<Table>().map_err(|error| error.to_string())
    };
    Some(read().map_err(|wrong| format!("{}: {wrong}", path.display())))
}

/// Says on standard error what is wrong with the table that the environment names. Called by one process of the job.
pub fn say_wrong() {
    if let Some(Err(wrong)) = named_table() {
        print(&format!("{TABLE}: {wrong}: the table of the library serves"));
    }
}

impl Limits {
    fn of_process() -> Limits {
        let named = named_table().and_then(Result::ok);
        // A table that is not right serves no call; tests hold those of the crate.
        let table =
            named.or_else(|| Table::shipped(find::library_version()).ok()).unwrap_or_else(|| Table::new("", ""));
        Limits::of(table, settings::is_set("DTC_MPI", "all"))
    }

    fn of(table: Table, all: bool) -> Limits {
        Limits {
            usual: Use::ALL.map(|of| SIZES.map(|size| table.usual_gain(of, size))),
            any: Use::ALL.map(|of| if all { Sizes::ALL } else { table.any(of) }),
            share: if all { LARGEST_MESSAGE } else { SHARE },
            leaves_whole: !all,
            all,
            table,
        }
    }

    /// The sizes of calls with pieces of this kind that dtc does.
    pub fn sizes(&self, of: Use, pieces: &Pieces) -> Sizes {
        if self.all { Sizes::ALL } else { self.table.sizes(of, pieces) }
    }

    /// Picoseconds for each packed byte that the MPI takes longer than dtc for a call: with pieces of this kind, or with any, of which half
    /// gain more. 0 or less if dtc does not do it.
    pub fn lost(&self, of: Use, pieces: Option<&Pieces>, bytes: i64) -> i64 {
        let bytes = bytes.max(SIZES[0]);
        let column = SIZES.iter().rposition(|size| *size <= bytes).unwrap_or(0);
        let usual = || self.usual[of as usize][column];
        let gain = pieces.map_or_else(usual, |pieces| self.table.gain(of, pieces, bytes));
        ((gain - 1.0) * PICOSECONDS_OF_BYTE) as i64
    }

    /// Packed bytes of the smallest call that dtc does with any pieces; `i64::MAX` if it does none.
    #[inline]
    pub fn smallest(&self, of: Use) -> i64 {
        self.any[of as usize].smallest().unwrap_or(i64::MAX)
    }

    /// Packed bytes of the calls that dtc does with some pieces, by their use.
    pub fn any(&self) -> &[Sizes; Use::ALL.len()] {
        &self.any
    }

    /// The MPI whose table it is, as that names itself.
    pub fn mpi(&self) -> &str {
        &self.table.mpi
    }
}
