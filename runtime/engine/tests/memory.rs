//! Memory over many commits. One test, and alone in its process: others would change what is measured.

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::{Engine, Policy, Tier};

/// A vector that one microkernel serves.
fn vector(variant: i64) -> Datatype {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let vector = types.vector(30 + variant, 3, 5, double).unwrap();
    types.finish(vector).unwrap()
}

/// A record with holes, which gets a kernel.
fn record(variant: i64) -> Datatype {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let int = types.named(Predefined::INT);
    let record = types.structure(&[1, 1], &[0, 12 + variant], &[double, int]).unwrap();
    types.finish(record).unwrap()
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// How much more memory is resident after the second part of a range of commits than after the first.
fn grown(policy: Policy, warm: i64, all: i64, datatype: impl Fn(i64) -> Datatype) -> usize {
    let engine = Engine::builder().policy(policy).cache_caps(256, 1 << 20).build();
    (0..warm).for_each(|variant| assert!(engine.commit(&datatype(variant)).layout().size() > 0));
    let before = resident_bytes();
    (warm..all).for_each(|variant| assert!(engine.commit(&datatype(variant)).layout().size() > 0));
    assert!(engine.cached_types() <= 257);
    resident_bytes().saturating_sub(before)
}

#[test]
fn types_that_come_and_go_leave_no_memory_behind() {
    let generic = grown(Policy::Off, 20_000, 100_000, vector);
    assert!(generic < 4 << 20, "100,000 types left {generic} bytes");
    assert_eq!(Engine::builder().policy(Policy::Eager).build().commit(&record(0)).tier(), Tier::Specialised);
    let compiled = grown(Policy::Eager, 1_000, 4_000, record);
    assert!(compiled < 8 << 20, "4,000 compiled types left {compiled} bytes");
}
