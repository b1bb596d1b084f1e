//! Threads that commit, pack, unpack, specialise and drop the same types at once: engine, cache and tiers.
//!
//! A program and not a test of the harness, so that `./test threads` can run it under the thread sanitizer: the standard library
//! is not instrumented, and the harness, scoped threads and channels synchronise inside of it. Threads are spawned and joined.

use dtc_runtime::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::{Engine, Policy, Range};
use std::thread;
use std::time::Duration;

const THREADS: usize = 6;
const ROUNDS: usize = 40;

/// Types of every kind of step: rows, planes, lists, runs, records that gain by a kernel; `variant` makes them new ones.
fn types(variant: i64) -> Vec<Datatype> {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let int = types.named(Predefined::INT);
    let offsets: Vec<i64> = (0..90).map(|at| at * at + variant).collect();
    let lengths: Vec<i64> = (0..90).map(|at| 1 + at * at % 7).collect();
    let places: Vec<i64> = (0..90).map(|at| at * 9 + at % 2 + variant).collect();
    let record = types.structure(&[1, 1], &[0, 12 + variant], &[double, int]).and_then(|id| types.resized(0, 64, id));
    let made = [
        types.vector(12, 5, 9 + variant, double),
        types.vector(6, 5, 9, double).and_then(|rows| types.hvector(40, 1, 800 + 8 * variant, rows)),
        types.indexed_block(2, &offsets, double),
        types.indexed(&lengths, &places, double),
        record.and_then(|record| types.contiguous(20, record)),
    ];
    made.into_iter().map(|id| types.finish(id.expect("a type")).expect("an id of this builder")).collect()
}

/// Commits, packs and unpacks, and compares with the walk of the layout.
fn exercise(engine: &Engine, datatype: &Datatype) {
    let committed = engine.commit(datatype);
    let (_, high) = committed.span(2).expect("a span");
    let source: Vec<u8> = (0..high).map(|at| (at * 31 + at / 251) as u8).collect();
    let mut packed = vec![0; committed.packed_size(2).expect("a size")];
    committed.pack(&source, Range::elements(2), &mut packed).expect("a pack");
    let extent = committed.facts().extent();
    let layout = committed.layout();
    let map = (0..2).flat_map(|element| layout.displacements().map(move |at| at + element * extent));
    assert!(map.map(|at| source[at as usize]).eq(packed.iter().copied()), "{layout}");
    let mut restored = vec![0; source.len()];
    committed.unpack(&packed, Range::elements(2), &mut restored).expect("an unpack");
    let mut again = vec![0; packed.len()];
    committed.clone().pack(&restored, Range::elements(2), &mut again).expect("a pack");
    assert!(again == packed, "{layout}");
}

fn main() {
    let policies = [Policy::Background, Policy::Lazy(3), Policy::Eager, Policy::Always, Policy::Off];
    for policy in policies {
        // A cache that holds few idle types, so that some are dropped while others commit them again.
        let engine = Engine::builder().policy(policy).cache_caps(4, 1 << 20).build();
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let engine = engine.clone();
                thread::spawn(move || {
                    for round in 0..ROUNDS {
                        for datatype in types((round / 8 + worker % 2) as i64) {
                            exercise(&engine, &datatype);
                        }
                        if worker == 0 {
                            engine.compile_pending(Duration::from_millis(1));
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("a worker without panic");
        }
    }
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; {} engines, {THREADS} threads", policies.len());
}
