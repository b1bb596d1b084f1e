//! The book of `docs/`: builds it by mdBook, and draws its pictures from the recorded results.
//!
//! A line `<!-- view: TYPE -->` of a page becomes the page that `dtc view` writes of this type, and `<!-- view at SECTION: TYPE -->` the
//! same, scrolled to a section of it.

use crate::steps::{Outcome, read, root, run, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders whose pages and files the book has or leads to.
const SOURCES: [&str; 5] = ["docs", "bench", "examples", "interfaces", "runtime/engine/examples"];

/// Files that pages lead to, beside those of the folders.
const OTHERS: [&str; 9] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "THIRD-PARTY-NOTICES",
    "runtime/engine/src/lib.rs",
];

/// Endings of files that pages show or lead to.
const EXTENSIONS: [&str; 11] = ["md", "svg", "c", "cpp", "h", "py", "rs", "cu", "cuh", "json", "F90"];

/// Builds the book into `output`, or `target/book`.
pub fn build(output: Option<&Path>) -> Outcome {
    if Command::new("mdbook").arg("--version").output().is_err() {
        return Err("mdbook: expected a program, found none; cargo install mdbook --locked".to_owned());
    }
    let output = output.map_or_else(|| root().join("target/book"), |folder| root().join(folder));
    let staged = root().join("target/book-source");
    if staged.exists() {
        fs::remove_dir_all(&staged).map_err(|error| format!("{}: {error}", staged.display()))?;
    }
    for file in OTHERS.map(PathBuf::from).into_iter().chain(files()?) {
        copy(&file, &staged.join("src"))?;
    }
    write(&staged.join("src/SUMMARY.md"), &summary()?)?;
    for name in ["book.toml", "book.css"] {
        write(&staged.join(name), &read(&root().join("docs").join(name))?)?;
    }
    run(Command::new("mdbook").arg("build").arg("--dest-dir").arg(&output).arg(&staged))?;
    println!("The book is in {}/index.html.", output.display());
    Ok(())
}

/// The files of the sources that the book takes, from the root.
fn files() -> Outcome<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), SOURCES.map(PathBuf::from).to_vec());
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root().join(&folder)).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let name = entry.map_err(|error| format!("{}: {error}", folder.display()))?.file_name();
            let path = folder.join(&name);
            if name == "target" || name == "SUMMARY.md" {
                continue;
            }
            let known = path.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known));
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if known {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies a file of the sources below a folder. mdBook writes `README.md` as `index.html`, and links to it have to say so.
fn copy(file: &Path, to: &Path) -> Outcome {
    let target = to.join(file);
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let text = read(&root().join(file))?;
    if file.extension().is_none_or(|extension| extension != "md") {
        return write(&target, &text);
    }
    let text = text.replace("README.md)", "index.md)").replace("README.md#", "index.md#");
    write(&target, &with_views(&text, &target)?)
}

/// A page with the pages of types that it asks for, which are written beside it. Without the command there are none.
fn with_views(text: &str, page: &Path) -> Outcome<String> {
    let (mut made, mut views) = (String::new(), 0);
    for line in text.lines() {
        match (view_of(line), command()) {
            (Some((section, notation)), Some(command)) => {
                views += 1;
                let name = page.with_extension(format!("view-{views}.html"));
                run(Command::new(command).args(["view", notation, "-o"]).arg(&name))?;
                let source = name.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let place = section.map(|section| format!("#{section}")).unwrap_or_default();
                made.push_str(&format!(
                    "<iframe class=\"view\" title=\"{notation}\" src=\"{source}{place}\"></iframe>\n"
                ));
            }
            (Some((_, notation)), None) => {
                println!("{notation}: expected the command dtc in target, found none; the book has no page of it")
            }
            (None, _) => made.extend([line, "\n"]),
        }
    }
    Ok(made)
}

/// The section, if one is named, and the type of a page that a line asks for.
fn view_of(line: &str) -> Option<(Option<&str>, &str)> {
    let (place, notation) = line.strip_prefix("<!-- view")?.strip_suffix(" -->")?.split_once(": ")?;
    match place.strip_prefix(" at ") {
        None if place.is_empty() => Some((None, notation)),
        None => None,
        Some(section) => Some((Some(section), notation)),
    }
}

/// The command dtc that cargo built last.
fn command() -> Option<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target));
    let commands = ["release/dtc", "debug/dtc"].map(|name| target.join(name));
    let built = |command: &PathBuf| command.metadata().and_then(|found| found.modified()).ok();
    commands.into_iter().filter(|command| command.is_file()).max_by_key(built)
}

/// The table of contents from the root, with the recorded results and what else pages lead to.
fn summary() -> Outcome<String> {
    let mut text = read(&root().join("docs/SUMMARY.md"))?
        .replace("](../", "](/")
        .replace("](", "](docs/")
        .replace("](docs//", "](");
    text.push_str("\n# Recorded results\n\n- [Benchmarks](bench/README.md)\n");
    for file in files()?.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let name = file.display().to_string();
        if name.starts_with("docs/") || name == "bench/README.md" {
            continue;
        }
        let heading =
            read(&root().join(file))?.lines().next().unwrap_or(&name).trim_start_matches('#').trim().to_owned();
        text.push_str(&format!("  - [{}]({name})\n", heading.replace(['[', ']'], "")));
    }
    Ok(text)
}

/// Draws the pictures of the book from the recorded results.
pub fn plots() -> Outcome {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut draw = Command::new(cargo);
    draw.current_dir(root()).env("DTC_BLESS", "1").args(["test", "--quiet", "--locked", "--workspace"]);
    run(draw.args(["--test", "plots", "--test", "plot"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_found_with_their_sections() {
        assert_eq!(view_of("<!-- view: vector 2 1 4 double -->"), Some((None, "vector 2 1 4 double")));
        assert_eq!(view_of("<!-- view at gpu-section: 4 double -->"), Some((Some("gpu-section"), "4 double")));
        assert_eq!(view_of("<!-- viewed: 4 double -->"), None);
        assert_eq!(view_of("<!-- run: command -->"), None);
    }
}
