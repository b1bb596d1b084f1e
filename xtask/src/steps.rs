//! Steps that several tasks take: commands, files, builds.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of this release.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An error names the place, the expectation, and what was found there.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Root of the sources.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The prefix, below the staging root of a packager.
pub(crate) fn below_destdir(destdir: Option<OsString>, prefix: &Path) -> Outcome<PathBuf> {
    let Ok(inside) = prefix.strip_prefix("/") else {
        return Err(format!("--prefix: expected an absolute path, found {}", prefix.display()));
    };
    Ok(match destdir.filter(|root| !root.is_empty()) {
        Some(root) => Path::new(&root).join(inside),
        None => prefix.to_owned(),
    })
}

/// Builds a library in the release profile and returns its path.
pub(crate) fn build(package: &str, library: &str) -> Outcome<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).current_dir(root()).args(["build", "--release", "--locked", "--package", package]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target));
    Ok(target.join("release").join(library))
}

/// Creates or redirects a symbolic link.
pub(crate) fn point(link: &Path, target: &str) -> Outcome {
    match fs::remove_file(link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", link.display())),
        _ => symlink(target, link).map_err(|error| format!("{}: {error}", link.display())),
    }
}

pub(crate) fn run(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let arguments: Vec<&OsStr> = command.get_args().collect();
            Err(format!("{name}: expected success, found {status} of {arguments:?}"))
        }
        Err(error) => Err(format!("{name}: expected a program, found {error}")),
    }
}

/// What a command writes to standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: expected a program, found {error}"))?;
    match String::from_utf8(output.stdout) {
        Ok(text) if output.status.success() => Ok(text),
        _ => {
            Err(format!("{name}: expected text, found {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
        }
    }
}

/// A tool of the system, by the variable that names another one: a cross compiler has its own.
pub(crate) fn tool(variable: &str, usual: &str) -> Command {
    Command::new(std::env::var_os(variable).unwrap_or_else(|| usual.into()))
}

pub(crate) fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies the text files of a folder whose names end in one of `extensions`.
pub(crate) fn copy_files(from: &Path, to: &Path, extensions: &[&str]) -> Outcome {
    let entries = fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", from.display()))?.path();
        let wanted = path.extension().and_then(OsStr::to_str).is_some_and(|extension| extensions.contains(&extension));
        if let Some(name) = path.file_name().filter(|_| wanted) {
            write(&to.join(name), &read(&path)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packagers_stage_below_another_root() {
        let below = |root: &str, prefix| below_destdir(Some(root.into()), Path::new(prefix));
        assert_eq!(below("/stage", "/usr"), Ok("/stage/usr".into()));
        assert_eq!(below("", "/usr"), Ok("/usr".into()));
        assert_eq!(below("", "usr"), Err("--prefix: expected an absolute path, found usr".into()));
    }
}
