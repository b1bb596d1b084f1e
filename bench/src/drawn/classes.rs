//! Random layouts of each class that kernels on a GPU differ by, drawn from a seed.
//!
//! A table of chosen cases invites kernels that are made for them. A class says what a layout is like, the seed says which one
//! it is: equal seeds draw equal layouts.

use super::cases::draw;
use dtc_cli::commands::bench::case::Case;
use dtc_cli::failure::Failure;
use dtc_compiler::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder, TypeId};

/// A class: its name, and the function that draws one of its layouts, with about as many packed bytes as its second argument.
type Class = (&'static str, fn(&mut Draws, u64) -> Result<Drawn, DatatypeError>);

/// A drawn layout: its parameters as text, its type, and the count.
type Drawn = (String, Datatype, u64);

const CLASSES: [Class; 11] = [
    ("triangle", triangle),
    ("long runs", |draws, packed| runs(draws, packed, 1_000, 60_000, 1)),
    ("fields to records", fields_to_records),
    ("records to fields", records_to_fields),
    ("records", records),
    ("short runs", |draws, packed| runs(draws, packed, 1, 9, 1)),
    ("irregular runs", |draws, packed| {
        let (unit, most) = (1 << draws.between(0, 3), draws.about(32, 1_000));
        runs(draws, packed, 8, most, unit)
    }),
    ("random blocks", |draws, packed| {
        let bytes = 4 << draws.between(1, 6);
        shuffled(draws, packed, bytes)
    }),
    ("random elements", |draws, packed| {
        let bytes = 4 << draws.between(0, 1);
        shuffled(draws, packed, bytes)
    }),
    ("strided", strided),
    ("planes", planes),
];

/// Numbers from a seed, one after the other.
struct Draws {
    seed: u64,
    next: u64,
}

impl Draws {
    fn number(&mut self) -> u64 {
        self.next += 1;
        draw(self.seed, self.next - 1)
    }

    /// From one number to another, both included.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low + 1)
    }

    /// The same, where numbers of each magnitude are equally likely.
    fn about(&mut self, low: u64, high: u64) -> u64 {
        let share = self.number() as f64 / 2f64.powi(64);
        let drawn = low as f64 * (high as f64 / low as f64).powf(share);
        (drawn.round() as u64).clamp(low, high)
    }

    /// A random order of the numbers below `number`.
    fn order(&mut self, number: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..number).collect();
        let seed = self.number();
        order.sort_by_cached_key(|&index| draw(seed, index));
        order
    }
}

/// `layouts` layouts of each class whose name contains `only`, with about `packed` packed bytes each.
pub fn cases<'a>(
    seed: u64,
    packed: u64,
    layouts: u16,
    only: &'a str,
) -> impl Iterator<Item = Result<Case, Failure>> + use<'a> {
    let drawn = (0u64..).zip(CLASSES).flat_map(move |(class, (name, make))| {
        (0..layouts).map(move |layout| {
            // What is drawn does not depend on which classes are measured.
            let mut draws = Draws { seed: draw(seed, class << 32 | u64::from(layout)), next: 0 };
            let refused = |error| Failure::Description(format!("{name} of seed {seed}: {error}"));
            let (what, datatype, count) = make(&mut draws, packed).map_err(refused)?;
            let name = format!("{name}: {what}");
            Ok(Case { name, datatype, count, pack_origin: 0, unpack_origin: 0, buffer: None })
        })
    });
    let named = CLASSES.map(|(name, _)| name.contains(only));
    (0..).zip(drawn).filter(move |(index, _)| named[index / usize::from(layouts)]).map(|(_, case)| case)
}

/// The type of elements of `bytes` bytes.
fn element(types: &mut TypeBuilder, bytes: u64) -> TypeId {
    types.named(match bytes {
        1 => Predefined::CHAR,
        2 => Predefined::SHORT,
        4 => Predefined::FLOAT,
        8 => Predefined::DOUBLE,
        _ => Predefined::C_DOUBLE_COMPLEX,
    })
}

