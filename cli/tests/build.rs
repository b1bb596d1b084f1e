//! `dtc build`: what it makes is linked without dtc, moves the right bytes, and is the same every time.

mod common;

use common::{Run, dtc, emulator, write};
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_compiler::datatype::text;
use dtc_compiler::tabled::TabledLayout;
use dtc_runtime::cuda::{Device, Nvrtc, Stream};
use dtc_runtime::store::{Bundle, Config};
use dtc_runtime::{Engine, Tier};
use libloading::{Library, Symbol};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::tempdir;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ir-examples");

/// Types whose closed functions take every way: straight code, loops, tiles, lists, runs, long pieces.
const TYPES: [(&str, &str); 13] = [
    ("piece", "contiguous 1000 char"),
    ("words", "struct [2@0 int, 1@16 double]"),
    ("rows", "vector 100 3 5 double"),
    ("odd_rows", "hvector 101 7 -19 char"),
    ("long_rows", "vector 11 700 900 char"),
    ("middle_rows", "vector 13 201 220 char"),
    ("planes", "hvector 9 1 4000 (vector 12 5 9 double)"),
    ("deep", "hvector 5 1 90000 (hvector 7 1 9000 (hvector 6 1 800 (vector 3 9 11 char)))"),
    ("transpose", "hvector 45 1 8 (vector 37 1 45 double)"),
    ("offsets", "indexed_block 3 [0, 50, 7, 31, 90, 12, 200, 4, 61, 140] int"),
    ("runs", "indexed [3@0, 1@9, 70@20, 2@7, 33@200, 5@100, 9@300, 1@15, 4@330, 6@400, 11@410] double"),
    ("records", "contiguous 20 (resized 0 64 (struct [1@0 double, 1@12 int, 1@20 char]))"),
    ("behind", "resized -8 100 (hindexed_block 2 [-40, 16] int)"),
];

fn targets() -> Vec<CpuTarget> {
    CpuTarget::running_on(Engine::new().target().level)
}

fn list(targets: &[CpuTarget]) -> String {
    targets.iter().map(CpuTarget::to_string).collect::<Vec<_>>().join(",")
}

/// Writes the types above into a folder.
fn types(folder: &Path) -> Vec<(String, Pipeline)> {
    let types = folder.join("types");
    fs::create_dir(&types).expect("a folder");
    let made = TYPES.iter().map(|(name, description)| {
        write(&types, &format!("{name}.dtc"), description);
        ((*name).to_owned(), Pipeline::new(text::parse(description).expect(name)))
    });
    made.collect()
}

#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn random(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = vec![0; bytes];
    SmallRng::seed_from_u64(seed).fill_bytes(&mut random);
    random
}

type Function = unsafe extern "C" fn(*const c_void, *mut c_void, usize);
type Launch = unsafe extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void) -> i32;

/// Bytes at an address that has a given remainder by the bytes of a line.
struct Placed {
    memory: Vec<u8>,
    begin: usize,
    length: usize,
}

const LINE: usize = 128;

impl Placed {
    fn new(bytes: &[u8], remainder: usize) -> Placed {
        let mut memory = vec![0; bytes.len() + LINE];
        let begin = (LINE + remainder - memory.as_ptr() as usize % LINE) % LINE;
        memory[begin..begin + bytes.len()].copy_from_slice(bytes);
        Placed { memory, begin, length: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.length]
    }

    fn at(&mut self) -> *mut u8 {
        self.memory[self.begin..].as_mut_ptr()
    }
}

