//! The index tables of the call that `dtc explain` reckons with: given, or assumed.

use dtc_compiler::datatype::{TableFacts, TableKind};
use dtc_measure::description::text_of;
use dtc_measure::failure::Failure;
use std::path::Path;

/// Entries of an assumed table at most.
const MOST_ASSUMED: u64 = 1 << 16;

/// Bytes between assumed addresses at least.
const APART: u64 = 1 << 32;

/// The tables of a call.
pub struct Tables {
    /// The entries of each.
    pub entries: Vec<Vec<i64>>,
    /// Whether no one gave them.
    pub assumed: bool,
}

impl Tables {
    /// Those that are given, each as numbers or a file of numbers; or else as long ones as the type takes.
    pub fn of(facts: &[TableFacts], given: &[String]) -> Result<Tables, Failure> {
        if given.is_empty() {
            return Ok(Tables { entries: facts.iter().map(assumed).collect(), assumed: true });
        }
        if given.len() != facts.len() {
            let expected = format_args!("{} tables of the type", facts.len());
            return Err(Failure::description("--table", expected, given.len()));
        }
        let entries = given.iter().enumerate().map(|(number, given)| read(number, given));
        Ok(Tables { entries: entries.collect::<Result<_, _>>()?, assumed: false })
    }

    /// How long they are, in words.
    pub fn lengths(&self) -> String {
        let lengths: Vec<String> = self.entries.iter().map(|entries| entries.len().to_string()).collect();
        lengths.join(" and ")
    }
}

/// Different entries as long as there are places, spread over all of them and in no order.
fn assumed(facts: &TableFacts) -> Vec<i64> {
    let length = facts.most.min(MOST_ASSUMED);
    match facts.kind {
        TableKind::Places(places) => {
            let golden = (u128::from(places) * 618 / 1000) as u64;
            let step = (1..=golden).rev().find(|&step| greatest_common_divisor(step, places) == 1).unwrap_or(1);
            let entry = |index: u64| (u128::from(index) * u128::from(step) % u128::from(places.max(1))) as i64;
            (0..length).map(entry).collect()
        }
        TableKind::Addresses(alignment) => {
            (1..=length).map(|index| index.wrapping_mul(APART.max(alignment)) as i64).collect()
        }
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Numbers between commas, blanks or ends of lines.
fn read(number: usize, given: &str) -> Result<Vec<i64>, Failure> {
    let is_list = given.chars().all(|character| character.is_ascii_digit() || ", -".contains(character));
    let text = if is_list { given.to_owned() } else { text_of(Path::new(given), "a table of integers")? };
    let entries = text.split([',', ' ', '\n', '\r', '\t']).filter(|entry| !entry.is_empty());
    let entry = |(index, entry): (usize, &str)| {
        let wrong = |_| Failure::description(format_args!("--table {number}, entry {index}"), "an integer", entry);
        entry.parse().map_err(wrong)
    };
    entries.enumerate().map(entry).collect()
}
