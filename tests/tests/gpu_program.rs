//! The program of the GPU tests works: on a driver that runs kernels on the CPU, and without any driver. Its results
//! there do not concern a GPU.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const TESTS: &str = env!("CARGO_MANIFEST_DIR");

/// The emulated driver, built in its own folder.
struct Emulator {
    folder: TempDir,
}

impl Emulator {
    fn new() -> Emulator {
        let folder = tempfile::tempdir().expect("a folder");
        let build = |name: &str, source: PathBuf| {
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(folder.path().join(name)).arg(source).arg("-ldl");
            assert!(compiler.status().expect("the C compiler cc").success());
        };
        build("driver.so", Path::new(TESTS).join("../cli/tests/emulator/driver.c"));
        build("nvrtc.so", Path::new(TESTS).join("../runtime/cuda/tests/stub/nvrtc.c"));
        let generic = dtc_compiler::codegen::cuda::generic_source().expect("a text");
        std::fs::write(folder.path().join("generic.cu"), generic).expect("a file");
        Emulator { folder }
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let folder = self.folder.path();
        let mut command = program();
        command.args(arguments).env("DTC_CACHE_DIR", "off");
        command.env("DTC_CUDA_DRIVER", folder.join("driver.so")).env("DTC_NVRTC", folder.join("nvrtc.so"));
        command.env("EMULATOR_FOLDER", folder).env("EMULATOR_GENERIC", folder.join("generic.cu"));
        command.env("EMULATOR_INCLUDE", format!("-I{TESTS}/shim -I{TESTS}/../cli/tests/emulator"));
        command.envs(variables.iter().copied()).output().expect("the program")
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dtc-gpu-tests"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn right_kernels_pass() {
    let emulator = Emulator::new();
    for arguments in [
        &["absolute addresses"] as &[&str],
        &["pointers into allocations"],
        &["generic: a forked child"],
        &["generic: transfers: memory of GPU 1, packed bytes in pageable memory"],
        &["generic: transfers: pinned memory, packed bytes in memory of GPU 0"],
        &["generic: one type in several kinds of memory"],
        &["fragments: three of four ints"],
        &["generic: batches: enqueued again at other"],
        &["generic: hostile flattened types"],
        &["generic: C: batches"],
        &["generic: C: memory and a batch at once"],
        &["generic: C: packs and unpacks"],
        &["generic: C: requests"],
        &["generic: C: copies"],
        &["generic: C: accumulations"],
        &["generic: C: on a stream"],
        &["generic: C: buffers of the caller"],
        &["generic: C: what is refused"],
        &["Yaksa: "],
        &["first call: "],
        &["--sanitizer", "rows of 17 bytes"],
        &["--sanitizer", "tiles of 33 x 65"],
    ] {
        let output = emulator.run(arguments, &[]);
        let said = text(&output);
        assert!(output.status.success() && said.contains("test result: ok."), "{arguments:?}: {said}");
        assert!(!said.contains(" 0 passed"), "{arguments:?}: {said}");
    }
}

#[test]
fn wrong_kernels_fail_by_name() {
    let output = Emulator::new().run(&["fragments: odd runs"], &[("EMULATOR_WRONG", "1")]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["test generic: fragments: odd runs ... FAILED", "fragment 0", "pack of", "bytes are wrong; byte "] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn without_a_gpu_the_status_is_4() {
    let output = program().env("DTC_CUDA_DRIVER", "/missing/libcuda.so").output().expect("the program");
    let said = text(&output);
    assert!(output.status.code() == Some(4) && said.contains("install the NVIDIA driver"), "{said}");
}
