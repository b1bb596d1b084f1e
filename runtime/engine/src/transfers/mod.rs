//! Transfers: packs, unpacks, copies and accumulations between memory of all kinds.
//!
//! [`transfer`] names what is moved, [`calls`] run, start and enqueue it, and a [`request`] is a call under way. [`lower`] checks a
//! transfer and cuts it into [`work`]s, each with memory of one kind at either end: [`place`] says where an end is, and
//! [`allocations`] cuts elements in several kinds of memory.
//!
//! For a [`placed_move`], [`choice`] selects the path by the model of the machine that [`calibrate`] measures, and [`estimate`] returns
//! its time, [`reach`] which memory kernels may use; [`staged`] and [`pipeline`] are the paths that need more than one kernel. [`placed_copy`], [`accumulate`] and
//! [`accumulate_copy`] are the other works; [`movers`] and [`buffered_move`] serve them where neither end has packed bytes that a
//! copy could move. A [`batch`] is many packs and unpacks in one launch.

mod accumulate;
mod accumulate_copy;
mod allocations;
mod batch;
mod buffered_move;
mod calibrate;
mod calls;
mod choice;
mod error;
mod estimate;
mod lower;
mod movers;
mod path;
mod pipeline;
mod place;
mod placed_copy;
mod placed_move;
mod reach;
mod request;
mod staged;
mod transfer;
mod work;

pub use batch::PersistentBatch;
pub use choice::{Choice, TransferCase};
pub use error::TransferError;
pub use estimate::Estimate;
pub use path::TransferPath;
pub use request::Request;
pub use transfer::{Elements, Transfer};

pub(crate) use batch::{batch_item, packed_end};
pub(crate) use place::Located;
