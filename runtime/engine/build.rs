//! Names the revision of dtc: bundles hold code for what plans, kernels and microkernels are in one revision, and in a checkout these
//! change while the version stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What the code of a bundle depends on, beside the version.
const SOURCES: [&str; 5] = ["src", "../../compiler/src", "../../templates", "../cuda/src", "../microkernels/src"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files)?;
    }
    files.sort();
    let mut digest = blake3::Hasher::new();
    for file in &files {
        digest.update(file.as_os_str().as_encoded_bytes()).update(&fs::read(file)?);
    }
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=DTC_REVISION={version}+{}", &digest.finalize().to_hex()[..12]);
    Ok(())
}

/// The files below a folder. A crate that was published has no other crates beside it: its version says what they are.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
