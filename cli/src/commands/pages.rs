//! `dtc completions` and `dtc man`: what shells and `man` know of the command.

use crate::failure::{Failure, reason};
use clap::Command;
use clap_complete::Shell;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints the completions of a shell
///
/// For this session of bash: source <(dtc completions bash). cargo xtask install puts those of bash, fish and zsh where
/// the shells look for them.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the man page of dtc, or writes the pages of all its commands
///
/// To read it: dtc man | man -l -. cargo xtask install puts all pages where man looks for them.
#[derive(clap::Args)]
pub struct Man {
    /// Writes dtc.1, dtc-pack.1 and so on into this folder, which is there
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs `dtc completions`.
pub fn completions(arguments: &Completions, mut command: Command, out: &mut dyn Write) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "dtc", &mut script);
    Ok(out.write_all(&script)?)
}

/// Runs `dtc man`.
pub fn man(arguments: &Man, mut command: Command, out: &mut dyn Write) -> Result<(), Failure> {
    // So that every command has the name that its page needs.
    command.build();
    match &arguments.folder {
        None => Ok(out.write_all(&page(&command, "dtc")?)?),
        Some(folder) => write_pages(&command, "dtc", folder),
    }
}

/// The page of a command.
fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone().display_name(name)).title(name).render(&mut page)?;
    Ok(page)
}

/// Writes the pages of a command and of those below it, which are two levels deep.
fn write_pages(command: &Command, name: &str, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let failed = |error| Failure::description(path.display(), "a file to write", reason(&error));
    std::fs::write(&path, page(command, name)?).map_err(failed)?;
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below.into_iter().try_for_each(|below| write_pages(below, &format!("{name}-{}", below.get_name()), folder))
}
