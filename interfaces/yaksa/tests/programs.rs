//! C programs against the header and the library: what MPICH does, and what it must not.

use dtc_runtime::store::{RecordedUses, Recording};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that cargo has built beside the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("libyaksa.so")).find(|library| library.is_file());
    found.expect("cargo builds the library before its tests")
}

/// A folder with the library under the name that programs look for.
fn prefix() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libyaksa.so", "libyaksa.so.0"] {
        std::os::unix::fs::symlink(library(), folder.path().join(name)).unwrap();
    }
    folder
}

fn compile(compiler: &str, flags: &[&str], source: &Path, prefix: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = prefix.join(source.file_stem().unwrap());
    let mut command = Command::new(compiler);
    command.args(flags).args(["-Wall", "-Wextra", "-Werror", "-O1", "-pthread"]);
    command.arg("-I").arg(here.join("include")).arg("-o").arg(&program).arg(source);
    command.arg("-L").arg(prefix).args(["-lyaksa", "-Wl,-rpath"]).arg(prefix);
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(name: &str, argument: &str) -> String {
    let prefix = prefix();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name);
    let program = compile("cc", &["-std=gnu11"], &source, prefix.path());
    let output = Command::new(program).arg(argument).output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{text}{errors}", output.status);
    assert_eq!(errors, "", "{name}");
    text.into_owned()
}

#[test]
fn types_have_the_sizes_and_bounds_of_mpich() {
    assert_eq!(run("types.c", ""), "");
}

#[test]
fn packs_agree_with_vectors_whole_and_in_pieces() {
    assert_eq!(run("pack.c", ""), "");
}

#[test]
fn operations_combine_what_arrives() {
    assert_eq!(run("operations.c", ""), "");
}

/// Types that are used without a commit, by a program that ends without finalising.
#[test]
fn types_and_calls_are_recorded() {
    let folder = prefix();
    let source = folder.path().join("recorded.c");
    let text = "#include <yaksa.h>
        static char memory[4096], packed[4096];
        int main(void) {
            yaksa_type_t rows;
            uintptr_t moved;
            yaksa_init(0);
            yaksa_type_create_vector(3, 1, 2, YAKSA_TYPE__INT, 0, &rows);
            for (int call = 0; call < 5; call++) {
                yaksa_pack(memory, 1, rows, 0, packed, sizeof packed, &moved, 0, YAKSA_OP__REPLACE);
                yaksa_unpack(packed, 8, memory, 1, rows, 4, &moved, 0, YAKSA_OP__REPLACE);
            }
            return moved != 8;
        }";
    std::fs::write(&source, text).unwrap();
    let program = compile("cc", &["-std=gnu11"], &source, folder.path());
    let records = folder.path().join("records");
    assert!(Command::new(program).env("DTC_RECORD", &records).status().unwrap().success());
    let mut recording = Recording::default();
    std::fs::read_dir(records).unwrap().for_each(|file| recording.add_file(&file.unwrap().path()).unwrap());
    let expected = RecordedUses { packs: 5, packed_bytes: 60, unpacks: 5, unpacked_bytes: 40, largest: 12 };
    let found: Vec<_> = recording.types.values().map(|recorded| recorded.uses).collect();
    assert_eq!(found, [expected]);
}

#[test]
fn vectors_and_flattened_types() {
    assert_eq!(run("vectors.c", ""), "");
}

#[test]
fn threads_share_types() {
    assert_eq!(run("threads.c", "2"), "");
}

#[test]
fn forked_children_wait_for_nothing() {
    assert_eq!(run("process.c", "forks"), "");
}

#[test]
fn calls_run_on_a_small_stack() {
    assert_eq!(run("process.c", "stack"), "");
}

#[test]
fn ten_million_types_come_and_go() {
    let nanoseconds: f64 = run("churn.c", "10000000").trim().parse().unwrap();
    println!("{nanoseconds} ns to create and free a type");
}

/// Allocations fail from the n-th on, and one in n.
#[test]
fn calls_without_memory_return_a_status() {
    assert_eq!(run("memory.c", ""), "");
}

#[test]
fn the_header_is_for_c_plus_plus_too() {
    let prefix = prefix();
    let source = prefix.path().join("header.cpp");
    std::fs::write(&source, "#include <yaksa.h>\nint main() { return yaksa_init(nullptr) + yaksa_finalize(); }\n")
        .unwrap();
    let program = compile("c++", &["-std=c++17"], &source, prefix.path());
    assert!(Command::new(program).status().unwrap().success());
}

#[test]
fn programs_find_the_installed_library() {
    let folder = tempfile::tempdir().unwrap();
    let install = |prefix: &str| {
        let mut install = Command::new(env!("CARGO"));
        install.args(["run", "--quiet", "--locked", "--package", "xtask", "--", "install-yaksa", "--prefix", prefix]);
        install.arg("--library").arg(library()).env("DESTDIR", folder.path().join("stage"));
        install.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()).output().unwrap()
    };
    let refused = install("opt");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("expected an absolute path, found opt"), "{errors}");
    // The second time replaces what the first one installed.
    let mut installed = PathBuf::new();
    for _ in 0..2 {
        let output = install("/opt");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        installed = String::from_utf8(output.stdout).unwrap().trim_end().into();
    }
    assert_eq!(installed, folder.path().join("stage/opt/lib/dtc/yaksa"));
    // What is installed may be moved.
    let moved = folder.path().join("elsewhere");
    std::fs::rename(&installed, &moved).unwrap();
    let files = moved.join("lib/pkgconfig");
    let flags = Command::new("pkg-config").env("PKG_CONFIG_PATH", files).args(["--cflags", "--libs", "yaksa"]).output();
    let flags = String::from_utf8(flags.unwrap().stdout).unwrap();
    let program = folder.path().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/types.c");
    let mut compiler = Command::new("cc");
    compiler.arg("-std=gnu11").arg("-o").arg(&program).arg(source).args(flags.split_whitespace());
    assert!(compiler.status().unwrap().success(), "{flags}");
    let ran = Command::new(program).env("LD_LIBRARY_PATH", moved.join("lib")).status().unwrap();
    assert!(ran.success());
}

#[test]
fn the_library_exports_the_interface_alone() {
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/yaksa.h")).unwrap();
    let declared = header.split("int yaksa_").skip(1).filter_map(|rest| rest.split_once('(')).map(|(name, _)| name);
    let mut declared: Vec<String> = declared.map(|name| format!("yaksa_{name}")).collect();
    declared.sort();
    let output = Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library()).output().unwrap();
    let exported = String::from_utf8(output.stdout).unwrap();
    let mut exported: Vec<&str> = exported.lines().filter_map(|line| line.split(' ').next()).collect();
    exported.sort();
    assert_eq!(exported, declared);
    assert_eq!(exported.len(), 34);
    let output = Command::new("readelf").arg("-d").arg(library()).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("[libyaksa.so.0]"));
}
