//! Layouts that lead to every family of CUDA kernels, and the variants that may serve a call.

use crate::corpus;
use crate::generate::random::{self, Limits};
use crate::generate::sequence::Sequence;
use crate::generate::split;
use dtc_compiler::codegen::cuda::{self, Program, TemplateError};
use dtc_compiler::datatype::json;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, GpuPlan, LaunchShape, Tiles, Variant, WordsKernel};
use dtc_compiler::{canonicalise, lower};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// A layout and its plan.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name in messages.
    pub name: String,
    /// The lowered layout; its walk gives the expected bytes.
    pub layout: Layout,
    /// The plan of the canonical layout.
    pub plan: GpuPlan,
    /// Number of elements of a usual call.
    pub count: u64,
}

impl Subject {
    /// Plans a layout.
    pub fn new(name: String, layout: Layout, count: u64) -> Subject {
        let plan = GpuPlan::new(&canonicalise(&layout).layout);
        Subject { name, layout, plan, count }
    }
}

/// The types of the corpus, three elements of each.
pub fn corpus() -> Vec<Subject> {
    corpus::all().into_iter().map(|case| Subject::new(case.name.to_owned(), lower(&case.datatype), 3)).collect()
}

/// The examples beside the crates.
///
/// # Panics
///
/// An example cannot be read.
pub fn examples() -> Vec<Subject> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ir-examples");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let description = json::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Subject::new(name, lower(&description.datatype), description.count)
    };
    paths.iter().map(read).collect()
}

/// Random types, and random sequences written as types; one of each for every seed.
pub fn random(seeds: Range<u64>) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for seed in seeds {
        let mut rng = SmallRng::seed_from_u64(seed);
        let limits = match seed % 4 {
            0 => Limits::SMALL,
            1 => Limits::ANYWHERE,
            _ => Limits::DISJOINT,
        };
        let datatype = random::datatype(&mut rng, &limits);
        subjects.push(Subject::new(format!("random seed {seed}"), lower(&datatype), 3));
        let sequence = Sequence::draw(&mut rng, 3000);
        let datatype = split::datatype_of(&sequence, &mut rng);
        subjects.push(Subject::new(format!("sequence seed {seed}"), lower(&datatype), 3));
    }
    subjects
}

