//! Every type on every engine, by the conformance run.

use dtc_compiler::datatype::{Datatype, text};
use dtc_compiler::lower;
use dtc_runtime::Tier;
use dtc_tests::conformance::{DescribedSubject, EngineSubject, engines, run};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::generate::sequence::Sequence;
use dtc_tests::generate::split;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::process::Command;

/// Runs types on every engine, and prints the tiers that served them.
fn run_all(types: impl Iterator<Item = (String, Datatype)>) {
    let engines = engines();
    let (mut runs, mut specialised) = (0, 0);
    let (mut calls, mut canonical) = (0, 0);
    for (at, (what, datatype)) in types.enumerate() {
        for (name, engine) in &engines {
            let subject = EngineSubject::new(engine, &format!("{what} on engine {name}"), &datatype);
            let outcome = run(&subject, &datatype, at as u64);
            assert_eq!(outcome, Ok(()), "{what}:\n{}\n{}", subject.committed.layout(), subject.committed.tier());
            runs += 1;
            specialised += u32::from(subject.committed.tier() == Tier::Specialised);
        }
        // At least every 30th call prepares the lists of a type again. There are many calls, so only half of the types
        // run so.
        if at % 2 == 0 && datatype.entries() < 4096 {
            let subject = DescribedSubject::new(&what, &datatype);
            assert_eq!(run(&subject, &datatype, at as u64), Ok(()), "{what}:\n{}", lower(&datatype));
            (calls, canonical) = (calls + subject.calls().0, canonical + subject.calls().1);
        }
    }
    println!("{runs} runs, {specialised} of them by kernels made for the type");
    println!("{calls} calls on types as described, {canonical} of them after a commit");
    assert!(canonical < calls / 5, "{canonical} of {calls} calls did not test the description");
}

#[test]
fn the_corpus() {
    run_all(corpus::all().into_iter().map(|case| (case.name.to_owned(), case.datatype)));
}

/// Rows that are tiles because there are many of them: fields of records in more than 1 MiB.
#[test]
fn fields_of_many_records() {
    let types = [
        "hvector 9 1 16 (hvector 8000 1 144 c_double_complex)",
        "hvector 5 1 8 (hvector 12000 1 96 double)",
        "hvector 4 1 12 (hvector 18000 1 60 float)",
        "hvector 6 1 2 (hvector 40000 1 28 short)",
        "hvector 4 1 2 (hvector 5 1 8 (hvector 26500 1 40 short))",
    ];
    for (notation, (name, engine)) in
        types.into_iter().flat_map(|notation| engines().into_iter().map(move |one| (notation, one)))
    {
        let datatype = text::parse(notation).expect("a type");
        let subject = EngineSubject::new(&engine, &format!("{notation} on engine {name}"), &datatype);
        assert_eq!(run(&subject, &datatype, 1), Ok(()));
    }
}

/// The corpus and many records with the microkernels of other processors, each in a process of its own.
#[test]
fn the_corpus_on_other_levels() {
    let this = std::env::current_exe().unwrap();
    for level in ["portable", "avx2", "avx512", "zen4", "zen5"] {
        let status = Command::new(&this)
            .args(["--exact", "the_corpus", "fields_of_many_records"])
            .env("DTC_CPU", level)
            .status()
            .unwrap();
        assert!(status.success(), "{level}");
    }
}

#[test]
fn random_types() {
    run_all((0..600).map(|seed| {
        let limits = if seed % 3 == 0 { Limits::SMALL } else { Limits::DISJOINT };
        (format!("random seed {seed}"), random::datatype(&mut SmallRng::seed_from_u64(seed), &limits))
    }));
}

#[test]
fn written_sequences() {
    run_all((0..600).map(|seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let sequence = Sequence::draw(&mut rng, 3000);
        (format!("sequence seed {seed}"), split::datatype_of(&sequence, &mut rng))
    }));
}
