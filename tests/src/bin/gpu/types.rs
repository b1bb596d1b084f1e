//! Types of the GPU tests.

use crate::harness::text;
use dtc_compiler::datatype::{Datatype, Order, Predefined, TypeBuilder};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Runs of 1 to 32 ints, 1 to 32 ints apart; kernels and the interpreter need lists for it. Another seed gives another
/// type.
pub fn listed(seed: u64, runs: usize) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut lengths, mut places, mut at) = (Vec::new(), Vec::new(), 0);
    for _ in 0..runs {
        let length = rng.random_range(1..=32);
        lengths.push(length);
        places.push(at);
        at += length + rng.random_range(1..=32);
    }
    let list = types.indexed(&lengths, &places, int).map_err(text)?;
    types.finish(list).map_err(|error| error.to_string())
}

/// Rows of doubles with gaps, without lists. Another number gives another type.
pub fn rows(number: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let rows = types.vector(100 + number, 3, 5, double).map_err(text)?;
    types.finish(rows).map_err(|error| error.to_string())
}

/// A matrix of doubles sent by columns.
pub fn columns(rows: i64, columns: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let column = types.vector(rows, 1, columns, double).map_err(text)?;
    let column = types.resized(0, 8, column).map_err(text)?;
    let matrix = types.contiguous(columns, column).map_err(text)?;
    let matrix = types.resized(0, rows * columns * 8, matrix).map_err(text)?;
    types.finish(matrix).map_err(|error| error.to_string())
}

/// One type for each family of layouts, of about `bytes` packed bytes.
pub fn families(bytes: i64) -> Result<Vec<(&'static str, Datatype)>, String> {
    let side = (bytes / 8).isqrt();
    let vector = |kind, blocklength: i64, stride, size: i64| {
        let mut types = TypeBuilder::new();
        let element = types.named(kind);
        let vector = types.vector(bytes / (blocklength * size), blocklength, stride, element).map_err(text)?;
        types.finish(vector).map_err(|error| error.to_string())
    };
    Ok(vec![
        ("columns of doubles", columns(side, side)?),
        ("three of four ints", vector(Predefined::INT, 3, 4, 4)?),
        ("rows of 17 bytes", vector(Predefined::BYTE, 17, 23, 1)?),
        ("rows of 1,000 bytes", vector(Predefined::BYTE, 1000, 1028, 1)?),
        ("single bytes", vector(Predefined::BYTE, 1, 3, 1)?),
        ("single shorts, backwards", vector(Predefined::SHORT, 1, -3, 2)?),
        ("complex numbers", vector(Predefined::CXX_DOUBLE_COMPLEX, 2, 5, 16)?),
        ("runs of ints", listed(1, (bytes / 66) as usize)?),
        ("odd runs", odd_runs(bytes)?),
        ("long runs", long_runs(bytes)?),
        ("arrays by elements", arrays_by_elements(bytes)?),
        ("shuffled blocks", shuffled_blocks(bytes)?),
        ("records", records(bytes)?),
        ("a box of floats", box_of_floats(bytes)?),
    ])
}

/// Runs of bytes of any length at any offset.
fn odd_runs(bytes: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let mut rng = SmallRng::seed_from_u64(2);
    let (mut lengths, mut places, mut at, mut total) = (Vec::new(), Vec::new(), 0, 0);
    while total < bytes {
        let length = if rng.random_bool(0.1) { rng.random_range(1..2000) } else { rng.random_range(1..60) };
        lengths.push(length);
        places.push(at);
        at += length + rng.random_range(1..50);
        total += length;
    }
    let runs = types.indexed(&lengths, &places, byte).map_err(text)?;
    types.finish(runs).map_err(|error| error.to_string())
}

/// Runs of bytes of a tenth of the whole at most.
fn long_runs(bytes: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let mut rng = SmallRng::seed_from_u64(4);
    let (mut lengths, mut places, mut at, mut total) = (Vec::new(), Vec::new(), 0, 0);
    while total < bytes {
        let length = rng.random_range(bytes / 100..bytes / 10);
        lengths.push(length);
        places.push(at);
        at += length + rng.random_range(1..50);
        total += length;
    }
    let runs = types.indexed(&lengths, &places, byte).map_err(text)?;
    types.finish(runs).map_err(|error| error.to_string())
}

/// An element of each of three arrays after the other: floats of two, and every other short of one.
fn arrays_by_elements(bytes: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let fields = [Predefined::FLOAT, Predefined::SHORT, Predefined::FLOAT].map(|kind| types.named(kind));
    let count = bytes / 10;
    let record = types.structure(&[1, 1, 1], &[count * 4 + 64, 0, count * 8 + 256], &fields).map_err(text)?;
    let record = types.resized(0, 4, record).map_err(text)?;
    let records = types.contiguous(count, record).map_err(text)?;
    types.finish(records).map_err(|error| error.to_string())
}

/// Blocks of two doubles in any order.
fn shuffled_blocks(bytes: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    // The blocks are disjoint, so that an unpack is defined.
    let mut places: Vec<i64> = (0..bytes / 16).map(|block| block * 3).collect();
    places.shuffle(&mut SmallRng::seed_from_u64(3));
    let blocks = types.indexed_block(2, &places, double).map_err(text)?;
    types.finish(blocks).map_err(|error| error.to_string())
}

/// Records of a double, an int and a character, with holes.
fn records(bytes: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let fields = [Predefined::DOUBLE, Predefined::INT, Predefined::CHAR].map(|kind| types.named(kind));
    let record = types.structure(&[1, 1, 1], &[0, 12, 21], &fields).map_err(text)?;
    let record = types.resized(0, 40, record).map_err(text)?;
    let records = types.contiguous(bytes / 13, record).map_err(text)?;
    types.finish(records).map_err(|error| error.to_string())
}

/// A part of an array of three dimensions.
fn box_of_floats(bytes: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let float = types.named(Predefined::FLOAT);
    let side = ((bytes / 4) as f64).cbrt() as i64;
    let sizes = [side + 3, side + 5, side + 2];
    let part = types.subarray(&sizes, &[side; 3], &[1, 2, 1], Order::C, float).map_err(text)?;
    types.finish(part).map_err(|error| error.to_string())
}