/// Layouts whose plans need every family and every kind of list.
///
/// # Panics
///
/// A layout of the list is invalid.
pub fn families() -> Vec<Subject> {
    let lists = [
        ("short runs", runs((0..300).map(|at| (at * 40 + at % 7 * 4, 4 * (1 + at % 5))))),
        ("short odd runs", runs((0..300).map(|at| (at * 23 + at % 3, 1 + at % 13)))),
        ("short odd runs, close to each other", runs_within(7001, (0..300).map(|at| (at * 23 + at % 3, 1 + at % 13)))),
        (
            "short odd runs, two to a sector",
            runs_within(13001, (0..700).map(|at| (at * 17 + at % 3, 1 + at * at % 13))),
        ),
        ("short odd runs, far from each other", runs((0..200).map(|at| (at * 5003 + at % 3, 1 + at % 13)))),
        ("long runs", runs((0..60).map(|at| (at * 1200 + at % 7 * 8, 8 * (70 + at % 50))))),
        ("long odd runs", runs((0..60).map(|at| (at * 600 + at % 7, 100 + at * at % 400)))),
        ("runs beyond 32 bits", runs((0..40).map(|at| ((at * 37 % 40) << 33, 8 + at % 3 * 4)))),
        ("long runs beyond 32 bits", runs((0..40).map(|at| ((at * 37 % 40) << 32, 1000 + at % 9)))),
        ("more packed bytes than 32 bits count", runs((0..6).map(|at| (at << 38, (3 << 32) + (at << 30) + 5)))),
        ("more packed words than 32 bits count", runs((0..6).map(|at| (at << 38, (3 << 36) + (at << 33))))),
        ("blocks", blocks(16, (0..500).map(|at| at * at % 1009 * 16))),
        ("blocks in any order", disordered(16)),
        ("short rows, axes permuted", permuted(30, &[23, 17, 10], &[2, 1, 0])),
        ("short rows of words, axes permuted", permuted(24, &[31, 14, 13], &[1, 2, 0])),
        ("blocks of any length in any order", runs((0..400).map(|at| (at * 173 % 400 * 8, 4 + at % 2 * 4)))),
        ("runs of a few hundred bytes", runs((0..80).map(|at| (at * 900 + at % 11, 200 + at * at % 500)))),
        ("runs of a few dozen bytes", runs((0..150).map(|at| (at * 157 % 150 * 100 + at % 11, 20 + at * at % 70)))),
        ("runs of thousands of bytes", runs((0..12).map(|at| (at * 20000 + at % 11, 900 + at * 1711 % 9000)))),
        (
            "groups at listed places",
            groups(88, "(0 4) (8 24) (36 12) (50 2) (56 16)", (0..300).map(|at| at * at % 1009 * 88)),
        ),
        ("groups of words of 16", groups(160, "(0 16) (48 32) (112 16)", (0..90).map(|at| at * 37 % 90 * 160))),
        (
            "groups of odd runs, packed in another order",
            groups(61, "(40 9) (1 3) (17 1) (5 11)", (0..200).map(|at| at * 67 % 200 * 61 + at % 2)),
        ),
        ("groups of two floats", groups(24, "(4 4) (16 4)", (0..700).map(|at| at * at % 1009 * 24))),
        (
            "groups longer than lines",
            groups(9000, "(2 100) (1000 301) (2500 60) (8001 500)", (0..30).map(|at| at * 7 % 30 * 9000)),
        ),
        ("groups beyond 32 bits", groups(64, "(0 8) (12 20) (40 2)", (0..60).map(|at| (at * at % 61) << 33))),
        ("axes of an array, permuted", permuted(4, &[4, 5, 6, 7, 8], &[4, 1, 2, 0, 3])),
        ("all axes of an array of doubles, reversed", permuted(8, &[11, 13, 19], &[2, 1, 0])),
        ("short axes of halves, permuted", permuted(2, &[3, 10, 6, 12, 4], &[1, 4, 0, 3, 2])),
        ("pixels of bytes to planes, of several pictures", permuted(1, &[3, 5600, 3], &[0, 2, 1])),
        ("pixels of floats to planes, of pictures in another order", permuted(4, &[2, 2, 810, 5], &[1, 0, 3, 2])),
        ("pixels of halves to planes, of several pictures", permuted(2, &[2, 1200, 7], &[0, 2, 1])),
        ("planes of halves to pixels", permuted(2, &[2, 12, 150], &[0, 2, 1])),
        ("odd planes of halves to pixels", permuted(2, &[2, 96, 21, 23], &[0, 2, 3, 1])),
        ("axes of bytes, permuted", permuted(1, &[9, 8, 10, 12], &[3, 0, 2, 1])),
        ("odd axes of bytes, permuted", permuted(1, &[9, 7, 11, 13, 5], &[4, 2, 0, 3, 1])),
        ("odd axes of halves, permuted", permuted(2, &[7, 21, 9, 15], &[2, 0, 3, 1])),
        ("long odd axes of bytes", permuted(1, &[2, 301, 517], &[0, 2, 1])),
        ("long axes, in boxes that do not divide them", permuted(4, &[131, 3, 137], &[2, 1, 0])),
        ("rows of several axes in tiles, and columns beside whole warps", permuted(4, &[9, 4, 5, 70], &[3, 1, 0, 2])),
        ("rows of several axes of halves in tiles", permuted(2, &[6, 7, 5, 64], &[3, 1, 0, 2])),
        ("axes of complex doubles, permuted", permuted(16, &[5, 6, 7, 5], &[3, 0, 2, 1])),
        ("odd blocks", blocks(13, (0..500).map(|at| at * at % 1009 * 14 + at % 2))),
        ("blocks beyond 32 bits", blocks(8, (0..50).map(|at| ((at * at % 53) << 35) | (at * 8)))),
        ("a record of more nodes than a launch has room for", streams(40)),
        ("a record of more nodes than a kernel is compiled for", streams(300)),
        ("ascending blocks of words of 16", blocks(48, (0..300).map(|at| (at * 5 + at % 2) * 16))),
        ("rows of halves, axes permuted", permuted(34, &[9, 15, 12], &[1, 2, 0])),
    ];
    let texts = LAYOUTS.iter().map(|&(name, count, text)| (name, count, text.to_owned()));
    let all = texts.chain(lists.into_iter().map(|(name, text)| (name, 3, text)));
    let parse = |(name, count, text): (&str, u64, String)| {
        let layout = Layout::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Subject::new(name.to_owned(), layout, count)
    };
    all.map(parse).collect()
}

