//! The libraries as they are installed: what they export, and C and C++ programs that are built against it with the system's tools.
#![expect(clippy::disallowed_types, reason = "tests that lock fork no child")]

mod book;
mod convertor;
mod device;
mod folders;
mod interposer;
mod launcher;

use dtc_compiler::datatype::Datatype;
use dtc_runtime::store::{RecordedUses, Recording};
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::mpi::{Mpi, bounds, compiler, program};
use dtc_tests::skip::{is_full, skip};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tempfile::TempDir;

/// What a program ends with that cannot run on this machine.
const SKIPPED: i32 = 77;

/// An installation, moved away from where it was made.
struct Installed {
    _folder: TempDir,
    prefix: PathBuf,
}

static INSTALLED: LazyLock<Installed> = LazyLock::new(|| install(&[]));

/// Installs the libraries as packagers do, and moves them.
fn install(more: &[&str]) -> Installed {
    let folder = TempDir::new().expect("a folder");
    let staged = folder.path().join("stage");
    let mut install = Command::new(env!("CARGO"));
    install.args(["run", "--quiet", "--locked", "--package", "xtask", "--", "install", "--prefix", "/opt/dtc"]);
    install.args(more);
    succeed(install.current_dir(root()).arg("--archive").arg(archive()).env("DESTDIR", &staged));
    let prefix = folder.path().join("elsewhere");
    std::fs::rename(staged.join("opt/dtc"), &prefix).expect("a move");
    Installed { _folder: folder, prefix }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace")
}

/// The archive that cargo made of this crate beside this test. Those under a sanitizer stand there too: only its own programs can
/// link them.
fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().expect("a folder").read_dir().expect("its files");
    let archives = folder.filter_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        let ours = name.starts_with("libdtc_mpi-") && name.ends_with(".a");
        ours.then(|| Some((path.metadata().ok()?.modified().ok()?, path.clone())))?
    });
    let mut archives: Vec<_> = archives.collect();
    archives.sort_unstable_by(|one, other| other.cmp(one));
    archives.into_iter().map(|(_, path)| path).find(|path| !sanitized(path)).expect("an archive")
}

/// Whether the objects of that archive call the address or the thread sanitizer.
fn sanitized(archive: &Path) -> bool {
    let mut search = Command::new("grep");
    let found = search.args(["--quiet", "--fixed-strings", "-e", "__asan_init", "-e", "__tsan_init"]).arg(archive);
    match found.status().expect("grep").code() {
        Some(0) => true,
        Some(1) => false,
        code => panic!("grep in {}: expected status 0 or 1, found {code:?}", archive.display()),
    }
}

#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    let files = INSTALLED.prefix.join("lib/pkgconfig");
    let output = succeed(command.env("PKG_CONFIG_PATH", files).args(arguments).arg("dtc"));
    text(&output).split_whitespace().map(str::to_owned).collect()
}

