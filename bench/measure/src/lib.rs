//! Measurements of dtc and of its peers, and what the programs that make them share: how they read descriptions and files, write files and
//! reports, and fail. The command `dtc` and the developers' benchmark `dtc-bench` are built on it. No interface: it changes with them.
//!
//! Reports go to standard output, errors to standard error as `dtc: PLACE: expected X, found Y`. The exit status is 0,
//! or 2 for a bad description or bad arguments, 3 for bad data, 4 for a missing tool or library.
#![deny(unsafe_code)]

pub mod bench;
pub mod buffer;
pub mod description;
pub mod device;
pub mod device_clock;
pub mod failure;
pub mod first_call;
pub mod input;
pub mod machine;
pub mod mapped;
pub mod output;
pub mod paths;
pub mod program;
pub mod recorded;
pub mod report;
pub mod samples;
pub mod timing;
pub mod verify;

use clap::Parser;
use failure::Failure;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Parses the arguments of the process and runs a program on them, whose report goes to standard output. Says on standard
/// error what is wrong, after the name of the program; returns the exit status.
pub fn execute<A: Parser>(run: impl FnOnce(&A, &mut dyn Write) -> Result<(), Failure>) -> ExitCode {
    let mut command = program::renamed(A::command());
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed.and_then(|matches| A::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    let arguments = match parsed {
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
    log_as_the_environment_says();
    let mut out = BufWriter::new(io::stdout().lock());
    let result = run(&arguments, &mut out);
    // The report of what succeeded comes before the message.
    let flushed = out.flush().map_err(Failure::from);
    match result.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                // A closed standard error is not reported: no stream is left for it.
                let message = failure::told(&program::message(&A::command(), &failure.to_string()));
                let _ = writeln!(io::stderr(), "{}: {message}", command.get_name());
            }
            ExitCode::from(failure.status())
        }
    }
}

/// Has the records of the compiler printed to standard error that `RUST_LOG` names: `RUST_LOG=dtc_compiler=trace` shows every
/// rewrite. Nothing is printed without it.
fn log_as_the_environment_says() {
    let mut logger = env_logger::Builder::new();
    logger.filter_level(log::LevelFilter::Off).parse_default_env();
    logger.format(|out, record| writeln!(out, "{}: {}", record.target(), record.args()));
    // A logger that is there already stays.
    let _ = logger.try_init();
}
