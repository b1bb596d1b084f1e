//! Running commands, on files and on a GPU that is emulated.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::{TempDir, tempdir};

/// Whether a stage of `./test full` runs: also what is heavy and rarely fails.
pub fn is_full() -> bool {
    std::env::var("DTC_TESTS").is_ok_and(|extent| extent == "full")
}

/// What a run left behind.
#[derive(Debug)]
pub struct Run {
    pub program: String,
    pub status: i32,
    pub out: String,
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

/// The libraries of the emulator, built once.
struct Emulator {
    folder: TempDir,
    driver: PathBuf,
    nvrtc: PathBuf,
    generic: PathBuf,
}

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests");

fn emulator() -> &'static Emulator {
    static EMULATOR: OnceLock<Emulator> = OnceLock::new();
    EMULATOR.get_or_init(|| {
        let folder = tempdir().expect("a folder");
        let library = |name: &str, source: &Path, options: &[&str]| {
            let library = folder.path().join(name);
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).args(options);
            assert!(compiler.status().expect("the C compiler cc").success());
            library
        };
        let driver = library("driver.so", &Path::new(TESTS).join("emulator/driver.c"), &["-ldl"]);
        let nvrtc = library("nvrtc.so", &Path::new(TESTS).join("../../runtime/cuda/tests/stub/nvrtc.c"), &[]);
        let generic = dtc_compiler::codegen::cuda::generic_source().expect("a text");
        let generic = write(folder.path(), "generic.cu", generic);
        Emulator { folder, driver, nvrtc, generic }
    })
}

/// The driver of the emulator.
#[allow(dead_code, reason = "each test file uses a part")]
pub fn emulated_driver() -> &'static Path {
    &emulator().driver
}

/// Runs a program in a folder with a GPU that is emulated.
pub fn emulated(program: &str, folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let Emulator { folder: scratch, driver, nvrtc, generic } = emulator();
    let include = format!("-I{TESTS}/../../tests/shim -I{TESTS}/emulator");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.env("DTC_CUDA_DRIVER", driver).env("DTC_NVRTC", nvrtc).env("DTC_CACHE_DIR", "off");
    command.env("EMULATOR_FOLDER", scratch.path()).env("EMULATOR_GENERIC", generic).env("EMULATOR_INCLUDE", include);
    Run::of(command.envs(variables.iter().copied()))
}
