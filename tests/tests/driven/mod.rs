//! Functions of C, compiled or linked with a driver that compares them with the reference walker.
//!
//! The driver is `tests/plain/driver.c`. What it compares is written into a file of numbers: the pieces that the walker yields, and the
//! fragments to move.
#![allow(dead_code, reason = "every test binary uses a part")]

use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cranelift::{CodegenError, CpuTarget};
use dtc_compiler::codegen::source;
use dtc_compiler::datatype::{Datatype, json};
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Plan;
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::shim::Fragment;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, thread};

/// Bytes of memory that the elements of a case span at most.
const SPAN: i128 = 16 << 20;

/// Packed bytes of a transfer that is walked.
const PACKED: u64 = 4 << 20;

/// Random types of each test.
const RANDOM: u64 = 300;

/// Types of one translation unit.
const TYPES_IN_UNIT: usize = 60;

/// What compiles a program, and what runs it.
pub struct Toolchain {
    pub compiler: &'static str,
    pub flags: &'static [&'static str],
    /// The program's emulator; empty on the machine itself.
    pub emulator: &'static [&'static str],
}

impl Toolchain {
    pub const GCC: Toolchain = Toolchain { compiler: "gcc", flags: &[], emulator: &[] };
}

/// GCC with the address and undefined behaviour sanitizers, whose buffers end where the type does.
pub const SANITIZED: Toolchain = Toolchain {
    compiler: "gcc",
    flags: &["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DGUARD=0"],
    emulator: &[],
};

/// AArch64, as Debian's packages gcc-aarch64-linux-gnu and qemu-user have it.
pub const AARCH64: Toolchain =
    Toolchain { compiler: "aarch64-linux-gnu-gcc", flags: &["-static"], emulator: &["qemu-aarch64"] };

/// A type with a name and a usual count.
pub struct Subject {
    pub name: String,
    pub pipeline: Pipeline,
    pub count: u64,
}

impl Subject {
    pub fn new(name: &str, datatype: Datatype, count: u64) -> Subject {
        Subject { name: name.to_owned(), pipeline: Pipeline::new(datatype), count }
    }

    pub fn layout(&self) -> &Layout {
        self.pipeline.lowered()
    }

    /// The most elements, up to the usual count, whose memory fits a test; 0 if one does not fit.
    pub fn fitting(&self) -> u64 {
        let layout = self.layout();
        let fits = |&count: &u64| {
            let span = i128::from(layout.true_ub()) - i128::from(layout.true_lb());
            let extents = i128::from(layout.extent()).abs() * i128::from(count - 1);
            span + extents <= SPAN && layout.size().saturating_mul(count) <= PACKED
        };
        [self.count.max(2), 3, 2, 1].into_iter().find(fits).unwrap_or(0)
    }
}

/// The examples, under their names.
pub fn examples() -> Vec<Subject> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ir-examples");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let subject = |path: &PathBuf| {
        let description = json::read(&fs::read_to_string(path).unwrap()).unwrap();
        Subject::new(&path.file_stem().unwrap().to_string_lossy(), description.datatype, description.count)
    };
    paths.iter().map(subject).collect()
}

pub fn corpus_types() -> Vec<Subject> {
    let subject = |(place, case): (usize, corpus::Case)| Subject::new(&format!("corpus {place}"), case.datatype, 3);
    corpus::all().into_iter().enumerate().map(subject).collect()
}

/// Types whose bytes may be anywhere are compiled and not run.
pub fn random_types() -> Vec<Subject> {
    let limits = [Limits::SMALL, Limits::DISJOINT, Limits::ANYWHERE];
    let draw = |seed: u64| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = random::datatype(&mut rng, &limits[(seed % 3) as usize]);
        Subject::new(&format!("random {seed}"), datatype, 3)
    };
    (0..RANDOM).map(draw).collect()
}

/// The functions of a type: `NAME_pack` and `NAME_unpack`, with the name as `source::identifier` writes it.
pub struct Functions {
    /// Defines or declares them.
    pub text: String,
    /// Whether there are `NAME_pack_fragment` and `NAME_unpack_fragment`, too.
    pub fragments: bool,
    /// The object that defines them, if the text does not.
    pub object: Option<Vec<u8>>,
}

/// Declares the two functions of an object.
pub fn declarations(name: &str) -> String {
    format!(
        "void {name}_pack(const void *, void *, __SIZE_TYPE__);\n\
         void {name}_unpack(const void *, void *, __SIZE_TYPE__);\n"
    )
}

/// Offset and length of fragments: all, the ends, the borders of elements, and others.
fn fragments(size: u64, count: u64, rng: &mut SmallRng) -> Vec<(u64, u64)> {
    let all = size * count;
    let mut fragments = vec![(0, all)];
    if size == 0 {
        return fragments;
    }
    // Few fragments of long transfers, which are compared byte by byte.
    let others = if all > 1 << 18 { 2 } else { 6 };
    fragments.extend([(0, 1), (all - 1, 1), (size.min(all - 1), 0)]);
    for _ in 0..others {
        let first = rng.random_range(0..all);
        fragments.push((first, rng.random_range(0..=all - first)));
    }
    fragments
}

/// What one program moves.
struct Unit {
    text: String,
    objects: Vec<Vec<u8>>,
    file: Vec<u8>,
}

