//! The commands and programs of the book, with what is installed: `<!-- run: installed -->` and `<!-- run: mpi -->` in its pages.

use super::launcher::Launcher;
use super::{INSTALLED, root, text};
use dtc_tests::book::{Step, expect_printed, pages, steps};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Where the pages say that dtc is installed.
const PREFIX: &str = "/opt/dtc";

/// Runs the blocks of all pages for a stage, each page in a folder of its own. `programs` is searched before the folders of the system.
fn run(stage: &str, programs: &Path) -> usize {
    let mut ran = 0;
    for page in pages(root(), "docs") {
        let (folder, mut printed) = (TempDir::new().expect("a folder"), String::new());
        for (place, step) in steps(root(), &page, stage) {
            match step {
                Step::File(name, text) => std::fs::write(folder.path().join(name), text).expect("a file"),
                Step::Prints(expected) => expect_printed(&place, &expected, &printed),
                Step::Script(script) => {
                    ran += 1;
                    printed = printed_by(&place, &script, folder.path(), programs);
                }
            }
        }
    }
    ran
}

/// What a script prints, which must end well.
fn printed_by(place: &str, script: &str, folder: &Path, programs: &Path) -> String {
    let script = script.replace(PREFIX, &INSTALLED.prefix.display().to_string());
    let path = std::env::var("PATH").expect("PATH");
    let mut shell = Command::new("bash");
    shell.args(["-euc", &script]).current_dir(folder).env("PATH", format!("{}:{path}", programs.display()));
    // Open MPI asks before it runs as root.
    shell.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    shell.env("OMPI_MCA_mpi_yield_when_idle", "1").env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    let output = shell.output().expect("bash");
    let printed = text(&output) + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{place}: {}\n{script}\n{printed}", output.status);
    printed
}

#[test]
fn blocks_of_the_book_run_with_what_is_installed() {
    let ran = run("installed", Path::new("/nowhere"));
    assert!(ran >= 2, "expected the blocks of the page for C, found {ran}");
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn blocks_of_the_book_run_under_each_mpi() {
    for launcher in Launcher::some("blocks_of_the_book_run_under_each_mpi") {
        let programs = TempDir::new().expect("a folder");
        for (name, program) in [("mpicc", &launcher.compiler), ("mpirun", &launcher.run)] {
            // No link: MPICH's launcher searches its helpers beside the name that it was called by.
            let script = programs.path().join(name);
            std::fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", program.display())).expect("a script");
            std::fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("a script");
        }
        let ran = run("mpi", programs.path());
        assert!(ran >= 2, "expected the blocks of the page for MPI, found {ran}");
    }
}