/// Compares both functions of a type with the reference walker. The elements and the packed bytes begin `odd` bytes behind lines.
fn check(name: &str, pipeline: &Pipeline, count: i64, odd: usize, call: &dyn Fn(&str, *const c_void, *mut c_void)) {
    let layout = pipeline.layout();
    let one: Vec<i64> = layout.displacements().collect();
    let bytes: Vec<i64> =
        (0..count).flat_map(|element| one.iter().map(move |at| at + element * layout.extent())).collect();
    let (first, last) = (*bytes.iter().min().expect("bytes"), *bytes.iter().max().expect("bytes"));
    let place = |at: i64| (at - first) as usize;
    let remainder = (first + odd as i64).rem_euclid(LINE as i64) as usize;
    let origin = |memory: *mut u8| memory.wrapping_offset(-first as isize).cast::<c_void>();
    let held = random((last - first) as usize + 1, 1);
    let mut memory = Placed::new(&held, remainder);
    let before = random(bytes.len() + 1, 2);
    let mut packed = Placed::new(&before, odd);
    call("pack", origin(memory.at()), packed.at().cast());
    let (found, behind) = packed.bytes().split_at(bytes.len());
    assert_eq!(behind, &before[bytes.len()..], "{name}");
    let wrong = bytes.iter().zip(found).position(|(&at, &byte)| held[place(at)] != byte);
    assert_eq!(wrong, None, "pack of {count} {name}, {odd} bytes behind a line");

    let from = random(bytes.len(), 3);
    let mut expected = held;
    bytes.iter().zip(&from).for_each(|(&at, &byte)| expected[place(at)] = byte);
    call("unpack", Placed::new(&from, odd).at().cast(), origin(memory.at()));
    assert!(expected == memory.bytes(), "unpack of {count} {name}, {odd} bytes behind a line");
}

fn linked<'a>(library: &'a Library, name: &str, suffix: &str) -> Symbol<'a, Function> {
    // SAFETY: the header declares functions of this signature.
    unsafe { library.get(format!("{name}_{suffix}").as_bytes()) }.expect(name)
}

fn check_linked(library: &Library, name: &str, pipeline: &Pipeline, count: i64, odd: usize) {
    check(name, pipeline, count, odd, &|suffix, from, to| {
        // SAFETY: both sides have room for every byte of the elements.
        unsafe { linked(library, name, suffix)(from, to, count as usize) }
    });
}

#[test]
fn functions_move_the_bytes_of_the_walker() {
    let folder = tempdir().expect("a folder");
    let types = types(folder.path());
    let targets = targets();
    dtc(folder.path(), &["build", "types", "-o", "kernels", "--target", &list(&targets)]).fine();
    for target in targets {
        let path = folder.path().join(format!("kernels/lib/{target}/libkernels.so"));
        // SAFETY: the library has no initialiser.
        let library = unsafe { Library::new(path) }.expect("a library");
        for (name, pipeline) in &types {
            check_linked(&library, name, pipeline, 1, 0);
            check_linked(&library, name, pipeline, 3, 1);
            // SAFETY: nothing is moved.
            unsafe { linked(&library, name, "pack")(std::ptr::null(), std::ptr::null_mut(), 0) };
        }
    }
}

/// Names and bytes of all files.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder).expect("inside").to_owned(), fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

#[test]
fn all_examples_are_built_the_same_every_time_and_need_the_c_library_alone() {
    let folder = tempdir().expect("a folder");
    let targets = targets();
    for name in ["one", "two"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        let output = format!("{name}/examples");
        dtc(folder.path(), &["build", EXAMPLES, "-o", &output, "--target", &list(&targets)]).fine();
    }
    let (one, two) = (files(&folder.path().join("one")), files(&folder.path().join("two")));
    assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
    let differing: Vec<_> = one.iter().filter(|(path, bytes)| two[*path] != **bytes).map(|(path, _)| path).collect();
    assert!(differing.is_empty(), "{differing:?}");
    assert!(one.values().map(Vec::len).sum::<usize>() < 20 << 20);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing else is left");

    let built = folder.path().join("one/examples");
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(built.join("manifest.json")).expect("a file")).expect("JSON");
    let described = fs::read_dir(EXAMPLES).expect("the examples").count();
    assert_eq!(manifest["types"].as_array().expect("types").len(), described);
    for target in targets {
        let archive = built.join(format!("lib/{target}/libexamples.a"));
        let undefined = succeed(Command::new("nm").arg("--undefined-only").arg("-j").arg(archive));
        for line in String::from_utf8_lossy(&undefined.stdout).lines() {
            assert!(line.is_empty() || line.ends_with(':') || line == "memcpy", "{target}: {line}");
        }
    }
    // Every function that the header declares links, as C and as C++.
    let header = fs::read_to_string(built.join("include/examples.h")).expect("a header");
    assert_eq!(header.matches("_pack(").count(), described);
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        let options = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language];
        succeed(Command::new(compiler).args(options).arg(built.join("include/examples.h")));
    }
}

