//! NVRTC takes the generated kernels for every GPU that dtc supports, without a warning.

use dtc_compiler::codegen::cuda;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, Variant};
use dtc_tests::kernels::{self, Subject};
use dtc_tests::nvrtc::{ARCHITECTURES, compile_all};
use dtc_tests::skip::skip;
use std::collections::BTreeMap;

/// Compiles named texts; the test passes as skipped where there is no NVRTC.
fn expect_accepted(test: &str, texts: &[(String, String)]) {
    match compile_all(texts) {
        Ok(refusals) => {
            for refusal in refusals.iter().take(5) {
                println!("{refusal}");
            }
            assert!(refusals.is_empty(), "{} refused", refusals.len());
            println!("{} texts for each of sm_{ARCHITECTURES:?}", texts.len());
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

/// Each family for a few layouts, with indices of both widths: a pack and an unpack in a text.
#[test]
fn every_family() {
    let mut texts = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for Subject { name, plan, .. } in kernels::families() {
        let call = Call::whole(4096);
        let [packs, unpacks] = [Direction::Pack, Direction::Unpack].map(|direction| {
            let mut variants = kernels::variants(&plan, direction, &call);
            // Two layouts for each are enough, and those with lists come last.
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
        Family::Rows { .. } => "rows".to_owned(),
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

#[test]
fn generic_kernels() {
    let source = cuda::generic_source().unwrap();
    expect_accepted("generic_kernels", &[("the generic kernels".to_owned(), source)]);
}
