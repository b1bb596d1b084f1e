//! Shapes of applications: two to five constructors deep.
//!
//! Each function draws a type of about `packed` packed bytes. Of a count of 1 any number may follow each other; another count is that
//! of the shape.

use super::classes::{Drawn, fields_to_records, records_to_fields};
use super::draws::Draws;
use super::grammar::{Built, Grammar, LONGEST_LIST};
use dtc_compiler::datatype::{DatatypeError, Distribution, Order, TypeId};

type Found = Result<Drawn, DatatypeError>;

/// Entries of the shortest list: fewer are written as other types.
const FEWEST: u64 = 3;

/// The type as it was drawn; its own text says what it is.
fn drawn(grammar: &Grammar<'_>, root: TypeId, count: u64) -> Found {
    Ok((String::new(), grammar.types.finish(root)?, count))
}

/// Some columns of a matrix of cells, or of several matrices behind each other.
pub fn columns(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let levels = grammar.draws.between(0, 2);
    let cell = grammar.cell(levels)?;
    let (size, extent) = (grammar.size(cell)?, grammar.extent(cell)?);
    let sheets = if grammar.draws.one_in(3) { grammar.draws.between(2, 8) } else { 1 };
    let sent = grammar.draws.about(1, 16);
    let pitch = sent + grammar.draws.about(1, 16 * sent);
    let rows = (packed / (size * sent * sheets)).max(2);
    let sheet = match grammar.draws.one_in(2) {
        true => grammar.types.vector(rows as i64, sent as i64, pitch as i64, cell)?,
        false => grammar.types.hvector(rows as i64, sent as i64, pitch as i64 * extent, cell)?,
    };
    let root = match sheets {
        1 => sheet,
        _ => grammar.types.hvector(sheets as i64, 1, rows as i64 * pitch as i64 * extent, sheet)?,
    };
    drawn(&grammar, root, 1)
}

