//! Draws descriptions that are made to be expensive: short texts of overlapping elements, strides of 0 and below, and counts up to 2^62.

use dtc_compiler::datatype::{
    Datatype, DatatypeError, Facts, Order, Predefined, TabledDatatype, TypeBuilder, TypeId, json,
};
use rand::Rng;
use rand::rngs::SmallRng;

/// Bytes at most of a description as JSON.
pub const MOST_BYTES: usize = 10 << 10;

/// Constructors that are tried at most for one description.
const MOST_NODES: usize = 48;

/// Entries at most of the lists of one description.
const MOST_ENTRIES: usize = 2000;

/// A description.
#[derive(Debug)]
pub struct Hostile {
    /// The type.
    pub datatype: Datatype,
    /// Its description: at most [`MOST_BYTES`].
    pub json: String,
    /// How many elements a call has.
    pub count: u64,
}

/// Draws a description of a type that has bytes.
pub fn description(rng: &mut SmallRng) -> Hostile {
    loop {
        let datatype = datatype(rng);
        let json = json::write(&datatype);
        if datatype.facts().size > 0 && json.len() <= MOST_BYTES {
            let count = [1, 1, 1, 2, 3, 1000, 1 << 20][rng.random_range(0..7)];
            return Hostile { datatype, json, count };
        }
    }
}

/// Draws a type with index tables that has bytes, and its description of at most [`MOST_BYTES`].
pub fn tabled_description(rng: &mut SmallRng) -> (TabledDatatype, String) {
    loop {
        let (types, root) = graph(rng, true);
        // What the limits of such types refuse costs little.
        let Ok(datatype) = types.finish_tabled(root) else { continue };
        let json = json::write_tabled(&datatype);
        if !datatype.tables().is_empty() && datatype.facts().size > 0 && json.len() <= MOST_BYTES {
            return (datatype, json);
        }
    }
}

fn datatype(rng: &mut SmallRng) -> Datatype {
    let (types, root) = graph(rng, false);
    types.finish(root).expect("the builder made every type of the pool")
}

/// Types upon types, and the last of them. `tabled`: whether axes by table are among them.
fn graph(rng: &mut SmallRng, tabled: bool) -> (TypeBuilder, TypeId) {
    let mut types = TypeBuilder::new();
    let leaves = [Predefined::BYTE, Predefined::SHORT, Predefined::INT, Predefined::DOUBLE, Predefined::DOUBLE_INT];
    let mut pool = vec![types.named(leaves[rng.random_range(0..leaves.len())])];
    let wanted = rng.random_range(1..=MOST_NODES);
    let mut entries = rng.random_range(2..=MOST_ENTRIES);
    for _ in 0..wanted {
        let axis = tabled && rng.random_bool(0.3);
        let made =
            if axis { axis_by_table(rng, &mut types, &pool) } else { node(rng, &mut types, &pool, &mut entries) };
        // What leaves 64 bits does not enter the pool.
        if let Ok(id) = made
            && facts(&types, id).size > 0
        {
            pool.push(id);
        }
    }
    (types, pool[pool.len() - 1])
}

/// Copies at the entries of a table: long and short ones, which overlap or leave gaps.
fn axis_by_table(rng: &mut SmallRng, types: &mut TypeBuilder, pool: &[TypeId]) -> Result<TypeId, DatatypeError> {
    let child = pool[if rng.random_bool(0.75) { pool.len() - 1 } else { rng.random_range(0..pool.len()) }];
    let Facts { true_lb, true_ub, .. } = facts(types, child);
    let most = if rng.random_bool(0.6) { 1 } else { count(rng) };
    if rng.random_bool(0.2) {
        return types.addresses(1, most, 1 << rng.random_range(0..5), child);
    }
    let pitch = stride(rng, true_ub.saturating_sub(true_lb).max(1)).saturating_abs();
    types.table(0, count(rng), most, pitch, child)
}

fn facts(types: &TypeBuilder, id: TypeId) -> Facts {
    *types.facts(id).expect("the builder made every type of the pool")
}

