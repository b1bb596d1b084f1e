//! The conformance run on every type of the corpus, on the examples, and on random types.

use crate::harness::{Outcome, Tests};
use crate::tier::OnTier;
use dtc_compiler::datatype::{Datatype, json};
use dtc_tests::conformance::{GpuSubject, run_on_copies};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Number of random types for each tier.
const RANDOM_TYPES: u64 = 150;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let tier = on.name;
    for case in corpus::all() {
        let (on, name) = (on.clone(), format!("{tier}: corpus: {}", case.name));
        tests.add(name.clone(), move || conforms(&on, &name, &case.datatype, 1));
    }
    for (example, datatype) in examples() {
        let (on, name) = (on.clone(), format!("{tier}: example: {example}"));
        tests.add(name.clone(), move || conforms(&on, &name, &datatype, 2));
    }
    for seed in 0..RANDOM_TYPES {
        let on = on.clone();
        tests.add(format!("{tier}: random: {seed}"), move || {
            let mut rng = SmallRng::seed_from_u64(seed);
            let datatype = random::datatype(&mut rng, &Limits::SMALL);
            conforms(&on, &format!("random {seed}"), &datatype, seed)
        });
    }
}

fn conforms(on: &OnTier, name: &str, datatype: &Datatype, seed: u64) -> Outcome {
    Ok(run_on_copies(&GpuSubject::new(&on.engine, &on.gpu, name, datatype), datatype, seed)?)
}

/// Every example small enough to check each byte many times.
fn examples() -> Vec<(String, Datatype)> {
    let mut found = Vec::new();
    for file in std::fs::read_dir("ir-examples").into_iter().flatten().flatten() {
        let path = file.path();
        let Some(text) = std::fs::read_to_string(&path).ok().filter(|_| path.extension().is_some_and(|e| e == "json"))
        else {
            continue;
        };
        if let Ok(description) = json::read(&text)
            && description.datatype.facts().true_extent() < 1 << 21
        {
            found.push((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), description.datatype));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}
