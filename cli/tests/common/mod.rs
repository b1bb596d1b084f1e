//! Running the command.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run left behind.
#[derive(Debug)]
pub struct Run {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// Runs `dtc` in a folder.
pub fn dtc(folder: &Path, arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_dtc")).args(arguments).current_dir(folder))
}

impl Run {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Run {
        let output = command.output().expect("dtc runs");
        Run {
            status: output.status.code().expect("dtc is not killed"),
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
        assert!(self.err.starts_with("dtc: "), "{self:?}");
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

/// A NumPy file of format 1.0.
pub fn npy(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dictionary.len() as u16).to_le_bytes());
    bytes.extend(dictionary.bytes());
    bytes.extend(data);
    bytes
}

/// Bytes that do not repeat soon.
pub fn data(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
