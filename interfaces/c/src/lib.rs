//! libdtc: the C interface of dtc, for MPI implementations and other libraries that pack datatypes.
//!
//! The interface is `include/dtc.h`, which is generated from this crate; `docs/reference/c.md` is its guide. Every call returns a
//! status, sizes have 64 bits, handles are opaque and counted, and structs begin with their size, so that they can grow.
//! Calls are stateless: any range of packed bytes, by any thread, in any order.
//!
//! Nothing here decides anything about datatypes. A call checks its arguments, asks `dtc-compiler` or `dtc-runtime`, and
//! turns the answer into a status with a message.
#![expect(non_camel_case_types, reason = "the names of the C interface")]
#![allow(clippy::too_many_arguments, reason = "the arguments of the MPI calls that they stand for")]

mod accumulate;
mod allocation;
mod arguments;
mod batch;
mod copy;
mod cost;
mod engine;
mod explain;
mod external;
mod flatten;
mod handle;
mod iov;
#[path = "../../../matching/c/matcher.rs"]
mod matcher;
mod memory;
mod request;
mod status;
mod tabled;
mod tabled_batch;
mod transfer;
mod types;

pub use accumulate::*;
pub use allocation::*;
pub use batch::*;
pub use copy::*;
pub use cost::*;
pub use engine::*;
pub use explain::*;
pub use external::*;
pub use flatten::*;
pub use iov::*;
pub use matcher::*;
pub use request::*;
pub use status::*;
pub use tabled::*;
pub use tabled_batch::*;
pub use transfer::*;
pub use types::*;