/// Arrays of three to five axes with 1,000 to 20,000 elements of 1 to 16 bytes, packed in any order of their axes; axes of half of them are slices. One of
/// each for every seed.
///
/// # Panics
///
/// A drawn layout is invalid.
pub fn arrays(seeds: Range<u64>) -> Vec<Subject> {
    let subject = |seed: u64| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let word = 1 << rng.random_range(0..5);
        let number = rng.random_range(3..6);
        let mut axes: Vec<(i64, i64)> = Vec::new();
        let (mut stride, mut elements) = (word, 1);
        while axes.len() < number {
            let left = (number - axes.len()) as u32;
            let most = (20_000 / elements) as f64;
            let count = rng.random_range(2..=(most.powf(1.0 / f64::from(left)) * 1.5).max(3.0) as i64);
            let (step, beyond) = match rng.random_range(0..8) {
                0 if seed % 2 == 1 => (2, 0),
                1..=3 if seed % 2 == 1 => (1, rng.random_range(1..4)),
                _ => (1, 0),
            };
            axes.push((count, stride * step));
            stride *= count * step + beyond;
            elements *= count;
        }
        axes.shuffle(&mut rng);
        let mut text = format!("layout lb 0 extent {} {{\n  %0 = dense {word} x byte\n", stride + 64);
        for (at, (count, stride)) in axes.iter().enumerate() {
            text += &format!("  %{} = stream {count} x {stride} of %{at}\n", at + 1);
        }
        let text = format!("{text}  root {}: %{number}\n}}", word * rng.random_range(0..3));
        let layout = Layout::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        Subject::new(format!("array seed {seed}"), layout, 2)
    };
    seeds.map(subject).collect()
}

/// Transposes of words of `word` bytes, in `shapes` shapes; their kernels use shared memory.
///
/// # Panics
///
/// One of them has no tiles.
pub fn transposes(word: u64, shapes: u64) -> Vec<Subject> {
    let subject = |shape: u64| {
        let (rows, columns) = (40 + shape, 72);
        let pitch = word * columns;
        let text = format!(
            "layout lb 0 extent {} {{\n  %0 = dense {word} x byte\n  %1 = stream {rows} x {pitch} of %0\n  \
             %2 = stream {columns} x {word} of %1\n  root %2\n}}",
            rows * pitch
        );
        let layout = Layout::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let subject = Subject::new(format!("{rows} x {columns} words of {word}, transposed"), layout, 3);
        assert!(subject.plan.found::<Tiles>().is_some(), "{}", subject.name);
        subject
    };
    (0..shapes).map(subject).collect()
}

/// The text of disjoint runs `(offset, length)` in bytes, within 2^41 bytes.
fn runs(runs: impl Iterator<Item = (i64, i64)>) -> String {
    runs_within(1 << 41, runs)
}