#[test]
fn the_example_in_c_links_the_bundle_alone() {
    let folder = tempdir().expect("a folder");
    let target = targets()[0].to_string();
    let example = format!("{EXAMPLES}/matrix_columns.json");
    dtc(folder.path(), &["build", &example, "-o", "columns", "--target", "native"]).fine();
    // The folder may be moved.
    fs::rename(folder.path().join("columns"), folder.path().join("elsewhere")).expect("a move");
    let libraries = folder.path().join("elsewhere/lib").join(target);
    let options = |options: &[&str]| {
        let mut command = Command::new("pkg-config");
        let output = succeed(command.args(options).arg("columns").env("PKG_CONFIG_PATH", libraries.join("pkgconfig")));
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let source = Path::new(EXAMPLES).join("../interfaces/c/examples/ahead_of_time.c");
    let archive = libraries.join("libcolumns.a").display().to_string();
    for link in [options(&["--libs"]), vec![archive.clone()], vec![archive, "-static".to_owned()]] {
        let program = folder.path().join("program");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]).arg(&source).args(options(&["--cflags"]));
        succeed(compiler.args(link).arg("-o").arg(&program));
        let output = succeed(Command::new(&program).env("LD_LIBRARY_PATH", &libraries));
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("ahead_of_time: "));
    }
}

/// With NVRTC as `DTC_NVRTC` names it, which needs no GPU.
#[test]
fn kernels_for_gpus_are_built_without_one() {
    if Nvrtc::get().is_err() {
        println!("skipped: kernels_for_gpus_are_built_without_one: needs NVRTC");
        return;
    }
    let folder = tempdir().expect("a folder");
    types(folder.path());
    for name in ["one", "two"] {
        dtc(folder.path(), &["build", "types/rows.dtc", "types/piece.dtc", "-o", name, "--target", "sm_90,sm_80"])
            .fine();
    }
    let bundle = |name: &str| fs::read(folder.path().join(name).join("kernels.dtc")).expect("a bundle");
    assert!(bundle("one") == bundle("two"));
    // Two of machine code, one of PTX, and one of lists, which a piece has not; and one of both types.
    let entries = Bundle::parse(bundle("one"), dtc_runtime::REVISION).expect("a bundle").to_entries();
    assert_eq!(entries.len(), 5);
    assert_eq!(entries.values().filter(|entry| entry.starts_with(b"\x7fELF")).count(), 2);
    assert!(!folder.path().join("one/include").exists());

    // Of a type with index tables: machine code and PTX for both directions.
    write(folder.path(), "pages.dtc", "table 0 2048 512 32768 (contiguous 32768 byte)");
    dtc(folder.path(), &["build", "pages.dtc", "-o", "three", "--target", "sm_90"]).fine();
    let entries = Bundle::parse(bundle("three"), dtc_runtime::REVISION).expect("a bundle").to_entries();
    assert_eq!(entries.len(), 5);
    let manifest = fs::read_to_string(folder.path().join("three/manifest.json")).expect("a manifest");
    assert!(manifest.contains("at most 512 indices below 2048"), "{manifest}");

    // And of one that a program recorded.
    let notation = "table 0 8 4 64 (contiguous 2 double)";
    let hash = TabledLayout::new(&notation.parse().expect("a type")).hash();
    write(folder.path(), "a.recorded", format!("type {hash} {notation};\nused {hash} 3 96 1 64 64;\n"));
    dtc(folder.path(), &["build", "a.recorded", "-o", "four", "--target", "sm_90"]).fine();
    let manifest = fs::read(folder.path().join("four/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let built = &manifest["types"][0];
    assert_eq!((&built["hash"], &built["uses"]["unpacks"]), (&hash.into(), &1.into()));
}

#[test]
fn types_with_index_tables_are_built_for_gpus_alone() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "pages.dtc", "table 0 8 4 64 double");
    dtc(folder.path(), &["build", "pages.dtc", "-o", "out", "--target", "x86-64"])
        .fails(2, &["--target: expected a GPU, such as sm_90, for pages, which has index tables", "found x86-64"]);
    assert!(!folder.path().join("out").exists());
}

