//! What a safe call pays beside the loop by hand, in nanoseconds: `cargo bench -p dtc-runtime --bench small_calls`. The counterpart for
//! the C interface is `bench/small_calls.c`.

use dtc_runtime::datatype::text;
use dtc_runtime::{Committed, Engine, Policy, Range};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// Bytes from one double of a vector to the next.
const STRIDE: usize = 14 * 8;
/// Bytes of a record, and of its int and two doubles.
const RECORD: (usize, usize) = (24, 20);
const CALLS: u32 = 2000;
const ROUNDS: usize = 200;

#[inline(never)]
fn pack_vector(memory: &[u8], packed: &mut [u8]) {
    for (double, row) in packed.chunks_exact_mut(8).zip(memory.chunks(STRIDE)) {
        double.copy_from_slice(&row[..8]);
    }
}

#[inline(never)]
fn unpack_vector(packed: &[u8], memory: &mut [u8]) {
    for (double, row) in packed.chunks_exact(8).zip(memory.chunks_mut(STRIDE)) {
        row[..8].copy_from_slice(double);
    }
}

#[inline(never)]
fn pack_records(memory: &[u8], packed: &mut [u8]) {
    for (to, from) in packed.chunks_exact_mut(RECORD.1).zip(memory.chunks_exact(RECORD.0)) {
        to[..4].copy_from_slice(&from[..4]);
        to[4..].copy_from_slice(&from[8..]);
    }
}

#[inline(never)]
fn unpack_records(packed: &[u8], memory: &mut [u8]) {
    for (from, to) in packed.chunks_exact(RECORD.1).zip(memory.chunks_exact_mut(RECORD.0)) {
        to[..4].copy_from_slice(&from[..4]);
        to[8..].copy_from_slice(&from[4..]);
    }
}

/// Nanoseconds of one of many calls.
fn time(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

type Loops = (fn(&[u8], &mut [u8]), fn(&[u8], &mut [u8]));

/// Prints the least of all rounds of each column.
fn measure(name: &str, committed: &Committed, elements: u64, (pack, unpack): Loops) -> Result<(), Box<dyn Error>> {
    let range = Range::elements(elements);
    let (mut memory, mut packed) = (vec![1u8; 512 * STRIDE], vec![0u8; committed.packed_size(elements)?]);
    let mut least = [f64::MAX; 4];
    // The first round warms the type up.
    for round in 0..=ROUNDS {
        let times = [
            time(|| pack(black_box(&memory), black_box(&mut packed))),
            time(|| assert!(committed.pack(black_box(&memory), range, black_box(&mut packed[..])).is_ok())),
            time(|| unpack(black_box(&packed), black_box(&mut memory))),
            time(|| assert!(committed.unpack(black_box(&packed[..]), range, black_box(&mut memory)).is_ok())),
        ];
        if round > 0 {
            least = std::array::from_fn(|column| times[column].min(least[column]));
        }
    }
    let [pack_loop, pack, unpack_loop, unpack] = least.map(|time| format!("{time:8.1}"));
    println!("{name:<24}{pack_loop}{pack}{unpack_loop}{unpack}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:<24}{:>8}{:>8}{:>8}{:>8}", "ns", "loop", "pack", "loop", "unpack");
    for (tier, policy) in [("generic", Policy::Off), ("compiled", Policy::Eager)] {
        let engine = Engine::builder().policy(policy).build();
        for count in [1, 8, 64, 512] {
            let vector = engine.commit(&text::parse(&format!("vector {count} 1 14 double"))?);
            measure(&format!("{tier} vector of {count}"), &vector, 1, (pack_vector, unpack_vector))?;
        }
        let record = engine.commit(&text::parse("struct [1@0 int, 2@8 double]")?);
        for count in [1, 8, 64, 256] {
            measure(&format!("{tier} records: {count}"), &record, count, (pack_records, unpack_records))?;
        }
    }
    Ok(())
}
