//! Many types come and go, and many threads pack: nothing grows, nothing is mixed up.
//!
//! `DTC_ENDURANCE=10000000 cargo test --release -p dtc-capi --test endurance` is the long form: so many types, and a minute of
//! threads.

mod common;

use common::{Engine, ok};
use dtc::*;
use std::time::{Duration, Instant};

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = status.split(' ').nth(1).and_then(|field| field.parse().ok()).expect("pages");
    pages * 4096
}

/// How many types are made in the long form.
fn long_form() -> Option<u64> {
    std::env::var("DTC_ENDURANCE").ok()?.parse().ok()
}

#[test]
fn types_come_and_go_without_growth() {
    let pairs = long_form().unwrap_or(200_000);
    let engine = Engine::new();
    let double = engine.named("MPI_DOUBLE");
    let round = |from: u64, to: u64| {
        for pair in from..to {
            // Most are new to the cache, which has to forget.
            let stride = 2 + (pair % 50_000) as i64;
            let column = engine.create(DTC_COMBINER_VECTOR, &[3, 1, stride], &[], &[&double], None).unwrap();
            if pair.is_multiple_of(8) {
                // SAFETY: a live type.
                ok(unsafe { dtc_type_commit(column.0, 0) });
            }
        }
    };
    round(0, pairs / 2);
    let before = resident();
    round(pairs / 2, pairs);
    let after = resident();
    println!("{pairs} types: {before} bytes in memory after half of them, {after} at the end");
    assert!(after <= before + (4 << 20), "expected no growth, found {before} bytes, then {after}");
}

#[test]
fn threads_share_a_type() {
    let engine = Engine::new();
    let (int, double) = (engine.named("MPI_INT"), engine.named("MPI_DOUBLE"));
    let record = engine.create(DTC_COMBINER_STRUCT, &[2, 1, 2], &[0, 8], &[&int, &double], None).unwrap();
    // SAFETY: a live type.
    ok(unsafe { dtc_type_commit(record.0, 0) });
    let info = record.info();
    let count = 1000;
    let memory: Vec<u8> = (0..count * info.extent).map(|at| (at * 7 + at / 255) as u8).collect();
    let mut whole = vec![0u8; (count * info.packed_size) as usize];
    record.pack(&memory, 0, count, 0, &mut whole);
    let end = Instant::now() + Duration::from_secs(if long_form().is_some() { 60 } else { 2 });
    let (record, memory, whole) = (&record, &memory, &whole);
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            scope.spawn(move || {
                let mut packed = vec![0u8; 997];
                let mut restored = vec![0u8; memory.len()];
                let mut offset = thread * 1234;
                while Instant::now() < end {
                    offset = (offset + 991) % whole.len() as i64;
                    let done = record.pack(memory, 0, count, offset, &mut packed);
                    assert_eq!(packed[..done], whole[offset as usize..offset as usize + done]);
                    assert_eq!(record.unpack(&packed[..done], &mut restored, 0, count, offset), done);
                    // Handles are shared and given back meanwhile.
                    // SAFETY: a live type.
                    unsafe {
                        ok(dtc_type_retain(record.0));
                        ok(dtc_type_release(record.0));
                    }
                }
            });
        }
    });
}