/// Builds an example against the installation as a program of that name; returns it.
fn build(name: &str, compiler: &str, standard: &str, source: &str, more: &[&str], link: &[String]) -> PathBuf {
    let program = INSTALLED.prefix.join(name);
    let mut command = Command::new(compiler);
    command.args([standard, "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    let folder = root().join("interfaces/c").join(if source.contains('/') { "" } else { "examples" });
    command.arg(folder.join(source)).args(pkg_config(&["--cflags"]));
    succeed(command.args(link).args(more));
    program
}

/// Runs a program with the installed library; names the test if it cannot run here.
fn run(name: &str, program: &Path) {
    run_with(name, &mut Command::new(program));
}

/// The same with the arguments of a command. Returns what the program said.
fn run_with(name: &str, command: &mut Command) -> String {
    let output = command.env("LD_LIBRARY_PATH", INSTALLED.prefix.join("lib")).output().expect("a program");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = text(&output);
    match output.status.code() {
        Some(0) => assert!(said.starts_with(name), "{said}"),
        Some(SKIPPED) => {
            let reason = said.trim().strip_prefix(&format!("skipped: {name}: ")).unwrap_or(said.trim()).to_owned();
            skip(&format!("the example {name}"), &reason);
        }
        _ => panic!("{name}: {}\n{error}", output.status),
    }
    said
}

fn shared(source: &str, more: &[&str]) {
    let name = source.split('.').next().expect("a name");
    let (compiler, standard) = if source.ends_with(".cpp") { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
    run(name, &build(name, compiler, standard, source, more, &pkg_config(&["--libs"])));
}

/// The names that a table of symbols lists.
fn symbols(arguments: &[&str], file: &str) -> Vec<String> {
    let output = succeed(Command::new("nm").args(arguments).arg(INSTALLED.prefix.join("lib").join(file)));
    let names = text(&output);
    let names = names.lines().filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        // The version is a symbol of its own.
        [_, "A", _] => None,
        [_, _, name] => Some(name.to_owned()),
        _ => None,
    });
    names.collect()
}

/// The functions that the header declares.
fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(INSTALLED.prefix.join("include/dtc.h")).expect("the header");
    let declarations = header.lines().filter(|line| line.starts_with(['i', 'c']) && line.contains("dtc_"));
    let mut names: Vec<String> = declarations
        .filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next().map(str::to_owned))
        .filter(|name| name.starts_with("dtc_") && !name.starts_with("dtc_initial"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_shared_library_exports_the_functions_of_the_header_alone() {
    let expected: Vec<String> = declared().iter().map(|name| format!("{name}@@DTC_0")).collect();
    assert!(expected.len() >= 25, "{expected:?}");
    let mut found = symbols(&["-D", "--defined-only"], "libdtc.so");
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn the_static_library_hides_everything_else() {
    let mut found = symbols(&["--extern-only", "--defined-only"], "libdtc.a");
    found.sort();
    assert_eq!(found, declared());
}

#[test]
fn programs_need_the_library_by_its_name_with_a_version() {
    let output = succeed(Command::new("readelf").arg("-d").arg(INSTALLED.prefix.join("lib/libdtc.so")));
    let dynamic = text(&output);
    assert!(dynamic.contains("[libdtc.so.0]") && dynamic.contains("NODELETE"), "{dynamic}");
    assert!(!dynamic.contains("TEXTREL") && !dynamic.contains("RUNPATH"), "{dynamic}");
    let link = std::fs::read_link(INSTALLED.prefix.join("lib/libdtc.so.0")).expect("a link");
    assert_eq!(link.as_os_str(), OsStr::new(concat!("libdtc.so.", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn ring() {
    shared("ring.c", &[]);
}

#[test]
fn bounce() {
    shared("bounce.c", &[]);
}

#[test]
fn paged() {
    shared("paged.c", &[]);
}

#[test]
fn copy() {
    shared("copy.c", &[]);
}

#[test]
fn column() {
    shared("column.c", &[]);
}

#[test]
fn types_and_calls_are_recorded() {
    let program = build("column-recorded", "cc", "-std=c11", "column.c", &[], &pkg_config(&["--libs"]));
    let records = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(program);
    succeed(command.env("LD_LIBRARY_PATH", INSTALLED.prefix.join("lib")).env("DTC_RECORD", records.path()));
    let mut recording = Recording::default();
    for file in std::fs::read_dir(records.path()).expect("a folder") {
        recording.add_file(&file.expect("a file").path()).expect("a recording");
    }
    let found: Vec<_> = recording.types.values().map(|each| (each.notations.clone(), each.uses)).collect();
    let uses = RecordedUses { packs: 2, packed_bytes: 880, unpacks: 1, unpacked_bytes: 800, largest: 800 };
    assert_eq!(found, [(vec!["vector 100 1 32 double".to_owned()], uses)]);
}

#[test]
fn each_constructor_has_a_function() {
    let program = build("constructors", "cc", "-std=c11", "tests/c/constructors.c", &[], &pkg_config(&["--libs"]));
    run("constructors", &program);
}

/// Allocations fail from the n-th on, and one in n.
#[test]
fn calls_without_memory_return_a_status() {
    let program = build("memory", "cc", "-std=c11", "tests/c/memory.c", &[], &pkg_config(&["--libs"]));
    run("memory", &program);
}

/// The compiler of an MPI, unless it is missing.
fn compiler_of(mpi: Mpi, test: &str) -> Option<&'static str> {
    let found = program::is_installed(mpi);
    if !found {
        skip(test, &format!("needs {}", compiler(mpi)));
    }
    found.then(|| compiler(mpi))
}

#[test]
fn datatypes_of_each_constructor_are_decoded() {
    for mpi in Mpi::ALL {
        let Some(compiler) = compiler_of(mpi, "datatypes_of_each_constructor_are_decoded") else { continue };
        let name = format!("decoder-{compiler}");
        let program = build(&name, compiler, "-std=c11", "tests/c/mpi_decoder.c", &[], &pkg_config(&["--libs"]));
        // Open MPI asks before it runs as root.
        let mut command = Command::new(program);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let output = command.env("LD_LIBRARY_PATH", INSTALLED.prefix.join("lib")).output().expect("a program");
        let said = text(&output);
        assert!(output.status.success() && said.starts_with("mpi_decoder: "), "{compiler}: {said}");
    }
}

#[test]
#[ignore = "decodes 1,500 datatypes of each MPI, 5,000 with ./test mpi full: ./test mpi"]
fn random_datatypes_are_decoded() {
    let drawn = (0..).map(|seed| random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits::SMALL));
    let types: Vec<Datatype> = drawn.filter(bounds::can_be_asked).take(if is_full() { 5_000 } else { 1_500 }).collect();
    for mpi in Mpi::ALL {
        if compiler_of(mpi, "random_datatypes_are_decoded").is_none() {
            continue;
        }
        let mut flags = pkg_config(&["--cflags", "--libs"]);
        flags.push(format!("-Wl,-rpath,{}", INSTALLED.prefix.join("lib").display()));
        let folder = TempDir::new().expect("a folder");
        let main = include_str!("../../../c/tests/c/mpi_random.c");
        let lines = program::run(mpi, &types, folder.path(), main, &flags).unwrap_or_else(|error| panic!("{error}"));
        let wrong: Vec<String> = lines
            .iter()
            .zip(&types)
            .filter(|(line, _)| *line != "same")
            .map(|(line, datatype)| format!("{line}\n{datatype}"))
            .collect();
        assert!(
            wrong.is_empty(),
            "{mpi:?}: {} of {}:\n{}",
            wrong.len(),
            types.len(),
            wrong[..wrong.len().min(5)].join("\n")
        );
    }
}

#[test]
fn gpu_stream() {
    shared("gpu_stream.c", &["-ldl"]);
}

#[test]
fn halo() {
    shared("halo.cpp", &[]);
}

#[test]
fn ucx_generic() {
    if !Path::new("/usr/include/ucp/api/ucp.h").exists() {
        skip("the example ucx_generic", "needs ucp/api/ucp.h; install libucx-dev");
        return;
    }
    shared("ucx_generic.c", &["-lucp", "-lucs"]);
}

#[test]
fn programs_may_take_the_library_in() {
    let mut link = vec![INSTALLED.prefix.join("lib/libdtc.a").display().to_string()];
    let needed = pkg_config(&["--libs", "--static"]);
    link.extend(needed.into_iter().filter(|flag| flag.starts_with("-l") && flag != "-ldtc"));
    let program = build("bounce-static", "cc", "-std=c99", "bounce.c", &[], &link);
    let dynamic = text(&succeed(Command::new("readelf").arg("-d").arg(&program)));
    assert!(!dynamic.contains("libdtc"), "{dynamic}");
    run("bounce", &program);
}

#[test]
fn programs_may_be_static() {
    let link = pkg_config(&["--libs", "--static"]);
    let program = build("column-static", "cc", "-std=c11", "column.c", &["-static"], &link);
    let sections = text(&succeed(Command::new("readelf").arg("-d").arg(&program)));
    assert!(sections.contains("no dynamic section"), "{sections}");
    run("column", &program);
}

#[test]
fn cmake_finds_the_package() {
    if Command::new("cmake").arg("--version").output().is_err() {
        skip("the CMake package", "needs cmake");
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let lists = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(dtc 0.1 REQUIRED)\n\
         add_executable(shared {0}/bounce.c)\ntarget_link_libraries(shared dtc::dtc)\n\
         add_executable(whole {0}/bounce.c)\ntarget_link_libraries(whole dtc::static)\n\
         find_package(dtc 0.2 QUIET)\nif(dtc_FOUND)\nmessage(FATAL_ERROR \"0.2 was found\")\nendif()\n",
        root().join("interfaces/c/examples").display()
    );
    std::fs::write(folder.path().join("CMakeLists.txt"), lists).expect("a file");
    let build = folder.path().join("build");
    let mut prefix = std::ffi::OsString::from("-DCMAKE_PREFIX_PATH=");
    prefix.push(&INSTALLED.prefix);
    succeed(Command::new("cmake").arg("-S").arg(folder.path()).arg("-B").arg(&build).arg(prefix));
    succeed(Command::new("cmake").arg("--build").arg(&build));
    for program in ["shared", "whole"] {
        succeed(&mut Command::new(build.join(program)));
    }
}
