//! The command `dtc`: explains, compiles and runs MPI derived datatypes.
#![forbid(unsafe_code)]

use clap::{CommandFactory, Parser, Subcommand};
use dtc_cli::commands;
use dtc_cli::failure::Failure;
use std::io::Write;
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
    Build(commands::build::Arguments),
    Pack(commands::pack::Arguments),
    Unpack(commands::unpack::Arguments),
    Bench(commands::bench::Command),
    Compare(commands::compare::Arguments),
    Cache(commands::cache::Arguments),
    Calibrate(commands::calibrate::Arguments),
    Doctor(commands::doctor::Arguments),
    Completions(commands::pages::Completions),
    Man(commands::pages::Man),
}

fn main() -> ExitCode {
    dtc_cli::execute(run)
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    match &arguments.command {
        Command::Demo(arguments) => commands::demo::run(arguments, out),
        Command::Explain(arguments) => commands::explain::run(arguments, out),
        Command::Lower(arguments) => commands::lower::run(arguments, out),
        Command::Emit(arguments) => commands::emit::run(arguments, out),
        Command::Build(arguments) => commands::build::run(arguments),
        Command::Pack(arguments) => commands::pack::run(arguments, out),
        Command::Unpack(arguments) => commands::unpack::run(arguments, out),
        Command::Bench(arguments) => commands::bench::run(arguments, out),
        Command::Compare(arguments) => commands::compare::run(arguments, out),
        Command::Cache(arguments) => commands::cache::run(arguments, out),
        Command::Calibrate(arguments) => commands::calibrate::run(arguments, out),
        Command::Doctor(arguments) => commands::doctor::run(arguments, out),
        Command::Completions(arguments) => commands::pages::completions(arguments, Arguments::command(), out),
        Command::Man(arguments) => commands::pages::man(arguments, Arguments::command(), out),
    }
}
