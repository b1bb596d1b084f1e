//! The commands of the book: `<!-- run: command -->` in its pages.

#[path = "../../tests/src/book.rs"]
mod book;

use book::{Step, expect_printed, pages, steps};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// What a script prints, which must end well.
fn printed_by(place: &str, script: &str, folder: &Path) -> String {
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_dtc"));
    let programs = programs.parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").expect("PATH");
    let mut shell = Command::new("bash");
    shell.args(["-euc", script]).current_dir(folder).env("PATH", format!("{programs}:{path}"));
    let output = shell.output().expect("bash");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{place}: {}\n{script}\n{printed}", output.status);
    printed
}

#[test]
fn blocks_of_the_book_run() {
    let mut ran = 0;
    for page in pages(root(), "docs") {
        let (folder, mut printed) = (tempfile::tempdir().expect("a folder"), String::new());
        std::os::unix::fs::symlink(root().join("ir-examples"), folder.path().join("ir-examples")).expect("a link");
        for (place, step) in steps(root(), &page, "command") {
            match step {
                Step::File(name, text) => std::fs::write(folder.path().join(name), text).expect("a file"),
                Step::Prints(expected) => expect_printed(&place, &expected, &printed),
                Step::Script(script) => {
                    ran += 1;
                    printed = printed_by(&place, &script, folder.path());
                }
            }
        }
    }
    assert!(ran >= 10, "expected the commands of the book, found {ran}");
}
