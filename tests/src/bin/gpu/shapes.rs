//! Types at the limits of one kernel family, and large ones.

use crate::buffers::{Buffers, POISON, expect_equal, poisoned_buffer, random_buffer, read};
use crate::harness::{Outcome, Tests, text};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::{Predefined, TypeBuilder};
use dtc_runtime::Range;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let tier = on.name;
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{tier}: {name}"), move || test(&on));
    };
    add(tests, "tiles in fragments", tiles);
    add(tests, "more than 2^32 bytes apart", far_apart);
    add(tests, "more than 2^31 words", many_words);
    for family in LARGE {
        let on = on.clone();
        tests.add(format!("{tier}: more than 64 MiB: {family}"), move || large(&on, family));
    }
}

/// A matrix sent by columns, whole and in fragments that begin and end inside tiles, columns and words.
fn tiles(on: &OnTier) -> Outcome {
    let (rows, columns) = (150i64, 70i64);
    for (kind, size) in [(Predefined::DOUBLE, 8usize), (Predefined::FLOAT, 4), (Predefined::SHORT, 2)] {
        let mut types = TypeBuilder::new();
        let element = types.named(kind);
        let column = types.vector(rows, 1, columns, element).map_err(text)?;
        let column = types.resized(0, size as i64, column).map_err(text)?;
        let matrix = types.contiguous(columns, column).map_err(text)?;
        let matrix = types.resized(0, rows * columns * size as i64, matrix).map_err(text)?;
        let committed = on.engine.commit(&types.finish(matrix).unwrap());
        let buffers = Buffers::new(&on.gpu, &committed, 3, 3)?;
        let total = buffers.expected.len();
        let mut rng = SmallRng::seed_from_u64(4);
        for round in 0..60 {
            let granule = if round % 2 == 0 { size } else { 1 };
            let from = if round == 0 { 0 } else { rng.random_range(0..total / granule) * granule };
            let length = if round == 0 { total } else { rng.random_range(1..=(total - from) / granule) * granule };
            buffers.fragment(&committed, from, length, 0).map_err(|fault| format!("elements of {size}: {fault}"))?;
        }
    }
    Ok(())
}

/// Elements that span more than 4 GiB.
fn far_apart(on: &OnTier) -> Outcome {
    let gpu = &on.gpu;
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let vector = types.vector(1 << 12, 3, 1 << 18, double).map_err(text)?;
    let committed = on.engine.commit(&types.finish(vector).unwrap());
    let span = committed.span(1).map_or(0, |(_, high)| high) as usize;
    let memory = poisoned_buffer(gpu, span)?;
    let total = committed.packed_size(1).map_err(text)?;
    let (packed, host) = random_buffer(gpu, total, 5)?;
    let back = poisoned_buffer(gpu, total)?;
    // SAFETY: all buffers are on the device and large enough.
    unsafe {
        committed
            .at(memory.address() as *mut u8, Range::elements(1).bytes(..total as u64))
            .unpack(packed.address() as *const u8)
            .run()
            .map_err(text)?;
        committed
            .at(memory.address() as *const u8, Range::elements(1).bytes(..total as u64))
            .pack(back.address() as *mut u8)
            .run()
            .map_err(text)?;
    }
    expect_equal("there and back", &read(&back, 0, total)?, &host)?;
    for row in [0usize, 1, 2047, 2048, 2049, 4095] {
        let at = row << 21;
        expect_equal("a row", &read(&memory, at, 24)?, &host[row * 24..row * 24 + 24])?;
        if row > 0 {
            expect_equal("a gap", &read(&memory, at - 8, 8)?, &[POISON; 8])?;
        }
    }
    Ok(())
}

/// More words than 32 bits count.
fn many_words(on: &OnTier) -> Outcome {
    let gpu = &on.gpu;
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    // Three of every four ints.
    let vector = types.vector(1 << 20, 3, 4, int).map_err(text)?;
    let vector = types.resized(0, 16 << 20, vector).map_err(text)?;
    let committed = on.engine.commit(&types.finish(vector).unwrap());
    let count = 820; // 9.6 GiB packed: 2.4 * 2^30 words
    let total = committed.packed_size(count).map_err(text)?;
    let memory = poisoned_buffer(gpu, (16 << 20) * count as usize)?;
    let mut packed = poisoned_buffer(gpu, total)?;
    // Marks at the ends, and where 32-bit numbers of words and of bytes end.
    let places = [0, 1 << 31, (1usize << 32) - 24, 1 << 32, (1 << 33) - 24, 1 << 33, total - 24];
    let marks: Vec<Vec<u8>> =
        (0..places.len()).map(|at| (0..24).map(|byte| (at * 24 + byte) as u8).collect()).collect();
    for (place, mark) in places.iter().zip(&marks) {
        packed.write(*place, mark).map_err(text)?;
    }
    let back = poisoned_buffer(gpu, total)?;
    // SAFETY: all buffers are on the device and large enough.
    unsafe {
        let (source, target) = (packed.address() as *const u8, memory.address() as *mut u8);
        committed.at(target, Range::elements(count).bytes(..total as u64)).unpack(source).run().map_err(text)?;
        let (source, target) = (memory.address() as *const u8, back.address() as *mut u8);
        committed.at(source, Range::elements(count).bytes(..total as u64)).pack(target).run().map_err(text)?;
    }
    for (place, mark) in places.iter().zip(&marks) {
        expect_equal("there and back", &read(&back, *place, 24)?, mark)?;
        let row = place / 12;
        let column = place % 12;
        expect_equal("in memory", &read(&memory, row * 16 + column, 12 - column)?, &mark[..12 - column])?;
    }
    Ok(())
}

const LARGE: [&str; 3] = ["columns of doubles", "runs of ints", "odd runs"];

/// Whole packs and unpacks of more than 64 MiB, every byte compared with the CPU's.
fn large(on: &OnTier, family: &str) -> Outcome {
    let families = types::families(12 << 20)?;
    let (_, datatype) = families.iter().find(|(name, _)| *name == family).ok_or("no such type")?;
    let committed = on.engine.commit(datatype);
    let count = (65u64 << 20).div_ceil(committed.facts().size);
    let buffers = Buffers::new(&on.gpu, &committed, count, 6)?;
    let total = buffers.expected.len();
    Ok(buffers.fragment(&committed, 0, total, 0)?)
}
