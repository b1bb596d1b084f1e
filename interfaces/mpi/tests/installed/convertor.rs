//! The source file that Open MPI is compiled with, without Open MPI: descriptions as Open MPI would have them, and the displacements
//! that the reference walker tells of the same bytes.

use super::device::environment;
use super::{INSTALLED, pkg_config, root, run_with, succeed};
use dtc_compiler::datatype::{Predefined, TypeBuilder, TypeId};
use dtc_compiler::lower;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const TYPES: u64 = 400;
const TYPES_ON_A_GPU: u64 = 60;
const MOST_BYTES: i64 = 20_000;

/// The sources that both versions are compiled with.
const SOURCES: [&str; 5] = ["dtc_convertor.c", "dtc_description.c", "dtc_accumulate.c", "dtc_external.c", "dtc_pack.c"];

/// Entries of a description, and the datatype of the same bytes.
struct Body {
    entries: Vec<String>,
    id: TypeId,
}

/// An element: blocks of one basic datatype. Returns where it ends.
fn element(rng: &mut SmallRng, types: &mut TypeBuilder, at: i64) -> (String, TypeId, i64) {
    let size = 1i64 << rng.random_range(0..5);
    let (length, count) = (rng.random_range(1..5i64), rng.random_range(1..6i64));
    let bytes = length * size;
    let extent = bytes + rng.random_range(0..9) * rng.random_range(1..9);
    let downwards = count > 1 && rng.random_ratio(1, 5);
    let end = at + extent * count;
    let (at, extent) = if downwards { (at + extent * (count - 1), -extent) } else { (at, extent) };
    let byte = types.named(Predefined::BYTE);
    let block = types.contiguous(bytes, byte).expect("a block");
    let rows = types.hvector(count, 1, extent, block).expect("rows");
    let placed = types.structure(&[1], &[at], &[rows]).expect("a place");
    (format!("element {size} {length} {count} {extent} {at}"), placed, end)
}

/// Elements and loops from a displacement on, and where they end.
fn body(rng: &mut SmallRng, types: &mut TypeBuilder, mut at: i64, depth: u32) -> (Body, i64) {
    let mut entries = Vec::new();
    let mut parts = Vec::new();
    for _ in 0..rng.random_range(1..4) {
        if depth > 0 && rng.random_ratio(1, 2) {
            // A loop has no displacement: its elements do.
            let (inner, end) = body(rng, types, at, depth - 1);
            let loops = rng.random_range(1..6i64);
            let extent = end - at + rng.random_range(0..20);
            entries.push(format!("loop {loops} {} {extent}", inner.entries.len() + 1));
            entries.extend(inner.entries);
            entries.push("end".to_owned());
            parts.push(types.hvector(loops, 1, extent, inner.id).expect("a loop"));
            at += extent * loops;
        } else {
            let (entry, id, end) = element(rng, types, at);
            entries.push(entry);
            parts.push(id);
            at = end;
        }
        at += rng.random_range(0..24);
    }
    let ones = vec![1; parts.len()];
    let zeros = vec![0; parts.len()];
    let id = types.structure(&ones, &zeros, &parts).expect("a body");
    (Body { entries, id }, at)
}

/// A datatype, its bounds and its map, as `tests/open-mpi/convertor.c` reads them.
fn case(rng: &mut SmallRng) -> Option<String> {
    let mut types = TypeBuilder::new();
    let (begin, depth) = (rng.random_range(-50..50), rng.random_range(0..4));
    let (body, _) = body(rng, &mut types, begin, depth);
    let datatype = types.finish(body.id).expect("a datatype");
    let facts = datatype.facts();
    let (low, high) = (facts.true_lb, facts.true_ub);
    let lb = low - rng.random_range(0..9);
    // Elements of a count interleave where the extent is short.
    let short = rng.random_ratio(1, 6);
    let ub = high + rng.random_range(if short { low - high..0 } else { 0..16 });
    let map: Vec<String> = lower(&datatype).displacements().map(|at| at.to_string()).collect();
    let count = rng.random_range(1..5);
    let mut text = format!("type {count} {} {low} {high} {lb} {ub} {}\n", map.len(), body.entries.len());
    for entry in &body.entries {
        let _ = writeln!(text, "{entry}");
    }
    let _ = writeln!(text, "map {}", map.join(" "));
    (map.len() as i64 <= MOST_BYTES).then_some(text)
}

