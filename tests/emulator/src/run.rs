//! Running commands on files.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a stage of `./test full` runs: also what is heavy and rarely fails.
pub fn is_full() -> bool {
    std::env::var("DTC_TESTS").is_ok_and(|extent| extent == "full")
}

/// What a run left behind.
#[derive(Debug)]
pub struct Run {
    /// The file name of the program.
    pub program: String,
    /// Its exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Run {
        let output = command.output().expect("the command runs");
        Run {
            program: Path::new(command.get_program()).file_name().expect("a file").to_string_lossy().into_owned(),
            status: output.status.code().expect("the command is not killed"),
            out: String::from_utf8(output.stdout).expect("reports are UTF-8"),
            err: String::from_utf8(output.stderr).expect("messages are UTF-8"),
        }
    }

    /// Asserts success and silence on standard error.
    #[track_caller]
    pub fn fine(self) -> String {
        assert_eq!((self.status, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// Asserts a status and parts of the message.
    #[track_caller]
    pub fn fails(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.err.starts_with(&format!("{}: ", self.program)), "{self:?}");
        for part in parts.iter().chain(&["expected", "found"]) {
            assert!(self.err.contains(part), "expected {part:?} in {:?}", self.err);
        }
    }
}

/// Writes a file and returns its path.
pub fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("the folder can be written");
    path
}
