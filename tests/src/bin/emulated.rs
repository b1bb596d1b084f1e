//! Runs a command with an emulated GPU: `dtc-emulated COMMAND [ARGUMENT...]`. Its status is that of the command.

use dtc_emulator::Emulator;
use std::process::exit;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: dtc-emulated COMMAND [ARGUMENT...]");
        exit(2)
    };
    let emulator = Emulator::get(|| dtc_compiler::codegen::cuda::generic_source().expect("a text"));
    match emulator.command(&program).args(arguments).status() {
        Ok(status) => exit(status.code().unwrap_or(1)),
        Err(error) => {
            eprintln!("dtc-emulated: {program}: expected a command, found {error}");
            exit(127)
        }
    }
}
