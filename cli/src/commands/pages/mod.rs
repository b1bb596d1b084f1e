//! `dtc completions` and `dtc man`: what shells and `man` know of the command.

mod sections;
mod troff;

use clap::Command;
use clap_complete::Shell;
use dtc_measure::failure::{Failure, reason};
use dtc_measure::program::Names;
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

/// Examples of all commands, as shells take them.
#[cfg(test)]
pub fn examples() -> impl Iterator<Item = &'static str> {
    sections::COMMANDS.iter().flat_map(|sections| sections.examples.iter().map(|(call, _)| *call))
}

/// Runs `dtc completions`.
pub fn completions(arguments: &Completions, mut command: Command, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut script, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    Ok(out.write_all(&script)?)
}

/// Runs `dtc man`. The names of pages, and those in them, are those of `command`, whose texts name it `before`.
pub fn man(arguments: &Man, mut command: Command, before: &Command, out: &mut dyn Write) -> Result<(), Failure> {
    // So that every command has the name that its page needs.
    command.build();
    let names = Names::new(before, command.get_name());
    match &arguments.folder {
        None => Ok(out.write_all(&page(&command, "", &names)?)?),
        Some(folder) => write_pages(&command, "", &names, folder),
    }
}

/// The name of the page of a command below that of the program, such as `cache list`.
fn page_name(below: &str, names: &Names) -> String {
    let words = std::iter::once(names.after()).chain(below.split_whitespace());
    words.collect::<Vec<_>>().join("-")
}

/// The page of a command.
fn page(command: &Command, below: &str, names: &Names) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let name = page_name(below, names);
    let man = clap_mangen::Man::new(command.clone().display_name(&name)).title(&name);
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(sections) = sections::of(below) {
        page.write_all(troff::sections(sections, names).as_bytes())?;
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// Writes the pages of a command and of those below it, which are two levels deep.
fn write_pages(command: &Command, below: &str, names: &Names, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(format!("{}.1", page_name(below, names)));
    let failed = |error| Failure::description(path.display(), "a file to write", reason(&error));
    std::fs::write(&path, page(command, below, names)?).map_err(failed)?;
    let commands = command.get_subcommands().filter(|below| below.get_name() != "help");
    commands.into_iter().try_for_each(|command| {
        let below = format!("{below} {}", command.get_name());
        write_pages(command, below.trim(), names, folder)
    })
}

#[cfg(test)]
mod tests {
    use super::sections::{COMMANDS, STATUSES, VARIABLES};
    use std::path::{Path, PathBuf};

    /// Files of Rust and C below a folder, without those of tests.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() && name != "tests" => sources(&path, found),
                Some("rs" | "c" | "h") if name != "tests.rs" => found.push(path),
                _ => {}
            }
        }
    }

    /// What stands before the name of a variable where the sources read one.
    const READS: [&str; 5] = ["var_os(\"", "env::var(\"", "getenv(\"", "c\"", "\"DTC_"];

    /// The names of variables in the sources.
    fn variables() -> Vec<String> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let mut files = Vec::new();
        for folder in ["cli/src", "runtime", "matching", "interfaces/c/src", "interfaces/mpi/src", "interfaces/mpi/c"] {
            sources(&workspace.join(folder), &mut files);
        }
        let mut found = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a text");
            for before in READS {
                let start = before.len() - before.trim_start_matches(|each| each != '"').len() + 1;
                let names = text.match_indices(before).filter_map(|(at, _)| text[at + start..].split('"').next());
                let is_name = |name: &&str| {
                    name.len() > 1 && name.chars().all(|each| each.is_ascii_uppercase() || "_0123456789".contains(each))
                };
                found.extend(names.filter(is_name).map(str::to_owned));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// Of tests, and of the build.
    const NOT_READ: [&str; 5] =
        ["DTC_REVISION", "DTC_TEST_SCRATCH", "DTC_TEST_UNFINISHED_IN", "DTC_TEST_PRIVILEGED", "DTC_REQUIRE_GPU"];

    #[test]
    fn each_variable_stands_in_a_page() {
        let interposer = include_str!("../../../../interfaces/mpi/pkg/libdtc_mpi.7.in").replace("\\_", "_");
        let found = variables();
        assert!(found.len() > 8, "{found:?}");
        // What the interposer looks up of an MPI is no variable.
        let is_read = |name: &&String| !NOT_READ.contains(&name.as_str()) && !name.starts_with("MPI_");
        for name in found.iter().filter(is_read) {
            let listed = VARIABLES.iter().any(|(names, _)| names.split(", ").any(|each| each == name));
            assert!(listed || interposer.contains(name.as_str()), "{name} stands in no page");
        }
        for (name, _) in VARIABLES {
            let read = COMMANDS.iter().any(|page| page.variables.iter().any(|group| group.contains(&name)));
            assert!(read, "{name} belongs to no command");
        }
    }

    #[test]
    fn variables_of_pages_are_listed() {
        for page in &COMMANDS {
            for name in page.variables.iter().flat_map(|group| group.iter()) {
                assert!(VARIABLES.iter().any(|(listed, _)| listed == name), "{}: {name}", page.command);
            }
            assert!(!page.examples.is_empty(), "{} has no example", page.command);
        }
        assert_eq!(STATUSES.len(), 4);
    }
}
