//! Where an installation goes: its prefix, the folder of its libraries, and the name of its command.

use crate::steps::{Outcome, VERSION, below_destdir, run, tool};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The places of an installation.
#[derive(Debug)]
pub(crate) struct Places {
    /// The prefix as programs will find it, for what is told.
    pub(crate) used: PathBuf,
    /// The prefix as it is written: below `DESTDIR`, if there is one.
    pub(crate) prefix: PathBuf,
    /// The folder of the libraries, below the prefix: `lib`, `lib64`, `lib/x86_64-linux-gnu`.
    pub(crate) libraries: String,
    /// The name of the command.
    pub(crate) program: String,
}

impl Places {
    /// The places that the arguments ask for. `libraries` is below the prefix, or an absolute path that begins with it.
    ///
    /// # Errors
    ///
    /// Which argument, what was expected, and what was found.
    pub(crate) fn new(prefix: &Path, libraries: Option<&Path>, program: Option<&Path>) -> Outcome<Places> {
        Ok(Places {
            used: prefix.to_owned(),
            prefix: below_destdir(std::env::var_os("DESTDIR"), prefix)?,
            libraries: libraries.map_or_else(|| Ok("lib".to_owned()), |given| below(prefix, given))?,
            program: program.map_or_else(|| Ok("dtc".to_owned()), name)?,
        })
    }

    /// A folder below the prefix, which is made if it is missing.
    pub(crate) fn folder(&self, path: &str) -> Outcome<PathBuf> {
        let folder = self.prefix.join(path);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// The folder of the libraries, which is made if it is missing.
    pub(crate) fn library_folder(&self) -> Outcome<PathBuf> {
        self.folder(&self.libraries)
    }

    /// Puts version and places into a file of pkg-config or CMake that is installed `depth` folders below the folder of the libraries.
    pub(crate) fn fill(&self, text: &str, depth: usize) -> String {
        let up = vec![".."; Path::new(&self.libraries).components().count() + depth].join("/");
        text.replace("@VERSION@", VERSION).replace("@PREFIX@", &up).replace("@LIBDIR@", &self.libraries)
    }
}

/// A folder relative to the prefix.
fn below(prefix: &Path, given: &Path) -> Outcome<String> {
    let relative = given.strip_prefix(prefix).unwrap_or(given);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    match relative.to_str() {
        Some(text) if plain && !text.is_empty() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err(format!("--libdir: expected a folder below {}, found {}", prefix.display(), given.display())),
    }
}

/// A name of a program, which shells complete and man pages are named after.
fn name(given: &Path) -> Outcome<String> {
    let allowed = |text: &&str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.chars().all(|each| each.is_ascii_alphanumeric() || "-_.".contains(each))
    };
    given
        .to_str()
        .filter(allowed)
        .map(str::to_owned)
        .ok_or_else(|| format!("--program-name: expected letters, digits, - _ and ., found {}", given.display()))
}

/// Copies a program or a library without the symbols that only debuggers read, over one that may be running.
pub(crate) fn install_stripped(from: &Path, to: &Path, strip: &str) -> Outcome {
    let mut part = OsString::from(".");
    part.push(to.file_name().unwrap_or_default());
    part.push(format!(".{}", std::process::id()));
    let copy = to.with_file_name(part);
    run(tool("OBJCOPY", "objcopy").arg(strip).arg(from).arg(&copy))?;
    // A running program may have mapped the file, so it is replaced by a rename.
    fs::rename(&copy, to).map_err(|error| format!("{}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(libraries: &str) -> Outcome<Places> {
        Places::new(Path::new("/usr"), Some(Path::new(libraries)), None)
    }

    #[test]
    fn files_of_pkg_config_find_the_prefix() {
        let fill = |libraries, depth| places(libraries).unwrap().fill("@PREFIX@ @LIBDIR@", depth);
        assert_eq!(fill("lib", 1), "../.. lib");
        assert_eq!(fill("lib/x86_64-linux-gnu/", 2), "../../../.. lib/x86_64-linux-gnu");
        assert_eq!(fill("/usr/lib64", 1), "../.. lib64");
    }

    #[test]
    fn places_outside_of_the_prefix_are_refused() {
        for libraries in ["/opt/lib", "../lib", "/usr", "", "lib/../../x"] {
            let error = places(libraries).unwrap_err();
            assert!(error.starts_with("--libdir: expected a folder below /usr, found "), "{error}");
        }
    }

    #[test]
    fn names_of_programs_are_plain() {
        assert_eq!(name(Path::new("dtc-types")), Ok("dtc-types".to_owned()));
        for given in ["", "a/b", "-dtc", "a b", ".dtc"] {
            assert!(name(Path::new(given)).is_err(), "{given}");
        }
    }
}
