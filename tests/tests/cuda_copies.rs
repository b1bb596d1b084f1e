//! Kernels that copy from type to type, compared with the reference walker; the shim runs them on the CPU.

use dtc_compiler::codegen::cuda::{self, COPY_ENTRY, CopyTarget, GENERIC_COPY, GENERIC_COPY_ENTRY, Interpreted};
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::gpu::{CopyCall, CopyFamily, CopyVariant, LaunchShape};
use dtc_tests::kernels::{self, Subject};
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Packed bytes of a call.
const CALL: u64 = 9 << 10;

/// Most bytes that elements may span.
const SPAN: u64 = 1 << 40;

/// Number of pairs of layouts.
const PAIRS: usize = 160;

fn subjects() -> Vec<Subject> {
    let mut subjects = kernels::families();
    subjects.extend(kernels::examples());
    subjects.extend(kernels::random(60..90));
    let text = "layout lb 0 extent 6000 {\n  %0 = dense 6000 x byte\n  root %0\n}";
    subjects.push(Subject::new("bytes".to_owned(), Layout::parse(text).unwrap(), 1));
    subjects.retain(|Subject { layout, .. }| {
        layout.size() > 0 && layout.size() <= 1 << 20 && layout.true_ub().abs_diff(layout.true_lb()) < SPAN
    });
    subjects
}

/// The plan's variant, or another that may serve the call.
fn drawn(chosen: CopyVariant, source: &Subject, target: &Subject, call: &CopyCall, rng: &mut SmallRng) -> CopyVariant {
    if rng.random_bool(0.6) {
        return chosen;
    }
    let bits = call.source | call.target | call.target_first.wrapping_sub(call.source_first);
    let widest =
        source.plan.granularity().word().min(target.plan.granularity().word()).min(1 << bits.trailing_zeros().min(4));
    let words: Vec<u32> = [1, 2, 4, 8, 16].into_iter().filter(|word| *word <= widest).collect();
    let family = match words.choose(rng) {
        Some(&word) if rng.random_bool(0.7) => {
            CopyFamily::Words { word, shape: LaunchShape { threads: 96, unroll: 3 }, cut: true }
        }
        _ => CopyFamily::Bytes,
    };
    CopyVariant { family, wide: rng.random_bool(0.5) }
}

