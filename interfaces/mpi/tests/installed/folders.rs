//! What is installed beside the libraries, and libraries in the folders that distributions have for them.

use super::{INSTALLED, Installed, install, root, succeed, text};
use dtc_tests::skip::{is_full, skip};
use std::process::Command;
use tempfile::TempDir;

/// Builds and runs an installed example by the file of pkg-config in `libraries`, as a user would.
fn builds_an_example(installed: &Installed, libraries: &str) {
    let prefix = &installed.prefix;
    let library = prefix.join(libraries);
    let mut flags = Command::new("pkg-config");
    flags.env("PKG_CONFIG_PATH", library.join("pkgconfig")).args(["--cflags", "--libs", "dtc"]);
    let flags = text(&succeed(&mut flags));
    let folder = TempDir::new().expect("a folder");
    let program = folder.path().join("column");
    let mut build = Command::new("cc");
    build.args(["-std=c11", "-D_GNU_SOURCE", "-o"]).arg(&program).arg(prefix.join("share/dtc/examples/column.c"));
    succeed(build.args(flags.split_whitespace()).arg(format!("-Wl,-rpath,{}", library.display())));
    let said = text(&succeed(&mut Command::new(&program)));
    assert!(said.starts_with("column"), "{said}");
}

#[test]
fn examples_are_built_by_what_is_installed() {
    builds_an_example(&INSTALLED, "lib");
}

#[test]
fn libraries_may_be_in_other_folders() {
    for libraries in ["lib/x86_64-linux-gnu", "lib64"].into_iter().take(if is_full() { 2 } else { 1 }) {
        let installed = install(&["--libdir", libraries]);
        assert!(!installed.prefix.join("lib/libdtc.so").exists());
        builds_an_example(&installed, libraries);
        let page = std::fs::read_to_string(installed.prefix.join("share/man/man7/libdtc_mpi.7")).expect("the page");
        let preload = format!("/opt/dtc/{}/libdtc_mpi.so", libraries.replace('-', "\\-"));
        assert!(page.contains(&preload), "{preload} in {page}");
        if Command::new("cmake").arg("--version").output().is_err() {
            skip("the CMake package in lib64", "needs cmake");
            continue;
        }
        let folder = TempDir::new().expect("a folder");
        let lists = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(dtc 0.1 REQUIRED)\n\
             add_executable(column {}/share/dtc/examples/column.c)\n\
             target_compile_definitions(column PRIVATE _GNU_SOURCE)\ntarget_link_libraries(column dtc::dtc)\n",
            installed.prefix.display()
        );
        std::fs::write(folder.path().join("CMakeLists.txt"), lists).expect("a file");
        let build = folder.path().join("build");
        let package = format!("-Ddtc_DIR={}", installed.prefix.join(libraries).join("cmake/dtc").display());
        succeed(Command::new("cmake").arg("-S").arg(folder.path()).arg("-B").arg(&build).arg(package));
        succeed(Command::new("cmake").arg("--build").arg(&build));
        succeed(&mut Command::new(build.join("column")));
    }
}

#[test]
fn the_libraries_have_no_symbols_of_debuggers() {
    for library in ["libdtc.so", "libdtc_mpi.so"] {
        let mut list = Command::new("readelf");
        list.args(["--sections", "--wide"]).arg(INSTALLED.prefix.join("lib").join(library));
        let sections = text(&succeed(&mut list));
        assert!(!sections.contains(".symtab") && !sections.contains(".debug"), "{library}: {sections}");
    }
    let mut list = Command::new("readelf");
    let sections = text(&succeed(list.args(["--sections", "--wide"]).arg(INSTALLED.prefix.join("lib/libdtc.a"))));
    assert!(sections.contains(".symtab") && !sections.contains(" .debug_"), "{sections}");
}

#[test]
fn links_of_installed_pages_lead_to_files() {
    let documents = INSTALLED.prefix.join("share/doc/dtc");
    let pages = dtc_tests::book::pages(&documents, "");
    for page in &pages {
        let text = std::fs::read_to_string(documents.join(page)).expect("a text");
        let folder = documents.join(page);
        let folder = folder.parent().expect("a folder");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or(link);
            let leads = link.contains([':', ' ']) || file.is_empty() || folder.join(file).is_file();
            assert!(leads, "{link} in {page}");
        }
    }
    assert!(pages.len() >= 20, "{pages:?}");
    assert!(documents.join("LICENSE-MIT").is_file() && documents.join("THIRD-PARTY-NOTICES").is_file());
}

#[test]
fn the_page_of_the_interposer_names_its_variables() {
    let place = INSTALLED.prefix.join("share/man/man7/libdtc_mpi.7");
    let page = std::fs::read_to_string(&place).expect("the page");
    let settings = root().join("interfaces/mpi/src/settings.rs");
    let settings = std::fs::read_to_string(settings).expect("the settings");
    let names: Vec<&str> = settings.split('"').filter(|word| word.starts_with("DTC_")).collect();
    assert!(names.len() >= 4, "{names:?}");
    for part in names.into_iter().chain([".SH ENVIRONMENT", ".SH REPORT", ".SH FILES", ".SH EXAMPLES"]) {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains('@'), "{page}");
    let Ok(rendered) = Command::new("man").args(["--warnings", "-l"]).arg(place).output() else { return };
    assert!(rendered.stderr.is_empty(), "{}", String::from_utf8_lossy(&rendered.stderr));
}
