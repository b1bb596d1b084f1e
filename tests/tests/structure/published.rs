//! The crates that are published: what each says of itself, what it depends on, and that its package has all files that it is built of.

use super::includes::normal;
use super::root;
use super::workspace::{list, metadata, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a crate may be published.
fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

/// The folder of a crate.
fn folder(package: &Value) -> PathBuf {
    let manifest = PathBuf::from(text(package, "manifest_path"));
    manifest.parent().expect("a folder").to_owned()
}

fn manifest(package: &Value) -> String {
    fs::read_to_string(text(package, "manifest_path")).expect("a manifest")
}

#[test]
fn crates_say_what_they_are_or_why_they_stay() {
    let packages = metadata(&["--no-deps"]);
    for package in list(&packages, "packages") {
        let name = text(package, "name");
        for member in ["description", "license", "rust_version"] {
            assert!(package[member].is_string(), "{name}: expected {member} in its manifest");
        }
        if is_published(package) {
            assert_eq!(package["readme"], "README.md", "{name}: expected a README.md in its folder");
            for member in ["keywords", "categories"] {
                assert!((1..=5).contains(&list(package, member).len()), "{name}: expected 1 to 5 {member}");
            }
            for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
                assert!(folder(package).join(licence).is_file(), "{name}: expected {licence} in its folder");
            }
            let is_library =
                list(package, "targets").iter().any(|target| target["doc"] == true && target["kind"][0] != "bin");
            let says = !package["metadata"]["docs"]["rs"]["targets"].is_null();
            assert!(says || !is_library, "{name}: expected settings for its documentation");
        } else {
            let manifest = manifest(package);
            let before = manifest.lines().take_while(|line| *line != "publish = false").last().unwrap_or_default();
            assert!(before.starts_with("# "), "{name}: expected the reason above publish = false, found {before:?}");
        }
    }
}

#[test]
fn published_crates_are_built_of_published_crates() {
    let packages = metadata(&["--no-deps"]);
    let packages = list(&packages, "packages");
    let named = |name: &str| packages.iter().find(|package| text(package, "name") == name);
    for package in packages.iter().filter(|package| is_published(package)) {
        for dependency in list(package, "dependencies").iter().filter(|dependency| !dependency["path"].is_null()) {
            let (name, needed) = (text(package, "name"), text(dependency, "name"));
            let published = named(&needed).is_some_and(is_published);
            let of_tests = dependency["kind"] == "dev";
            assert!(published || of_tests, "{name}: expected dependencies that are published, found {needed}");
            // Cargo leaves out of a package what tests need by its folder alone; with a version, it would look for it in the registry.
            let versioned = text(dependency, "req") != "*";
            assert_eq!(
                published, versioned,
                "{name}: {needed}: expected a version where it is published, and none elsewhere"
            );
        }
    }
}

#[test]
fn packages_have_the_files_that_their_sources_include() {
    let packages = metadata(&["--no-deps"]);
    for package in list(&packages, "packages").iter().filter(|package| is_published(package)) {
        let folder = folder(package);
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let written = fs::read_to_string(&file).expect("a source");
            for included in included(&written) {
                let path = normal(&file.parent().expect("a folder").join(included));
                assert!(
                    path.starts_with(&folder),
                    "{}: expected a file below {}, found {included}",
                    file.display(),
                    folder.display()
                );
            }
        }
    }
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        match path.extension().and_then(OsStr::to_str) {
            _ if path.is_dir() => sources(&path, files),
            Some("rs") => files.push(path),
            _ => {}
        }
    }
}

/// Paths that a source includes, but those of its tests, which are last.
fn included(source: &str) -> impl Iterator<Item = &str> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let openings = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];
    openings.into_iter().flat_map(move |opening| {
        let parts = source.split(opening).skip(1);
        parts.filter_map(|rest| rest.split('"').next())
    })
}

#[test]
fn includes_are_found() {
    let source = "#[path = \"a/b.rs\"]\nmod b;\nconst C: &str = include_str!(\"../c.txt\");\n\
                  #[cfg(test)]\nmod tests {\n    const D: &[u8] = include_bytes!(\"../../d\");\n}\n";
    assert_eq!(included(source).collect::<Vec<_>>(), ["../c.txt", "a/b.rs"]);
    assert_eq!(normal(Path::new("/x/src/../../y")), Path::new("/y"));
}

#[test]
fn crates_are_packaged() {
    let packages = metadata(&["--no-deps"]);
    let target = tempfile::tempdir().expect("a folder");
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs the tests"));
    cargo.args(["package", "--no-verify", "--allow-dirty", "--offline", "--locked", "--quiet"]);
    let published = || list(&packages, "packages").iter().filter(|package| is_published(package));
    for package in published() {
        cargo.args(["--package", &text(package, "name")]);
    }
    let output = cargo.current_dir(root()).env("CARGO_TARGET_DIR", target.path()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for package in published() {
        let file = format!("package/{}-{}.crate", text(package, "name"), text(package, "version"));
        assert!(target.path().join(&file).is_file(), "expected {file}");
    }
}

/// `cargo xtask notices` lists what is in the command, and says that the libraries have some of it.
#[test]
fn the_command_is_built_of_all_that_the_libraries_are() {
    let others = |name: &str| -> BTreeSet<String> {
        let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs the tests"));
        cargo.args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--target", "all"]);
        let output = cargo.args(["--package", name]).current_dir(root()).output().expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let crates = listed.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        crates.filter(|line| !line.is_empty() && !line.starts_with("dtc-")).collect()
    };
    let command = others("dtc-cli");
    for library in ["dtc-capi", "dtc-mpi", "dtc-yaksa"] {
        let missing: Vec<String> = others(library).difference(&command).cloned().collect();
        assert!(missing.is_empty(), "THIRD-PARTY-NOTICES: expected {missing:?} of {library}, too");
    }
}

/// Clippy's lint `incompatible_msrv` sees what the sources use of the standard library; this, what the dependencies say.
#[test]
fn no_dependency_needs_a_newer_compiler_than_the_manifests_say() {
    // 1.95 is 1.95.0.
    let version = |text: &str| {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().expect("a number"));
        [(); 3].map(|()| parts.next().unwrap_or(0))
    };
    let all = metadata(&[]);
    let (ours, others): (Vec<_>, Vec<_>) =
        list(&all, "packages").iter().partition(|package| package["source"].is_null());
    let stated = text(ours[0], "rust_version");
    for package in ours {
        assert_eq!(text(package, "rust_version"), stated, "{}", text(package, "name"));
    }
    for package in others.iter().filter(|package| package["rust_version"].is_string()) {
        let needed = text(package, "rust_version");
        let name = text(package, "name");
        assert!(version(&needed) <= version(&stated), "{name}: expected at most Rust {stated}, found {needed}");
    }
    for page in ["cli/README.md", "interfaces/python/README.md"] {
        let page_text = fs::read_to_string(root().join(page)).expect("a page");
        assert!(page_text.contains(&format!("Rust {stated}")), "{page}: expected Rust {stated}");
    }
}