/// The same within `extent` bytes.
fn runs_within(extent: i64, runs: impl Iterator<Item = (i64, i64)>) -> String {
    let runs: Vec<String> = runs.map(|(offset, length)| format!("({offset} {length})")).collect();
    format!("layout lb 0 extent {extent} {{\n  %0 = runs [{}] x byte\n  root %0\n}}", runs.join(" "))
}

/// A record of streams, no two of them equal, with more runs than are enumerated.
fn streams(parts: usize) -> String {
    let mut text = format!("layout lb 0 extent {} {{\n", parts * 50_000);
    let lengths = 1..=7;
    lengths.for_each(|length| text.push_str(&format!("  %{} = dense {length} x byte\n", length - 1)));
    let mut list = Vec::new();
    for part in 0..parts {
        let (node, length) = (part + 7, part % 7);
        text.push_str(&format!("  %{node} = stream {} x {} of %{length}\n", 100 + part, 8 + part % 90));
        list.push(format!("{}: %{node}", part * 50_000));
    }
    text + &format!("  %{} = record [{}]\n  root %{}\n}}", parts + 7, list.join(", "), parts + 7)
}

/// Blocks without gaps, packed in an order of their own.
fn disordered(length: u64) -> String {
    let offsets: Vec<String> = (0..700).map(|at| (at * 311 % 700 * length).to_string()).collect();
    let list = offsets.join(" ");
    let extent = 720 * length;
    format!(
        "layout lb 0 extent {extent} {{\n  %0 = dense {length} x byte\n  %1 = indexed [{list}] of %0\n  root %1\n}}"
    )
}

fn blocks(length: u64, offsets: impl Iterator<Item = i64>) -> String {
    let offsets: Vec<String> = offsets.map(|offset| offset.to_string()).collect();
    let list = offsets.join(" ");
    format!(
        "layout lb 0 extent {} {{\n  %0 = dense {length} x byte\n  %1 = indexed [{list}] of %0\n  root %1\n}}",
        1i64 << 41
    )
}

/// An array in the order of C with elements of `word` bytes, whose axes are packed in another order: the outermost first. It begins at 64 in an extent with a gap.
fn permuted(word: i64, counts: &[i64], order: &[usize]) -> String {
    let stride = |axis: usize| word * counts[axis + 1..].iter().product::<i64>();
    let mut text = format!("layout lb 0 extent {} {{\n  %0 = dense {word} x byte\n", 128 + stride(0) * counts[0]);
    for (at, &axis) in order.iter().rev().enumerate() {
        text += &format!("  %{} = stream {} x {} of %{at}\n", at + 1, counts[axis], stride(axis));
    }
    format!("{text}  root 64: %{}\n}}", order.len())
}

/// Groups of runs, written as `(offset length)`, within `extent` bytes each.
fn groups(extent: i64, runs: &str, offsets: impl Iterator<Item = i64>) -> String {
    let offsets: Vec<i64> = offsets.collect();
    let end = offsets.iter().max().map_or(0, |last| last + extent);
    let list: Vec<String> = offsets.iter().map(i64::to_string).collect();
    format!(
        "layout lb 0 extent {end} {{\n  %0 = runs [{runs}] x byte\n  %1 = indexed [{}] of %0\n  root %1\n}}",
        list.join(" ")
    )
}

