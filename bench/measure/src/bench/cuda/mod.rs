//! `dtc bench --backend cuda`: kernels made for types, the generic kernels, and the driver's copy, on one GPU.

pub mod check;
pub mod comparison;
pub mod gpu_peer;
pub mod table;

use super::case::Case;
use super::progress::tell;
use crate::failure::Failure;
use crate::report;
use comparison::{Arena, Line};
use std::io::Write;

/// Measures whole transfers of the cases.
pub fn run(cases: &[Case], rounds: usize, out: &mut dyn Write) -> Result<(), Failure> {
    let mut arena = open(0, 0, rounds, out)?;
    let mut lines = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        tell(&format!("{} ({} of {})", case.name, index + 1, cases.len()));
        lines.extend(arena.run(case, rounds)?);
    }
    tell("");
    table::print(&lines, out)?;
    errors(&lines, out)?;
    verify(&arena, &lines)
}

/// Opens the first GPU and prints what is measured. The buffers have `buffer` and `packed` bytes, and grow where a case needs more.
pub fn open(buffer: u64, packed: u64, rounds: usize, out: &mut dyn Write) -> Result<Arena, Failure> {
    check::host_has(buffer + packed)?;
    let arena = Arena::new(buffer, packed)?;
    let info = arena.gpu.device().info();
    writeln!(out, "{}, sm_{}, {rounds} rounds; every byte is checked", info.name, info.architecture())?;
    writeln!(out, "generic kernels loaded in {}", report::time(arena.load_seconds * 1e9))?;
    writeln!(
        out,
        "copies within the device: {:.0} GB/s, which the roofline is reckoned by",
        arena.copy.gigabytes / 2.0
    )?;
    if cfg!(debug_assertions) {
        writeln!(out, "a debug build: times on the device are those of any build, times on the host are not")?;
    }
    Ok(arena)
}

/// Prints what could not be measured, and why.
pub fn errors(lines: &[Line], out: &mut dyn Write) -> Result<(), Failure> {
    for line in lines {
        if let Err(error) = &line.times {
            writeln!(out, "{} {}, {}: {error}", line.direction, line.case, line.peer.name())?;
        }
    }
    Ok(())
}

/// Fails where bytes were wrong, or kernels missing.
pub fn verify(arena: &Arena, lines: &[Line]) -> Result<(), Failure> {
    if let Some(line) = lines.iter().find(|line| line.wrong) {
        let error = line.times.as_ref().err().map_or("wrong bytes", String::as_str);
        return Err(Failure::Data(format!("{} {}: {error}", line.direction, line.case)));
    }
    match arena.gpu.problem() {
        Some(problem) if lines.iter().any(|line| line.times.is_err()) => Err(problem.into()),
        _ => Ok(()),
    }
}