/// The upper or the lower triangle of a matrix by rows.
fn triangle(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let (bytes, upper) = (4 << draws.between(0, 1), draws.between(0, 1) == 1);
    let rows = ((2 * packed / bytes) as f64).sqrt() as i64;
    let pitch = rows + draws.between(0, 7) as i64;
    let place = |row: i64| if upper { (rows - row, row * pitch + row) } else { (row + 1, row * pitch) };
    let (lengths, displacements): (Vec<i64>, Vec<i64>) = (0..rows).map(place).unzip();
    let mut types = TypeBuilder::new();
    let element = element(&mut types, bytes);
    let root = types.indexed(&lengths, &displacements, element)?;
    let side = if upper { "upper" } else { "lower" };
    Ok((format!("{side}, {rows} rows of {bytes}-byte elements, {pitch} apart"), types.finish(root)?, 1))
}

/// Ascending runs of lengths between two, multiples of a unit, with gaps of the same sort.
fn runs(draws: &mut Draws, packed: u64, least: u64, most: u64, unit: u64) -> Result<Drawn, DatatypeError> {
    let (least, most) = (least.next_multiple_of(unit), most.next_multiple_of(unit));
    let sparse = draws.between(1, 3);
    let (mut lengths, mut displacements) = (Vec::new(), Vec::new());
    let (mut at, mut sum) = (0, 0);
    while sum < packed {
        let length = draws.between(least / unit, most / unit) * unit;
        lengths.push(length as i64);
        displacements.push(at as i64);
        sum += length;
        at += length + draws.between(1, sparse * most / unit) * unit;
    }
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let root = types.hindexed(&lengths, &displacements, byte)?;
    let what = format!("{least} to {most} bytes, multiples of {unit}, gaps of up to {}", sparse * most);
    Ok((what, types.finish(root)?, 1))
}

/// Arrays of elements sent element by element: record i of the packed bytes has element i of each. Elements of all arrays are as
/// far apart; of some only a part is sent, so that widths are mixed.
fn fields_to_records(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let (arrays, pitch) = (draws.about(2, 64), 1u64 << draws.between(2, 4));
    let mixed = draws.between(0, 1) == 1;
    let widths: Vec<u64> = (0..arrays).map(|_| if mixed { pitch >> draws.between(0, 2) } else { pitch }).collect();
    let number = (packed / widths.iter().sum::<u64>()).max(1);
    let array = number * pitch + 256 * draws.between(0, 9);
    let mut types = TypeBuilder::new();
    let children: Vec<TypeId> = widths.iter().map(|&width| element(&mut types, width)).collect();
    let displacements: Vec<i64> = (0..arrays).map(|index| (index * array) as i64).collect();
    let record = types.structure(&vec![1; arrays as usize], &displacements, &children)?;
    let root = types.hvector(number as i64, 1, pitch as i64, record)?;
    let widths = if mixed { "of mixed widths, " } else { "" };
    Ok((format!("{arrays} arrays, {widths}{pitch} bytes apart"), types.finish(root)?, 1))
}

/// An array of records sent field by field.
fn records_to_fields(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let fields = draws.about(2, 16);
    let mut types = TypeBuilder::new();
    let (mut at, mut sum, mut places) = (0u64, 0, Vec::new());
    for _ in 0..fields {
        let width = 1u64 << draws.between(0, 3);
        at = at.next_multiple_of(width);
        places.push((at, width));
        at += width;
        sum += width;
    }
    let (size, number) = (at.next_multiple_of(8), (packed / sum).max(1));
    let mut arrays = Vec::new();
    for &(_, width) in &places {
        let element = element(&mut types, width);
        arrays.push(types.hvector(number as i64, 1, size as i64, element)?);
    }
    let displacements: Vec<i64> = places.iter().map(|&(at, _)| at as i64).collect();
    let root = types.structure(&vec![1; arrays.len()], &displacements, &arrays)?;
    Ok((format!("{fields} fields of {sum} in {size} bytes"), types.finish(root)?, 1))
}

