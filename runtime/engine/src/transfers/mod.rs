//! Transfers: packs, unpacks, copies and accumulations between memory of all kinds.
//!
//! [`transfer`] names what is moved, [`calls`] run, start and enqueue it, and a [`request`] is a call under way. [`lower`] checks a
//! transfer and cuts it into [`work`]s. [`place`] says where an
//! end lies, and [`allocations`] cuts calls whose elements lie in several kinds of memory. A [`piece`] is a pack or unpack with memory
//! of one kind at each end: [`choice`] selects its path by the model of the machine that [`calibrate`] measures, and [`estimate`]
//! tells its time. [`staged`] and [`pipeline`] are the paths that need more than one kernel. [`type_to_type`], [`accumulate`] and
//! [`combine`] are the other calls; [`movers`] and [`buffered_move`] serve them where neither end has packed bytes that a copy could
//! move. A [`batch`] is many packs and unpacks in one launch.

mod accumulate;
mod allocations;
mod batch;
mod buffered_move;
mod calibrate;
mod calls;
mod choice;
mod combine;
mod error;
mod estimate;
mod lower;
mod movers;
mod path;
mod piece;
mod pipeline;
mod place;
mod request;
mod staged;
mod transfer;
mod type_to_type;
mod work;

pub use batch::PersistentBatch;
pub use choice::{Choice, TransferCase};
pub use error::TransferError;
pub use estimate::Estimate;
pub use path::TransferPath;
pub use request::Request;
pub use transfer::{Elements, Transfer};