/// Types whose kernels are words, tiles, short and long runs, and none.
const LAUNCHED: [&str; 6] = ["rows", "odd_rows", "transpose", "runs", "behind", "piece"];

/// The process in which the driver of the emulator has the name of CUDA's.
const INSIDE: &str = "TEST_FOLDER_OF_LAUNCHED_FUNCTIONS";

/// On the emulator, whose machine code is the text of the kernels.
#[test]
fn functions_for_gpus_move_the_bytes_of_the_walker() {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return launched_functions(Path::new(&folder));
    }
    let folder = tempdir().expect("a folder");
    types(folder.path());
    let files: Vec<String> = LAUNCHED.iter().map(|name| format!("types/{name}.dtc")).collect();
    let target = format!("{},sm_80,sm_90", targets()[0]);
    let options = ["-o", "kernels", "--target", &target];
    let arguments: Vec<&str> = ["build"].into_iter().chain(files.iter().map(String::as_str)).chain(options).collect();
    emulator().run(env!("CARGO_BIN_EXE_dtc"), folder.path(), &arguments, &[]).fine();
    let header = folder.path().join("kernels/include/kernels_cuda.h");
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        let options = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language];
        succeed(Command::new(compiler).args(options).arg(&header));
    }
    std::os::unix::fs::symlink(emulator().driver(), folder.path().join("libcuda.so.1")).expect("a link");
    let this = std::env::current_exe().expect("this program");
    let here = folder.path().display().to_string();
    let arguments = ["--exact", "functions_for_gpus_move_the_bytes_of_the_walker", "--nocapture"];
    let variables = [("LD_LIBRARY_PATH", here.as_str()), (INSIDE, &here)];
    emulator().run(&this.display().to_string(), folder.path(), &arguments, &variables).fine();
}

fn launched_functions(folder: &Path) {
    let library = folder.join(format!("kernels/lib/{}-cuda/libkernels_cuda.so", std::env::consts::ARCH));
    // SAFETY: the library has no initialiser.
    let library = unsafe { Library::new(library) }.expect("a library");
    let function = |name: &str, suffix: &str| -> Symbol<'_, Launch> {
        // SAFETY: the header declares functions of this signature.
        unsafe { library.get(format!("{name}_{suffix}_cuda").as_bytes()) }.expect("a function")
    };
    let nothing = std::ptr::null_mut();
    let device = Device::get(0).expect("a device");
    let stream = Stream::new(&device).expect("a stream");
    // SAFETY: nothing is moved without a context.
    let refused = unsafe { function("rows", "pack")(nothing, nothing, 1, nothing) };
    assert_eq!(refused, 201, "there is no context");
    let _scope = device.scope().expect("a context");
    // SAFETY: no elements are moved.
    assert_eq!(unsafe { function("rows", "pack")(nothing, nothing, 0, nothing) }, 0);
    for (name, notation) in TYPES.iter().filter(|(name, _)| LAUNCHED.contains(name)) {
        let pipeline = Pipeline::new(text::parse(notation).expect(name));
        for (count, odd) in [(1, 0), (1, 1), (7, 0), (5, 8), (3, 4), (2, 3)] {
            check(name, &pipeline, count, odd, &|suffix, from, to| {
                // SAFETY: both sides have room for every byte of the elements, and the emulator is done when it returns.
                let status = unsafe { function(name, suffix)(from, to, count as usize, stream.raw()) };
                assert_eq!(status, 0, "{suffix} of {count} {name}");
            });
        }
    }
}

