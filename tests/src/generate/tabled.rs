//! Draws types with index tables, and tables for calls of them.

use dtc_compiler::datatype::{DatatypeError, Predefined, TableKind, TabledDatatype, TypeBuilder, TypeId};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// A type, with tables of indices for a call of it. No place occurs twice in a table.
#[derive(Clone, Debug)]
pub struct Tabled {
    /// The type.
    pub datatype: TabledDatatype,
    /// Its tables; in some, entries below 0 are skipped.
    pub tables: Vec<Vec<i64>>,
}

/// Bytes that a type may span, at most.
const SPAN: i64 = 1 << 18;

/// Draws a type whose parts do not overlap, with one to three tables. `skips`: whether entries may be below 0.
///
/// # Panics
///
/// Only by a defect of the builder.
pub fn tabled(rng: &mut SmallRng, skips: bool) -> Tabled {
    loop {
        let datatype = drawn(rng).expect("arguments that are allowed");
        let size = datatype.facts().size;
        if datatype.tables().is_empty() || size == 0 || size > SPAN as u64 || datatype.facts().true_ub > SPAN {
            continue;
        }
        let tables = datatype.tables().iter().map(|facts| {
            let TableKind::Places(places) = facts.kind else { unreachable!("no table of addresses is drawn") };
            let mut all: Vec<i64> = (0..places as i64).collect();
            all.shuffle(rng);
            all.truncate(rng.random_range(0..=facts.most.min(places)) as usize);
            if skips {
                all.iter_mut().for_each(|entry| *entry = if rng.random_bool(0.2) { -1 - *entry } else { *entry });
            }
            all
        });
        let tables = tables.collect();
        return Tabled { datatype, tables };
    }
}

fn drawn(rng: &mut SmallRng) -> Result<TabledDatatype, DatatypeError> {
    let mut types = TypeBuilder::new();
    let element = [Predefined::BYTE, Predefined::SHORT, Predefined::INT, Predefined::DOUBLE][rng.random_range(0..4)];
    let mut inner = types.named(element);
    let mut tables = 0;
    for _ in 0..rng.random_range(1..=5) {
        inner = level(rng, &mut types, inner, &mut tables)?;
    }
    if tables == 0 {
        inner = table(rng, &mut types, inner, &mut tables)?;
    }
    types.finish_tabled(inner)
}

/// An axis whose places come with the call, by a new table or one that another axis follows.
fn table(rng: &mut SmallRng, types: &mut TypeBuilder, of: TypeId, tables: &mut i64) -> Result<TypeId, DatatypeError> {
    let places = rng.random_range(1..=9);
    let number = if *tables > 0 && (*tables == 3 || rng.random_bool(0.3)) {
        rng.random_range(0..*tables)
    } else {
        *tables += 1;
        *tables - 1
    };
    let pitch = types.facts(of)?.extent() + [0, 8, 16, 3][rng.random_range(0..4)];
    types.table(number, places, rng.random_range(1..=places), pitch, of)
}

fn level(rng: &mut SmallRng, types: &mut TypeBuilder, of: TypeId, tables: &mut i64) -> Result<TypeId, DatatypeError> {
    let extent = types.facts(of)?.extent();
    match rng.random_range(0..9) {
        0 => types.contiguous(rng.random_range(1..=6), of),
        1 => types.vector(rng.random_range(1..=4), 2, 3, of),
        2 => types.hvector(3, 1, extent + [0, 4, 16][rng.random_range(0..3)], of),
        3 => types.indexed_block(1, [&[0][..], &[4, 0], &[4, 0, 2]][rng.random_range(0..3)], of),
        4 => {
            let plain = types.named(Predefined::INT);
            let gap = [0, 16][rng.random_range(0..2)];
            let around = types.structure(&[1, 1, 2], &[0, 16 + gap, 24 + gap + extent], &[plain, of, plain])?;
            // Markers inside may leave the last part out of the extent.
            types.resized(0, 32 + gap + extent, around)
        }
        5 => types.resized(0, extent + 8, of),
        6 => types.subarray(&[3, 4], &[2, 2], &[1, 1], dtc_compiler::datatype::Order::C, of),
        _ => table(rng, types, of, tables),
    }
}