fn unit(subjects: &[Subject], seed: u64, functions: impl Fn(&Subject) -> Functions) -> Unit {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut text, mut table, mut objects) = (String::new(), String::new(), Vec::new());
    let (mut cases, mut body) = (0u64, Vec::new());
    for (place, subject) in subjects.iter().enumerate() {
        let name = source::identifier(&subject.name);
        let Functions { text: functions, fragments: in_fragments, object } = functions(subject);
        text.push_str(&functions);
        objects.extend(object);
        let others = if in_fragments { format!("{name}_pack_fragment, {name}_unpack_fragment") } else { "0, 0".into() };
        writeln!(table, "    {{\"{name}\", {name}_pack, {name}_unpack, {others}}},").unwrap();
        let count = subject.fitting();
        let layout = subject.layout();
        for count in if count == 0 { vec![] } else { vec![1, count] } {
            let all = Fragment::new(layout, count, 0, layout.size() * count);
            let fragments = fragments(layout.size(), count, &mut rng);
            let numbers = [place as i64, count as i64, all.low, all.high - all.low, all.pieces.len() as i64];
            let pieces = all.pieces.iter().flat_map(|&(at, length)| [at, length as i64]);
            let whole = [fragments[0].0 as i64, fragments[0].1 as i64, 1];
            let parts = fragments.iter().map(|&(offset, length)| [offset as i64, length as i64, 0]);
            let moves: Vec<[i64; 3]> = [whole].into_iter().chain(parts.filter(|_| in_fragments)).collect();
            let all = numbers.into_iter().chain(pieces).chain([moves.len() as i64]).chain(moves.into_iter().flatten());
            body.extend(all.flat_map(i64::to_le_bytes));
            cases += 1;
        }
    }
    text.push_str(
        "\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\nstruct functions {\n    const char *name;\n    \
         void (*pack)(const void *restrict, void *restrict, size_t);\n    \
         void (*unpack)(const void *restrict, void *restrict, size_t);\n    \
         void (*pack_fragment)(const void *restrict, void *restrict, size_t, size_t);\n    \
         void (*unpack_fragment)(const void *restrict, void *restrict, size_t, size_t);\n};\n\n",
    );
    write!(text, "static const struct functions types[] = {{\n{table}}};\n\n").unwrap();
    text.push_str(include_str!("../../plain/driver.c"));
    let mut file = cases.to_le_bytes().to_vec();
    file.append(&mut body);
    Unit { text, objects, file }
}

/// Compiles and runs a unit. Returns what it says.
fn compiled_and_run(unit: &Unit, folder: &Path, toolchain: &Toolchain) -> String {
    let Toolchain { compiler, flags, emulator } = toolchain;
    let (source, program, cases) = (folder.join("unit.c"), folder.join("unit"), folder.join("cases"));
    fs::write(&source, &unit.text).unwrap();
    fs::write(&cases, &unit.file).unwrap();
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"]).args(*flags).arg(&source).arg("-o").arg(&program);
    for (at, object) in unit.objects.iter().enumerate() {
        let path = folder.join(format!("{at}.o"));
        fs::write(&path, object).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}\n{}", said.lines().take(40).collect::<Vec<_>>().join("\n"));
    let words: Vec<_> = emulator.iter().map(Path::new).chain([&*program, &*cases]).collect();
    let output = Command::new(words[0]).args(&words[1..]).env("ASAN_OPTIONS", "detect_leaks=0").output();
    let output = output.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {flags:?}: {}", said.lines().take(40).collect::<Vec<_>>().join("\n"));
    said
}

/// Compiles the functions of all types, and compares what they move with what the walker yields.
pub fn expect(toolchain: &Toolchain, subjects: &[Subject], functions: impl Fn(&Subject) -> Functions) {
    let chunks = subjects.chunks(TYPES_IN_UNIT).enumerate();
    let units: Vec<Unit> = chunks.map(|(seed, chunk)| unit(chunk, seed as u64, &functions)).collect();
    // A compiler is a process of one thread.
    let workers = thread::available_parallelism().map_or(1, usize::from);
    for group in units.chunks(workers) {
        thread::scope(|scope| {
            for unit in group {
                scope.spawn(move || {
                    let folder = tempfile::tempdir().unwrap();
                    print!("{}", compiled_and_run(unit, folder.path(), toolchain));
                });
            }
        });
    }
    let run = subjects.iter().filter(|subject| subject.fitting() > 0).count();
    println!("{} types, {run} of them run", subjects.len());
    assert!(run * 2 > subjects.len(), "{run}");
}

/// What compiles the closed functions of a plan, which get a name.
pub type Compile = fn(CpuTarget, &str, &Plan) -> Result<Vec<u8>, CodegenError>;

/// Links and runs the objects of all types that have one: examples, corpus and random types.
pub fn expect_objects(toolchain: &Toolchain, target: CpuTarget, compile: Compile) {
    println!("{target}");
    let mut subjects = examples();
    subjects.extend(corpus_types());
    subjects.extend(random_types());
    let allowed = |subject: &Subject| subject.layout().size() > 0 && subject.pipeline.plan().decision().allows();
    subjects.retain(allowed);
    expect(toolchain, &subjects, |subject| {
        let name = source::identifier(&subject.name);
        let object = compile(target, &name, subject.pipeline.plan()).unwrap_or_else(|error| panic!("{name}: {error}"));
        Functions { text: declarations(&name), fragments: false, object: Some(object) }
    });
}
