//! Takes the examples out of the documentation of dtc-runtime, so that they are compiled as those of this crate.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const SOURCES: &str = "../../runtime/engine/src";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={SOURCES}");
    let mut files = Vec::new();
    collect(Path::new(SOURCES), &mut files)?;
    files.sort();
    let mut text = String::new();
    for file in &files {
        let examples = examples(&fs::read_to_string(file)?);
        if !examples.trim().is_empty() {
            let name = name(file);
            writeln!(text, "#[doc = r####\"{examples}\"####]\npub mod {name} {{}}").expect("a string takes every text");
        }
    }
    fs::write(Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("examples.rs"), text)
}

/// The files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The module for a file: `committed/pack.rs` becomes `committed_pack`.
fn name(file: &Path) -> String {
    let inside = file.strip_prefix(SOURCES).expect("a file below the sources").with_extension("");
    inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("_")
}

/// The code blocks in the documentation of a file. Every other line is empty, so that an example keeps its distance from the first.
fn examples(source: &str) -> String {
    let (mut text, mut inside) = (String::new(), false);
    for line in source.lines() {
        let line = line.trim_start();
        let documentation = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let Some(documentation) = documentation {
            let documentation = documentation.strip_prefix(' ').unwrap_or(documentation);
            let is_fence = documentation.starts_with("```");
            if inside || is_fence {
                text.push_str(documentation);
            }
            inside ^= is_fence;
        }
        text.push('\n');
    }
    text
}