/// What a program recorded is built, and serves the program in place of compiling.
#[test]
fn recordings_are_built() {
    const RECORDS: &str = "contiguous 20 (resized 0 64 (struct [1@0 double, 1@12 int, 1@20 char]))";
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    write(here, "records.dtc", RECORDS);
    write(here, "rows.dtc", "vector 3 1 2 int");
    write(here, "memory", random(20 * 64, 7));
    let record = |file: &str, times: usize| {
        for _ in 0..times {
            let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
            command.args(["pack", file, "--in", "memory", "--out", "packed", "--count", "1"]);
            Run::of(command.current_dir(here).env("DTC_RECORD", here.join("records"))).fine();
        }
    };
    record("records.dtc", 2);
    record("rows.dtc", 3);
    // A process was killed in the middle of a line, before any whole one.
    write(&here.join("records"), "7-07.recorded", "\ntype 0123 vec");
    write(&here.join("records"), "more.dtc", "vector 5 1 2 int");
    let target = targets()[0].to_string();
    let run = dtc(here, &["build", "records", "-o", "built", "--target", &target]);
    assert_eq!(run.status, 0, "{run:?}");
    assert_eq!(run.err, "dtc: left out 1 line of the recordings, which is cut short\n");
    let manifest = fs::read(here.join("built/manifest.json")).expect("a file");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let types = manifest["types"].as_array().expect("types");
    let of = |notation: &str| {
        let hash = Pipeline::new(text::parse(notation).expect("a type")).hash().to_string();
        types.iter().find(|each| each["hash"] == *hash).expect(notation)
    };
    assert_eq!(types.len(), 3);
    assert_eq!(of("vector 3 1 2 int")["uses"]["packed_bytes"], 3 * 12);
    assert_eq!(of(RECORDS)["uses"]["packs"], 2);
    assert!(of("vector 5 1 2 int").get("uses").is_none());
    let name = of(RECORDS)["name"].as_str().expect("a name").to_owned();
    assert!(name.len() == 17 && name.starts_with("type_"), "{name}");
    // SAFETY: the library has no initialiser.
    let library = unsafe { Library::new(here.join(format!("built/lib/{target}/libbuilt.so"))) }.expect("a library");
    check_linked(&library, &name, &Pipeline::new(text::parse(RECORDS).expect("a type")), 3, 0);
    let engine = Engine::builder().background_thread(false).store(Config::none()).build();
    engine.load_bundle(&here.join("built")).expect("a bundle");
    let committed = engine.commit(&text::parse(RECORDS).expect("a type"));
    committed.type_hash();
    assert_eq!(committed.tier(), Tier::Specialised);
    let listed = format!("{}:{}", here.join("built").display(), here.join("records").display());
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_dtc"));
    let told = Run::of(doctor.arg("doctor").env("DTC_BUNDLES", listed)).fine();
    assert!(told.contains("built, with kernels under ") && told.contains("expected a bundle, found none"), "{told}");

    let wrong = "\ntype 00000000000000000000000000000000 int;\ntype 0a vector 3;\n";
    write(here, "wrong.recorded", wrong);
    // A wrong line hides no right one of the same hash.
    let behind = "vector 7 1 2 int";
    let hash = Pipeline::new(text::parse(behind).expect("a type")).hash();
    write(here, "other.recorded", format!("{wrong}type {hash} int;\ntype {hash} {behind};\n"));
    let both = dtc(here, &["build", "records", "other.recorded", "-o", "both", "--target", &target]);
    assert_eq!(both.status, 0, "{both:?}");
    let damaged = format!("left out recorded type {hash}: ");
    for part in ["left out recorded type 0000", "a type with this hash", "left out recorded type 0a: ", &damaged] {
        assert!(both.err.contains(part), "{part}: {}", both.err);
    }
    let count =
        |folder: &str| fs::read_to_string(here.join(folder).join("manifest.json")).unwrap().matches("\"hash\"").count();
    assert_eq!((count("both"), count("built")), (4, 3));
    let refused = dtc(here, &["build", "wrong.recorded", "-o", "out", "--target", &target]);
    refused.fails(2, &["recorded type 0000", "a type with this hash"]);
}

