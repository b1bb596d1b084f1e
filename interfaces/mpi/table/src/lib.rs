//! Which calls dtc does faster than an MPI: tables that `dtc calibrate --mpi` measures and libdtc_mpi reads.
//!
//! A cell of a [`Table`] is the time of a call of the MPI alone over its time with dtc, for a [`Use`], the arrangement of the
//! contiguous [`Pieces`] of a datatype, and packed bytes. [`Table::sizes`] makes of it what libdtc_mpi keeps with a datatype: the
//! sizes from which on dtc gains. Tables are text ([`text`]), and one for each MPI that was measured is part of the crate
//! ([`Table::shipped`]).
//!
//! ```
//! use dtc_mpi_table::{Arrangement, Pieces, Table, Use};
//!
//! let table = Table::shipped("MPICH Version: 4.0.2")?;
//! let doubles = Pieces { arrangement: Arrangement::Regular, bytes: 8, share: 0.5, loop_bytes: i64::MAX };
//! assert!(table.sizes(Use::Pack, &doubles).hold(64 << 10));
//! # Ok::<(), dtc_mpi_table::TableError>(())
//! ```
#![forbid(unsafe_code)]

mod measured;
mod page;
pub mod said;
mod shipped;
mod sizes;
pub mod text;

pub use measured::{Arrangement, Cell, Density, Facts, PIECES, Pieces, Row, Table, Use};
pub use page::page;
pub use shipped::major_version;
pub use sizes::{LARGEST_MESSAGE, SIZES, Sizes};
pub use text::TableError;
