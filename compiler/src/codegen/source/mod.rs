//! Plain sources: a datatype as C or CUDA C++ that a program takes along, with nothing of dtc.
//!
//! Both texts are written from the canonical layout in the form that plans are made from, by the same steps:
//!
//! - `outline.rs` says what each node of the layout is in a text: bytes, a loop, a list, parts; and which nodes are functions;
//! - `names.rs` makes the name of a file an identifier, `tables.rs` prints lists as constant arrays, `remark.rs` says above each
//!   text what it is for;
//! - `loops.rs` writes the loops of a pack or unpack, `address.rs` the function from packed bytes to memory;
//! - `c.rs`, `c_header.rs` and `cuda_header.rs` put them together; `tabled_c.rs` and `tabled_cuda_header.rs` do so for types with index
//!   tables, whose nodes `tabled_outline.rs` lists: a function for each, over the functions of the fixed layouts below.
//!
//! A node that the layout shares is one function, so text grows with the DAG and not with the paths through it.

mod address;
mod c;
mod c_header;
mod cuda_header;
mod loops;
mod names;
mod nest;
mod outline;
mod remark;
mod tabled_c;
mod tabled_cuda_header;
mod tabled_outline;
mod tables;
mod text;

pub use c::c;
pub use c_header::c_header;
pub use cuda_header::cuda_header;
pub use names::identifier;
pub use outline::TooLarge;
pub use tabled_c::{tabled_c, tabled_c_header};
pub use tabled_cuda_header::tabled_cuda_header;