#[test]
fn a_build_that_is_killed_leaves_nothing() {
    let folder = tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
    command.args(["build", EXAMPLES, "-o", "out", "--target", "x86-64,x86-64-v3,x86-64-v4"]);
    let mut build = command.current_dir(folder.path()).spawn().expect("the command");
    std::thread::sleep(std::time::Duration::from_millis(30));
    build.kill().expect("a signal");
    build.wait().expect("its end");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

/// As `make` has it: twice, for this machine, with other types the second time.
#[test]
fn an_output_of_its_own_is_replaced_whole() {
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    write(here, "one.dtc", "vector 9 1 2 int");
    write(here, "other.dtc", "vector 9 1 3 int");
    let build = |types: &[&str]| dtc(here, &[&["build"], types, &["-o", "out"]].concat());
    build(&["one.dtc", "other.dtc"]).fine();
    let header = || fs::read_to_string(here.join("out/include/out.h")).expect("a header");
    assert!(header().contains("one_pack") && header().contains("other_pack"));
    let native = fs::read_dir(here.join("out/lib")).expect("a folder").count();
    build(&["other.dtc"]).fine();
    assert!(!header().contains("one_pack") && header().contains("other_pack"));
    assert_eq!((native, fs::read_dir(here.join("out/lib")).expect("a folder").count()), (1, 1));
    assert_eq!(fs::read_dir(here).expect("a folder").count(), 3, "nothing else is left");
    // What others put there is not lost.
    write(&here.join("out/include"), "mine.h", "int mine;");
    build(&["other.dtc"]).fails(3, &["out", "an output of dtc build", "include/mine.h"]);
    assert!(here.join("out/include/mine.h").exists());
}

#[test]
fn mistakes_are_named_and_leave_nothing() {
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    write(here, "row.dtc", "vector 9 1 2 int");
    write(here, "row.json", r#"{"type": {"kind": "named", "name": "MPI_INT"}}"#);
    write(here, "ROW.dtc", "vector 9 1 3 int");
    write(here, "none.dtc", "contiguous 0 int");
    write(here, "7.dtc", "int");
    fs::create_dir(here.join("empty")).expect("a folder");
    let target = targets()[0].to_string();
    let before = files(here);
    let build = |types: &[&str], output: &str, target: &str| -> Run {
        dtc(here, &[&["build"], types, &["-o", output, "--target", target]].concat())
    };
    let unknown = build(&["row.dtc"], "out", "sparc");
    assert!(unknown.status == 2 && unknown.err.contains("expected x86-64, x86-64-v3"), "{unknown:?}");
    let unknown = build(&["row.dtc"], "out", "sm_+90");
    assert!(unknown.status == 2 && unknown.err.contains("sm_ and ten times"), "{unknown:?}");
    build(&["row.dtc", "ROW.dtc"], "out", &target).fails(2, &["ROW.dtc", "a name of their own", "row, as for row.dtc"]);
    build(&["row.dtc", "row.json"], "out", &target).fails(2, &["row.json", "a name of their own", "row.dtc"]);
    build(&["none.dtc"], "out", &target).fails(2, &["none.dtc", "a type with bytes"]);
    build(&["7.dtc"], "out", &target).fails(2, &["7.dtc", "begins with a letter"]);
    build(&["empty"], "out", &target).fails(2, &["empty", "files that end in"]);
    build(&["absent.dtc"], "out", &target).fails(2, &["absent.dtc"]);
    build(&["row.dtc"], "absent/out", &target).fails(3, &["absent/out", "a folder to write"]);
    build(&["row.dtc"], "empty", &target).fails(3, &["empty", "a name for a new folder"]);
    build(&["row.dtc"], "my lib", &target).fails(2, &["-o", "my lib"]);
    for taken in ["string", "Math", "c"] {
        build(&["row.dtc"], taken, &target).fails(2, &["-o", "no header or library of the system", taken]);
    }
    let other = CpuTarget::ALL.into_iter().find(|other| other.architecture() != std::env::consts::ARCH);
    let other = other.expect("a foreign target");
    if Command::new(format!("{}-linux-gnu-gcc", other.architecture())).output().is_err() {
        build(&["row.dtc"], "out", &other.to_string()).fails(4, &["-linux-gnu-gcc", "install a C compiler"]);
    }
    assert_eq!(files(here), before);
    assert_eq!(fs::read_dir(here).expect("a folder").count(), 6, "nothing else is left");
}