/// An array of records of several fields with gaps between.
fn records(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let fields = draws.between(2, 8);
    let mut types = TypeBuilder::new();
    let (mut lengths, mut displacements, mut children) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut sum) = (0u64, 0);
    for _ in 0..fields {
        let (width, number) = (1u64 << draws.between(0, 3), draws.between(1, 7));
        at = (at + draws.about(1, 24) - 1).next_multiple_of(width);
        lengths.push(number as i64);
        displacements.push(at as i64);
        children.push(element(&mut types, width));
        at += width * number;
        sum += width * number;
    }
    let extent = (at + draws.between(0, 15)).next_multiple_of(1 << draws.between(0, 3));
    let record = types.structure(&lengths, &displacements, &children)?;
    let root = types.resized(0, extent as i64, record)?;
    Ok((format!("{fields} runs of {sum} in {extent} bytes"), types.finish(root)?, (packed / sum).max(1)))
}

/// Blocks of one length in random order; memory holds as many blocks, or twice as many.
fn shuffled(draws: &mut Draws, packed: u64, bytes: u64) -> Result<Drawn, DatatypeError> {
    let (blocks, spread) = ((packed / bytes).max(1), draws.between(1, 2));
    let displacements: Vec<i64> = draws.order(blocks).iter().map(|&block| (block * spread * bytes) as i64).collect();
    let mut types = TypeBuilder::new();
    let byte = element(&mut types, bytes.min(4));
    let root = types.hindexed_block((bytes / 4) as i64, &displacements, byte)?;
    Ok((format!("{bytes} of {} bytes", spread * bytes), types.finish(root)?, 1))
}

/// Blocks at a stride.
fn strided(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let unit = 1 << draws.between(2, 4);
    let block = draws.about(1, 2_000 / unit) * unit;
    let stride = block + draws.about(1, 1_000 / unit) * unit;
    let number = (packed / block).max(1);
    let mut types = TypeBuilder::new();
    let element = element(&mut types, unit);
    let root = types.hvector(number as i64, (block / unit) as i64, stride as i64, element)?;
    Ok((format!("{block} of {stride} bytes"), types.finish(root)?, 1))
}

/// A box in a grid of three dimensions, its axes in any order.
fn planes(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let bytes = 4 << draws.between(0, 2);
    let elements = packed / bytes;
    let x = draws.about(2, 2_048);
    let y = draws.about(2, (elements / x).clamp(2, 2_048));
    let z = (elements / (x * y)).max(1);
    let mut stride = bytes;
    let axes = [x, y, z].map(|length| {
        let axis = (length as i64, stride as i64);
        stride *= length + draws.between(0, 9);
        axis
    });
    let mut types = TypeBuilder::new();
    let mut root = element(&mut types, bytes);
    let order = draws.order(3);
    for &axis in &order {
        let (length, stride) = axes[axis as usize];
        root = types.hvector(length, 1, stride, root)?;
    }
    let [a, b, c] = [order[0], order[1], order[2]];
    Ok((format!("{x} x {y} x {z} elements of {bytes} bytes, axes {a}{b}{c}"), types.finish(root)?, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::{canonicalise, lower};

    #[test]
    fn a_seed_draws_the_same_layouts_of_about_the_size() {
        for seed in 0..40 {
            let all = |only| cases(seed, 1 << 16, 2, only).map(|case| case.map_err(|error| error.to_string()).unwrap());
            let first: Vec<Case> = all("").collect();
            assert_eq!(first.len(), 2 * CLASSES.len());
            for (one, other) in first.iter().zip(all("")) {
                let layout = canonicalise(&lower(&one.datatype)).layout;
                assert_eq!(layout.type_hash(), lower(&other.datatype).type_hash(), "{}", one.name);
                let packed = layout.size() * one.count;
                assert!((1 << 15..=1 << 17).contains(&packed), "{}: {packed}", one.name);
                assert!(layout.true_lb() >= 0, "{}", one.name);
            }
            let records: Vec<String> = all("records").map(|case| case.name).collect();
            let expected = first.iter().filter(|case| case.name.split(':').next().unwrap().contains("records"));
            assert_eq!(records, expected.map(|case| case.name.clone()).collect::<Vec<_>>());
        }
    }
}
