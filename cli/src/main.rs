//! The command `dtc`: explains, compiles and runs MPI derived datatypes.
//!
//! Reports go to standard output, errors to standard error as `dtc: PLACE: expected X, found Y`. The exit status is 0,
//! or 2 for a bad description or bad arguments, 3 for bad data, 4 for a missing tool or library.
#![deny(unsafe_code)]

mod anywhere;
mod array_file;
mod commands;
mod description;
mod device;
mod device_clock;
mod disassembly;
mod elements;
mod failure;
mod input;
mod judge;
mod mapped;
mod npy;
mod output;
mod report;
mod samples;
mod timing;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Compiles MPI derived datatypes: explains them, packs and unpacks files with them, and measures how fast that is.
#[derive(Parser)]
#[command(name = "dtc", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Arguments),
    Explain(commands::explain::Arguments),
    Lower(commands::lower::Arguments),
    Emit(commands::emit::Arguments),
    Pack(commands::pack::Arguments),
    Unpack(commands::unpack::Arguments),
    Bench(commands::bench::Arguments),
    Cache(commands::cache::Arguments),
    Calibrate(commands::calibrate::Arguments),
    Doctor(commands::doctor::Arguments),
    Completions(commands::pages::Completions),
    Man(commands::pages::Man),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A closed pipe is no reason to fail otherwise.
            let text = error.render().to_string();
            let _ = if error.use_stderr() && failure::told(&text) != text {
                writeln!(io::stderr(), "{}", failure::told(&text).trim_end())
            } else {
                error.print()
            };
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let result = run(&arguments.command, &mut out);
    // What was reported before a failure comes first.
    let flushed = out.flush().map_err(Failure::from);
    match result.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                // Nobody is left to be told that standard error is closed.
                let _ = writeln!(io::stderr(), "dtc: {}", failure::told(&failure.to_string()));
            }
            ExitCode::from(failure.status())
        }
    }
}

fn run(command: &Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Demo(arguments) => commands::demo::run(arguments, out),
        Command::Explain(arguments) => commands::explain::run(arguments, out),
        Command::Lower(arguments) => commands::lower::run(arguments, out),
        Command::Emit(arguments) => commands::emit::run(arguments, out),
        Command::Pack(arguments) => commands::pack::run(arguments, out),
        Command::Unpack(arguments) => commands::unpack::run(arguments, out),
        Command::Bench(arguments) => commands::bench::run(arguments, out),
        Command::Cache(arguments) => commands::cache::run(arguments, out),
        Command::Calibrate(arguments) => commands::calibrate::run(arguments, out),
        Command::Doctor(arguments) => commands::doctor::run(arguments, out),
        Command::Completions(arguments) => commands::pages::completions(arguments, Arguments::command(), out),
        Command::Man(arguments) => commands::pages::man(arguments, Arguments::command(), out),
    }
}
