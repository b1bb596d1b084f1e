//! Draws random datatypes: DAGs of every constructor, with extreme arguments.

use crate::type_map::TypeMap;
use dtc_compiler::datatype::{
    Datatype, DatatypeError, Distribution, Facts, GivenBounds, Order, Predefined, TypeBuilder, TypeId,
};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Limits of the drawn types.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of a type map.
    pub size: u64,
    /// Most bytes that a type, its extent and its bounds may span, from 0 in both directions.
    pub span: i64,
    /// Most constructors beyond the predefined types.
    pub nodes: usize,
    /// Whether a byte may be in the map twice.
    pub overlap: bool,
}

impl Limits {
    /// Limits of types whose memory fits a small buffer.
    pub const SMALL: Limits = Limits { size: 4096, span: 1 << 16, nodes: 7, overlap: true };
    /// Limits of types that are unpacked: no byte is in the map twice.
    pub const DISJOINT: Limits = Limits { overlap: false, ..Limits::SMALL };
    /// Limits of types anywhere in the address space.
    pub const ANYWHERE: Limits = Limits { span: 1 << 58, nodes: 10, ..Limits::SMALL };
}

/// Draws a datatype with at least 1 and at most `limits.nodes` nodes; its size may be 0.
pub fn datatype(rng: &mut SmallRng, limits: &Limits) -> Datatype {
    let mut types = TypeBuilder::new();
    let all: Vec<Predefined> = Predefined::all().collect();
    let pairs = [Predefined::SHORT_INT, Predefined::DOUBLE_INT, Predefined::LONG_DOUBLE_INT, Predefined::LONG_INT];
    let mut pool = vec![
        types.named(all[rng.random_range(0..all.len())]),
        types.named([Predefined::BYTE, Predefined::INT, Predefined::DOUBLE][rng.random_range(0..3)]),
    ];
    if rng.random_bool(0.3) {
        pool.push(types.named(pairs[rng.random_range(0..pairs.len())]));
    }
    let wanted = pool.len() + rng.random_range(0..=limits.nodes);
    for _ in 0..4 * limits.nodes {
        if pool.len() >= wanted {
            break;
        }
        // Types that are too large, overlap or do not fit 64 bits do not enter the pool.
        if let Ok(id) = node(rng, &mut types, &pool, limits)
            // Empty types are wanted, but must not fill the pool.
            && admits(limits, &types, id)
            && (facts(&types, id).size > 0 || rng.random_bool(0.3))
        {
            pool.push(id);
        }
    }
    // The result is usually the newest type with bytes.
    let full = |id: &&TypeId| facts(&types, **id).size > 0;
    let newest = pool[pool.len() - 1];
    let root = if rng.random_bool(0.15) { newest } else { *pool.iter().rev().find(full).unwrap_or(&newest) };
    finished(&types, root)
}

/// The facts of a type in the pool.
fn facts(types: &TypeBuilder, id: TypeId) -> Facts {
    *types.facts(id).expect("the builder made every type of the pool")
}

fn finished(types: &TypeBuilder, id: TypeId) -> Datatype {
    types.finish(id).expect("the builder made every type of the pool")
}

fn admits(limits: &Limits, types: &TypeBuilder, id: TypeId) -> bool {
    let facts = facts(types, id);
    let within = |bound: i64| bound.unsigned_abs() <= limits.span as u64;
    if facts.size > limits.size || ![facts.lb, facts.ub, facts.true_lb, facts.true_ub].into_iter().all(within) {
        return false;
    }
    limits.overlap || {
        let datatype = finished(types, id);
        let mut bytes = TypeMap::new(&datatype).bytes();
        bytes.sort_unstable();
        bytes.windows(2).all(|pair| pair[0] != pair[1])
    }
}

fn small_count(rng: &mut SmallRng) -> i64 {
    [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 9, 16][rng.random_range(0..12)]
}

/// Blocks `(length, first copy)`: mostly disjoint and ascending, perhaps shuffled; sometimes anywhere.
fn blocks(rng: &mut SmallRng, equal: bool) -> (Vec<i64>, Vec<i64>) {
    let shared = small_count(rng);
    let apart = rng.random_bool(0.7);
    let mut position = rng.random_range(-4..4);
    let mut blocks = Vec::new();
    for _ in 0..small_count(rng) {
        let length = if equal { shared } else { small_count(rng) };
        let first = if apart { position } else { rng.random_range(-20..20) };
        position += length + rng.random_range(0..3);
        blocks.push((length, first));
    }
    if rng.random_bool(0.3) {
        blocks.shuffle(rng);
    }
    blocks.into_iter().unzip()
}

fn order(rng: &mut SmallRng) -> Order {
    if rng.random_bool(0.5) { Order::C } else { Order::Fortran }
}

