//! Layouts of the classes that kernels on a GPU differ by: each of one or two constructors.

use super::draws::Draws;
use dtc_compiler::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder, TypeId};

/// A drawn type: its parameters as text, the type, and the number of elements.
pub type Drawn = (String, Datatype, u64);

/// The type of elements of `bytes` bytes.
pub fn element(types: &mut TypeBuilder, bytes: u64) -> TypeId {
    types.named(match bytes {
        1 => Predefined::CHAR,
        2 => Predefined::SHORT,
        4 => Predefined::FLOAT,
        8 => Predefined::DOUBLE,
        _ => Predefined::C_DOUBLE_COMPLEX,
    })
}

/// The upper or the lower triangle of a matrix by rows.
pub fn triangle(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
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

/// Ascending runs of lengths between two, multiples of a unit, with gaps of the same sort or of a third.
pub fn runs(draws: &mut Draws, packed: u64, least: u64, most: u64, unit: u64) -> Result<Drawn, DatatypeError> {
    let (least, most) = (least.next_multiple_of(unit), most.next_multiple_of(unit));
    let gap = draws.of(&[most / 3, most, 2 * most, 3 * most]).max(unit);
    let (mut lengths, mut displacements) = (Vec::new(), Vec::new());
    let (mut at, mut sum) = (0, 0);
    while sum < packed {
        let length = draws.between(least / unit, most / unit) * unit;
        lengths.push(length as i64);
        displacements.push(at as i64);
        sum += length;
        at += length + draws.between(1, gap / unit) * unit;
    }
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let root = types.hindexed(&lengths, &displacements, byte)?;
    let what = format!("{least} to {most} bytes, multiples of {unit}, gaps of up to {gap}");
    Ok((what, types.finish(root)?, 1))
}

/// Arrays of elements sent element by element: record i of the packed bytes has element i of each. Elements of all arrays are as
/// far apart; of some only a part is sent, so that widths are mixed. The arrays are sent in the order of memory or in any other.
pub fn fields_to_records(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let (arrays, pitch) = (draws.about(2, 64), 1u64 << draws.between(2, 4));
    let mixed = draws.between(0, 1) == 1;
    let widths: Vec<u64> = (0..arrays).map(|_| if mixed { pitch >> draws.between(0, 2) } else { pitch }).collect();
    let number = (packed / widths.iter().sum::<u64>()).max(1);
    let array = number * pitch + 256 * draws.between(0, 9);
    let mut types = TypeBuilder::new();
    let children: Vec<TypeId> = widths.iter().map(|&width| element(&mut types, width)).collect();
    let any_order = draws.one_in(2);
    let order = if any_order { draws.order(arrays) } else { (0..arrays).collect() };
    let displacements: Vec<i64> = order.iter().map(|index| (index * array) as i64).collect();
    let record = types.structure(&vec![1; arrays as usize], &displacements, &children)?;
    let root = types.hvector(number as i64, 1, pitch as i64, record)?;
    let widths = if mixed { "of mixed widths, " } else { "" };
    let order = if any_order { "in any order, " } else { "" };
    Ok((format!("{arrays} arrays, {order}{widths}{pitch} bytes apart"), types.finish(root)?, 1))
}

/// An array of records sent field by field.
pub fn records_to_fields(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
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
pub fn records(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
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

/// Blocks of one length in random order, of which all or a share is sent; memory holds as many blocks, or twice as many. The list is
/// short and repeated, or as long as all that is sent.
pub fn shuffled(draws: &mut Draws, packed: u64, bytes: u64) -> Result<Drawn, DatatypeError> {
    let all = (packed / bytes).max(1);
    let blocks = if draws.one_in(3) { draws.about(all.min(2_048), all) } else { all };
    let (spread, percent) = (draws.between(1, 2), draws.of(&[100, 100, 90, 60, 30]));
    let mut order = draws.order((blocks * 100).div_ceil(percent));
    order.truncate(blocks as usize);
    let displacements: Vec<i64> = order.iter().map(|&block| (block * spread * bytes) as i64).collect();
    let mut types = TypeBuilder::new();
    let byte = element(&mut types, bytes.min(4));
    let list = types.hindexed_block((bytes / 4) as i64, &displacements, byte)?;
    let root = types.resized(0, ((blocks * 100).div_ceil(percent) * spread * bytes) as i64, list)?;
    let what = format!("{blocks} blocks, {bytes} of {} bytes, {percent} % of them", spread * bytes);
    Ok((what, types.finish(root)?, all / blocks))
}

/// Blocks at a stride.
pub fn strided(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
    let unit = 1 << draws.between(0, 4);
    let block = draws.about(1, 4_000 / unit) * unit;
    let stride = block + draws.about(1, 1_000 / unit) * unit;
    let number = (packed / block).max(1);
    let mut types = TypeBuilder::new();
    let element = element(&mut types, unit);
    let root = types.hvector(number as i64, (block / unit) as i64, stride as i64, element)?;
    Ok((format!("{block} of {stride} bytes"), types.finish(root)?, 1))
}

/// A box in a grid of three dimensions, its axes in any order.
pub fn planes(draws: &mut Draws, packed: u64) -> Result<Drawn, DatatypeError> {
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
