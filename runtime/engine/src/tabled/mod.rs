//! Types with index tables: the displacements of some axes come with the call.
//!
//! [`CommittedTabled`] is such a type, ready to move; [`IndexTable`] is a table of a call. In host memory the fixed layouts, which no
//! table moves, are moved by their plans, one after the other; on a device one kernel, compiled once for the type whatever the tables hold, reads
//! the tables itself.

mod accumulate;
mod batch;
mod batch_launch;
mod committed;
mod device_end;
mod driver_copies;
mod error;
mod facts;
mod generic;
mod host;
mod launch;
mod table;
mod transfer;
mod upload;

pub use batch::BatchTransfer;
pub use committed::CommittedTabled;
pub use error::TabledError;
pub use table::IndexTable;
pub use transfer::{TabledElements, TabledTransfer};