#[test]
fn every_pair() {
    let mut rng = SmallRng::seed_from_u64(31);
    let subjects = subjects();
    let targets: Vec<&Subject> = subjects
        .iter()
        .filter(|subject| !Fragment::new(&subject.layout, 1, 0, subject.layout.size()).overlaps())
        .collect();
    let generic = Kernel::new(&cuda::generic_source().unwrap(), &format!("generic_copy::{GENERIC_COPY_ENTRY}"));
    let mut shim = Shim::new(Build::Checked);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    // Bytes that each case may store again, at most.
    let mut again: Vec<u64> = Vec::new();
    for pair in 0..PAIRS {
        // Few layouts have the widest words, and fewer pairs.
        let suits = |subject: &&Subject| pair % 4 != 3 || subject.plan.granularity().word() == 16;
        let source = subjects.iter().filter(suits).choose(&mut rng).expect("a layout");
        let target = targets.iter().copied().filter(suits).choose(&mut rng).expect("a layout");
        let most = source.layout.size().min(target.layout.size()).min(CALL);
        let unit = if rng.random_bool(0.6) && most >= 16 { 16 } else { 1 };
        let bytes = rng.random_range(1..=most / unit) * unit;
        let mut first = |size: u64| {
            if rng.random_bool(0.3) { 0 } else { rng.random_range(0..=(size - bytes) / unit) * unit }
        };
        let (source_first, target_first) = (first(source.layout.size()), first(target.layout.size()));
        let placement = match pair % 4 {
            0 => Placement::random(&mut rng),
            1 => Placement::aligned(&mut rng, 4),
            _ => Placement::aligned(&mut rng, 256),
        };
        let from = Fragment::new(&source.layout, 1, source_first, bytes);
        let to = Fragment::new(&target.layout, 1, target_first, bytes);
        let (memory, packed) = (placement.memory as u64, placement.packed as u64);
        let call = CopyCall { source: memory, source_first, target: packed, target_first, bytes };
        let last = CopyTarget { low: from.low, high: from.high, first: target_first, ..CopyTarget::default() };
        let name = format!("{} to {} from {target_first}", source.name, target.name);
        if let Some(chosen) = CopyVariant::serving(&source.plan, &target.plan, &call) {
            let variant = drawn(chosen, source, target, &call, &mut rng);
            let what = match variant.family {
                CopyFamily::Words { word, cut, .. } => format!("words of {word}, cut {cut}"),
                CopyFamily::Rows { .. } => "rows".to_owned(),
                CopyFamily::Bytes => "bytes".to_owned(),
            };
            *seen.entry(what).or_default() += 1;
            let program = cuda::copy(&source.plan, &target.plan, &variant).unwrap();
            let blocks = variant.blocks(bytes).expect("a grid");
            let kernel = Kernel::new(&program.source, &format!("copy::{COPY_ENTRY}")).tables(&program.tables);
            let kernel = kernel.threads(variant.threads()).blocks(blocks);
            let kernel = kernel.extra(&extra(blocks, &last));
            shim.add(Case::copy(&format!("{name}, {variant}"), &kernel, &from, &to, placement, &mut rng));
            // Threads beyond the end move the last word once more.
            again.push(match variant.family {
                CopyFamily::Words { word, shape, .. } => u64::from(word * shape.threads * shape.unroll),
                _ => 0,
            });
        }
        again.push(0);
        shim.add(interpreted(&name, &generic, [source, target], [&from, &to], last, placement, &mut rng));
    }
    let outcomes = shim.run().unwrap_or_else(|error| panic!("{error}"));
    let mut faults = Vec::new();
    for (outcome, &most) in outcomes.iter().zip(&again) {
        match &outcome.result {
            Err(fault) => faults.push(format!("{}: {fault}", outcome.name)),
            Ok(traffic) if traffic.packed.stored_again > most => faults.push(format!("{}: stores again", outcome.name)),
            Ok(_) => {}
        }
    }
    println!("{} launches, {seen:#?}", outcomes.len());
    let shown: Vec<&str> = faults.iter().take(20).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} of {} launches are wrong:\n{}", faults.len(), outcomes.len(), shown.join("\n"));
    for expected in ["bytes", "rows", "words of 1,", "words of 4,", "words of 8,", "words of 16,"] {
        assert!(seen.keys().any(|found| found.starts_with(expected)), "no case has {expected}");
    }
}

/// The parameters of a kernel after the common five.
fn extra(blocks: u32, last: &CopyTarget) -> Vec<u8> {
    let numbers = [blocks.into(), last.low as u64, last.high as u64, last.first, last.tables];
    numbers.into_iter().chain(last.programs).flat_map(u64::to_ne_bytes).collect()
}

/// A launch of the generic kernel, through a kernel that turns positions in the lists into addresses.
fn interpreted(
    name: &str,
    generic: &Kernel,
    subjects: [&Subject; 2],
    [from, to]: [&Fragment; 2],
    last: CopyTarget,
    placement: Placement,
    rng: &mut SmallRng,
) -> Case {
    let mut lists: Vec<u8> = Vec::new();
    let mut add = |bytes: &[u8]| {
        lists.resize(lists.len().next_multiple_of(16), 0);
        let at = lists.len() as u64;
        lists.extend_from_slice(bytes);
        at
    };
    let programs = subjects.map(|subject| Interpreted::new(&subject.plan));
    let tables = programs.each_ref().map(|program| add(&program.tables));
    let programs = programs.map(|program| {
        let words = program.program.nodes();
        add(&words.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>())
    });
    let blocks = GENERIC_COPY.blocks(from.bytes).expect("a grid");
    let text = format!(
        "{}
extern \"C\" __global__ void relocated(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, u32 blocks, Target to, u64 own)
{{
    to.source_program = tables + (u64)to.source_program;
    to.program = tables + (u64)to.program;
    to.tables = tables + (u64)to.tables;
    generic_copy::{GENERIC_COPY_ENTRY}(memory, packed, tables + own, first, bytes, blocks, to);
}}
",
        generic.text
    );
    let mut parameters = extra(blocks, &CopyTarget { tables: tables[1], programs, ..last });
    parameters.extend_from_slice(&tables[0].to_ne_bytes());
    let kernel = Kernel::new(&text, "relocated").tables(&lists).threads(GENERIC_COPY.threads());
    let kernel = kernel.blocks(blocks).extra(&parameters);
    Case::copy(&format!("{name}, generic"), &kernel, from, to, placement, rng)
}
