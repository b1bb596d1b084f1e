//! Tasks of dtc's own build that cargo has no command for.
//!
//! ```text
//! cargo xtask install --prefix DIR [--libdir DIR] [--program-name NAME] [--archive FILE] [--command FILE]
//!                     [--runner COMMAND]
//! cargo xtask install-yaksa --prefix DIR [--library FILE]
//! cargo xtask dist [--out DIR] [--target TRIPLE]...
//! cargo xtask notices [--check]
//! cargo xtask lines [--since COMMIT]
//! cargo xtask book [--output DIR]
//! cargo xtask plots
//! ```
//!
//! - `install` installs libdtc (shared and static library, header, pkg-config file, CMake package: `docs/reference/c.md`), the
//!   interposer libdtc_mpi (`docs/reference/preload.md`), and the command dtc with its man pages and completions, with the book and examples.
//! - `install-yaksa` installs libyaksa for an MPICH, and prints the folder to configure MPICH with (`docs/integrate/mpich.md`).
//! - `dist` makes the files of a release: tarballs, packages for Debian, wheels, and their sums (`docs/inside/releasing.md`).
//! - `notices` writes `THIRD-PARTY-NOTICES`, the licences of what both libraries contain, and those of the wheel of Python.
//! - `lines` counts the lines of the product's code, and how many they were at a commit.
//! - `book` builds the book of `docs/` by mdBook.
//! - `plots` draws the pictures of the book from `bench/results`.

mod book;
mod command;
mod dist;
mod documents;
mod install;
mod interposer;
mod lines;
mod notices;
mod object;
mod places;
mod steps;
mod yaksa;

use places::Places;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask install --prefix DIR [--libdir DIR] [--program-name NAME] [--archive FILE] [--command FILE]
       cargo xtask install-yaksa --prefix DIR [--library FILE]
       cargo xtask dist [--out DIR] [--target TRIPLE]...
       cargo xtask notices [--check]
       cargo xtask lines [--since COMMIT]
       cargo xtask book [--output DIR]
       cargo xtask plots
    --prefix DIR      where to install; DESTDIR in the environment goes before it
    --libdir DIR      where the libraries go, below the prefix: lib (as without it), lib64, lib/x86_64-linux-gnu
    --program-name NAME
                      the name of the command, of its man pages and completions, for machines with another dtc
    --archive FILE    installs the libraries alone, of the static one that cargo built
    --command FILE    installs the command dtc alone, which cargo built; without --archive and --command, both are built in
                      the release profile and installed
    --runner COMMAND  runs the command that --command names, if it is for another processor: it prints its own pages
    --out DIR         where the files of a release go: target/dist unless said otherwise
    --target TRIPLE   what they are built for, once or more: x86_64-unknown-linux-gnu (as without it on such a machine),
                      aarch64-unknown-linux-gnu
    --library FILE    the shared library that cargo built; built in the release profile unless said otherwise
    --check           write nothing; fail if THIRD-PARTY-NOTICES is not what would be written
    --since COMMIT    the lines at this commit too, and by how many there are more or less
    --output DIR      where the book is built: target/book unless given";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next();
    let command = command.as_ref().and_then(|command| command.to_str());
    let (mut prefix, mut libraries, mut name) = (None, None, None);
    let (mut built, mut program, mut since, mut output, mut check) = (None, None, None, None, false);
    let (mut runner, mut folder, mut targets) = (None, None, Vec::new());
    while let Some(flag) = arguments.next() {
        let place = match (command, flag.to_str()) {
            (Some("notices"), Some("--check")) => {
                check = true;
                continue;
            }
            (Some("dist"), Some("--target")) => {
                let Some(Ok(target)) = arguments.next().map(OsString::into_string) else { return usage() };
                targets.push(target);
                continue;
            }
            (Some("dist"), Some("--out")) => &mut folder,
            (Some("install"), Some("--runner")) => &mut runner,
            (Some("install" | "install-yaksa"), Some("--prefix")) => &mut prefix,
            (Some("install"), Some("--libdir")) => &mut libraries,
            (Some("install"), Some("--program-name")) => &mut name,
            (Some("install"), Some("--archive")) | (Some("install-yaksa"), Some("--library")) => &mut built,
            (Some("install"), Some("--command")) => &mut program,
            (Some("lines"), Some("--since")) => &mut since,
            (Some("book"), Some("--output")) => &mut output,
            _ => return usage(),
        };
        *place = arguments.next().map(PathBuf::from);
    }
    let installed = match (command, prefix) {
        (Some("notices"), None) => notices::notices(check),
        (Some("book"), None) => book::build(output.as_deref()),
        (Some("plots"), None) => book::plots(),
        (Some("dist"), None) => dist::dist(folder, &targets),
        (Some("lines"), None) => lines::lines(since.as_deref().and_then(Path::to_str)),
        (Some("install"), Some(prefix)) => {
            let runner = runner.as_deref().and_then(Path::to_str).unwrap_or_default();
            Places::new(&prefix, libraries.as_deref(), name.as_deref())
                .and_then(|places| all(&places, built, program, runner))
        }
        (Some("install-yaksa"), Some(prefix)) => {
            yaksa::install(&prefix, built).map(|folder| println!("{}", folder.display()))
        }
        _ => return usage(),
    };
    match installed {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Installs the libraries, the command, or both, if neither was named.
fn all(places: &Places, built: Option<PathBuf>, program: Option<PathBuf>, runner: &str) -> Result<(), String> {
    let both = built.is_none() && program.is_none();
    if both || built.is_some() {
        install::install(places, built)?;
    }
    if both || program.is_some() {
        command::install(places, program, runner)?;
    }
    Ok(())
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
