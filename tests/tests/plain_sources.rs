//! Plain sources, compiled and run beside the reference walker.
//!
//! The C of all examples, of the corpus and of random types is compiled by gcc, and by clang where it is installed, without a warning.
//! Whole transfers and fragments move between buffers of any alignment with poison around, and once more under the sanitizers. The CUDA
//! headers are compiled by NVRTC, and run in the shim.

mod driven;
mod texts;

use driven::{AARCH64, Functions, SANITIZED, Subject, Toolchain, corpus_types, examples, random_types};
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_compiler::codegen::llvm;
use dtc_compiler::codegen::source::{self, TooLarge};
use dtc_compiler::datatype::{Predefined, TypeBuilder, text};
use dtc_tests::nvrtc::compile_in_turn;
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use dtc_tests::skip::skip;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fs;
use std::process::Command;

fn has_text(subject: &Subject) -> bool {
    source::c(&subject.name, &subject.pipeline).is_ok()
}

/// Compiles and runs the C files of all types.
fn expect_c(toolchain: &Toolchain) {
    let mut subjects = examples();
    subjects.extend(corpus_types().into_iter().filter(has_text));
    subjects.extend(random_types());
    driven::expect(toolchain, &subjects, |subject| {
        let text =
            source::c(&subject.name, &subject.pipeline).unwrap_or_else(|error| panic!("{}: {error}", subject.name));
        Functions { text, fragments: true, object: None }
    });
}

/// With the poison around the buffers.
#[test]
fn c_by_gcc_moves_what_the_walker_says() {
    expect_c(&Toolchain::GCC);
}

#[test]
fn c_by_clang_moves_what_the_walker_says() {
    if Command::new("clang").arg("--version").output().is_err() {
        return skip("c_by_clang_moves_what_the_walker_says", "needs clang");
    }
    expect_c(&Toolchain { compiler: "clang", ..Toolchain::GCC });
}

#[test]
fn c_moves_what_the_walker_says_under_the_sanitizers() {
    expect_c(&SANITIZED);
}

#[test]
#[ignore = "needs a compiler for AArch64 and an emulator: ./test aarch64"]
fn c_for_aarch64_moves_what_the_walker_says() {
    expect_c(&AARCH64);
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

/// A kernel that packs by asking where each byte of memory belongs.
fn kernel_by_position(name: &str) -> String {
    format!(
        "
extern \"C\" __global__ void by_position(unsigned char *memory, unsigned char *packed, const unsigned char *,
    unsigned long long first, unsigned long long bytes)
{{
    for (unsigned long long at = blockIdx.x * blockDim.x + threadIdx.x; at < bytes; at += gridDim.x * blockDim.x) {{
        const unsigned long long place = (unsigned long long){name}::place(first + at);
        packed[{name}::position(place) - first] = memory[place];
    }}
}}
"
    )
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
    match compile_in_turn(&texts) {
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
    let mut nests = 0;
    let mut subjects = examples();
    subjects.extend(corpus_types().into_iter().filter(has_text));
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
        let name = source::identifier(&subject.name);
        let is_nest = header.contains("Index position(Index place)");
        nests += usize::from(is_nest);
        let inverse = if is_nest { kernel_by_position(&name) } else { String::new() };
        let text = header + &kernels(&name) + &inverse;
        let all = layout.size() * count;
        let mut asked = vec![(0, all.min(64 << 10))];
        for _ in 0..3 {
            let first = rng.random_range(0..all);
            asked.push((first, rng.random_range(0..=(all - first).min(8 << 10))));
        }
        for (place, (first, bytes)) in asked.into_iter().enumerate() {
            let fragment = Fragment::new(layout, count, first, bytes);
            let placement = if place == 0 { Placement::aligned(&mut rng, 256) } else { Placement::random(&mut rng) };
            if is_nest {
                let pack = Kernel::new(&text, "by_position").blocks(2).threads(96);
                shim.add(Case::pack(&subject.name, &pack, &fragment, placement, &mut rng));
            }
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
    println!("{} cases, {nests} types that are nests", outcomes.len());
    assert!(nests > 20, "{nests}");
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

/// Each has another kind of loop or vector: words, squares of a transpose, masks, shuffles, a list.
#[test]
fn instructive_types_have_their_modules() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../llvm");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, target, notation) in [
            ("columns", CpuTarget::X86_64, "vector 12 5 14 double"),
            ("transpose", CpuTarget::X86_64V3, "hvector 45 1 8 (vector 37 1 45 double)"),
            ("records", CpuTarget::X86_64V4, "resized 0 24 (struct [1@0 double, 2@8 int, 1@16 char])"),
            ("shuffled", CpuTarget::Zen5, "vector 1000 1 2 double"),
            ("reversed", CpuTarget::X86_64V3, "hvector 8 1 -8 double"),
            ("scattered", CpuTarget::Aarch64, "indexed_block 3 [0, 17, 3, 40, 92, 61, 28, 55, 80, 99] int"),
        ] {
            let pipeline = Pipeline::new(text::parse(notation).unwrap_or_else(|error| panic!("{name}: {error}")));
            insta::assert_snapshot!(format!("{name}.ll"), llvm::ir(target, name, pipeline.plan()).unwrap());
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
