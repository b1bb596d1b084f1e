//! What MPI defines for the type that a constructor makes, with every argument checked.

use super::array::{AxisBlocks, axes_of_darray, axes_of_subarray, block_length};
use super::bounds::{Facts, Union};
use super::constructor::MOST_TABLES;
use super::{Constructor, DatatypeError, Distribution, GivenBounds};

type FactsResult = Result<Facts, DatatypeError>;

/// The facts of the type that a constructor makes of children with these facts.
pub(super) fn facts_of<'a>(
    constructor: &Constructor,
    mut children: impl ExactSizeIterator<Item = &'a Facts>,
) -> FactsResult {
    let found = children.len();
    match constructor {
        Constructor::Named(predefined) if found == 0 => Ok(Facts::of_predefined(*predefined)),
        Constructor::Named(_) => Err(DatatypeError::new("named.child", "no children", found)),
        Constructor::Struct { blocklengths, displacements_bytes } => {
            structure(constructor, blocklengths, displacements_bytes, children)
        }
        _ => match children.next() {
            Some(child) if found == 1 => facts_of_one(constructor, child),
            _ => Err(DatatypeError::new(format!("{}.child", constructor.name()), "one child", found)),
        },
    }
}

/// The facts of the type that a constructor with one child makes of it.
fn facts_of_one(constructor: &Constructor, child: &Facts) -> FactsResult {
    match constructor {
        Constructor::Named(_) | Constructor::Struct { .. } | Constructor::Dup => Ok(*child),
        Constructor::Contiguous { count } => {
            check_count(constructor, "count", *count)?;
            blocks(constructor, child, *count, &[0], 1)
        }
        Constructor::Vector { count, blocklength, stride } => {
            let stride = i128::from(*stride) * i128::from(child.extent());
            strided(constructor, child, *count, *blocklength, stride)
        }
        Constructor::Hvector { count, blocklength, stride_bytes } => {
            strided(constructor, child, *count, *blocklength, (*stride_bytes).into())
        }
        Constructor::Indexed { blocklengths, displacements } => {
            check_lengths(constructor, "displacements", displacements.len(), blocklengths.len())?;
            listed(constructor, child, blocklengths, displacements, child.extent())
        }
        Constructor::Hindexed { blocklengths, displacements_bytes } => {
            check_lengths(constructor, "displacements_bytes", displacements_bytes.len(), blocklengths.len())?;
            listed(constructor, child, blocklengths, displacements_bytes, 1)
        }
        Constructor::IndexedBlock { blocklength, displacements } => {
            check_count(constructor, "blocklength", *blocklength)?;
            blocks(constructor, child, *blocklength, displacements, child.extent())
        }
        Constructor::HindexedBlock { blocklength, displacements_bytes } => {
            check_count(constructor, "blocklength", *blocklength)?;
            blocks(constructor, child, *blocklength, displacements_bytes, 1)
        }
        Constructor::Subarray { sizes, subsizes, starts, order } => {
            check_lengths(constructor, "subsizes", subsizes.len(), sizes.len())?;
            check_lengths(constructor, "starts", starts.len(), sizes.len())?;
            for axis in 0..sizes.len() {
                let (size, subsize, start) = (sizes[axis], subsizes[axis], starts[axis]);
                check_range(constructor, "sizes", axis, size, 0, i64::MAX)?;
                check_range(constructor, "subsizes", axis, subsize, 0, size)?;
                check_range(constructor, "starts", axis, start, 0, size - subsize)?;
            }
            array(constructor, child, sizes, &axes_of_subarray(sizes, subsizes, starts, *order))
        }
        Constructor::Darray { size, rank, gsizes, distributions, psizes, order } => {
            check_darray(constructor, *size, *rank, gsizes, distributions, psizes)?;
            array(constructor, child, gsizes, &axes_of_darray(*rank, gsizes, distributions, psizes, *order))
        }
        Constructor::Resized { lb, extent } => {
            let given = GivenBounds { lb: *lb, extent: *extent };
            child.with_bounds(given).ok_or_else(|| overflow(constructor))
        }
        Constructor::Table { table, places, most, pitch_bytes } => {
            check_table(constructor, *table, *most)?;
            check_at_least_one(constructor, "places", *places)?;
            let outer = (i128::from(*places) - 1).checked_mul((*pitch_bytes).into()).and_then(narrow);
            let outer = outer.ok_or_else(|| overflow(constructor))?;
            spread(constructor, child, (*most).into(), outer.min(0), outer.max(0))
        }
        Constructor::Addresses { table, most, alignment } => {
            check_table(constructor, *table, *most)?;
            if *alignment < 1 || !(*alignment as u64).is_power_of_two() {
                let place = format!("{}.alignment", constructor.name());
                return Err(DatatypeError::new(place, "a power of two", alignment));
            }
            let size = i128::from(child.size) * i128::from(*most);
            let size = narrow(size).ok_or_else(|| overflow(constructor))? as u64;
            // The bytes lie at addresses, and none in the memory of the call.
            let alignment = child.alignment;
            Ok(Facts { size, lb: 0, ub: 0, explicit: true, true_lb: 0, true_ub: 0, alignment })
        }
    }
}