#[rustfmt::skip]
const LAYOUTS: &[(&str, u64, &str)] = &[
    ("words of 16", 3, "layout lb 0 extent 4000 {\n  %0 = dense 48 x byte\n  %1 = stream 50 x 80 of %0\n  root %1\n}"),
    ("words of 8", 3, "layout lb 0 extent 4000 {\n  %0 = dense 8 x byte\n  %1 = stream 200 x 16 of %0\n  root %1\n}"),
    ("words of 4", 3, "layout lb 0 extent 6000 {\n  %0 = dense 4 x byte\n  %1 = stream 200 x 28 of %0\n  root %1\n}"),
    ("words of 2", 3, "layout lb 0 extent 6000 {\n  %0 = dense 2 x byte\n  %1 = stream 200 x 26 of %0\n  root %1\n}"),
    ("single bytes", 3, "layout lb 0 extent 999 {\n  %0 = dense 1 x byte\n  %1 = stream 200 x 3 of %0\n  root %1\n}"),
    ("words, backwards", 3, "layout lb 0 extent -9600 {\n  %0 = dense 16 x byte\n  %1 = stream 200 x -48 of %0\n  root 32: %1\n}"),
    ("words without a seam", 1 << 39, "layout lb 0 extent 48 {\n  %0 = dense 8 x byte\n  %1 = stream 3 x 16 of %0\n  root %1\n}"),
    ("words with a seam", 1 << 39, "layout lb 0 extent 40 {\n  %0 = dense 8 x byte\n  %1 = stream 2 x 16 of %0\n  root 8: %1\n}"),
    ("bytes with a seam", 1 << 40, "layout lb 0 extent 11 {\n  %0 = dense 3 x byte\n  %1 = stream 2 x 5 of %0\n  root %1\n}"),
    ("rows that 32 bits cannot count", 3, "layout lb 0 extent 60000000000 {\n  %0 = dense 8589934600 x byte\n  %1 = stream 2 x 20000000000 of %0\n  root %1\n}"),
    ("odd rows that 32 bits cannot count", 3, "layout lb 0 extent 60000000001 {\n  %0 = dense 8589934601 x byte\n  %1 = stream 2 x 20000000000 of %0\n  root %1\n}"),
    ("rows of 17", 3, "layout lb 0 extent 1000 {\n  %0 = dense 17 x byte\n  %1 = stream 40 x 23 of %0\n  root %1\n}"),
    ("rows of 17 at 8", 1 << 35, "layout lb 0 extent 960 {\n  %0 = dense 17 x byte\n  %1 = stream 40 x 24 of %0\n  root %1\n}"),
    ("rows of 24 at 8", 3, "layout lb 0 extent 2000 {\n  %0 = dense 24 x byte\n  %1 = stream 40 x 40 of %0\n  root %1\n}"),
    ("rows of 9 at 4", 3, "layout lb 0 extent 600 {\n  %0 = dense 9 x byte\n  %1 = stream 40 x 12 of %0\n  root %1\n}"),
    ("rows of 130, far apart", 2, "layout lb 0 extent 1000000 {\n  %0 = dense 130 x byte\n  %1 = stream 20 x 9001 of %0\n  root -7: %1\n}"),
    ("columns in planes", 2, "layout lb 0 extent 200000 {\n  %0 = dense 8 x byte\n  %1 = stream 65 x 640 of %0\n  %2 = stream 65 x 8 of %1\n  \
     %3 = stream 3 x 50000 of %2\n  root %3\n}"),
    ("long columns in planes", 2, "layout lb 0 extent 240000 {\n  %0 = dense 8 x byte\n  %1 = stream 160 x 640 of %0\n  %2 = stream 40 x 8 of %1\n  \
     %3 = stream 2 x 110000 of %2\n  root %3\n}"),
    ("long columns of 2", 2, "layout lb 0 extent 110000 {\n  %0 = dense 2 x byte\n  %1 = stream 512 x 200 of %0\n  %2 = stream 70 x 2 of %1\n  root %2\n}"),
    ("columns in listed planes", 2, "layout lb 0 extent 99996 {\n  %0 = dense 4 x byte\n  %1 = stream 65 x 400 of %0\n  %2 = stream 90 x 4 of %1\n  \
     %3 = stream 2 x 30000 of %2\n  root 12: %3\n}"),
    ("columns of 16", 2, "layout lb 0 extent 65536 {\n  %0 = dense 16 x byte\n  %1 = stream 40 x 1600 of %0\n  %2 = stream 50 x 16 of %1\n  root %2\n}"),
    ("columns of 2", 2, "layout lb 0 extent 65536 {\n  %0 = dense 2 x byte\n  %1 = stream 70 x 200 of %0\n  %2 = stream 80 x 2 of %1\n  root %2\n}"),
    ("columns of 1", 2, "layout lb 0 extent 65536 {\n  %0 = dense 1 x byte\n  %1 = stream 70 x 101 of %0\n  %2 = stream 80 x 1 of %1\n  root %2\n}"),
    ("columns, backwards", 2, "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 40 x 640 of %0\n  %2 = stream 50 x -8 of %1\n  root 400: %2\n}"),
    ("few columns", 2, "layout lb 0 extent 30000 {\n  %0 = dense 8 x byte\n  %1 = stream 1000 x 24 of %0\n  %2 = stream 3 x 8 of %1\n  root %2\n}"),
    ("few rows", 2, "layout lb 0 extent 50000 {\n  %0 = dense 4 x byte\n  %1 = stream 9 x 4096 of %0\n  %2 = stream 700 x 4 of %1\n  root %2\n}"),
    ("listed rows", 2, "layout lb 0 extent 50000 {\n  %0 = dense 4 x byte\n  %1 = indexed [0 4096 12288 8192 1024 2048 30000 20480 16384 40000] of %0\n  \
     %2 = stream 150 x 4 of %1\n  root %2\n}"),
    ("records of short runs", 400, "layout lb 0 extent 41 {\n  %0 = runs [(3 3) (7 1) (9 5) (20 9)] x byte\n  root -5: %0\n}"),
    ("records of two bytes", 900, "layout lb 0 extent 6 {\n  %0 = runs [(0 1) (2 2)] x byte\n  root %0\n}"),
    ("records of short runs without a seam", 3, "layout lb 0 extent 6400 {\n  %0 = runs [(0 9) (13 1) (20 30)] x byte\n  %1 = stream 100 x 64 of %0\n  root 7: %1\n}"),
    ("odd axes of bytes with gaps, permuted", 2, "layout lb 0 extent 36000 {\n  %0 = dense 1 x byte\n  %1 = stream 23 x 1501 of %0\n  \
     %2 = stream 29 x 1 of %1\n  %3 = stream 31 x 37 of %2\n  root 5: %3\n}"),
    ("odd axes of halves with steps, permuted", 2, "layout lb 0 extent 76000 {\n  %0 = dense 2 x byte\n  %1 = stream 25 x 3000 of %0\n  \
     %2 = stream 31 x 4 of %1\n  %3 = stream 17 x 140 of %2\n  root 6: %3\n}"),
    ("axes of floats with steps, permuted", 2, "layout lb 0 extent 128000 {\n  %0 = dense 4 x byte\n  %1 = stream 21 x 6000 of %0\n  \
     %2 = stream 31 x 12 of %1\n  %3 = stream 15 x 400 of %2\n  root 8: %3\n}"),
    ("elements as columns", 100, "layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  %1 = stream 100 x 800 of %0\n  root 16: %1\n}"),
    ("elements of two dimensions as columns", 70, "layout lb 0 extent 4 {\n  %0 = dense 4 x byte\n  %1 = stream 10 x 400 of %0\n  \
     %2 = stream 9 x 5000 of %1\n  root %2\n}"),
    ("elements as columns, backwards", 100, "layout lb 0 extent -16 {\n  %0 = dense 8 x byte\n  %1 = stream 40 x 1600 of %0\n  root %1\n}"),
    ("columns without a seam", 9, "layout lb 0 extent 128 {\n  %0 = dense 8 x byte\n  %1 = stream 40 x 2048 of %0\n  %2 = stream 16 x 8 of %1\n  root %2\n}"),
    ("fields", 3000, "layout lb 0 extent 4 {\n  %0 = dense 4 x byte\n  %1 = indexed [0 20000 50000 36000 70004] of %0\n  root %1\n}"),
    ("fields in few banks", 2, "layout lb 0 extent 50000 {\n  %0 = dense 8 x byte\n  %1 = stream 4 x 9000 of %0\n  \
     %2 = stream 1000 x 8 of %1\n  root 8: %2\n}"),
    ("fields of any length", 2000, "layout lb 0 extent 16 {\n  %0 = runs [(90000 8) (0 3) (40001 1) (200000 16) (160000 12)] x byte\n  root %0\n}"),
    ("fields in groups", 3, "layout lb 0 extent 2000000 {\n  %0 = runs [(90000 3) (0 4) (40002 1) (200000 2)] x byte\n  %1 = stream 37 x 8 of %0\n  \
     %2 = stream 30 x 400 of %1\n  root 5: %2\n}"),
    ("fields of shorts", 3000, "layout lb 0 extent 4 {\n  %0 = runs [(0 2) (40000 4) (80000 2) (20000 2)] x byte\n  root %0\n}"),
    ("fields of bytes", 4000, "layout lb 0 extent 1 {\n  %0 = runs [(0 1) (40003 1) (20001 1)] x byte\n  root 3: %0\n}"),
    ("fields of three bytes", 4000, "layout lb 0 extent 3 {\n  %0 = runs [(20000 3) (40001 1) (0 2)] x byte\n  root %0\n}"),
    ("fields, backwards", 2, "layout lb 0 extent 90000 {\n  %0 = dense 2 x byte\n  %1 = dense 6 x byte\n  \
     %2 = record [0: %1, 20000: %0, 40000: %1]\n  %3 = stream 1500 x -8 of %2\n  root 12000: %3\n}"),
    ("a record of long streams", 3, "layout lb 0 extent 300000 {\n  %0 = dense 8 x byte\n  %1 = stream 1500 x 16 of %0\n  %2 = dense 4 x byte\n  \
     %3 = stream 2000 x 12 of %2\n  %4 = dense 12 x byte\n  %5 = stream 1100 x 20 of %4\n  \
     %6 = record [0: %1, 50000: %3, 100000: %5, 150000: %1, 200000: %3, 290000: %4]\n  root %6\n}"),
    ("records field by field", 3, "layout lb 0 extent 19200 {\n  %0 = dense 8 x byte\n  %1 = dense 4 x byte\n  %2 = dense 2 x byte\n  %3 = dense 1 x byte\n  \
     %4 = stream 600 x 32 of %0\n  %5 = stream 600 x 32 of %1\n  %6 = stream 600 x 32 of %2\n  %7 = stream 600 x 32 of %3\n  \
     %8 = record [0: %7, 8: %4, 16: %6, 18: %6, 20: %5, 24: %4]\n  root %8\n}"),
    ("records without gaps, field by field", 3, "layout lb 0 extent 16400 {\n  %0 = dense 4 x byte\n  %1 = dense 2 x byte\n  %2 = dense 1 x byte\n  \
     %3 = stream 2050 x 8 of %0\n  %4 = stream 2050 x 8 of %1\n  %5 = stream 2050 x 8 of %2\n  \
     %6 = record [2: %4, 0: %5, 4: %3, 1: %5]\n  root %6\n}"),
    ("odd records, field by field", 3, "layout lb 0 extent 17001 {\n  %0 = dense 3 x byte\n  %1 = dense 1 x byte\n  %2 = dense 5 x byte\n  \
     %3 = stream 1500 x 11 of %0\n  %4 = stream 1500 x 11 of %1\n  %5 = stream 1500 x 11 of %2\n  \
     %6 = record [6: %3, 20: %5, 10: %4]\n  root -7: %6\n}"),
    ("records of arrays, field by field", 3, "layout lb 0 extent 20008 {\n  %0 = dense 12 x byte\n  %1 = dense 8 x byte\n  \
     %2 = stream 690 x 28 of %0\n  %3 = stream 690 x 28 of %1\n  %4 = record [12: %3, 0: %2]\n  root 8: %4\n}"),
    ("wide odd records, field by field", 2, "layout lb 0 extent 60000 {\n  %0 = dense 40 x byte\n  %1 = dense 1 x byte\n  %2 = dense 31 x byte\n  \
     %3 = stream 700 x 83 of %0\n  %4 = stream 700 x 83 of %1\n  %5 = stream 700 x 83 of %2\n  \
     %6 = record [0: %4, 5: %3, 50: %5]\n  root 3: %6\n}"),
    ("records of words, field by field", 2, "layout lb 0 extent 60000 {\n  %0 = dense 4 x byte\n  %1 = dense 2 x byte\n  %2 = dense 1 x byte\n  \
     %3 = stream 600 x 36 of %0\n  %4 = stream 600 x 36 of %1\n  %5 = stream 600 x 36 of %2\n  \
     %6 = record [0: %4, 2: %4, 8: %3, 16: %4, 18: %5, 19: %5, 24: %3]\n  root %6\n}"),
    ("many columns", 2, "layout lb 0 extent 70000 {\n  %0 = dense 4 x byte\n  %1 = stream 350 x 196 of %0\n  %2 = stream 49 x 4 of %1\n  root %2\n}"),
    ("groups in a stream of lists", 2, "layout lb 0 extent 90000 {\n  %0 = dense 4 x byte\n  %1 = dense 10 x byte\n  %2 = record [2: %1, 20: %0, 16: %0]\n  \
     %3 = indexed [0 640 64 1280 320 96] of %2\n  %4 = stream 40 x 2000 of %3\n  root -6: %4\n}"),
    ("a record of odd streams", 3, "layout lb 0 extent 300000 {\n  %0 = dense 7 x byte\n  %1 = stream 1500 x 15 of %0\n  %2 = dense 3 x byte\n  \
     %3 = stream 2000 x 11 of %2\n  %4 = record [0: %1, 50001: %3, 100000: %1, 150000: %2]\n  root %4\n}"),
];

