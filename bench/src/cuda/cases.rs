//! The types that are measured on a GPU: files, or the index that the peers of `bench/gpu` read too.
//!
//! Long lists are drawn as `bench/gpu/README.md` says, in place of reading files of a hundred megabytes.

use crate::drawn::draws::{draw, mix};
use dtc_compiler::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder};
use dtc_measure::bench::case::Case;
use dtc_measure::bench::checkout::checkout_file;
use dtc_measure::failure::{Failure, reason};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where the description of a case is, so that only those that are measured are read.
pub enum Reference {
    File(PathBuf),
    Entry { index: PathBuf, place: String, entry: Value },
}

impl Reference {
    /// The name, as figures bear it.
    pub fn name(&self) -> String {
        match self {
            Reference::File(path) => {
                path.file_stem().map_or_else(|| "type".to_owned(), |stem| stem.to_string_lossy().into_owned())
            }
            Reference::Entry { entry, .. } => {
                entry.get("name").and_then(Value::as_str).unwrap_or("without a name").to_owned()
            }
        }
    }

    /// What the index says of the bytes of a buffer and of the packed bytes.
    pub fn sizes(&self) -> Option<(u64, u64)> {
        match self {
            Reference::File(_) => None,
            Reference::Entry { entry, .. } => {
                Some((entry.get("buffer_bytes")?.as_u64()?, entry.get("packed_bytes")?.as_u64()?))
            }
        }
    }

    /// Reads or draws the type.
    pub fn read(&self) -> Result<Case, Failure> {
        match self {
            Reference::File(path) => Case::read(path),
            Reference::Entry { index, place, entry } => from_entry(self.name(), index, place, entry),
        }
    }
}

/// What the command line names: files, and an index; without either the index of the checkout.
pub fn collect(files: &[PathBuf], index: Option<&Path>) -> Result<Vec<Reference>, Failure> {
    let mut references: Vec<Reference> = files.iter().cloned().map(Reference::File).collect();
    let own = if files.is_empty() && index.is_none() {
        let missing = || Failure::description("TYPE.json", "a type or --gpu-cases, outside a checkout of dtc", "none");
        Some(checkout_file("bench/gpu/cases.json").ok_or_else(missing)?)
    } else {
        None
    };
    if let Some(index) = index.or(own.as_deref()) {
        references.extend(entries(index)?);
    }
    Ok(references)
}

fn entries(index: &Path) -> Result<Vec<Reference>, Failure> {
    let place = index.display();
    let text = std::fs::read_to_string(index)
        .map_err(|error| Failure::description(&place, "an index of cases", reason(&error)))?;
    let mut document: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::description(&place, "an index of cases in JSON", error))?;
    let Some(Value::Array(list)) = document.get_mut("cases").map(Value::take) else {
        return Err(Failure::description(format_args!("{place}: $.cases"), "a list", "none"));
    };
    let reference = |(number, entry)| {
        let place = format!("{place}: $.cases[{number}]");
        Reference::Entry { index: index.to_owned(), place, entry }
    };
    Ok(list.into_iter().enumerate().map(reference).collect())
}

fn from_entry(name: String, index: &Path, place: &str, entry: &Value) -> Result<Case, Failure> {
    let missing = |field: &str, expected: &str| {
        Failure::description(format_args!("{place}.{field}"), expected, entry.get(field).unwrap_or(&Value::Null))
    };
    let shape = entry.get("shape").ok_or_else(|| missing("shape", "an object"))?;
    if let Some("runs" | "blocks") = shape.get("kind").and_then(Value::as_str) {
        let count = entry.get("count").and_then(Value::as_u64).ok_or_else(|| missing("count", "a number"))?;
        let buffer = entry.get("buffer_bytes").and_then(Value::as_u64);
        let datatype = drawn(&format!("{place}.shape"), shape)?;
        return Ok(Case { name, datatype, count, pack_origin: 0, unpack_origin: 0, buffer });
    }
    let file = entry.get("file").and_then(Value::as_str).ok_or_else(|| missing("file", "the name of a file"))?;
    Ok(Case { name, ..Case::read(&index.with_file_name(file))? })
}

/// A list of runs, or of blocks in random order.
fn drawn(place: &str, shape: &Value) -> Result<Datatype, Failure> {
    let number = |field: &str| {
        let found = shape.get(field).and_then(Value::as_u64);
        found.ok_or_else(|| Failure::description(format_args!("{place}.{field}"), "a number", "none"))
    };
    let refused = |error: DatatypeError| Failure::Description(format!("{place}: {error}"));
    let seed = number("seed")?;
    let mut sum = 0_u64;
    let mut add = |index: u64, word: u64| sum = sum.wrapping_add(mix(mix(index) ^ word));
    let datatype = if shape.get("kind").and_then(Value::as_str) == Some("runs") {
        runs(number("runs")?, number("unit_bytes")?, number("most_units")?.max(1), seed, add).map_err(refused)?
    } else {
        let (blocks, bytes) = (number("blocks")?, number("block_bytes")?);
        let mut order: Vec<u64> = (0..blocks).collect();
        order.sort_by_cached_key(|&index| draw(seed, index));
        let width = (bytes / 4) as i64;
        for (index, &block) in order.iter().enumerate() {
            add(2 * index as u64, block * bytes);
            add(2 * index as u64 + 1, bytes);
        }
        let displacements: Vec<i64> = order.iter().map(|&block| block as i64 * width).collect();
        let mut types = TypeBuilder::new();
        let int = types.named(Predefined::INT);
        let root = types.indexed_block(width, &displacements, int).map_err(refused)?;
        types.finish(root).map_err(refused)?
    };
    let (expected, found) = (shape.get("checksum").and_then(Value::as_str).unwrap_or("none"), format!("{sum:016x}"));
    if expected != found {
        return Err(Failure::description(
            format_args!("{place}.checksum"),
            expected,
            format_args!("a list of {found}"),
        ));
    }
    Ok(datatype)
}

/// Runs of irregular length and distance, ascending, in units of 4 or 8 bytes. Tells words 2i and 2i + 1: where run i begins
/// and how long it is, in bytes.
pub fn runs(
    number: u64,
    unit: u64,
    most: u64,
    seed: u64,
    mut tell: impl FnMut(u64, u64),
) -> Result<Datatype, DatatypeError> {
    let (mut displacements, mut lengths, mut at) = (Vec::new(), Vec::new(), 0);
    for index in 0..number {
        let drawn = draw(seed, index);
        let (length, gap) = (1 + (drawn & 0xffff_ffff) % most, 1 + (drawn >> 32) % most);
        tell(2 * index, at * unit);
        tell(2 * index + 1, length * unit);
        displacements.push(at as i64);
        lengths.push(length as i64);
        at += length + gap;
    }
    let mut types = TypeBuilder::new();
    let unit = types.named(if unit == 8 { Predefined::DOUBLE } else { Predefined::INT });
    let root = types.indexed(&lengths, &displacements, unit)?;
    types.finish(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_those_of_the_index() {
        let index = checkout_file("bench/gpu/cases.json").unwrap();
        let short = |reference: &Reference| {
            let (_, packed) = reference.sizes().unwrap();
            packed < 4 << 20
        };
        let cases: Vec<Case> =
            entries(&index).unwrap().iter().filter(|reference| short(reference)).map(|it| it.read().unwrap()).collect();
        assert!(cases.iter().any(|case| case.name == "runs int 1..32 1k"));
        assert!(cases.iter().any(|case| case.name == "records 17/24 1k" && case.count == 1024));
    }
}
