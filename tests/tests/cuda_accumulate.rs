//! Kernels that accumulate, and kernels that copy from type to type, compared with the oracles; the shim runs them on
//! the CPU.

use dtc_compiler::codegen::cuda::{self, GENERIC_ACCUMULATE_ENTRY, GENERIC_ACCUMULATE_THREADS, Interpreted, Parameter};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_compiler::plan::gpu::{Accumulation, Call, Family, LaunchShape, Variant, computes};
use dtc_tests::kernels::{self, Subject};
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use dtc_tests::skip::is_full;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Packed bytes of a call.
const CALL: u64 = 6 << 10;

/// Bytes of address space that elements may span.
const SPAN: i64 = 1 << 40;

fn all() -> Vec<Reduction> {
    Reduction::all().filter(|&reduction| computes(reduction)).collect()
}

/// Layouts of whole elements of `size` bytes, which do not overlap.
fn suitable(size: u64) -> Vec<Subject> {
    let mut subjects = kernels::families();
    subjects.extend(kernels::examples());
    subjects.extend(kernels::random(40..60));
    subjects.push(plain("doubles", 800));
    subjects.push(plain("a piece of odd length", 3000 - 3000 % size + 7 * size));
    subjects.retain(|subject| {
        let layout = &subject.layout;
        let bytes = layout.size();
        bytes > 0
            && bytes.is_multiple_of(size)
            && bytes <= 1 << 20
            && layout.true_ub().abs_diff(layout.true_lb()) < SPAN as u64
            && !Fragment::new(layout, 1, 0, bytes).overlaps()
    });
    subjects
}

fn plain(name: &str, bytes: u64) -> Subject {
    let text = format!("layout lb 0 extent {bytes} {{\n  %0 = dense {bytes} x byte\n  root %0\n}}");
    Subject::new(name.to_owned(), dtc_compiler::layout::Layout::parse(&text).unwrap(), 3)
}

/// A random call of whole elements, at addresses that are aligned as allocations are, or at any.
fn call(subject: &Subject, size: u64, aligned: bool, rng: &mut SmallRng) -> (Fragment, Placement, Call) {
    let total = subject.layout.size();
    let elements = total / size;
    let taken = rng.random_range(1..=elements.min(CALL / size));
    let first = if rng.random_bool(0.3) { 0 } else { rng.random_range(0..=elements - taken) * size };
    let placement = match rng.random_range(0..5) {
        _ if aligned => Placement::aligned(rng, 256),
        0 => Placement::random(rng),
        1 => Placement { memory: 256, ..Placement::random(rng) },
        2 => Placement::aligned(rng, 8),
        3 => Placement::aligned(rng, 4),
        _ => Placement::aligned(rng, 256),
    };
    let fragment = Fragment::new(&subject.layout, 1, first, taken * size);
    let call = Call { memory: placement.memory as u64, packed: placement.packed as u64, first, bytes: taken * size };
    (fragment, placement, call)
}

/// The parameters of a kernel after the common five.
fn extra(blocks: u32, last: &[u8]) -> Vec<u8> {
    [&u64::from(blocks).to_le_bytes(), last].concat()
}

