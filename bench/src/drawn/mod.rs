//! Types that are drawn from a seed: one generator for the CPU and the GPU.
//!
//! A table of chosen cases invites code that is made for them. Here a shape says what a type is like, and the seed says which one it
//! is: equal seeds draw equal types. The shapes are those of applications, composed of a grammar of constructors; those of one or two
//! constructors that kernels on a GPU differ by are its classes.

mod classes;
mod composed;
pub mod draws;
mod grammar;

pub use classes::element;

use classes::Drawn;
use draws::{Draws, draw};
use dtc_compiler::datatype::{Datatype, DatatypeError};
use dtc_measure::bench::case::Case;
use dtc_measure::failure::Failure;

/// What types are like: a name, and the function that draws one with about as many packed bytes as its second argument.
struct Shape {
    name: &'static str,
    draw: fn(&mut Draws, u64) -> Result<Drawn, DatatypeError>,
    /// Packed bytes of the largest element: of shapes that list every few bytes, less than that of others.
    largest: u64,
}

/// Packed bytes of the least transfer.
const SMALLEST: u64 = 64;

/// Packed bytes of the largest transfer, and so of an element.
const LARGEST: u64 = 64 << 20;

/// Packed bytes of the largest element of a shape that lists every few of them: a list has a million entries or fewer.
const LISTED: u64 = 4 << 20;

/// Bytes of memory that the largest transfer spans: measuring takes about five times as much.
const WIDEST: u64 = 256 << 20;

const fn shape(name: &'static str, draw: fn(&mut Draws, u64) -> Result<Drawn, DatatypeError>) -> Shape {
    Shape { name, draw, largest: LARGEST }
}

const fn listed(name: &'static str, draw: fn(&mut Draws, u64) -> Result<Drawn, DatatypeError>) -> Shape {
    Shape { name, draw, largest: LISTED }
}

/// The shapes that kernels on a GPU differ by.
const CLASSES: [Shape; 11] = [
    shape("triangle", classes::triangle),
    shape("long runs", |draws, packed| {
        let unit = draws.of(&[1, 4, 8]);
        classes::runs(draws, packed, 1_000, 60_000, unit)
    }),
    shape("fields to records", classes::fields_to_records),
    shape("records to fields", classes::records_to_fields),
    shape("records", classes::records),
    listed("short runs", |draws, packed| {
        let most = draws.between(5, 30);
        classes::runs(draws, packed, 1, most, 1)
    }),
    listed("irregular runs", |draws, packed| {
        let (unit, most) = (1 << draws.between(0, 3), draws.about(32, 4_000));
        classes::runs(draws, packed, 8, most, unit)
    }),
    listed("random blocks", |draws, packed| {
        let bytes = 4 << draws.between(1, 6);
        classes::shuffled(draws, packed, bytes)
    }),
    listed("random elements", |draws, packed| {
        let bytes = 4 << draws.between(0, 1);
        classes::shuffled(draws, packed, bytes)
    }),
    shape("strided", classes::strided),
    shape("planes", classes::planes),
];

/// The shapes of applications.
const COMPOSED: [Shape; 11] = [
    shape("columns of records", composed::columns),
    shape("blocks of subarrays", composed::blocks),
    shape("list of structs", composed::list_of_structs),
    shape("darray", composed::darray),
    shape("transpose", composed::transpose),
    shape("ghost faces", composed::ghost_faces),
    shape("selection of particles", composed::selection),
    shape("mask", composed::mask),
    shape("sparse rows", composed::sparse_rows),
    shape("arrays and structs", composed::arrays_and_structs),
    shape("nest", composed::nest),
];

/// Draws of a type before its size is taken as it is.
const ATTEMPTS: u64 = 40;

/// The first `number` types of a seed, of all shapes and sizes, whose names contain `only`.
pub fn random<'a>(seed: u64, number: u16, only: &'a str) -> impl Iterator<Item = Result<Case, Failure>> + use<'a> {
    (0..u64::from(number)).filter_map(move |index| {
        // Of four types three are composed.
        let mut draws = Draws::new(draw(seed, index));
        let shape = if draws.one_in(4) { one_of(&mut draws, &CLASSES) } else { one_of(&mut draws, &COMPOSED) };
        let name = format!("{index:03}_{}", shape.name.replace(' ', "_"));
        if !name.contains(only) {
            return None;
        }
        let refused = |error| Failure::Description(format!("{name} of seed {seed}: {error}"));
        Some(sized(shape, &mut draws).map_err(refused).map(|(_, datatype, count)| case(name, datatype, count)))
    })
}

/// A seed that differs from run to run.
pub fn fresh_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

fn one_of<'a>(draws: &mut Draws, shapes: &'a [Shape]) -> &'a Shape {
    &shapes[draws.between(0, shapes.len() as u64 - 1) as usize]
}

/// A type of a shape that has any size: one large element, or many small ones.
fn sized(shape: &Shape, draws: &mut Draws) -> Result<Drawn, DatatypeError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let packed = draws.about(SMALLEST, LARGEST);
        let element = if draws.one_in(2) { draws.about(SMALLEST, packed) } else { packed };
        let (what, datatype, count) = (shape.draw)(draws, element.min(shape.largest))?;
        let facts = datatype.facts();
        // Elements that do not follow each other have their number.
        let count = if count == 1 { (packed / facts.size.max(1)).max(1) } else { count };
        let span = count.saturating_mul(facts.extent().unsigned_abs());
        let fits = span <= WIDEST && facts.size * count <= LARGEST + LARGEST / 4;
        if fits || attempt == ATTEMPTS {
            return Ok((what, datatype, count));
        }
    }
}

fn case(name: String, datatype: Datatype, count: u64) -> Case {
    Case { name, datatype, count, pack_origin: 0, unpack_origin: 0, buffer: None }
}

/// `layouts` layouts of each class whose name contains `only`, with about `packed` packed bytes each.
pub fn of_classes<'a>(
    seed: u64,
    packed: u64,
    layouts: u16,
    only: &'a str,
) -> impl Iterator<Item = Result<Case, Failure>> + use<'a> {
    let named = (0u64..).zip(&CLASSES).filter(move |(_, class)| class.name.contains(only));
    named.flat_map(move |(class, Shape { name, draw: make, .. })| {
        (0..layouts).map(move |layout| {
            // What is drawn does not depend on which classes are measured.
            let mut draws = Draws::new(draw(seed, class << 32 | u64::from(layout)));
            let refused = |error| Failure::Description(format!("{name} of seed {seed}: {error}"));
            let (what, datatype, count) = make(&mut draws, packed).map_err(refused)?;
            Ok(case(format!("{name}: {what}"), datatype, count))
        })
    })
}

#[cfg(test)]
mod tests;
