//! Takes the examples out of the documentation of dtc-runtime and out of the book, so that they are compiled as those of this crate.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const SOURCES: &str = "../../runtime/engine/src";

/// The book. What is marked as shown is no whole example.
const BOOK: &str = "../../docs";

fn main() -> io::Result<()> {
    let mut text = String::new();
    for (folder, examples) in [(SOURCES, examples as fn(&str) -> String), (BOOK, blocks)] {
        println!("cargo::rerun-if-changed={folder}");
        let mut files = Vec::new();
        collect(Path::new(folder), &mut files)?;
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|found| found == "rs" || found == "md")) {
            let examples = examples(&fs::read_to_string(file)?);
            if !examples.trim().is_empty() {
                let name = name(folder, file);
                writeln!(text, "#[doc = r####\"{examples}\"####]\npub mod {name} {{}}")
                    .expect("a string takes every text");
            }
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

/// The module for a file: `committed/pack.rs` becomes `committed_pack`, `how-to/blocks.md` `how_to_blocks`.
fn name(folder: &str, file: &Path) -> String {
    let inside = file.strip_prefix(folder).expect("a file below the folder").with_extension("");
    inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("_").replace('-', "_")
}

/// The blocks of Rust in a page that have no mark before them. Every other line is empty.
fn blocks(page: &str) -> String {
    let (mut text, mut inside, mut before) = (String::new(), false, "");
    for line in page.lines() {
        let begins = line == "```rust" && !before.starts_with("<!--");
        if begins || inside {
            text.push_str(line);
        }
        inside = begins || (inside && line != "```");
        text.push('\n');
        before = line;
    }
    text
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
