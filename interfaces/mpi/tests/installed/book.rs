//! The commands and programs of the book, with what is installed: `<!-- run: installed -->`, `<!-- run: mpi -->` and the names of other
//! runtimes in its pages.

use super::launcher::Launcher;
use super::{INSTALLED, root, skip, text};
use dtc_tests::book::{Step, expect_printed, pages, steps};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Where the pages say that dtc is installed.
const PREFIX: &str = "/opt/dtc";

/// Runtimes that pages use, a file of each that the compiler finds, and Debian's package of it.
const RUNTIMES: [(&str, &str, &str); 2] = [
    ("kokkos", "/usr/include/trilinos/Kokkos_Core.hpp", "libtrilinos-kokkos-dev"),
    ("petsc", "/usr/lib/petsc/include/petscvec.h", "libpetsc-real-dev"),
];

/// Runs the blocks of all pages for a stage, each page in a folder of its own. `programs` is searched before the folders of the system.
fn run(stage: &str, programs: &Path) -> usize {
    let mut ran = 0;
    for page in pages(root(), "docs") {
        let (folder, mut printed) = (TempDir::new().expect("a folder"), String::new());
        std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).expect("a link");
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
    assert!(ran >= 1, "expected the block of the page for C, found {ran}");
}

#[test]
fn blocks_of_the_book_run_with_other_runtimes() {
    for (runtime, header, package) in RUNTIMES {
        if Path::new(header).exists() {
            assert_eq!(run(runtime, Path::new("/nowhere")), 1, "expected a block for {runtime}");
        } else {
            skip(&format!("the blocks of the book for {runtime}"), &format!("needs {header}; install {package}"));
        }
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn blocks_of_the_book_run_under_each_mpi() {
    for launcher in Launcher::some("blocks_of_the_book_run_under_each_mpi") {
        let programs = TempDir::new().expect("a folder");
        let fortran = launcher.compiler.display().to_string().replace("mpicc", "mpif90").into();
        for (name, program) in [("mpicc", &launcher.compiler), ("mpif90", &fortran), ("mpirun", &launcher.run)] {
            // No link: MPICH's launcher searches its helpers beside the name that it was called by.
            let script = programs.path().join(name);
            std::fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", program.display())).expect("a script");
            std::fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("a script");
        }
        let ran = run("mpi", programs.path());
        assert!(ran >= 2, "expected the blocks of the page for MPI, found {ran}");
        // Those of PyPI bring no modules for the Fortran of this machine.
        if !launcher.compiler.is_relative() {
            continue;
        }
        if Command::new("gfortran").arg("--version").output().is_err() {
            skip("the blocks of the book in Fortran", "needs gfortran");
            continue;
        }
        let ran = run("fortran", programs.path());
        assert!(ran >= 1, "expected the block of the page for Fortran, found {ran}");
    }
}
