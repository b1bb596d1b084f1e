//! The crates of the workspace, as cargo tells of them.

use super::root;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A crate of dtc.
pub struct Package {
    pub name: String,
    /// Crates of dtc that it is built with, in the order of their names; not those of its tests and build scripts.
    pub dependencies: Vec<String>,
    /// Root files of its libraries, programs, tests and examples.
    pub roots: Vec<PathBuf>,
}

/// All members of the workspace.
pub fn packages() -> Vec<Package> {
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs the tests"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    list(&metadata, "packages").iter().map(package).collect()
}

fn package(metadata: &Value) -> Package {
    // A dependency with a path is one of ours; one without a kind is neither of tests nor of a build script.
    let dependencies = list(metadata, "dependencies").iter();
    let ours = dependencies.filter(|dependency| !dependency["path"].is_null() && dependency["kind"].is_null());
    let mut dependencies: Vec<String> = ours.map(|dependency| text(dependency, "name")).collect();
    dependencies.sort();
    Package {
        name: text(metadata, "name"),
        dependencies,
        roots: list(metadata, "targets").iter().map(|target| text(target, "src_path").into()).collect(),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("expected {key} to be a list"))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("expected {key} to be text")).to_owned()
}