fn check_table(constructor: &Constructor, table: i64, most: i64) -> Result<(), DatatypeError> {
    if !(0..MOST_TABLES as i64).contains(&table) {
        let place = format!("{}.table", constructor.name());
        return Err(DatatypeError::new(place, format!("the number of a table, 0 to {}", MOST_TABLES - 1), table));
    }
    check_at_least_one(constructor, "most", most)
}

fn check_at_least_one(constructor: &Constructor, argument: &str, found: i64) -> Result<(), DatatypeError> {
    if found < 1 {
        return Err(DatatypeError::new(format!("{}.{argument}", constructor.name()), "at least 1", found));
    }
    Ok(())
}

fn structure<'a>(
    constructor: &Constructor,
    blocklengths: &[i64],
    displacements: &[i64],
    children: impl ExactSizeIterator<Item = &'a Facts>,
) -> FactsResult {
    check_lengths(constructor, "displacements_bytes", displacements.len(), blocklengths.len())?;
    check_lengths(constructor, "children", children.len(), blocklengths.len())?;
    check_counts(constructor, "blocklengths", blocklengths)?;
    let mut union = Union::new();
    for ((&blocklength, &displacement), child) in blocklengths.iter().zip(displacements).zip(children) {
        union.block(child, blocklength, displacement.into());
    }
    union.finish().ok_or_else(|| overflow(constructor))
}

fn check_darray(
    constructor: &Constructor,
    size: i64,
    rank: i64,
    gsizes: &[i64],
    distributions: &[Distribution],
    psizes: &[i64],
) -> Result<(), DatatypeError> {
    let place = |argument: &str| format!("darray.{argument}");
    check_lengths(constructor, "distributions", distributions.len(), gsizes.len())?;
    check_lengths(constructor, "psizes", psizes.len(), gsizes.len())?;
    if size < 1 {
        return Err(DatatypeError::new(place("size"), "at least 1 process", size));
    }
    if !(0..size).contains(&rank) {
        return Err(DatatypeError::new(place("rank"), format!("a rank below {size}"), rank));
    }
    let mut processes = 1i128;
    for axis in 0..gsizes.len() {
        check_range(constructor, "gsizes", axis, gsizes[axis], 0, i64::MAX)?;
        check_range(constructor, "psizes", axis, psizes[axis], 1, i64::MAX)?;
        processes = processes.saturating_mul(psizes[axis].into());
        let place = || format!("darray.distributions[{axis}]");
        match distributions[axis] {
            Distribution::None if psizes[axis] != 1 => {
                let expected = format!("psizes[{axis}] = 1 on an axis that is not distributed");
                return Err(DatatypeError::new(place(), expected, psizes[axis]));
            }
            Distribution::Block(Some(length)) | Distribution::Cyclic(Some(length)) if length < 1 => {
                return Err(DatatypeError::new(place(), "a block length of at least 1", length));
            }
            Distribution::Block(Some(length))
                if i128::from(length) * i128::from(psizes[axis]) < i128::from(gsizes[axis]) =>
            {
                let expected = format!("blocks that cover {} elements with {} processes", gsizes[axis], psizes[axis]);
                return Err(DatatypeError::new(place(), expected, length));
            }
            distribution => debug_assert!(block_length(distribution, gsizes[axis], psizes[axis]) >= 1),
        }
    }
    if processes != i128::from(size) {
        let expected = format!("a grid of {size} processes");
        return Err(DatatypeError::new(place("psizes"), expected, processes));
    }
    Ok(())
}

fn array(constructor: &Constructor, child: &Facts, sizes: &[i64], axes: &[AxisBlocks]) -> FactsResult {
    let extent = i128::from(child.extent());
    let fail = || overflow(constructor);
    let copies = product(axes.iter().map(AxisBlocks::selected)).ok_or_else(fail)?;
    let elements = product(sizes.iter().copied()).ok_or_else(fail)?;
    let (mut first, mut last) = (0, 0);
    if copies > 0 {
        let corner = |index: fn(&AxisBlocks) -> i64| {
            let index =
                axes.iter().try_fold(0i128, |sum, axis| sum.checked_add(axis.step.checked_mul(index(axis).into())?));
            index.and_then(|index| narrow(index.checked_mul(extent)?)).ok_or_else(fail)
        };
        (first, last) = (corner(|axis| axis.first)?, corner(|axis| axis.last().unwrap_or(0))?);
    }
    let facts = spread(constructor, child, copies, first.min(last), first.max(last))?;
    let whole = elements.checked_mul(extent).and_then(|bytes| i64::try_from(bytes).ok());
    whole.and_then(|extent| facts.with_bounds(GivenBounds { lb: 0, extent })).ok_or_else(fail)
}

