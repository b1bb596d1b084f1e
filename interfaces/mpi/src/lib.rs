//! libdtc_mpi: has unmodified MPI programs pack, send and receive derived datatypes with dtc.
//!
//! The library is preloaded and exports functions of MPI. `docs/mpi.md` is its guide. What depends on the ABI of an MPI is in C, in `c/`, and is
//! compiled once for each ABI, without an MPI; this crate is the rest, which the C calls by the headers there:
//!
//! - what the process is: [`find`] and [`settings`];
//! - memory that messages go through: [`staging`] and, between GPUs of one machine, [`landing`];
//! - what processes of a machine tell each other: [`registry`] and [`board`], in files of [`shared_file`];
//! - calls of libdtc, which are counted and shown to profilers: [`moves`] and [`ranges`];
//! - requests under way: [`requests`];
//! - the report: [`report`].
//!
//! libdtc is a part of it ([`dtc`]). Nothing here panics, and nothing prints but what the report or a wrong setting asks for.
#![allow(
    clippy::missing_safety_doc,
    reason = "the functions are called by the C of this library, whose headers say how"
)]

pub mod board;
pub mod find;
pub mod landing;
pub mod moves;
pub mod ranges;
pub mod registry;
pub mod report;
pub mod requests;
pub mod settings;
pub mod shared_file;
pub mod staging;

pub use dtc;

use std::ffi::{CStr, c_char};
use std::io::Write as _;

/// A text of C, or an empty one for null.
///
/// # Safety
///
/// `text` is null or ends with a byte 0, and stays as it is while the result is used.
unsafe fn text<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    // SAFETY: not null, so it ends (contract of this function).
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// Prints a line, by one write: lines of several processes do not mix.
fn print(line: &str) {
    // A closed standard error has no reader.
    let _ = std::io::stderr().write_all(format!("libdtc_mpi: {line}\n").as_bytes());
}