/// The part of a box of cells.
fn subarray(grammar: &mut Grammar<'_>, elements: u64, cell: TypeId) -> Built {
    let axes = grammar.draws.between(2, 3);
    let (mut sizes, mut subsizes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = elements.max(1);
    for axis in 0..axes {
        let part = if axis + 1 == axes { rest } else { grammar.draws.about(1, rest.min(256)) };
        rest = (rest / part).max(1);
        let before = grammar.draws.between(0, 2.max(part / 4));
        let behind = grammar.draws.between(0, 2.max(part / 4));
        sizes.push((before + part + behind) as i64);
        subsizes.push(part as i64);
        starts.push(before as i64);
    }
    let order = grammar.draws.of(&[Order::C, Order::C, Order::Fortran]);
    grammar.types.subarray(&sizes, &subsizes, &starts, order, cell)
}

/// Parts of boxes, one behind the other, every other one, or by a list.
pub fn blocks(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let levels = grammar.draws.between(0, 1);
    let cell = grammar.cell(levels)?;
    let elements = grammar.draws.about(4, 4_096.min(packed / grammar.size(cell)?).max(4));
    let block = subarray(&mut grammar, elements, cell)?;
    let number = (packed / grammar.size(block)?).clamp(FEWEST, LONGEST_LIST);
    let root = match grammar.draws.between(0, 2) {
        0 => grammar.types.contiguous(number as i64, block)?,
        1 => grammar.types.vector(number as i64, 1, 2, block)?,
        _ => {
            let sparse = grammar.draws.between(1, 3);
            grammar.list(number, 1, sparse, block)?
        }
    };
    drawn(&grammar, root, 1)
}

/// A list of structs of vectors, arrays and numbers.
pub fn list_of_structs(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let levels = grammar.draws.between(1, 2);
    let record = grammar.record(levels)?;
    let length = if grammar.draws.one_in(2) { 1 } else { grammar.draws.between(2, 6) };
    let number = (packed / (grammar.size(record)? * length)).clamp(FEWEST, LONGEST_LIST);
    let sparse = grammar.draws.of(&[1, 2, 4]);
    let root = grammar.list(number, length, sparse, record)?;
    drawn(&grammar, root, 1)
}

/// The part of a distributed array that one rank owns.
pub fn darray(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let levels = grammar.draws.between(0, 1);
    let cell = grammar.cell(levels)?;
    let mut rest = (packed / grammar.size(cell)?).max(2);
    let axes = grammar.draws.between(1, 3);
    let (mut sizes, mut distributions, mut processes) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..axes {
        let own = if axis + 1 == axes { rest } else { grammar.draws.about(1, rest.min(512)) };
        rest = (rest / own).max(1);
        let block = grammar.draws.about(1, 16.min(own)) as i64;
        let distribution = grammar.draws.of(&[
            Distribution::Block(None),
            Distribution::Cyclic(None),
            Distribution::Cyclic(Some(block)),
            Distribution::Cyclic(Some(block)),
            Distribution::None,
        ]);
        let along = if distribution == Distribution::None { 1 } else { grammar.draws.between(1, 3) };
        sizes.push((own * along) as i64);
        distributions.push(distribution);
        processes.push(along as i64);
    }
    let size: i64 = processes.iter().product();
    let rank = grammar.draws.between(0, size as u64 - 1) as i64;
    let order = grammar.draws.of(&[Order::C, Order::Fortran]);
    let root = grammar.types.darray(size, rank, &sizes, &distributions, &processes, order, cell)?;
    drawn(&grammar, root, 1)
}

/// A matrix of elements of 1 to 24 bytes, or several, sent column by column.
pub fn transpose(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let bytes = grammar.draws.of(&[1, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24]);
    let element = grammar.bytes(bytes)?;
    let elements = (packed / bytes).max(4);
    let rows = grammar.draws.about(2, elements / 2);
    let columns = (elements / rows).max(1);
    let pitch = columns + grammar.draws.of(&[0, 0, 1, 8]);
    let (rows, columns, step) = (rows as i64, columns as i64, (pitch * bytes) as i64);
    let column = match grammar.draws.one_in(2) {
        true => grammar.types.vector(rows, 1, pitch as i64, element)?,
        false => grammar.types.hvector(rows, 1, step, element)?,
    };
    match grammar.draws.between(0, 2) {
        0 => {
            let root = grammar.types.hvector(columns, 1, bytes as i64, column)?;
            drawn(&grammar, root, 1)
        }
        1 => {
            let narrow = grammar.types.resized(0, bytes as i64, column)?;
            let matrix = grammar.types.contiguous(columns, narrow)?;
            let root = grammar.types.resized(0, rows * step, matrix)?;
            drawn(&grammar, root, 1)
        }
        _ => {
            let root = grammar.types.resized(0, bytes as i64, column)?;
            drawn(&grammar, root, columns as u64)
        }
    }
}

/// The same face of several variables, each an array of three dimensions.
pub fn ghost_faces(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let variables = grammar.draws.between(2, 8);
    let cell = match grammar.draws.between(0, 2) {
        0 => grammar.cell(1)?,
        _ => {
            let bytes = grammar.draws.of(&[4, 8, 12, 24]);
            grammar.bytes(bytes)?
        }
    };
    let width = grammar.draws.between(1, 3);
    let area = (packed / (grammar.size(cell)? * variables * width)).max(4);
    let first = grammar.draws.about(2, area / 2);
    let depth = 2 * width + grammar.draws.about(2, 128);
    let across = grammar.draws.between(0, 2) as usize;
    let mut lengths = vec![first as i64, (area / first) as i64];
    lengths.insert(across, depth as i64);
    let mut subsizes = lengths.clone();
    subsizes[across] = width as i64;
    let mut starts = vec![0; 3];
    starts[across] = grammar.draws.of(&[0, width, depth - 2 * width, depth - width]) as i64;
    let order = grammar.draws.of(&[Order::C, Order::Fortran]);
    let face = grammar.types.subarray(&lengths, &subsizes, &starts, order, cell)?;
    let array = grammar.extent(face)? + 64 * grammar.draws.between(0, 3) as i64;
    let displacements: Vec<i64> = (0..variables as i64).map(|variable| variable * array).collect();
    let children = vec![face; variables as usize];
    let root = grammar.types.structure(&vec![1; variables as usize], &displacements, &children)?;
    drawn(&grammar, root, 1)
}

/// Some of many particles: records by a list, every n-th, or the same list for an array of each property.
pub fn selection(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let sparse = grammar.draws.about(1, 24);
    match grammar.draws.between(0, 3) {
        0 => {
            let record = grammar.record(1)?;
            let number = (packed / grammar.size(record)?).max(2);
            let every = grammar.draws.between(2, 8) as i64;
            let root = grammar.types.vector(number as i64, 1, every, record)?;
            drawn(&grammar, root, 1)
        }
        1 => {
            let walk = grammar.walk();
            let arrays = grammar.draws.between(2, 6);
            let cells: Vec<u64> = (0..arrays).map(|_| grammar.draws.of(&[4, 4, 8, 8, 12, 24])).collect();
            let number = (packed / cells.iter().sum::<u64>()).clamp(FEWEST, LONGEST_LIST);
            let places = grammar.places(number, sparse, walk);
            let particles = places.iter().max().map_or(1, |most| most + 1);
            let (mut displacements, mut children, mut at) = (Vec::new(), Vec::new(), 0);
            for &bytes in &cells {
                let cell = grammar.bytes(bytes)?;
                children.push(grammar.types.indexed_block(1, &places, cell)?);
                displacements.push(at);
                at = (at + particles * bytes as i64 + 63) / 64 * 64;
            }
            let all = grammar.types.structure(&vec![1; children.len()], &displacements, &children)?;
            let root = grammar.types.resized(0, at, all)?;
            drawn(&grammar, root, 1)
        }
        _ => {
            let levels = grammar.draws.between(0, 1);
            let record = grammar.record(levels)?;
            let number = (packed / grammar.size(record)?).clamp(FEWEST, LONGEST_LIST);
            let root = grammar.list(number, 1, sparse, record)?;
            drawn(&grammar, root, 1)
        }
    }
}

/// The cells of an array for which a bit is set: runs of neighbours.
pub fn mask(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let cell = grammar.cell(0)?;
    let number = (packed / grammar.size(cell)?).clamp(FEWEST, LONGEST_LIST);
    // How likely it is that a neighbour of a cell is like it, in 64ths: masks have grains of 1 to 64 cells.
    let (longer, farther) = (grammar.draws.of(&[8, 32, 48, 60, 63]), grammar.draws.of(&[8, 32, 48, 60]));
    let (mut lengths, mut displacements) = (Vec::new(), Vec::new());
    let (mut at, mut taken) = (0, 0);
    while taken < number {
        let mut length = 1;
        while taken + length < number && grammar.draws.between(0, 63) < longer {
            length += 1;
        }
        lengths.push(length as i64);
        displacements.push(at);
        taken += length;
        at += length as i64 + 1;
        while grammar.draws.between(0, 63) < farther {
            at += 1;
        }
    }
    let root = grammar.types.indexed(&lengths, &displacements, cell)?;
    drawn(&grammar, root, 1)
}

/// Rows of a sparse matrix: their values and the numbers of their columns, which are two arrays.
pub fn sparse_rows(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let (bytes, longest) = (grammar.draws.of(&[4, 8, 8, 16]), grammar.draws.about(2, 200));
    let walk = grammar.walk();
    let skipped = grammar.draws.between(0, 3);
    let number = (2 * packed / ((bytes + 4) * (longest + 1))).clamp(FEWEST, LONGEST_LIST);
    // Rows follow each other, and only some of them are sent.
    let (mut rows, mut at) = (Vec::new(), 0);
    for _ in 0..number {
        for _ in 0..grammar.draws.between(0, skipped) {
            at += grammar.draws.between(1, longest) as i64;
        }
        let length = grammar.draws.between(1, longest) as i64;
        rows.push((length, at));
        at += length;
    }
    let order = grammar.places(number, 1, walk);
    let (lengths, starts): (Vec<i64>, Vec<i64>) = order.iter().map(|&row| rows[row as usize]).unzip();
    let (value, column) = (grammar.bytes(bytes)?, grammar.bytes(4)?);
    let values = grammar.types.indexed(&lengths, &starts, value)?;
    let columns = grammar.types.indexed(&lengths, &starts, column)?;
    let behind = (at * bytes as i64 + 63) / 64 * 64;
    let both = grammar.types.structure(&[1, 1], &[0, behind], &[values, columns])?;
    let root = grammar.types.resized(0, behind + (at * 4 + 63) / 64 * 64, both)?;
    drawn(&grammar, root, 1)
}

/// Fields of an array of structs sent as arrays, or arrays sent as structs.
pub fn arrays_and_structs(draws: &mut Draws, packed: u64) -> Found {
    match draws.between(0, 3) {
        0 => fields_to_records(draws, packed),
        1 => records_to_fields(draws, packed),
        2 => {
            // Arrays of cells of several numbers, an element of each for every struct.
            let mut grammar = Grammar::new(draws);
            let arrays = grammar.draws.between(2, 6);
            let cells: Vec<u64> = (0..arrays).map(|_| grammar.draws.of(&[1, 4, 4, 8, 8, 12, 16, 24])).collect();
            let number = (packed / cells.iter().sum::<u64>()).max(2) as i64;
            let (mut displacements, mut children, mut at) = (Vec::new(), Vec::new(), 0);
            for &bytes in &cells {
                let cell = grammar.bytes(bytes)?;
                children.push(grammar.types.resized(0, 24, cell)?);
                displacements.push(at);
                at += number * 24 + 64;
            }
            let cells = grammar.types.structure(&vec![1; children.len()], &displacements, &children)?;
            let root = grammar.types.hvector(number, 1, 24, cells)?;
            drawn(&grammar, root, 1)
        }
        _ => {
            // Some fields of an array of structs, each field as an array.
            let mut grammar = Grammar::new(draws);
            let fields = grammar.draws.between(2, 8);
            let (mut places, mut at) = (Vec::new(), 0_u64);
            for _ in 0..fields {
                let bytes: u64 = grammar.draws.of(&[1, 2, 4, 4, 8, 8, 12, 24, 32]);
                let alignment = 1 << bytes.trailing_zeros().min(3);
                at = at.next_multiple_of(alignment);
                if places.is_empty() || grammar.draws.between(0, 3) > 0 {
                    places.push((at, bytes));
                }
                at += bytes;
            }
            let sent: u64 = places.iter().map(|(_, bytes)| bytes).sum();
            let (extent, number) = (at.next_multiple_of(8), (packed / sent).max(2));
            let mut arrays = Vec::new();
            for &(_, bytes) in &places {
                let field = grammar.bytes(bytes)?;
                arrays.push(grammar.types.hvector(number as i64, 1, extent as i64, field)?);
            }
            let displacements: Vec<i64> = places.iter().map(|&(at, _)| at as i64).collect();
            let all = grammar.types.structure(&vec![1; arrays.len()], &displacements, &arrays)?;
            let root = grammar.types.resized(0, (number * extent) as i64, all)?;
            drawn(&grammar, root, 1)
        }
    }
}

/// Any constructors around a cell, one around the other.
pub fn nest(draws: &mut Draws, packed: u64) -> Found {
    let mut grammar = Grammar::new(draws);
    let levels = grammar.draws.between(0, 1);
    let mut root = grammar.cell(levels)?;
    let around = grammar.draws.between(1, 3);
    for level in 0..around {
        let missing = (packed / grammar.size(root)?).max(1);
        let copies = if level + 1 == around { missing } else { grammar.draws.about(1, missing.min(64)) };
        let extent = grammar.extent(root)?;
        root = match grammar.draws.between(0, 6) {
            0 => grammar.types.contiguous(copies as i64, root)?,
            1 | 2 => {
                let length = grammar.draws.about(1, copies.min(8));
                let stride = length + grammar.draws.between(0, length.min(4));
                grammar.types.vector((copies / length).max(1) as i64, length as i64, stride as i64, root)?
            }
            3 => {
                let stride = extent + 8 * grammar.draws.between(0, 8) as i64;
                grammar.types.hvector(copies as i64, 1, stride, root)?
            }
            4 => subarray(&mut grammar, copies, root)?,
            5 => {
                let length = grammar.draws.between(1, 4);
                let sparse = grammar.draws.between(1, 2);
                grammar.list((copies / length).clamp(FEWEST, LONGEST_LIST), length, sparse, root)?
            }
            _ => {
                // Two parts, and a number behind them. Resized parts alone would end the struct before the number (MPI 4.1, 5.1.7).
                let half = grammar.types.contiguous(copies.div_ceil(2) as i64, root)?;
                let number = grammar.number();
                let part = (grammar.extent(half)? + 15) / 16 * 16;
                let both = grammar.types.structure(&[1, 1, 1], &[0, part, 2 * part], &[half, half, number])?;
                grammar.types.resized(0, 2 * part + 16, both)?
            }
        };
    }
    drawn(&grammar, root, 1)
}