/// The facts of `count` blocks of a child, a number of bytes apart.
fn strided(constructor: &Constructor, child: &Facts, count: i64, blocklength: i64, stride: i128) -> FactsResult {
    check_count(constructor, "count", count)?;
    check_count(constructor, "blocklength", blocklength)?;
    let copies = i128::from(count) * i128::from(blocklength);
    // The corners of the nest bound it.
    let outer = if copies > 0 { (i128::from(count) - 1).checked_mul(stride).and_then(narrow) } else { Some(0) };
    let outer = outer.ok_or_else(|| overflow(constructor))?;
    let inner = (i128::from(blocklength) - 1) * i128::from(child.extent());
    spread(constructor, child, copies, outer.min(0) + inner.min(0), outer.max(0) + inner.max(0))
}

/// The facts of blocks of differing length, at displacements in units of `unit` bytes.
fn listed(
    constructor: &Constructor,
    child: &Facts,
    blocklengths: &[i64],
    displacements: &[i64],
    unit: i64,
) -> FactsResult {
    check_counts(constructor, "blocklengths", blocklengths)?;
    let extent = i128::from(child.extent());
    let (mut copies, mut low, mut high) = (0i128, i128::MAX, i128::MIN);
    for (&blocklength, &displacement) in blocklengths.iter().zip(displacements) {
        if blocklength > 0 {
            let first = i128::from(displacement) * i128::from(unit);
            let last = first + i128::from(blocklength - 1) * extent;
            copies += i128::from(blocklength);
            (low, high) = (low.min(first.min(last)), high.max(first.max(last)));
        }
    }
    spread(constructor, child, copies, low, high)
}

/// The facts of blocks of one length, at displacements in units of `unit` bytes.
fn blocks(constructor: &Constructor, child: &Facts, blocklength: i64, displacements: &[i64], unit: i64) -> FactsResult {
    let copies = displacements.len() as i128 * i128::from(blocklength);
    let bounds = |(low, high): (i64, i64), &next: &i64| (low.min(next), high.max(next));
    let (low, high) = displacements.iter().fold((i64::MAX, i64::MIN), bounds);
    let [low, high] = [low, high].map(|end| i128::from(end) * i128::from(unit));
    let block = (i128::from(blocklength) - 1) * i128::from(child.extent());
    spread(constructor, child, copies, low.min(high) + block.min(0), low.max(high) + block.max(0))
}

/// The facts of copies of a child whose origins reach from `low` to `high`; of none, if there are no copies.
fn spread(constructor: &Constructor, child: &Facts, copies: i128, low: i128, high: i128) -> FactsResult {
    let mut union = Union::new();
    if copies > 0 {
        u64::try_from(copies).map_err(|_| overflow(constructor))?;
        union.spread(child, copies, low, high);
    }
    union.finish().ok_or_else(|| overflow(constructor))
}

fn product(mut numbers: impl Iterator<Item = i64>) -> Option<i128> {
    numbers.try_fold(1i128, |product, number| product.checked_mul(number.into()))
}

/// A displacement that fits 64 bits, or nothing.
fn narrow(displacement: i128) -> Option<i128> {
    i64::try_from(displacement).ok().map(i128::from)
}

fn overflow(constructor: &Constructor) -> DatatypeError {
    DatatypeError::new(constructor.name(), "sizes, displacements and bounds that fit 64 bits", "an overflow")
}

fn check_count(constructor: &Constructor, argument: &str, count: i64) -> Result<(), DatatypeError> {
    if count < 0 {
        let place = format!("{}.{argument}", constructor.name());
        return Err(DatatypeError::new(place, "a count of at least 0", count));
    }
    Ok(())
}

fn check_counts(constructor: &Constructor, argument: &str, counts: &[i64]) -> Result<(), DatatypeError> {
    match counts.iter().position(|&count| count < 0) {
        Some(at) => check_count(constructor, &format!("{argument}[{at}]"), counts[at]),
        None => Ok(()),
    }
}

fn check_lengths(
    constructor: &Constructor,
    argument: &str,
    found: usize,
    expected: usize,
) -> Result<(), DatatypeError> {
    if found != expected {
        let place = format!("{}.{argument}", constructor.name());
        return Err(DatatypeError::new(place, format!("{expected} entries"), found));
    }
    Ok(())
}

fn check_range(
    constructor: &Constructor,
    argument: &str,
    axis: usize,
    found: i64,
    low: i64,
    high: i64,
) -> Result<(), DatatypeError> {
    if !(low..=high).contains(&found) {
        let place = format!("{}.{argument}[{axis}]", constructor.name());
        let expected = if high == i64::MAX { format!("at least {low}") } else { format!("{low} to {high}") };
        return Err(DatatypeError::new(place, expected, found));
    }
    Ok(())
}
