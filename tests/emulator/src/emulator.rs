//! Programs on a GPU that the CPU emulates.

use super::FOLDER;
use super::run::{Run, write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::{TempDir, tempdir};

/// The libraries of the emulated GPU.
#[derive(Debug)]
pub struct Emulator {
    folder: TempDir,
    driver: PathBuf,
    nvrtc: PathBuf,
    generic: PathBuf,
}

impl Emulator {
    /// The libraries, which the first call in a process builds. `generic`: the text of the generic kernels, of which the emulated driver
    /// has neither machine code nor PTX.
    pub fn get(generic: impl FnOnce() -> String) -> &'static Emulator {
        static EMULATOR: OnceLock<Emulator> = OnceLock::new();
        EMULATOR.get_or_init(|| Emulator::build(&generic()))
    }

    fn build(generic: &str) -> Emulator {
        let folder = tempdir().expect("a folder");
        let library = |name: &str, source: &str| {
            let library = folder.path().join(name);
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
            compiler.arg(Path::new(FOLDER).join(source)).arg("-ldl");
            assert!(compiler.status().expect("the C compiler cc").success());
            library
        };
        let (driver, nvrtc) = (library("driver.so", "cpu/driver.c"), library("nvrtc.so", "stub/nvrtc.c"));
        let generic = write(folder.path(), "generic.cu", generic);
        Emulator { folder, driver, nvrtc, generic }
    }

    /// The library of the driver.
    pub fn driver(&self) -> &Path {
        &self.driver
    }

    /// A command that finds the emulated GPU, without a cache.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DTC_CUDA_DRIVER", &self.driver).env("DTC_NVRTC", &self.nvrtc).env("DTC_CACHE_DIR", "off");
        command.env("EMULATOR_FOLDER", self.folder.path()).env("EMULATOR_GENERIC", &self.generic);
        command.env("EMULATOR_INCLUDE", format!("-I{FOLDER}/shim -I{FOLDER}/cpu"));
        command
    }

    /// Runs a program in a folder to its end.
    pub fn run(&self, program: &str, folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = self.command(program);
        Run::of(command.args(arguments).current_dir(folder).envs(variables.iter().copied()))
    }
}
