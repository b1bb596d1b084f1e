//! The command as it is installed, under its own name and under another.

mod common;

use common::dtc;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::{TempDir, tempdir};

/// Installs the command below a folder; returns the prefix.
fn installed(folder: &TempDir, more: &[&str]) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut install = Command::new(env!("CARGO"));
    install.args(["run", "--quiet", "--locked", "--package", "xtask", "--", "install", "--prefix", "/usr"]);
    install.args(more).arg("--command").arg(env!("CARGO_BIN_EXE_dtc"));
    let output = install.current_dir(workspace).env("DESTDIR", folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    folder.path().join("usr")
}

fn text(prefix: &Path, path: &str) -> String {
    std::fs::read_to_string(prefix.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn the_command_is_installed_with_its_pages() {
    let folder = tempdir().expect("a folder");
    let prefix = installed(&folder, &[]);
    for (path, part) in [
        ("share/man/man1/dtc.1", "dtc\\-pack(1)"),
        ("share/man/man1/dtc-pack.1", "\\-\\-origin"),
        ("share/man/man1/dtc-cache-verify.1", "exits 3"),
        ("share/bash-completion/completions/dtc", "--backend"),
        ("share/zsh/site-functions/_dtc", "#compdef dtc"),
        ("share/fish/vendor_completions.d/dtc.fish", "complete -c dtc"),
        ("share/dtc/type-description.schema.json", "$id"),
        ("share/dtc/ir-examples/matrix_columns.json", "\"type\""),
    ] {
        let text = text(&prefix, path);
        assert!(text.contains(part), "{part} in {path}: {text}");
    }
    let script = prefix.join("share/bash-completion/completions/dtc");
    assert!(Command::new("bash").arg("-n").arg(script).status().expect("bash").success());
    dtc(folder.path(), &["man", "--folder", "absent"]).fails(2, &["absent/dtc.1", "a file to write"]);
}

#[test]
fn the_installed_command_has_no_symbols_and_finds_the_examples() {
    let folder = tempdir().expect("a folder");
    let prefix = installed(&folder, &[]);
    let program = prefix.join("bin/dtc");
    let sections = Command::new("readelf").args(["--sections", "--wide"]).arg(&program).output().expect("readelf");
    assert!(!said(&sections).contains(".symtab") && !said(&sections).contains(".debug"), "{}", said(&sections));
    let demo = Command::new(&program).args(["demo", "--backend", "cpu"]).current_dir(folder.path()).output();
    let demo = said(&demo.expect("the command")).split_whitespace().collect::<String>();
    assert!(demo.contains("moretypes:") && demo.ends_with("usr/share/dtc/ir-examples"), "{demo}");
    let arguments = ["bench", "--only", "maxloc", "--rounds", "1", "--min-time", "1"];
    let output = Command::new(program).args(arguments).current_dir(folder.path()).output().expect("the command");
    assert!(output.status.success() && said(&output).contains("maxloc_column"), "{}", said(&output));
}

#[test]
fn each_page_has_the_sections_that_users_look_for() {
    let folder = tempdir().expect("a folder");
    let pages = files(&installed(&folder, &[]).join("share/man/man1"));
    assert!(pages.len() >= 18, "{pages:?}");
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH \"EXIT STATUS\"", ".SH EXAMPLES"] {
            assert!(text.contains(section), "{section} in {}", page.display());
        }
        let bare = ["dtc-man.1", "dtc-completions.1"].iter().any(|name| page.ends_with(name));
        assert!(bare || text.contains(".SH \"ENVIRONMENT\""), "{}", page.display());
        assert!(page.ends_with("dtc-lower.1") || text.contains(".SH \"FILES\""), "{}", page.display());
        let Ok(rendered) = Command::new("man").args(["--warnings", "-l"]).arg(&page).output() else { continue };
        let warnings = String::from_utf8_lossy(&rendered.stderr);
        assert!(rendered.status.success() && warnings.is_empty(), "{}: {warnings}", page.display());
    }
}

#[test]
fn another_name_is_that_of_all_texts() {
    let folder = tempdir().expect("a folder");
    let prefix = installed(&folder, &["--program-name", "dtc-types"]);
    let program = prefix.join("bin/dtc-types");
    let run = |arguments: &[&str]| said(&Command::new(&program).args(arguments).output().expect("the command"));
    assert!(run(&["pack", "--help"]).contains("Usage: dtc-types pack"));
    assert!(run(&["help", "cache"]).contains("dtc-types cache"));
    assert!(run(&["explain", "absent.json"]).starts_with("dtc-types: absent.json: "));
    assert!(run(&["--version"]).starts_with("dtc-types "));
    let occupied = folder.path().join("occupied");
    std::fs::create_dir(&occupied).expect("a folder");
    std::fs::write(occupied.join("file"), "kept").expect("a file");
    let refused = run(&["build", "vector 12 1 14 double", "-o", &occupied.display().to_string()]);
    assert!(refused.contains("an output of dtc-types build"), "{refused}");

    let names = ["man1/dtc-types.1", "man1/dtc-types-cache-verify.1"].map(|page| format!("share/man/{page}"));
    for page in names {
        let text = text(&prefix, &page).replace("\\-", "-");
        assert!(text.contains(".SH EXAMPLES") && text.contains("dtc-types"), "{text}");
    }
    let commands = ["bench", "build", "cache", "demo", "doctor", "emit", "explain", "man", "pack"];
    for file in files(&prefix.join("share")) {
        if file.extension().is_some_and(|extension| extension == "json") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap().replace("\\-", "-");
        for command in commands {
            // dtc packs, too.
            let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
            let old = [" ", "`", "\n"].map(|before| format!("{before}dtc {command}"));
            let called = old.iter().any(|old| text.split(old.as_str()).skip(1).any(ends));
            assert!(!called, "dtc {command} in {}", file.display());
        }
    }

    // As a shell completes: the word before the last is the program.
    let complete = format!(
        "source {}; COMP_WORDS=(dtc-types de); COMP_CWORD=1; _dtc__types dtc-types de dtc-types; echo \"${{COMPREPLY[@]}}\"",
        prefix.join("share/bash-completion/completions/dtc-types").display()
    );
    let output = Command::new("bash").args(["-c", &complete]).output().expect("bash");
    assert_eq!(said(&output).trim(), "demo");
}

#[test]
fn a_link_gives_another_name() {
    let folder = tempdir().expect("a folder");
    let link = folder.path().join("types");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dtc"), &link).expect("a link");
    let output = Command::new(&link).args(["explain", "absent.json"]).output().expect("the command");
    assert!(said(&output).starts_with("types: absent.json: "), "{}", said(&output));
}
