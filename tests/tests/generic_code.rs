//! The checked-in PTX and machine code of the generic kernels are those of their source.
//!
//! `DTC_BLESS=1 cargo test -p dtc-tests --test generic_code` updates both. `DTC_NVRTC_PTX` must name the libnvrtc.so.11.2 of NVRTC
//! 11.8.89, and `DTC_NVRTC_MACHINE_CODE` the libnvrtc.so.12 of NVRTC 12.9.86; `./test` installs them.

use dtc_compiler::codegen::cuda::generic_source;
use dtc_runtime::cuda::{Architecture, Nvrtc, Version};
use dtc_tests::skip::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the output folder of a child process. A process opens one NVRTC, so each needs its own.
const OUTPUT: &str = "DTC_GENERIC_CODE_OUTPUT";

const REGENERATE: &str = "regenerate it: DTC_BLESS=1 DTC_NVRTC_PTX=PATH DTC_NVRTC_MACHINE_CODE=PATH cargo test -p dtc-tests \
                          --test generic_code";

/// Architectures with machine code: the first of each major number, and 7.5.
const ARCHITECTURES: [u32; 6] = [70, 75, 80, 90, 100, 120];

/// Texts with machine code, by the names of their files.
fn texts() -> [(&'static str, String); 2] {
    [("generic", generic_source().unwrap()), ("nothing", dtc_templates::NOTHING.to_owned())]
}

/// The first line of a file.
fn headline(source: &str) -> String {
    format!("// Source: blake3 {}\n", blake3::hash(source.as_bytes()).to_hex())
}

fn templates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates")
}

fn machine_code(name: &str, architecture: u32) -> String {
    format!("{name}_sm_{architecture}")
}

/// Runs a test of this file in a child process with the NVRTC that a variable names; the folder has what it writes.
fn compiled_by(variable: &str, test: &str) -> Option<tempfile::TempDir> {
    let library = std::env::var(variable).ok()?;
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("DTC_NVRTC", &library)
        .env(OUTPUT, folder.path())
        .output()
        .unwrap();
    let said = [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(child.status.success(), "{library}: {said}");
    Some(folder)
}

/// Compiles in the child process.
fn compile(version: Version, source: &str, architecture: Architecture, output: &Path) {
    let nvrtc = Nvrtc::get().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(nvrtc.version(), version, "DTC_NVRTC names another NVRTC");
    let binary = nvrtc.compile(source, "generic.cu", architecture, &["--std=c++17"]);
    let binary = binary.unwrap_or_else(|error| panic!("{error}"));
    // NVRTC 12.9 is the last one for architectures before 7.5, and says so.
    let warned = binary.log.lines().filter(|line| !line.contains("deprecated and may be removed in a future release"));
    assert_eq!(warned.collect::<Vec<_>>(), [""; 0]);
    fs::write(output, binary.bytes).unwrap();
}

fn blesses() -> bool {
    std::env::var_os("DTC_BLESS").is_some()
}

#[test]
fn the_ptx_is_that_of_the_generic_kernels() {
    const TEST: &str = "the_ptx_is_that_of_the_generic_kernels";
    let source = generic_source().unwrap();
    if let Some(folder) = std::env::var_os(OUTPUT) {
        let output = Path::new(&folder).join("generic.ptx");
        return compile(Version { major: 11, minor: 8 }, &source, Architecture::Ptx(70), &output);
    }
    let pinned = compiled_by("DTC_NVRTC_PTX", TEST);
    let pinned = pinned.map(|folder| fs::read_to_string(folder.path().join("generic.ptx")).unwrap());
    let checked_in = templates().join("generic.ptx");
    if let (Some(compiled), true) = (&pinned, blesses()) {
        fs::write(&checked_in, headline(&source) + compiled).unwrap();
    }
    // The PTX compiled into this test may be older than the file.
    let text = fs::read_to_string(checked_in).unwrap();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    assert_eq!(first, headline(&source).trim_end(), "templates/generic.ptx is of another source; {REGENERATE}");
    match pinned {
        None => skip(TEST, "needs DTC_NVRTC_PTX; compared the hash alone"),
        Some(compiled) => {
            let differs = rest.lines().zip(compiled.lines()).find(|(found, expected)| found != expected);
            assert!(rest == compiled, "templates/generic.ptx is not what NVRTC writes: {differs:?}; {REGENERATE}");
        }
    }
}

#[test]
fn the_machine_code_is_that_of_the_generic_kernels() {
    const TEST: &str = "the_machine_code_is_that_of_the_generic_kernels";
    let files = || {
        texts().into_iter().flat_map(|(name, source)| {
            ARCHITECTURES.map(|architecture| (machine_code(name, architecture), source.clone(), architecture))
        })
    };
    if let Some(folder) = std::env::var_os(OUTPUT) {
        return std::thread::scope(|scope| {
            for (name, source, architecture) in files() {
                let output = Path::new(&folder).join(name);
                let version = Version { major: 12, minor: 9 };
                scope.spawn(move || compile(version, &source, Architecture::Cubin(architecture), &output));
            }
        });
    }
    let pinned = compiled_by("DTC_NVRTC_MACHINE_CODE", TEST);
    for (name, source, _) in files() {
        let checked_in = templates().join("machine_code").join(&name).with_extension("lz4");
        let compiled = pinned.as_ref().map(|folder| fs::read(folder.path().join(&name)).unwrap());
        if let (Some(compiled), true) = (&compiled, blesses()) {
            let packed = lz4_flex::block::compress_prepend_size(compiled);
            fs::write(&checked_in, [headline(&source).as_bytes(), &packed].concat()).unwrap();
        }
        let file = fs::read(checked_in).unwrap();
        let packed = file.strip_prefix(headline(&source).as_bytes());
        let packed = packed.unwrap_or_else(|| panic!("{name} is of another source; {REGENERATE}"));
        let found = lz4_flex::block::decompress_size_prepended(packed);
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}; {REGENERATE}"));
        assert!(compiled.is_none_or(|compiled| compiled == found), "{name} is not what NVRTC writes; {REGENERATE}");
    }
    if pinned.is_none() {
        skip(TEST, "needs DTC_NVRTC_MACHINE_CODE; compared the hash alone");
    }
}
