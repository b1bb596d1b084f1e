//! NVRTC compiles the generated kernels for every GPU that dtc supports, without a warning: each for one of them in turn, and with
//! `./test full` for all.

use dtc_compiler::codegen::cuda::{self, BatchPart, TabledSides, tabled_in_batch};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, CopyCall, CopyVariant, Family, TabledVariant, Variant, computes};
use dtc_compiler::tabled::TabledLayout;
use dtc_tests::generate::tabled::tabled;
use dtc_tests::kernels::{self, Subject};
use dtc_tests::nvrtc::{ARCHITECTURES, compile_in_turn};
use dtc_tests::skip::skip;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

/// Compiles named texts. Without NVRTC, the test is skipped.
fn expect_accepted(test: &str, texts: &[(String, String)]) {
    match compile_in_turn(texts) {
        Ok(refusals) => {
            for refusal in refusals.iter().take(5) {
                println!("{refusal}");
            }
            assert!(refusals.is_empty(), "{} refused", refusals.len());
            println!("{} texts for sm_{ARCHITECTURES:?}", texts.len());
        }
        Err(missing) => skip(test, &missing.to_string()),
    }
}

fn usual(subject: &Subject) -> Option<(String, String)> {
    let program = subject.plan.allows().then(|| kernels::usual(&subject.plan).unwrap())?;
    Some((subject.name.clone(), program.source))
}

#[test]
fn kernels_of_every_example() {
    let texts: Vec<_> = kernels::examples().iter().filter_map(usual).collect();
    assert!(texts.len() > 30, "{}", texts.len());
    expect_accepted("kernels_of_every_example", &texts);
}

#[test]
fn kernels_of_random_types() {
    let texts: Vec<_> = kernels::random(1000..1006).iter().filter_map(usual).collect();
    expect_accepted("kernels_of_random_types", &texts);
}

/// Each family for a few layouts, with indices of both widths; each text has a pack and an unpack.
#[test]
fn every_family() {
    let mut texts = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for Subject { name, plan, .. } in kernels::families() {
        let call = Call::whole(4096);
        let [packs, unpacks] = [Direction::Pack, Direction::Unpack].map(|direction| {
            let mut variants = kernels::variants(&plan, direction, &call);
            // Two layouts for each suffice; those with lists come last.
            variants.retain(|variant| {
                let known = seen.entry(format!("{direction} {}", template(variant))).or_default();
                *known += 1;
                *known <= 2
            });
            variants
        });
        for at in 0..packs.len().max(unpacks.len()) {
            let pair = [packs.get(at), unpacks.get(at)];
            let pair: Vec<Variant> =
                pair.into_iter().flatten().map(|&variant| Variant { wide: at % 2 == 1, ..variant }).collect();
            let source = cuda::program(&plan, &pair).unwrap().source;
            texts.push((format!("{name}, {}", pair[0]), source));
        }
    }
    expect_accepted("every_family", &texts);
}

fn template(variant: &Variant) -> String {
    match variant.family {
        Family::Rows(_) => "rows".to_owned(),
        family => family.to_string(),
    }
}

/// Lists of every kind and records.
#[test]
fn every_list() {
    let mut subjects = kernels::families();
    subjects
        .retain(|subject| ["runs", "blocks", "record", "count", "seam"].iter().any(|word| subject.name.contains(word)));
    let texts: Vec<_> = subjects.iter().filter_map(usual).collect();
    expect_accepted("every_list", &texts);
}

/// Each reduction on one layout after the other, at several alignments.
#[test]
fn every_reduction() {
    let mut subjects = kernels::families();
    subjects.retain(|subject| subject.plan.allows_in_batch());
    let mut texts = Vec::new();
    for (number, reduction) in Reduction::all().filter(|&reduction| computes(reduction)).enumerate() {
        let Subject { name, plan, .. } = &subjects[number % subjects.len()];
        let size = reduction.element().size();
        let alignment = 1 << (number % 5);
        let call = Call { memory: alignment, packed: 16 / alignment, first: 0, bytes: 5 * size };
        let variant = plan.accumulation(reduction, &call).expect("a kernel");
        texts.push((format!("{name}, {variant}"), cuda::program(plan, &[variant]).unwrap().source));
    }
    expect_accepted("every_reduction", &texts);
}

