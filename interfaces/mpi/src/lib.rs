//! libdtc_mpi: has unmodified MPI programs pack, send and receive derived datatypes with dtc.
//!
//! The library is preloaded and exports functions of MPI. `docs/reference/preload.md` is its guide. A call goes through it from top to bottom:
//!
//! - [`exports`], from the table of [`calls`]: the function that the program finds. It goes on to a wrapper for the ABI of the MPI ([`abi`],
//!   [`wrappers`]), which reads and replaces its arguments as [`words`], or to the MPI;
//! - the wrapper: [`point_to_point`], [`nonblocking`], [`persistent`], [`completion`], [`pack`], [`collectives`], [`life`]; [`substitutes`] for
//!   calls that the MPI lacks, [`fortran`] and [`redirect`] for those of Fortran;
//! - the decision: [`rent`] says whether the datatype is decoded, [`recall`] what this thread knows of it, [`plan`] what the library knows,
//!   [`limits`] what the MPI does as fast, [`memory`] where the elements lie;
//! - staging: [`staged`] for messages, whose requests [`operations`] follows in the table of [`requests`]; memory of [`staging`];
//! - libdtc, by [`moves`], several at once by [`batched_launch`].
//!
//! Processes of a machine whose GPUs reach each other exchange by [`collectives::direct`], with [`registry`], [`segment`] and [`receive_buffer`]. What was
//! done is said by [`report`], [`report_calls`], [`report_types`], [`reasons`] and [`about`]; profilers see [`ranges`].
//!
//! libdtc is a part of it ([`dtc`]). Nothing here panics, and nothing prints but what the report or a wrong setting asks for. Datatypes are
//! decoded by `dtc_mpi.h`, which is compiled for each ABI (`c/decode.c`), without an MPI.
#![allow(clippy::missing_safety_doc, reason = "the arguments of wrappers are those of MPI, which says what they are")]

pub mod abi;
pub mod about;
pub mod batched_launch;
pub mod calls;
pub mod collectives;
pub mod completion;
pub mod envelope;
pub mod exported;
pub mod exports;
pub mod find;
pub mod fortran;
pub mod kept;
pub mod life;
pub mod limits;
pub mod memory;
pub mod moves;
pub mod nonblocking;
pub mod operations;
pub mod pack;
pub mod persistent;
pub mod plan;
pub mod pmpi;
pub mod point_to_point;
pub mod ranges;
pub mod reasons;
pub mod recall;
pub mod receive_buffer;
pub mod receive_type;
pub mod redirect;
pub mod registry;
pub mod rent;
pub mod report;
pub mod report_calls;
pub mod report_types;
pub mod requests;
pub mod seen;
pub mod segment;
pub mod self_test;
pub mod settings;
pub mod shared_file;
pub mod staged;
pub mod staging;
pub mod start;
pub mod substitutes;
pub mod types;
pub mod words;
pub mod wrappers;

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