fn node(
    rng: &mut SmallRng,
    types: &mut TypeBuilder,
    pool: &[TypeId],
    limits: &Limits,
) -> Result<TypeId, DatatypeError> {
    // The choice is mostly the newest type, for depth, and sometimes an old one, for sharing.
    let pick = |rng: &mut SmallRng| {
        if rng.random_bool(0.6) { pool[pool.len() - 1] } else { pool[rng.random_range(0..pool.len())] }
    };
    let child = pick(rng);
    let extent = facts(types, child).extent();
    // The result is in bytes: a multiple of the extent, or a little off.
    let scaled = |rng: &mut SmallRng, firsts: &[i64]| -> Vec<i64> {
        let unit = if rng.random_bool(0.7) { extent } else { extent.wrapping_add(rng.random_range(-3..9)) };
        let base = if limits.span > 1 << 40 && rng.random_bool(0.2) { rng.random_range(-1..2) << 46 } else { 0 };
        firsts.iter().map(|first| first.wrapping_mul(unit).wrapping_add(base)).collect()
    };
    let id = match rng.random_range(0..13) {
        0 => types.contiguous(small_count(rng), child)?,
        1 => {
            let (count, length) = (small_count(rng), small_count(rng));
            let stride = if rng.random_bool(0.6) { length + rng.random_range(0..4) } else { rng.random_range(-5..5) };
            types.vector(count, length, stride, child)?
        }
        2 => {
            let (count, length) = (small_count(rng), small_count(rng));
            let stride = scaled(rng, &[length + 1])[0];
            let stride = if rng.random_bool(0.7) { stride } else { rng.random_range(-64..64) };
            types.hvector(count, length, stride, child)?
        }
        3 => {
            let (lengths, firsts) = blocks(rng, false);
            types.indexed(&lengths, &firsts, child)?
        }
        4 => {
            let (lengths, firsts) = blocks(rng, false);
            types.hindexed(&lengths, &scaled(rng, &firsts), child)?
        }
        5 => {
            let (lengths, firsts) = blocks(rng, true);
            types.indexed_block(lengths.first().copied().unwrap_or(2), &firsts, child)?
        }
        6 => {
            let (lengths, firsts) = blocks(rng, true);
            types.hindexed_block(lengths.first().copied().unwrap_or(0), &scaled(rng, &firsts), child)?
        }
        7 | 8 => {
            let (mut lengths, mut displacements, mut children) = (Vec::new(), Vec::new(), Vec::new());
            let mut position = rng.random_range(-16..16i64);
            for _ in 0..rng.random_range(0..5) {
                let child = pick(rng);
                let facts = facts(types, child);
                let length = [0, 1, 1, 1, 2, 3][rng.random_range(0..6)];
                lengths.push(length);
                displacements.push(position.wrapping_sub(facts.true_lb));
                children.push(child);
                let gap = if rng.random_bool(0.2) { rng.random_range(-20..20) } else { rng.random_range(0..5) };
                let occupied = facts.extent().max(facts.true_extent()).wrapping_mul(length);
                position = position.wrapping_add(occupied).wrapping_add(gap);
            }
            types.structure(&lengths, &displacements, &children)?
        }
        9 => {
            let rank = rng.random_range(0..5);
            let sizes: Vec<i64> = (0..rank).map(|_| rng.random_range(0..6)).collect();
            let subsizes: Vec<i64> = sizes.iter().map(|&size| rng.random_range(0..=size)).collect();
            let starts: Vec<i64> =
                sizes.iter().zip(&subsizes).map(|(size, subsize)| rng.random_range(0..=size - subsize)).collect();
            types.subarray(&sizes, &subsizes, &starts, order(rng), child)?
        }
        10 => {
            let rank = rng.random_range(0..4);
            let gsizes: Vec<i64> = (0..rank).map(|_| rng.random_range(0..9)).collect();
            let mut distributions = Vec::new();
            let mut psizes = Vec::new();
            for &size in &gsizes {
                let processes = rng.random_range(1..4);
                let (distribution, processes) = match rng.random_range(0..5) {
                    0 => (Distribution::None, 1),
                    1 => (Distribution::Block(None), processes),
                    2 => (Distribution::Block(Some(size / processes + 1)), processes),
                    3 => (Distribution::Cyclic(None), processes),
                    _ => (Distribution::Cyclic(Some(rng.random_range(1..5))), processes),
                };
                distributions.push(distribution);
                psizes.push(processes);
            }
            let size = psizes.iter().product();
            types.darray(size, rng.random_range(0..size), &gsizes, &distributions, &psizes, order(rng), child)?
        }
        11 => {
            let facts = facts(types, child);
            let (lb, extent) = match rng.random_range(0..5) {
                0 => (facts.true_lb, facts.true_extent()),
                1 => (rng.random_range(-50..50), 0),
                2 => (0, facts.extent().wrapping_neg()),
                3 => (rng.random_range(-50..50), rng.random_range(-50..50)),
                _ => (facts.lb, facts.extent().wrapping_add(rng.random_range(0..20))),
            };
            types.resized(lb, extent, child)?
        }
        _ => types.dup(child)?,
    };
    if rng.random_bool(0.05) {
        let given = GivenBounds { lb: rng.random_range(-20..20), extent: rng.random_range(-10..100) };
        types.give_bounds(id, given)?;
    }
    Ok(id)
}
