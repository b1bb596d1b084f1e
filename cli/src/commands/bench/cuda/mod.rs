//! `dtc bench --backend cuda`: kernels made for types, the generic kernels, and the driver's copy, on one GPU.

mod cases;
mod check;
mod contest;
mod table;

use super::Arguments;
use crate::failure::{Failure, reason};
use contest::{Arena, Line};
use std::fs::File;
use std::io::{IsTerminal, Write};

/// Rounds unless said otherwise.
const ROUNDS: u16 = 9;

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut references = cases::collect(&arguments.files, arguments.gpu_cases.as_deref())?;
    if let Some(text) = &arguments.only {
        references.retain(|reference| reference.name().contains(text.as_str()));
        if references.is_empty() {
            return Err(Failure::description("--only", "a part of a type's name", format_args!("\"{text}\"")));
        }
    }
    let rounds = arguments.rounds.unwrap_or(ROUNDS).into();
    let sizes: Vec<(u64, u64)> = references.iter().filter_map(cases::Reference::sizes).collect();
    let largest = |side: fn(&(u64, u64)) -> u64| sizes.iter().map(side).max().unwrap_or(0);
    let (buffer, packed) = (largest(|sizes| sizes.0), largest(|sizes| sizes.1));
    // Without a GPU that is the message, whatever the memory.
    dtc_runtime::Engine::new().gpu(0)?;
    check::host_has(buffer + packed)?;
    let mut arena = Arena::new(buffer, packed)?;
    let info = arena.gpu.device().info();
    writeln!(out, "{}, sm_{}, {rounds} rounds; every byte is checked", info.name, info.architecture())?;
    if cfg!(debug_assertions) {
        writeln!(out, "a debug build: checks take long, times on the device do not")?;
    }
    let mut figures = Figures::create(arguments)?;
    let mut lines: Vec<Line> = Vec::new();
    let terminal = std::io::stderr().is_terminal();
    for (index, reference) in references.iter().enumerate() {
        if terminal {
            let name = reference.name();
            let _ = write!(std::io::stderr(), "\r\x1b[Kmeasuring {name} ({} of {})", index + 1, references.len());
        }
        let found = arena.run(&reference.read()?, rounds)?;
        figures.write(&found)?;
        lines.extend(found);
    }
    if terminal {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    table::print(&lines, out)?;
    if let Some(line) = lines.iter().find(|line| line.wrong) {
        let error = line.times.as_ref().err().map_or("wrong bytes", String::as_str);
        return Err(Failure::Data(format!("{} {}: {error}", line.direction, line.case)));
    }
    match arena.gpu.problem() {
        Some(problem) if lines.iter().any(|line| line.times.is_err()) => Err(problem.into()),
        _ => Ok(()),
    }
}

/// The file of figures. Every line is written at once, so that what was measured is kept.
struct Figures(Option<(File, String)>);

impl Figures {
    fn create(arguments: &Arguments) -> Result<Figures, Failure> {
        let Some(path) = &arguments.json else { return Ok(Figures(None)) };
        let name = path.display().to_string();
        let file = File::create(path)
            .map_err(|error| Failure::description(&name, "a file to write", reason(&error)))?;
        Ok(Figures(Some((file, name))))
    }

    fn write(&mut self, lines: &[Line]) -> Result<(), Failure> {
        let Some((file, name)) = &mut self.0 else { return Ok(()) };
        let text: String = lines.iter().map(|line| format!("{}\n", line.to_json())).collect();
        file.write_all(text.as_bytes()).map_err(|error| Failure::description(name, "room for figures", reason(&error)))
    }
}
