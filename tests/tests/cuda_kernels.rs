//! Generated CUDA kernels, run on the CPU by the shim and compiled by NVRTC.

use dtc_compiler::codegen::cuda::{self, GenericKernel, Interpreted, entry};
use dtc_compiler::datatype::Datatype;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, GpuPlan};
use dtc_compiler::{canonicalise, lower};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::generate::sequence::Sequence;
use dtc_tests::generate::split;
use dtc_tests::nvrtc::compile_all;
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use dtc_tests::skip::skip;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

/// Most packed bytes of a case.
const LARGEST: u64 = 1 << 16;

/// Types with what they are called.
fn types(random_types: u64) -> Vec<(String, Datatype)> {
    let corpus = corpus::all().into_iter().map(|case| (case.name.to_owned(), case.datatype));
    let random = (0..random_types).map(|seed| {
        let limits = if seed % 3 == 0 { Limits::SMALL } else { Limits::DISJOINT };
        (format!("random seed {seed}"), random::datatype(&mut SmallRng::seed_from_u64(seed), &limits))
    });
    let sequences = (0..random_types).map(|seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let sequence = Sequence::draw(&mut rng, 3000);
        (format!("sequence seed {seed}"), split::datatype_of(&sequence, &mut rng))
    });
    corpus.chain(random).chain(sequences).collect()
}

/// The calls that a type is tried with: fragments at alignments.
fn calls(size: u64, rng: &mut SmallRng) -> Vec<(u64, u64, Placement)> {
    let mut calls = vec![(0, size, Placement { memory: 0, packed: 0 }), (0, size, Placement::random(rng))];
    for step in [1, 4, 8, 16] {
        let first = rng.random_range(0..size) / step * step;
        let bytes = rng.random_range(1..=size - first).next_multiple_of(step).min(size - first);
        calls.push((first, bytes, Placement::aligned(rng, step as usize)));
    }
    calls.retain(|call| call.1 > 0);
    calls
}

/// The cases of a type: its own kernels and the generic ones.
fn cases(name: &str, layout: &Layout, rng: &mut SmallRng, families: &mut BTreeMap<String, u32>) -> Vec<Case> {
    let canonical = canonicalise(layout).layout;
    let plan = GpuPlan::new(&canonical);
    let mut cases = Vec::new();
    let count = if layout.size() == 0 { 0 } else { rng.random_range(1..4).min(LARGEST / layout.size()).max(1) };
    // What is contiguous is copied without a kernel.
    if layout.size() * count == 0 || plan.is_contiguous() {
        return cases;
    }
    let interpreted = Interpreted::new(&plan);
    for (first, bytes, placement) in calls(layout.size() * count, rng) {
        // The oracle walks the layout as it was before any pass.
        let fragment = Fragment::new(layout, count, first, bytes);
        let (memory, packed) = (placement.memory as u64, placement.packed as u64);
        let call = Call { memory, packed, first, bytes };
        for direction in [Direction::Pack, Direction::Unpack] {
            let make = if direction == Direction::Pack { Case::pack } else { Case::unpack };
            if plan.allows() {
                let variant = plan.variant(direction, &call);
                let program = cuda::program(&plan, &[variant]).unwrap();
                let blocks = plan.blocks(&variant, &call).unwrap();
                let bounds = [fragment.low, fragment.high].map(i64::to_ne_bytes).concat();
                let kernel = Kernel::new(&program.source, entry(direction)).blocks(blocks).threads(variant.threads());
                let kernel = kernel.tables(&program.tables).extra(&bounds);
                let family = match variant.family {
                    Family::Words { word, .. } => format!("words of {word}"),
                    other => format!("{other:?}"),
                };
                cases.push(make(&format!("{name}, {direction}, {family}"), &kernel, &fragment, placement, rng));
                *families.entry(format!("{direction}, {family}")).or_default() += 1;
            }
            let generic = GenericKernel::serving(&plan, direction, &call);
            let blocks = plan.blocks(&generic.variant, &call).unwrap();
            let kernel = Kernel::new(&cuda::generic_source().unwrap(), generic.entry)
                .blocks(blocks)
                .threads(generic.variant.threads())
                .tables(&interpreted.tables)
                .extra(&interpreted.parameter(fragment.low, fragment.high).map(u64::to_ne_bytes).concat());
            cases.push(make(&format!("{name}, {}", generic.entry), &kernel, &fragment, placement, rng));
            *families.entry(generic.entry.to_owned()).or_default() += 1;
        }
    }
    cases
}

fn run_all(build: Build, types: Vec<(String, Datatype)>) {
    let mut families = BTreeMap::new();
    let mut shim = Shim::new(build);
    for (at, (name, datatype)) in types.iter().enumerate() {
        let mut rng = SmallRng::seed_from_u64(at as u64);
        for case in cases(name, &lower(datatype), &mut rng, &mut families) {
            shim.add(case);
        }
    }
    println!("{families:?}");
    let outcomes = shim.run().unwrap_or_else(|error| panic!("{error}"));
    let wrong: Vec<_> =
        outcomes.iter().filter_map(|outcome| Some((&outcome.name, outcome.result.as_ref().err()?))).collect();
    for (name, fault) in wrong.iter().take(20) {
        println!("{name}: {fault}");
    }
    assert!(wrong.is_empty(), "{} of {} cases are wrong", wrong.len(), outcomes.len());
}

#[test]
fn kernels_move_the_bytes_of_their_types() {
    run_all(Build::Fast, types(60));
}

#[test]
fn kernels_keep_to_what_they_may_touch() {
    run_all(Build::Checked, types(10));
}

#[test]
fn kernels_compile_for_every_architecture() {
    let mut texts = BTreeSet::new();
    for (name, datatype) in types(0) {
        let plan = GpuPlan::new(&canonicalise(&lower(&datatype)).layout);
        if plan.allows() {
            let variants = [Direction::Pack, Direction::Unpack].map(|direction| plan.usual(direction));
            texts.insert((name, cuda::program(&plan, &variants).unwrap().source));
        }
    }
    texts.insert(("generic".to_owned(), cuda::generic_source().unwrap()));
    let texts: Vec<_> = texts.into_iter().collect();
    match compile_all(&texts) {
        Ok(refusals) => {
            for refusal in refusals.iter().take(3) {
                println!("{refusal}");
            }
            assert!(refusals.is_empty(), "{} refused", refusals.len());
        }
        Err(missing) => skip("kernels_compile_for_every_architecture", &missing.to_string()),
    }
}
