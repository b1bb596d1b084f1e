//! Plain sources, compiled and run beside the reference walker.
//!
//! The C of all examples, of the corpus and of random types is compiled by gcc, and by clang where it is installed, without a warning.
//! Whole transfers and fragments move between buffers of any alignment with poison around, and once more under the sanitizers. The CUDA
//! headers are compiled by NVRTC, and run in the shim.

mod texts;

use dtc_compiler::Pipeline;
use dtc_compiler::codegen::source::{self, TooLarge};
use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder, json, text};
use dtc_compiler::layout::Layout;
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::nvrtc::compile_all;
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use dtc_tests::skip::skip;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write;
use std::path::Path;
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

/// A type with a name and a usual count.
struct Subject {
    name: String,
    pipeline: Pipeline,
    count: u64,
}

impl Subject {
    fn new(name: &str, datatype: Datatype, count: u64) -> Subject {
        Subject { name: name.to_owned(), pipeline: Pipeline::new(datatype), count }
    }

    fn layout(&self) -> &Layout {
        self.pipeline.lowered()
    }

    /// The most elements, up to the usual count, whose memory fits a test; 0 if one does not fit.
    fn fitting(&self) -> u64 {
        let layout = self.layout();
        let fits = |&count: &u64| {
            let span = i128::from(layout.true_ub()) - i128::from(layout.true_lb());
            let extents = i128::from(layout.extent()).abs() * i128::from(count - 1);
            span + extents <= SPAN && layout.size().saturating_mul(count) <= PACKED
        };
        [self.count.max(2), 3, 2, 1].into_iter().find(fits).unwrap_or(0)
    }
}

fn examples() -> Vec<Subject> {
    let mut paths: Vec<_> =
        fs::read_dir(texts::workspace("ir-examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let subject = |path: &std::path::PathBuf| {
        let description = json::read(&fs::read_to_string(path).unwrap()).unwrap();
        Subject::new(&path.file_stem().unwrap().to_string_lossy(), description.datatype, description.count)
    };
    paths.iter().map(subject).collect()
}

fn corpus_types() -> Vec<Subject> {
    let subject = |(place, case): (usize, corpus::Case)| Subject::new(&format!("corpus {place}"), case.datatype, 3);
    corpus::all().into_iter().enumerate().map(subject).collect()
}

/// Types whose bytes may be anywhere are compiled and not run.
fn random_types() -> Vec<Subject> {
    let limits = [Limits::SMALL, Limits::DISJOINT, Limits::ANYWHERE];
    let draw = |seed: u64| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = random::datatype(&mut rng, &limits[(seed % 3) as usize]);
        Subject::new(&format!("random {seed}"), datatype, 3)
    };
    (0..RANDOM).map(draw).collect()
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

/// The types that have a C file, in translation units.
struct Unit {
    text: String,
    file: Vec<u8>,
}

fn unit(subjects: &[Subject], seed: u64) -> Unit {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut text, mut table) = (String::new(), String::new());
    let (mut cases, mut body) = (0u64, Vec::new());
    for (place, subject) in subjects.iter().enumerate() {
        let name = source::identifier(&subject.name);
        let file = source::c(&subject.name, &subject.pipeline).unwrap_or_else(|error| panic!("{name}: {error}"));
        text.push_str(&file);
        writeln!(
            table,
            "    {{\"{name}\", {name}_pack, {name}_unpack, {name}_pack_fragment, {name}_unpack_fragment}},"
        )
        .unwrap();
        let count = subject.fitting();
        let layout = subject.layout();
        for count in if count == 0 { vec![] } else { vec![1, count] } {
            let all = Fragment::new(layout, count, 0, layout.size() * count);
            let fragments = fragments(layout.size(), count, &mut rng);
            let numbers = [place as i64, count as i64, all.low, all.high - all.low, all.pieces.len() as i64];
            let pieces = all.pieces.iter().flat_map(|&(at, length)| [at, length as i64]);
            let wholes = fragments.iter().enumerate().flat_map(|(number, &(offset, length))| {
                let ways = if number == 0 { vec![1, 0] } else { vec![0] };
                ways.into_iter().map(move |whole| [offset as i64, length as i64, whole])
            });
            let wholes: Vec<[i64; 3]> = wholes.collect();
            let all =
                numbers.into_iter().chain(pieces).chain([wholes.len() as i64]).chain(wholes.into_iter().flatten());
            body.extend(all.flat_map(i64::to_ne_bytes));
            cases += 1;
        }
    }
    text.push_str(
        "\nstruct functions {\n    const char *name;\n    void (*pack)(const void *restrict, void *restrict, size_t);\n    \
         void (*unpack)(const void *restrict, void *restrict, size_t);\n    \
         void (*pack_fragment)(const void *restrict, void *restrict, size_t, size_t);\n    \
         void (*unpack_fragment)(const void *restrict, void *restrict, size_t, size_t);\n};\n\n",
    );
    write!(text, "static const struct functions types[] = {{\n{table}}};\n\n").unwrap();
    text.push_str(include_str!("../plain/driver.c"));
    let mut file = cases.to_ne_bytes().to_vec();
    file.append(&mut body);
    Unit { text, file }
}

