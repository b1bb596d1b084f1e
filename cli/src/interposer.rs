//! Programs of MPI under libdtc_mpi.

use dtc_measure::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// What the lines of the library begin with.
const MARK: &[u8] = b"libdtc_mpi: ";

/// The library that was asked for, or the one beside this command, as `cargo xtask install` puts both.
pub fn library(requested: Option<&Path>) -> Result<PathBuf, Failure> {
    let library = match requested {
        Some(path) => path.to_owned(),
        None => installed()?,
    };
    library.canonicalize().map_err(|error| Failure::Missing(format!("{}: {error}", library.display())))
}

/// Folders of libraries below a prefix, which systems have chosen between.
const LIBRARY_FOLDERS: [&str; 4] = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];

fn installed() -> Result<PathBuf, Failure> {
    let command = std::env::current_exe()?;
    let prefix = command.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let place = |folder: &str| prefix.join(folder).join("libdtc_mpi.so");
    if let Some(library) = LIBRARY_FOLDERS.map(place).into_iter().find(|library| library.is_file()) {
        return Ok(library);
    }
    let library = place("lib");
    let name = library.display();
    Err(Failure::Missing(format!("{name}: expected the interposer, found none; name it with --interposer FILE")))
}

/// A program and its arguments, without input.
pub fn plain(program: &[OsString]) -> Command {
    let mut command = Command::new(program.first().map_or(OsStr::new(""), OsString::as_os_str));
    command.args(program.get(1..).unwrap_or_default()).stdin(Stdio::null());
    command
}

/// The same with the library, before what the environment already has preloaded.
pub fn preloaded(program: &[OsString], library: &Path) -> Command {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(OsStr::new(":"));
        preload.push(others);
    }
    let mut command = plain(program);
    command.env("LD_PRELOAD", preload);
    command
}

/// The name of the program that a command runs.
pub fn name(command: &Command) -> String {
    Path::new(command.get_program()).display().to_string()
}

/// A command that did not start.
pub fn not_started(command: &Command, error: &io::Error) -> Failure {
    Failure::Missing(format!("{}: {error}", name(command)))
}

/// Runs a program with the report of the library; returns the lines of the library in all processes, without the mark, and how the program
/// ended. What the program and its launcher say goes on to these two, as it comes.
pub fn reported(
    command: &mut Command,
    out: &mut dyn Write,
    mut errors: impl Write + Send,
) -> Result<(Vec<String>, ExitStatus), Failure> {
    command.env("DTC_MPI_REPORT", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| not_started(command, &error))?;
    let (said, complained) = (child.stdout.take(), child.stderr.take());
    let lines = std::thread::scope(|scope| -> io::Result<Vec<String>> {
        let complained = scope.spawn(|| complained.map(|from| sift(from, &mut errors)).transpose());
        let said = said.map(|from| sift(from, out)).transpose();
        let complained = complained.join().unwrap_or(Ok(None));
        Ok([complained?, said?].into_iter().flatten().flatten().collect())
    });
    let status = child.wait()?;
    Ok((lines?, status))
}

/// Copies what is read, but for lines of the library, which are returned without their mark. A line of the library may begin behind one of
/// the program that has not ended.
fn sift(from: impl Read, to: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut from = BufReader::new(from);
    let (mut line, mut found) = (Vec::new(), Vec::new());
    while from.read_until(b'\n', &mut line)? > 0 {
        let mark = line.windows(MARK.len()).position(|bytes| bytes == MARK);
        let (theirs, ours) = line.split_at(mark.unwrap_or(line.len()));
        to.write_all(theirs)?;
        if mark.is_some() {
            found.push(String::from_utf8_lossy(&ours[MARK.len()..]).trim_end().to_owned());
            if !theirs.is_empty() {
                to.write_all(b"\n")?;
            }
        }
        to.flush()?;
        line.clear();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::sift;

    #[test]
    fn lines_of_the_library_are_taken_out() {
        let said = b"first\nlibdtc_mpi: ABI: mpich\ndonelibdtc_mpi: MPI: 4\n\xff\n\nlast";
        let mut passed = Vec::new();
        let found = sift(&said[..], &mut passed).expect("memory");
        assert_eq!(found, ["ABI: mpich", "MPI: 4"]);
        assert_eq!(passed, b"first\ndone\n\xff\n\nlast");
    }
}