/// Numbers of copies, few or as many as 64 bits hold.
fn count(rng: &mut SmallRng) -> i64 {
    match rng.random_range(0..10) {
        0..5 => rng.random_range(1..9),
        5..7 => rng.random_range(9..5000),
        7 => 10i64.pow(rng.random_range(4..18)),
        _ => (1 << rng.random_range(8..63)) + rng.random_range(-1..2),
    }
}

/// Bytes from copy to copy of something that spans `span` bytes.
fn stride(rng: &mut SmallRng, span: i64) -> i64 {
    let stride = match rng.random_range(0..12) {
        0 => 0,
        1..4 => rng.random_range(1..70),
        4 => span / rng.random_range(2..9),
        5..7 => span,
        7 => span.saturating_add(rng.random_range(-9..10)),
        8 => span.saturating_mul(rng.random_range(2..5)),
        9 => rng.random_range(1..5000),
        _ => (1 << rng.random_range(0..50)) + rng.random_range(-1..2),
    };
    if rng.random_bool(0.25) { -stride } else { stride }
}

/// Displacements of a list: scattered, close, descending, equal.
fn places(rng: &mut SmallRng, entries: &mut usize, span: i64) -> Vec<i64> {
    let length = match rng.random_range(0..3) {
        0 => rng.random_range(1..5),
        1 => rng.random_range(1..40),
        _ => rng.random_range(1..900),
    };
    let length = length.min(*entries);
    *entries -= length;
    let step = stride(rng, span);
    let near = span.unsigned_abs().clamp(2, 1 << 20) as i64;
    let far = 1i64 << rng.random_range(3..45);
    match rng.random_range(0..5) {
        0 => (0..length).map(|_| rng.random_range(-near..near)).collect(),
        1 => (0..length).map(|_| rng.random_range(-far..far)).collect(),
        2 => (0..length as i64).map(|at| at.saturating_mul(step)).collect(),
        3 => (0..length as i64).map(|at| at.saturating_mul(step).saturating_add(rng.random_range(0..3))).collect(),
        _ => (0..length as i64).map(|at| at * at % 61).collect(),
    }
}

fn node(
    rng: &mut SmallRng,
    types: &mut TypeBuilder,
    pool: &[TypeId],
    entries: &mut usize,
) -> Result<TypeId, DatatypeError> {
    let pick = |rng: &mut SmallRng| {
        if rng.random_bool(0.75) { pool[pool.len() - 1] } else { pool[rng.random_range(0..pool.len())] }
    };
    let child = pick(rng);
    let Facts { true_lb, true_ub, lb, .. } = facts(types, child);
    let span = true_ub.saturating_sub(true_lb).max(1);
    match rng.random_range(0..12) {
        0 => types.contiguous(count(rng), child),
        1 => {
            let (number, length) = (count(rng), rng.random_range(1..5));
            types.vector(number, length, rng.random_range(-4..9), child)
        }
        2..5 => {
            let (number, length) = (count(rng), if rng.random_bool(0.7) { 1 } else { count(rng) });
            types.hvector(number, length, stride(rng, span), child)
        }
        5 => types.hindexed_block(1, &places(rng, entries, span), child),
        6 => {
            let places = places(rng, entries, span);
            let lengths: Vec<i64> = places.iter().map(|_| rng.random_range(1..5)).collect();
            types.hindexed(&lengths, &places, child)
        }
        7..10 => {
            let places: Vec<i64> = places(rng, entries, span).into_iter().take(12).collect();
            let children: Vec<TypeId> = places.iter().map(|_| pick(rng)).collect();
            let lengths: Vec<i64> = places.iter().map(|_| if rng.random_bool(0.8) { 1 } else { count(rng) }).collect();
            types.structure(&lengths, &places, &children)
        }
        10 => {
            let sizes: Vec<i64> = (0..rng.random_range(1..4)).map(|_| count(rng)).collect();
            let subsizes: Vec<i64> = sizes.iter().map(|&size| rng.random_range(1..=size)).collect();
            let starts: Vec<i64> =
                sizes.iter().zip(&subsizes).map(|(size, subsize)| rng.random_range(0..=size - subsize)).collect();
            types.subarray(&sizes, &subsizes, &starts, Order::Fortran, child)
        }
        _ => {
            let extent = stride(rng, span);
            types.resized(if rng.random_bool(0.5) { lb } else { rng.random_range(-9..9) }, extent, child)
        }
    }
}