/// Compiles the sources, and more of them, with a sketch of the names that they use, at the places of Open MPI's headers.
fn compile(folder: &TempDir, options: &[&str], more: &[&str]) -> PathBuf {
    let headers = folder.path().join("opal/datatype");
    let accelerator = folder.path().join("opal/mca/accelerator/base");
    for made in [&headers, &accelerator] {
        std::fs::create_dir_all(made).expect("a folder");
    }
    for name in
        ["opal_config.h", "opal/constants.h", "opal/mca/accelerator/accelerator.h", "opal/mca/accelerator/base/base.h"]
    {
        std::fs::write(folder.path().join(name), "#include \"sketch.h\"\n").expect("a header");
    }
    for name in ["opal_convertor", "opal_convertor_internal", "opal_datatype", "opal_datatype_internal"] {
        std::fs::write(headers.join(format!("{name}.h")), "#include \"sketch.h\"\n").expect("a header");
    }
    let sources = root().join("interfaces/open-mpi");
    std::fs::copy(INSTALLED.prefix.join("include/dtc.h"), headers.join("dtc.h")).expect("a header");
    let program = folder.path().join("convertor");
    let tests = root().join("tests/open-mpi");
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).args(options);
    compile.arg("-I").arg(folder.path()).arg("-I").arg(&tests).arg(tests.join("convertor.c"));
    for name in ["dtc_convertor.h", "dtc_description.h", "dtc_staging.h"] {
        std::fs::copy(sources.join(name), headers.join(name)).expect("a header");
    }
    for name in SOURCES.iter().chain(more) {
        std::fs::copy(sources.join(name), headers.join(name)).expect("a source");
        compile.arg(headers.join(name));
    }
    succeed(compile.args(pkg_config(&["--libs"])).args(["-pthread", "-ldl"]));
    program
}

/// A file of datatypes.
fn cases(folder: &TempDir, types: u64) -> PathBuf {
    let mut rng = SmallRng::seed_from_u64(40);
    let cases: String = (0..types).filter_map(|_| case(&mut rng)).collect();
    let file = folder.path().join("cases");
    std::fs::write(&file, cases).expect("a file");
    file
}

/// With the address sanitizer and that of undefined behaviour.
#[test]
fn convertor() {
    let folder = TempDir::new().expect("a folder");
    let program = compile(&folder, &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"], &[]);
    let file = cases(&folder, TYPES);
    let said = run_with("convertor", Command::new(&program).arg(&file).env("DTC_OPEN_MPI", "always"));
    assert!(!said.contains(" 0 served") && said.contains(" 0 by Open MPI") && !said.contains(" 0 converted"), "{said}");
}

/// Open MPI serves the first pieces of each datatype.
#[test]
fn convertor_after_the_first_pieces() {
    let folder = TempDir::new().expect("a folder");
    let program = compile(&folder, &[], &[]);
    let file = cases(&folder, TYPES);
    let said = run_with("convertor", Command::new(&program).arg(&file).env_remove("DTC_OPEN_MPI"));
    assert!(!said.contains(" 0 served") && said.contains(" 0 by Open MPI"), "{said}");
}

/// Elements in memory of an emulated GPU, in fragments and as staged messages.
#[test]
fn convertor_with_memory_of_a_gpu() {
    let folder = TempDir::new().expect("a folder");
    let program = compile(&folder, &["-DSKETCH_ACCELERATOR"], &["dtc_staging.c"]);
    let file = cases(&folder, TYPES_ON_A_GPU);
    let mut command = Command::new(&program);
    command.arg(&file).envs(environment(false)).env("DTC_OPEN_MPI_STAGED", "1");
    let said = run_with("convertor", &mut command);
    assert!(!said.contains(" 0 served") && said.contains(" 0 by Open MPI"), "{said}");
}
