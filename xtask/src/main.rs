//! Tasks of dtc's own build that cargo has no command for.
//!
//! ```text
//! cargo xtask install --prefix DIR [--archive FILE]
//! ```
//!
//! Installs libdtc below a prefix: the shared and the static library, header, pkg-config file and CMake package. See
//! `docs/c-abi.md`.

mod install;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask install --prefix DIR [--archive FILE]
    --prefix DIR      where to install; DESTDIR in the environment goes before it
    --archive FILE    the static library that cargo built; built in the release profile unless said otherwise";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (mut prefix, mut archive) = (None, None);
    let command = arguments.next();
    while let Some(flag) = arguments.next() {
        let place = match flag.to_str() {
            Some("--prefix") => &mut prefix,
            Some("--archive") => &mut archive,
            _ => return usage(),
        };
        *place = arguments.next().map(PathBuf::from);
    }
    let (Some(prefix), Some("install")) = (prefix, command.as_ref().and_then(|command| command.to_str())) else {
        return usage();
    };
    match install::install(&prefix, archive) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