/// Copies from each layout to a few others, at several alignments.
#[test]
fn copies() {
    let mut subjects = kernels::families();
    subjects.retain(|subject| subject.plan.allows_in_batch());
    let mut texts = Vec::new();
    for (number, pair) in subjects.windows(2).enumerate() {
        let (source, target) = (1 << (number % 5), 16);
        let call = CopyCall { source, source_first: 0, target, target_first: 0, bytes: 999 + number as u64 % 2 };
        let variant = CopyVariant::serving(&pair[0].plan, &pair[1].plan, &call).expect("a kernel");
        let program = cuda::copy(&pair[0].plan, &pair[1].plan, &variant).unwrap();
        texts.push((format!("{} to {}, {variant}", pair[0].name, pair[1].name), program.source));
    }
    expect_accepted("copies", &texts);
}

/// More kinds of tiles than fit shared memory side by side, aligned and unaligned.
#[test]
fn batches_of_tiles() {
    let mut texts = Vec::new();
    for (word, packed) in [(4, 0), (8, 0), (8, 1)] {
        let subjects = kernels::transposes(word, 3);
        let call = |subject: &Subject| Call { packed, ..Call::whole(subject.layout.size()) };
        let asked: Vec<_> = subjects
            .iter()
            .flat_map(|subject| {
                [Direction::Pack, Direction::Unpack].map(|direction| {
                    let mut candidates = subject.plan.candidates(direction, &call(subject)).into_iter();
                    let tiles = candidates.rfind(|variant| matches!(variant.family, Family::Tiles(_)));
                    (&subject.plan, tiles.expect("tiles"))
                })
            })
            .collect();
        let source = cuda::batch(&asked).unwrap().program.source;
        texts.push((format!("tiles of {} kinds of words of {word}, packed at {packed}", asked.len()), source));
    }
    expect_accepted("batches_of_tiles", &texts);
}

/// Kernels of types with index tables alone, and in batches with packs and unpacks of others.
#[test]
fn index_tables() {
    let layouts: Vec<TabledLayout> =
        (0..8).map(|seed| TabledLayout::new(&tabled(&mut SmallRng::seed_from_u64(seed), true).datatype)).collect();
    let subjects: Vec<Subject> =
        kernels::families().into_iter().filter(|subject| subject.plan.allows_in_batch()).collect();
    let mut texts = Vec::new();
    for (number, (pair, others)) in layouts.windows(2).zip(subjects.chunks(4)).enumerate() {
        let word = 1 << (number % 5);
        let variant = |end: u64| TabledVariant::new(word.min(pair[0].granularity()), end, number % 2 == 0);
        let narrow = variant(1 << 20);
        let both = TabledVariant { word: narrow.word.min(pair[1].granularity()), ..variant(1 << 40) };
        let sides = [
            (TabledSides::Pack(&pair[0]), narrow),
            (TabledSides::Unpack(&pair[0]), narrow),
            (TabledSides::Copy { source: &pair[0], target: &pair[1] }, both),
        ];
        let sum = Reduction::new(Operation::Sum, Element::ALL[number]).ok();
        let adding = sum.and_then(|sum| TabledVariant::accumulating(sum, pair[0].granularity(), 1 << 20, false));
        let sides = sides.into_iter().chain(adding.map(|adding| (TabledSides::Unpack(&pair[0]), adding)));
        let sides: Vec<_> = sides.collect();
        let fixed = others.iter().enumerate().map(|(at, subject)| {
            let direction = if at % 2 == 0 { Direction::Pack } else { Direction::Unpack };
            BatchPart::Fixed(&subject.plan, subject.plan.usual(direction))
        });
        let parts = sides.iter().map(|&(sides, variant)| BatchPart::Tabled(sides, tabled_in_batch(variant)));
        let batch = cuda::batch_of(&parts.chain(fixed).collect::<Vec<_>>()).unwrap();
        texts.push((format!("batch {number}"), batch.program.source));
        for (sides, variant) in sides.into_iter() {
            texts.push((format!("{variant}, {number}"), cuda::tabled(sides, &variant).unwrap().source));
        }
    }
    expect_accepted("index_tables", &texts);
}

#[test]
fn generic_kernels() {
    let source = cuda::generic_source().unwrap();
    expect_accepted("generic_kernels", &[("the generic kernels".to_owned(), source)]);
}
