//! `dtc doctor --mpi`: which MPI a program has, and what libdtc_mpi serves there.
//!
//! The library itself finds that out, in the program: the command is linked with no MPI, and which one a program loads is only known there.

use crate::interposer;
use dtc_measure::failure::Failure;
use dtc_measure::program::called;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// Runs a program with the library, lets it print what it prints, and then prints what the library reports, each line once: processes of a
/// job say the same of their MPI.
pub fn run(program: &[OsString], library: Option<&Path>, out: &mut dyn Write) -> Result<(), Failure> {
    let library = interposer::library(library)?;
    let mut command = interposer::preloaded(program, &library);
    let (said, status) = interposer::reported(&mut command, out, io::stderr())?;
    let mut rows = vec![("interposer", library.display().to_string())];
    for line in &said {
        let (what, value) = line.split_once(": ").unwrap_or((line, ""));
        let row = (what, value.to_owned());
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    if said.is_empty() {
        let nothing = if status.success() {
            "no call came to the library: the program has no MPI, or is linked with it statically"
        } else {
            "unknown: the program ended before a call came to the library"
        };
        rows.push(("MPI", nothing.to_owned()));
    } else if status.success() {
        rows.push(("faster", format!("{} -- PROGRAM measures whether this program is", called("compare"))));
    }
    // Names of the library are longer than those of other reports.
    let width = rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0) + 2;
    for (what, value) in rows {
        writeln!(out, "    {what:<width$}{value}")?;
    }
    if status.success() {
        return Ok(());
    }
    Err(Failure::data(interposer::name(&command), "a program that ends well", status))
}