/// Compiles and runs a unit. Returns what it says.
fn compiled_and_run(unit: &Unit, folder: &Path, compiler: &str, flags: &[&str]) -> String {
    let (source, program, cases) = (folder.join("unit.c"), folder.join("unit"), folder.join("cases"));
    fs::write(&source, &unit.text).unwrap();
    fs::write(&cases, &unit.file).unwrap();
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"]).args(flags).arg(&source).arg("-o").arg(&program);
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}\n{}", said.lines().take(40).collect::<Vec<_>>().join("\n"));
    let output = Command::new(&program).arg(&cases).env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {flags:?}: {}", said.lines().take(40).collect::<Vec<_>>().join("\n"));
    said
}

fn expect_c(compiler: &str, flags: &[&str], subjects: &[Subject]) {
    let units: Vec<Unit> =
        subjects.chunks(TYPES_IN_UNIT).enumerate().map(|(seed, chunk)| unit(chunk, seed as u64)).collect();
    // A compiler is a process of one thread.
    let workers = thread::available_parallelism().map_or(1, usize::from);
    for group in units.chunks(workers) {
        thread::scope(|scope| {
            for unit in group {
                scope.spawn(move || {
                    let folder = tempfile::tempdir().unwrap();
                    print!("{}", compiled_and_run(unit, folder.path(), compiler, flags));
                });
            }
        });
    }
    let run = subjects.iter().filter(|subject| subject.fitting() > 0).count();
    println!("{} types, {run} of them run", subjects.len());
}

fn all_types() -> Vec<Subject> {
    let mut subjects = examples();
    subjects.extend(corpus_types().into_iter().filter(|subject| source::c(&subject.name, &subject.pipeline).is_ok()));
    subjects.extend(random_types());
    subjects
}

/// With the poison around the buffers.
#[test]
fn c_by_gcc_moves_what_the_walker_says() {
    expect_c("gcc", &[], &all_types());
}

#[test]
fn c_by_clang_moves_what_the_walker_says() {
    if Command::new("clang").arg("--version").output().is_err() {
        return skip("c_by_clang_moves_what_the_walker_says", "needs clang");
    }
    expect_c("clang", &[], &all_types());
}

#[test]
fn c_moves_what_the_walker_says_under_the_sanitizers() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DGUARD=0"];
    expect_c("gcc", &flags, &all_types());
}

/// A kernel that packs and one that unpacks; blocks take equal shares.
fn kernels(name: &str) -> String {
    let kernel = |direction: &str, arguments: &str| {
        format!(
            "
extern \"C\" __global__ void {direction}(unsigned char *memory, unsigned char *packed, const unsigned char *,
    unsigned long long first, unsigned long long bytes)
{{
    const unsigned long long share = (bytes / 16 / gridDim.x + 1) * 16, begin = blockIdx.x * share;
    const unsigned long long end = begin + share < bytes ? begin + share : bytes;
    if (begin < end)
        {name}::{direction}({arguments}, first + begin, end - begin);
}}
"
        )
    };
    kernel("pack", "memory, packed + begin") + &kernel("unpack", "memory, packed + begin")
}

#[test]
fn cuda_headers_compile() {
    let texts: Vec<(String, String)> = examples()
        .iter()
        .map(|subject| {
            let header = source::cuda_header(&subject.name, &subject.pipeline).unwrap();
            (subject.name.clone(), header + &kernels(&source::identifier(&subject.name)))
        })
        .collect();
    match compile_all(&texts) {
        Ok(refusals) => {
            for refusal in refusals.iter().take(3) {
                println!("{refusal}");
            }
            assert!(refusals.is_empty(), "{} refused", refusals.len());
        }
        Err(missing) => skip("cuda_headers_compile", &missing.to_string()),
    }
}

