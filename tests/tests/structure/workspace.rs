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

/// What cargo says of the workspace.
pub fn metadata(arguments: &[&str]) -> Value {
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs the tests"));
    cargo.args(["metadata", "--offline", "--locked", "--format-version", "1"]).args(arguments);
    let output = cargo.current_dir(root()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

/// All members of the workspace.
pub fn packages() -> Vec<Package> {
    list(&metadata(&["--no-deps"]), "packages").iter().map(package).collect()
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

/// The members of a list that an object has by that name.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("expected {key} to be a list"))
}

/// A text that an object has by that name.
pub fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("expected {key} to be text")).to_owned()
}
