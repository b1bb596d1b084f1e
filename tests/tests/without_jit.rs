//! dtc-runtime without its feature `jit`: Cranelift is not built, and the generic tier and the kernels of bundles move the bytes.

use dtc_runtime::codegen::cranelift::CpuTarget;
use dtc_runtime::{BundleWriter, Engine, Pipeline};
use std::path::Path;
use std::process::Command;

/// A type that gains by a kernel.
const TYPE: &str = "contiguous 20 (resized 0 64 (struct [1@0 double, 1@12 int, 1@20 char]))";

/// Runs cargo on dtc-runtime without default features, and returns what it printed.
fn cargo(subcommand: &str, arguments: &[&str]) -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs the tests"));
    cargo.args([subcommand, "--offline", "--quiet", "-p", "dtc-runtime", "--no-default-features"]).args(arguments);
    let output = cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn cranelift_is_not_built() {
    let crates = cargo("tree", &["--edges", "normal,build", "--prefix", "none"]);
    let found: Vec<&str> = crates.lines().filter(|line| line.contains("cranelift")).collect();
    assert!(crates.contains("dtc-compiler") && found.is_empty(), "{found:?}");
    let with = cargo("tree", &["--features", "jit", "--prefix", "none"]);
    assert!(with.contains("cranelift-codegen"), "{with}");
}

#[test]
fn the_generic_tier_and_bundles_move_the_bytes() {
    let mut writer = BundleWriter::default();
    for target in CpuTarget::running_on(Engine::new().target().level) {
        assert!(writer.add_cpu(&Pipeline::new(TYPE.parse().expect(TYPE)), target).expect("a kernel"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("kernels.dtc");
    std::fs::write(&bundle, writer.finish()).expect("a bundle");
    let run = |arguments: &[&str]| cargo("run", &[&["--example", "bundled", "--"], arguments].concat());
    assert_eq!(run(&[TYPE]), "generic: 260 bytes\n");
    assert_eq!(run(&[TYPE, bundle.to_str().expect("a path")]), "specialised: 260 bytes\n");
    assert_eq!(run(&["vector 100 3 5 double"]), "generic: 2400 bytes\n");
}