#[test]
fn cuda_headers_move_what_the_walker_says() {
    let mut shim = Shim::new(Build::Checked);
    shim.limit_seconds(20);
    let mut rng = SmallRng::seed_from_u64(11);
    let mut subjects = examples();
    subjects.extend(corpus_types().into_iter().filter(|subject| source::c(&subject.name, &subject.pipeline).is_ok()));
    subjects.extend(random_types().into_iter().step_by(5));
    for subject in &subjects {
        let layout = subject.layout();
        // Every byte is checked, so that long transfers would take long.
        let most = (64 << 10) / layout.size().max(1);
        let count = subject.fitting().min(most.max(1));
        if count == 0 || layout.size() == 0 {
            continue;
        }
        let header = source::cuda_header(&subject.name, &subject.pipeline).unwrap();
        let text = header + &kernels(&source::identifier(&subject.name));
        let all = layout.size() * count;
        let mut asked = vec![(0, all.min(64 << 10))];
        for _ in 0..3 {
            let first = rng.random_range(0..all);
            asked.push((first, rng.random_range(0..=(all - first).min(8 << 10))));
        }
        for (place, (first, bytes)) in asked.into_iter().enumerate() {
            let fragment = Fragment::new(layout, count, first, bytes);
            let placement = if place == 0 { Placement::aligned(&mut rng, 256) } else { Placement::random(&mut rng) };
            let pack = Kernel::new(&text, "pack").blocks(3).threads(64);
            shim.add(Case::pack(&subject.name, &pack, &fragment, placement, &mut rng));
            let unpack = Kernel::new(&text, "unpack").blocks(1).threads(40);
            shim.add(Case::unpack(&subject.name, &unpack, &fragment, placement, &mut rng));
        }
    }
    let outcomes = shim.run().unwrap_or_else(|error| panic!("{error}"));
    let mut faults = 0;
    for outcome in &outcomes {
        if let Err(fault) = &outcome.result {
            println!("{}: {fault}", outcome.name);
            faults += 1;
        }
    }
    assert_eq!(faults, 0, "of {} cases", outcomes.len());
    println!("{} cases", outcomes.len());
}

/// Texts that a reader should take for written by hand.
#[test]
fn instructive_types_have_their_texts() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../plain");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, notation) in [
            ("columns", "vector 12 5 14 double"),
            ("face", "subarray c [62@1 of 64, 62@1 of 64, 1@1 of 64] double"),
            ("particle", "struct [3@0 double, 1@24 int, 2@32 float]"),
            ("scattered", "indexed_block 2 [0, 17, 3, 40, 92, 61, 28, 55, 80, 99] double"),
            ("runs", "indexed [1@0, 2@3, 3@9, 1@15, 5@20, 2@31, 7@40, 1@55, 4@60, 9@70] int"),
            ("reversed", "hvector 8 1 -32 (contiguous 2 int)"),
            ("contiguous", "contiguous 100 double"),
            ("empty", "contiguous 0 int"),
            ("shared", "let row = hvector 1000 1 24 (struct [1@0 double, 1@16 int]); struct [1@0 row, 1@30000 row, 1@70000 (hvector 999 1 40 double)]"),
        ] {
            let pipeline = Pipeline::new(text::parse(notation).unwrap_or_else(|error| panic!("{name}: {error}")));
            insta::assert_snapshot!(format!("{name}.c"), source::c(name, &pipeline).unwrap());
            insta::assert_snapshot!(format!("{name}.cuh"), source::cuda_header(name, &pipeline).unwrap());
        }
    });
}

#[test]
fn two_types_of_one_name_are_an_error() {
    let header =
        |name: &str, notation: &str| source::cuda_header(name, &Pipeline::new(text::parse(notation).unwrap())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let preprocessed = |headers: [String; 2]| {
        let path = folder.path().join("both.hpp");
        fs::write(&path, headers.concat()).unwrap();
        let output = Command::new("g++").arg("-E").arg(&path).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let one = || header("a-b", "contiguous 4 int");
    let (differ, said) = preprocessed([one(), header("a b", "contiguous 5 int")]);
    assert!(!differ && said.contains("two types are named a_b"), "{said}");
    assert!(preprocessed([one(), header("a_b", "contiguous 2 double")]).0, "equal types may have one name");
}

#[test]
fn types_without_end_are_refused_with_the_limit() {
    let mut types = TypeBuilder::new();
    let (byte, int) = (types.named(Predefined::BYTE), types.named(Predefined::INT));
    let children: Vec<_> = (0..20_000).map(|part| if part % 3 == 0 { byte } else { int }).collect();
    let vectors: Vec<_> =
        children.iter().enumerate().map(|(at, &child)| types.hvector(1000 + at as i64, 1, 8, child).unwrap()).collect();
    let offsets: Vec<i64> = (0..20_000).map(|part| part * 1_000_000 + part % 7).collect();
    let root = types.structure(&vec![1; 20_000], &offsets, &vectors).unwrap();
    let pipeline = Pipeline::new(types.finish(root).unwrap());
    let refused = [source::c("large", &pipeline), source::cuda_header("large", &pipeline)];
    for error in refused.map(Result::unwrap_err) {
        let TooLarge { what, found, most } = error;
        assert!(what == "nodes and parts of records" && found > most && most == 16_384, "{error}");
        assert!(error.to_string().starts_with("expected at most 16384 nodes and parts of records, found "), "{error}");
    }
}