fn bytes_of(parameter: &Parameter) -> Vec<u8> {
    parameter.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// The plan's variant, or another that may serve the call.
fn drawn(subject: &Subject, reduction: Reduction, call: &Call, rng: &mut SmallRng) -> Variant {
    let variant = subject.plan.accumulation(reduction, call).expect("a kernel");
    let Family::Accumulate(chosen) = variant.family else { panic!("{variant}") };
    if rng.random_bool(0.5) {
        return variant;
    }
    let size = reduction.element().size() as u32;
    let most = |number: u64| 1 << number.trailing_zeros().min(4);
    let widest = subject.plan.granularity().word().min(most(call.memory));
    let fits = |word: &u32| *word <= widest && (word.is_multiple_of(size) || size.is_multiple_of(*word));
    let words: Vec<u32> = [1, 2, 4, 8, 16].into_iter().filter(fits).collect();
    let word = *words.choose(rng).expect("a word");
    let aligned = word <= most(call.packed.wrapping_sub(call.first)) && rng.random_bool(0.7);
    let shape = LaunchShape { threads: 96, unroll: rng.random_range(1..4) };
    let family = Family::Accumulate(Accumulation { word, aligned, shape, cut: word > size, ..chosen });
    Variant { family, wide: rng.random_bool(0.5), ..variant }
}

#[test]
fn every_reduction() {
    let mut rng = SmallRng::seed_from_u64(21);
    let generic = Kernel::new(&cuda::generic_source().unwrap(), "");
    let mut shim = Shim::new(Build::Checked);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut subjects: BTreeMap<u64, Vec<Subject>> = BTreeMap::new();
    for (at, reduction) in all().into_iter().enumerate() {
        let size = reduction.element().size();
        let subjects = subjects.entry(size).or_insert_with(|| suitable(size));
        let own = match reduction.element() {
            Element::F32 | Element::F64 | Element::C128 | Element::DoubleInt | Element::U8 => 3,
            _ => 1,
        };
        for number in 0..own {
            // The first of several has words of whole elements, for which few layouts are aligned.
            let first = own > 1 && number == 0;
            let wide: Vec<&Subject> = subjects
                .iter()
                .filter(|subject| !first || u64::from(subject.plan.granularity().word()) >= size)
                .collect();
            let subject = wide.choose(&mut rng).expect("a layout");
            let (fragment, placement, call) = call(subject, size, first, &mut rng);
            let plan = &subject.plan;
            // The generic kernel of every reduction, and compiled ones of the others for a third.
            let compiled = own > 1 || at.is_multiple_of(3) || is_full();
            if compiled && plan.allows_in_batch() {
                let variant = drawn(subject, reduction, &call, &mut rng);
                let Family::Accumulate(Accumulation { word, aligned, cut, .. }) = variant.family else {
                    unreachable!()
                };
                let parts = if u64::from(word) < size { "elements apart" } else { "whole elements" };
                *seen.entry(format!("words of {word}, {parts}, aligned {aligned}, cut {cut}")).or_default() += 1;
                let program = cuda::program(plan, &[variant]).unwrap();
                let blocks = plan.blocks(&variant, &call).expect("a grid");
                let bounds = [fragment.low, fragment.high].map(i64::to_ne_bytes).concat();
                let entry = format!("accumulate::{}", cuda::entry(&variant));
                let kernel = Kernel::new(&program.source, &entry).threads(variant.threads()).tables(&program.tables);
                let kernel = kernel.blocks(blocks).extra(&extra(blocks, &bounds));
                let name = format!("{}, {variant}", subject.name);
                shim.add(Case::accumulate(&name, &kernel, &fragment, placement, reduction, &mut rng));
            }
            let interpreted = Interpreted::new(plan);
            let blocks = (call.bytes / size).div_ceil(GENERIC_ACCUMULATE_THREADS.into()) as u32;
            let kernel = generic.clone().tables(&interpreted.tables).threads(GENERIC_ACCUMULATE_THREADS);
            let last = bytes_of(&interpreted.program.accumulating(reduction));
            let kernel = kernel.blocks(blocks).extra(&extra(blocks, &last));
            let kernel = Kernel { entry: format!("generic_accumulate::{GENERIC_ACCUMULATE_ENTRY}"), ..kernel };
            let name = format!("{}, {reduction}, generic", subject.name);
            shim.add(Case::accumulate(&name, &kernel, &fragment, placement, reduction, &mut rng));
        }
    }
    finish(&shim);
    println!("{seen:#?}");
    for expected in
        ["words of 16, whole", "words of 2, elements apart", "aligned false, cut true", "words of 1, elements"]
    {
        assert!(seen.keys().any(|found| found.contains(expected)), "no case has {expected}");
    }
}

fn finish(shim: &Shim) {
    let outcomes = shim.run().unwrap_or_else(|error| panic!("{error}"));
    let mut faults = Vec::new();
    for outcome in &outcomes {
        match &outcome.result {
            Err(fault) => faults.push(format!("{}: {fault}", outcome.name)),
            Ok(traffic) if traffic.memory.stored_again + traffic.packed.stored_again > 0 => {
                faults.push(format!("{}: stores bytes again", outcome.name));
            }
            Ok(_) => {}
        }
    }
    println!("{} launches", outcomes.len());
    let shown: Vec<&str> = faults.iter().take(20).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} of {} launches are wrong:\n{}", faults.len(), outcomes.len(), shown.join("\n"));
}

#[test]
fn every_reduction_is_told_apart() {
    let numbers: std::collections::BTreeSet<u64> = Reduction::all()
        .map(|reduction| Interpreted::new(&plain("bytes", 240).plan).program.accumulating(reduction)[7] >> 32)
        .collect();
    assert_eq!(numbers.len(), Reduction::all().count());
    assert!(!computes(Reduction::new(Operation::MinLoc, Element::LongDoubleInt).unwrap()));
}
