//! Output files of commands: what is written to one appears when it is whole, or not at all.
//!
//! A regular file is written without a name, or under a temporary one, and takes its place in one step
//! (`unfinished`). Pipes, devices and standard output are written directly. Folders of what is made on the way are in `scratch`.

mod scratch;
mod signals;
mod unfinished;

pub use scratch::Scratch;

use crate::failure::Failure;
use crate::input;
use crate::paths::STANDARD;
use std::fs::{File, FileType};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use unfinished::Unfinished;

/// Symbolic links that are followed from an output's name to its place, as Linux does.
const MOST_LINKS: usize = 40;

/// An output that is being written.
pub struct Output<'a> {
    path: &'a Path,
    sink: Sink,
}

enum Sink {
    Whole(Unfinished),
    Direct(File),
    Standard(io::StdoutLock<'static>),
}

impl Output<'_> {
    /// Prepares the file `path`, or standard output for `-`. A pipe waits for its reader, as with any other program.
    ///
    /// # Errors
    ///
    /// [`Failure::Data`] where no file can be written: its folder is missing or may not be written, or `path` is a folder
    /// or socket.
    pub fn create(path: &Path) -> Result<Output<'_>, Failure> {
        if path == Path::new(STANDARD) {
            return Ok(Output { path, sink: Sink::Standard(io::stdout().lock()) });
        }
        let failed = |error| Failure::file(path, "a file to write", &error);
        let existing = match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(existing) = existing {
            let kind = existing.file_type();
            if !kind.is_file() && !is_stream(kind) {
                return Err(Failure::data(path.display(), "a file, pipe or device to write", input::kind_name(kind)));
            }
            // This changes nothing, and fails where the file may not be written although its folder may.
            let file = File::options().write(true).open(path).map_err(failed)?;
            if !kind.is_file() {
                return Ok(Output { path, sink: Sink::Direct(file) });
            }
            // A symbolic link stays one: the file that it leads to is replaced.
            let target = std::fs::canonicalize(path).map_err(failed)?;
            let unfinished = Unfinished::create(&target, Some(existing.permissions())).map_err(failed)?;
            return Ok(Output { path, sink: Sink::Whole(unfinished) });
        }
        let target = end_of_links(path).map_err(failed)?;
        if target.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(Failure::data(path.display(), "the name of a file", "that of a directory"));
        }
        let unfinished = Unfinished::create(&target, None).map_err(failed)?;
        Ok(Output { path, sink: Sink::Whole(unfinished) })
    }

    /// Writes bytes behind those written before.
    ///
    /// # Errors
    ///
    /// [`Failure::Data`] where there is no room; [`Failure::Output`] for standard output.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &mut self.sink {
            Sink::Whole(unfinished) => unfinished.file().write_all(bytes),
            Sink::Direct(file) => file.write_all(bytes),
            Sink::Standard(out) => return Ok(out.write_all(bytes)?),
        };
        written.map_err(|error| Failure::file(self.path, "room for the output", &error))
    }

    /// Puts the file in its place; says whether it is a regular one.
    ///
    /// # Errors
    ///
    /// As [`Output::write`]; a file that was there before is unchanged then.
    pub fn finish(self) -> Result<bool, Failure> {
        let failed = |error| Failure::file(self.path, "a file to write", &error);
        match self.sink {
            Sink::Whole(unfinished) => unfinished.finish().map_err(failed).map(|()| true),
            Sink::Direct(_) => Ok(false),
            Sink::Standard(mut out) => {
                out.flush()?;
                Ok(false)
            }
        }
    }
}

/// Writes a whole output.
///
/// # Errors
///
/// As [`Output::create`] and [`Output::write`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::create(path)?;
    output.write(bytes)?;
    output.finish().map(drop)
}

/// Refuses an output that is one file with an input, whatever their names. `option` and those of `inputs` say which
/// argument named a file.
///
/// # Errors
///
/// [`Failure::Description`].
pub fn distinct(option: &str, output: &Path, inputs: &[(&str, &Path)]) -> Result<(), Failure> {
    let Some(identity) = input::identity(output, false) else { return Ok(()) };
    for (other, input) in inputs {
        if input::identity(input, true) == Some(identity.clone()) {
            let found = format_args!("{}, which is that file", output.display());
            return Err(Failure::description(option, format_args!("another file than {other}"), found));
        }
    }
    Ok(())
}

/// Refuses to write what is not text to a terminal.
///
/// # Errors
///
/// [`Failure::Description`].
pub fn not_a_terminal(option: &str, output: &Path) -> Result<(), Failure> {
    if output == Path::new(STANDARD) && io::stdout().is_terminal() {
        return Err(Failure::description(option, "a file or pipe for bytes that are not text", "a terminal"));
    }
    Ok(())
}

#[cfg(unix)]
fn is_stream(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_stream(_: FileType) -> bool {
    false
}

/// Where a name leads that may be a symbolic link to a file that does not exist.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&target) {
            // An absolute one replaces the folder.
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("a chain of symbolic links without end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("other")).unwrap();
        for (link, to) in [("direct", "new"), ("first", "other/second"), ("other/second", "../third")] {
            std::os::unix::fs::symlink(to, at(link)).unwrap();
        }
        for (link, target) in [("direct", "new"), ("first", "third")] {
            for text in ["into nothing", "into a file"] {
                write(&at(link), text.as_bytes()).unwrap();
                assert_eq!(std::fs::read_to_string(at(target)).unwrap(), text);
                assert!(at(link).is_symlink() && !at(target).is_symlink());
            }
        }
        std::os::unix::fs::symlink("round", at("round")).unwrap();
        assert!(write(&at("round"), b"").is_err());
    }
}
