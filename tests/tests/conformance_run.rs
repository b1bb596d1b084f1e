//! The conformance run accepts a correct subject and detects every mistake.

use dtc_tests::conformance::{Mistake, OracleSubject, run};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use rand::SeedableRng;
use rand::rngs::SmallRng;

#[test]
fn the_oracle_passes() {
    for case in corpus::all().into_iter().filter(|case| case.datatype.facts().size < 500) {
        let subject = OracleSubject::new(&case.datatype, Mistake::None);
        assert_eq!(run(&subject, &case.datatype, 1), Ok(()), "{}", case.name);
    }
    for seed in 0..40 {
        let datatype = random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits { size: 200, ..Limits::SMALL });
        assert_eq!(run(&OracleSubject::new(&datatype, Mistake::None), &datatype, seed), Ok(()), "seed {seed}");
    }
}

#[test]
fn every_mistake_is_noticed() {
    let names = ["vector", "struct", "reversed vector", "short_int pairs", "negative displacements"];
    for case in corpus::all().into_iter().filter(|case| names.contains(&case.name)) {
        for mistake in Mistake::ALL {
            let subject = OracleSubject::new(&case.datatype, mistake);
            assert!(run(&subject, &case.datatype, 1).is_err(), "{}: {mistake:?} goes unnoticed", case.name);
        }
    }
}