/// Every variant with narrow indices that may serve a call, also those that its plan does not choose. Shapes are such that occur in no plan.
pub fn variants(plan: &GpuPlan, direction: Direction, call: &Call) -> Vec<Variant> {
    let odd = |candidate: Variant| match candidate.family {
        Family::Words(words) => {
            WordsKernel { shape: LaunchShape { threads: 96, unroll: 3 }, cut: true, ..words }.into()
        }
        family => family,
    };
    let candidates = plan.candidates(direction, call).into_iter();
    candidates.map(|candidate| Variant { family: odd(candidate), wide: false, ..candidate }).collect()
}

/// A call of four megabytes and more that begins and ends like another one: inside the same words and elements, at the same alignment.
pub fn longer(plan: &GpuPlan, call: &Call) -> Call {
    let period = plan.layout().size() * 128;
    Call { bytes: call.bytes + period * (4u64 << 20).div_ceil(period), ..*call }
}

/// The kernel that serves such a longer call, if it may serve the call itself: the calls of a test are too short for most to be chosen.
pub fn of_longer(plan: &GpuPlan, direction: Direction, call: &Call) -> Variant {
    let variant = plan.variant(direction, &longer(plan, call));
    let serves = |other: &Variant| match (variant.family, other.family) {
        (Family::Words(words), Family::Words(others)) => words.word == others.word,
        (family, other) => family == other,
    };
    if plan.candidates(direction, call).iter().any(serves) { variant } else { plan.variant(direction, call) }
}

/// The usual kernels of both directions in one program, as compiled when a type is committed.
///
/// # Errors
///
/// Only by a defect of dtc.
pub fn usual(plan: &GpuPlan) -> Result<Program, TemplateError> {
    cuda::program(plan, &[Direction::Pack, Direction::Unpack].map(|direction| plan.usual(direction)))
}
