//! No pass makes a layout that is slower to move than the one that was described, or much larger.

use dtc_compiler::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder, TypeId};
use dtc_compiler::plan::{Plan, Step};
use dtc_compiler::{canonicalise, lower};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Types of random constructors.
const RANDOM: u64 = 3_000;

/// What a plan may be estimated to take, as a multiple of the description. The estimate knows the time that a list's blocks take to
/// be moved by their bytes alone, so it sees no gain where stretches of a list become loops.
const FACTOR: u64 = 3;

/// Nanoseconds that a plan may be estimated to take beyond that: entering loops that shorten a list.
const LOOPS: u64 = 40;

/// The entries of all lists of a plan, and its steps.
fn entries(plan: &Plan) -> usize {
    let of = |step: &Step| match step {
        Step::List { offsets, .. } | Step::Scatter { offsets, .. } => offsets.len(),
        Step::Runs(table) => table.runs.len(),
        Step::Sequence { parts } => parts.len(),
        _ => 0,
    };
    plan.steps().iter().map(|step| 1 + of(step)).sum()
}

fn check(name: &str, datatype: &Datatype) {
    let lowered = lower(datatype);
    let (described, planned) = (Plan::as_described(&lowered), Plan::new(&canonicalise(&lowered).layout));
    let [before, after] = [&described, &planned].map(|plan| plan.decision().generic_nanoseconds());
    assert!(
        after <= before.saturating_mul(FACTOR).saturating_add(LOOPS),
        "{name}: {after} ns, described {before} ns\n{planned}"
    );
    // What is written out: four runs an entry and a thousand, twice for parts of a DAG that overlap (decision 4), and what plans write.
    let (most, found) = (8 * lowered.entries() as usize + 4096, entries(&planned));
    assert!(found <= most, "{name}: {found} entries of {most}");
}

#[test]
fn the_corpus() {
    for case in corpus::all() {
        check(case.name, &case.datatype);
    }
}

#[test]
fn random_types() {
    for seed in 0..RANDOM {
        let mut rng = SmallRng::seed_from_u64(seed);
        check(&format!("seed {seed}"), &random::datatype(&mut rng, &Limits::SMALL));
    }
}

/// A list of structs of five fields, which touch their neighbours where `touching`.
fn records(types: &mut TypeBuilder, places: &[i64], touching: bool) -> Result<TypeId, DatatypeError> {
    let [int, double, float, short] =
        [Predefined::INT, Predefined::DOUBLE, Predefined::FLOAT, Predefined::SHORT].map(|kind| types.named(kind));
    let last = if touching { 72 } else { 56 };
    let record = types.structure(&[1, 3, 3, 1, 2], &[0, 8, 36, 50, last], &[int, double, float, short, double])?;
    let record = types.resized(0, 88, record)?;
    types.indexed_block(1, places, record)
}

#[test]
fn lists_of_structs_are_lists_of_groups() {
    let mut rng = SmallRng::seed_from_u64(7);
    for number in [8, 100, 1_000, 20_000] {
        for share in [0.02, 0.2, 0.5, 0.9, 0.99] {
            for touching in [false, true] {
                let places: Vec<i64> =
                    (0..(f64::from(number) / share) as i64).filter(|_| rng.random_bool(share)).collect();
                if places.len() < 8 {
                    continue;
                }
                let mut types = TypeBuilder::new();
                let list = records(&mut types, &places, touching).unwrap();
                let datatype = types.finish(list).unwrap();
                let name = format!("{} of {number} records, share {share}, touching {touching}", places.len());
                check(&name, &datatype);
                let plan = Plan::new(&canonicalise(&lower(&datatype)).layout);
                assert!(plan.steps().len() <= 40 && entries(&plan) <= places.len() + 100, "{name}\n{plan}");
            }
        }
    }
}
