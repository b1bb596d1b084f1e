//! The checked-in PTX of the generic kernels is that of their source.
//!
//! `DTC_BLESS=1 cargo test -p dtc-tests --test generic_ptx` updates it. `DTC_NVRTC_PINNED` must name the
//! libnvrtc.so.11.2 of NVRTC 11.8.89, which `./test` installs.

use dtc_compiler::codegen::cuda::generic_source;
use dtc_runtime::cuda::{Architecture, Nvrtc, Version};
use dtc_tests::skip::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the path of the NVRTC that made the checked-in PTX.
const PINNED: &str = "DTC_NVRTC_PINNED";

/// The variable with the output path of the child process. A process opens one NVRTC, so the pinned one needs its own.
const OUTPUT: &str = "DTC_GENERIC_PTX_OUTPUT";

const TEST: &str = "the_ptx_is_that_of_the_generic_kernels";

const REGENERATE: &str = "regenerate it: DTC_BLESS=1 DTC_NVRTC_PINNED=PATH cargo test -p dtc-tests --test generic_ptx";

/// The first line of the file.
fn headline(source: &str) -> String {
    format!("// Source: blake3 {}\n", blake3::hash(source.as_bytes()).to_hex())
}

fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates/generic.ptx")
}

/// Compiles in a child process with the pinned NVRTC.
fn compile(library: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("generic.ptx");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env("DTC_NVRTC", library)
        .env(OUTPUT, &output)
        .output()
        .unwrap();
    let said = [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(child.status.success(), "{library}: {said}");
    fs::read_to_string(&output).unwrap_or_else(|error| panic!("{}: {error}\n{said}", output.display()))
}

/// Body of the child process.
fn write(output: &Path) {
    let nvrtc = Nvrtc::get().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(nvrtc.version(), Version { major: 11, minor: 8 }, "{PINNED} names another NVRTC");
    let source = generic_source().unwrap();
    let binary = nvrtc.compile(&source, "generic.cu", Architecture::Ptx(70), &["--std=c++17"]);
    let binary = binary.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(binary.log, "");
    fs::write(output, binary.bytes).unwrap();
}

#[test]
fn the_ptx_is_that_of_the_generic_kernels() {
    if let Some(output) = std::env::var_os(OUTPUT) {
        return write(Path::new(&output));
    }
    let source = generic_source().unwrap();
    let pinned = std::env::var(PINNED).ok().map(|library| compile(&library));
    if let (Some(compiled), true) = (&pinned, std::env::var_os("DTC_BLESS").is_some()) {
        fs::write(checked_in(), headline(&source) + compiled).unwrap();
    }
    // The PTX compiled into this test may be older than the file.
    let text = fs::read_to_string(checked_in()).unwrap();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    assert_eq!(first, headline(&source).trim_end(), "templates/generic.ptx is of another source; {REGENERATE}");
    match pinned {
        None => skip(TEST, &format!("needs {PINNED}; compared the hash alone")),
        Some(compiled) => {
            let differs = rest.lines().zip(compiled.lines()).find(|(found, expected)| found != expected);
            assert!(rest == compiled, "templates/generic.ptx is not what NVRTC writes: {differs:?}; {REGENERATE}");
        }
    }
}
