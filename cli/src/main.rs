//! The command `dtc`: explains, compiles and runs MPI derived datatypes.
#![deny(unsafe_code)]

mod array_file;
mod commands;
mod disassembly;
mod elements;
mod interposer;
mod npy;

use clap::{CommandFactory, Parser, Subcommand};
use dtc_measure::failure::Failure;
use dtc_measure::program;
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
    View(commands::view::Arguments),
    Lower(commands::lower::Arguments),
    Emit(commands::emit::Arguments),
    Build(dtc_build::Arguments),
    Pack(commands::pack::Arguments),
    Unpack(commands::unpack::Arguments),
    Bench(commands::bench::BenchCommand),
    Compare(commands::compare::Arguments),
    Cache(commands::cache::Arguments),
    Calibrate(commands::calibrate::Arguments),
    Doctor(commands::doctor::Arguments),
    Completions(commands::pages::Completions),
    Man(commands::pages::Man),
}

fn main() -> ExitCode {
    dtc_measure::execute(run)
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    match &arguments.command {
        Command::Demo(arguments) => commands::demo::run(arguments, out),
        Command::Explain(arguments) => commands::explain::run(arguments, out),
        Command::View(arguments) => commands::view::run(arguments, out),
        Command::Lower(arguments) => commands::lower::run(arguments, out),
        Command::Emit(arguments) => commands::emit::run(arguments, out),
        Command::Build(arguments) => dtc_build::run(arguments),
        Command::Pack(arguments) => commands::pack::run(arguments, out),
        Command::Unpack(arguments) => commands::unpack::run(arguments, out),
        Command::Bench(arguments) => commands::bench::run(arguments, out),
        Command::Compare(arguments) => commands::compare::run(arguments, out),
        Command::Cache(arguments) => commands::cache::run(arguments, out),
        Command::Calibrate(arguments) => commands::calibrate::run(arguments, out),
        Command::Doctor(arguments) => commands::doctor::run(arguments, out),
        Command::Completions(arguments) => {
            commands::pages::completions(arguments, program::renamed(Arguments::command()), out)
        }
        Command::Man(arguments) => {
            let command = Arguments::command();
            commands::pages::man(arguments, program::renamed(command.clone()), &command, out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a call up to the end of its command, without variables before it.
    fn words(call: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for character in call.chars() {
            match character {
                '\'' => quoted = !quoted,
                '|' | '<' | '>' | ')' if !quoted => break,
                ' ' if !quoted => words.push(String::new()),
                other => words.last_mut().expect("a word").push(other),
            }
        }
        let words = words.into_iter().filter(|word| !word.is_empty());
        words.skip_while(|word| word.contains('=')).collect()
    }

    #[test]
    fn examples_of_pages_are_calls() {
        for call in commands::pages::examples().filter(|call| !call.starts_with("source ")) {
            let words = words(call);
            let notations = words.iter().filter(|word| word.contains(' '));
            for notation in notations {
                assert!(dtc_measure::description::read(notation.as_ref()).is_ok(), "{call}");
            }
            let parsed = Arguments::try_parse_from(words);
            assert!(parsed.is_ok(), "{call}: {}", parsed.err().expect("an error"));
        }
    }
}
