//! The members of an object of a document, and their values.

use super::document::{Document, Value};
use super::error::DescriptionError;
use crate::datatype::{Distribution, Order, ReadArguments};
use crate::suggest::{closest, one_of, plain_name, shorten};
use std::sync::Arc;

/// Names the schema of the document for editors; any document may have it, at its root.
pub(super) const SCHEMA: &str = "$schema";

/// No object of the vocabulary has more members.
pub(super) const MOST_MEMBERS: usize = 9;

pub(super) type Read<T> = Result<T, DescriptionError>;

pub(super) fn doubled(document: &Document, key: usize) -> DescriptionError {
    document.error(key, "every key once", "it again")
}

/// The keys of an object in words.
pub(super) fn keys_of(document: &Document, object: usize) -> String {
    match one_of(document.members(object).map(|(key, ..)| key)) {
        none if none == "nothing" => "an empty object".to_owned(),
        keys => format!("only {}", keys.trim_start_matches("one of ")),
    }
}

/// The members of an object with known keys.
pub(super) struct Members<'d, 'k> {
    pub(super) document: &'d Document<'d>,
    object: usize,
    keys: &'k [&'static str],
    values: [Option<usize>; MOST_MEMBERS],
}

impl<'d, 'k> Members<'d, 'k> {
    /// Reads an object that has no other keys.
    pub(super) fn read(document: &'d Document<'d>, object: usize, keys: &'k [&'static str]) -> Read<Self> {
        let members = Members::select(document, object, keys)?;
        let known = |name: &str| keys.contains(&name) || object == 0 && name == SCHEMA;
        match document.members(object).find(|&(name, ..)| !known(name)) {
            None => Ok(members),
            Some((name, key, _)) => {
                let expected = match closest(name, keys.iter().copied()) {
                    Some(meant) => format!("{} (perhaps {meant})", one_of(keys.iter().copied())),
                    None => one_of(keys.iter().copied()),
                };
                Err(document.error(key, expected, format!("the key {}", shorten(name))))
            }
        }
    }

    /// Reads an object and ignores other keys.
    pub(super) fn select(document: &'d Document<'d>, object: usize, keys: &'k [&'static str]) -> Read<Self> {
        let mut values = [None; MOST_MEMBERS];
        for (name, key, value) in document.members(object) {
            if let Some(slot) = keys.iter().position(|&known| known == name)
                && values[slot].replace(value).is_some()
            {
                return Err(doubled(document, key));
            }
        }
        Ok(Members { document, object, keys, values })
    }

    pub(super) fn optional(&self, key: &str) -> Option<usize> {
        let slot = self.keys.iter().position(|&known| known == key)?;
        self.values[slot]
    }

    pub(super) fn required(&self, key: &str) -> Read<usize> {
        self.optional(key).ok_or_else(|| {
            self.document.error(self.object, format!("the key {key}"), keys_of(self.document, self.object))
        })
    }
}

impl ReadArguments for Members<'_, '_> {
    type Error = DescriptionError;

    fn integer(&mut self, key: &'static str) -> Read<i64> {
        integer(self.document, self.required(key)?)
    }

    fn integers(&mut self, key: &'static str) -> Read<Arc<[i64]>> {
        let value = self.required(key)?;
        match self.document.value(value) {
            Value::Integers(integers) => Ok(integers.as_slice().into()),
            Value::List => self.document.items(value).map(|item| integer(self.document, item)).collect(),
            _ => Err(self.document.unexpected(value, "a list of integers")),
        }
    }

    fn order(&mut self, key: &'static str) -> Read<Order> {
        let value = self.required(key)?;
        match self.document.value(value) {
            Value::String(order) if order == "C" => Ok(Order::C),
            Value::String(order) if order == "Fortran" => Ok(Order::Fortran),
            Value::String(order) => {
                let hint = match ORDERS.iter().find(|(_, others)| others.contains(&order.as_ref())) {
                    Some((meant, _)) => format!(" (perhaps \"{meant}\")"),
                    None => String::new(),
                };
                Err(self.document.unexpected(value, format!("\"C\" or \"Fortran\"{hint}")))
            }
            _ => Err(self.document.unexpected(value, "\"C\" or \"Fortran\"")),
        }
    }

    fn distributions(&mut self, key: &'static str) -> Read<Vec<Distribution>> {
        let items = items(self.document, self.required(key)?, "a list of distributions", DISTRIBUTION)?;
        items.map(|item| distribution(self.document, item)).collect()
    }
}

pub(super) fn integer(document: &Document, index: usize) -> Read<i64> {
    match document.value(index) {
        Value::Integer(integer) => Ok(*integer),
        _ => Err(document.unexpected(index, "an integer of 64 bits")),
    }
}

/// The values of a list of other things than integers.
pub(super) fn items<'d>(
    document: &'d Document,
    index: usize,
    expected: &str,
    expected_item: &str,
) -> Read<impl Iterator<Item = usize> + use<'d>> {
    match document.value(index) {
        Value::List => Ok(document.items(index)),
        Value::Integers(integers) => {
            Err(document.error_in(index, 0, expected_item, integers.first().map_or_else(String::new, i64::to_string)))
        }
        _ => Err(document.unexpected(index, expected)),
    }
}

/// The orders, and what others call them: the short notation, MPI.
const ORDERS: [(&str, &[&str]); 2] =
    [("C", &["c", "MPI_ORDER_C"]), ("Fortran", &["fortran", "FORTRAN", "F", "f", "MPI_ORDER_FORTRAN"])];

const DISTRIBUTION: &str = "\"block\", \"cyclic\", \"none\", {\"block\": length} or {\"cyclic\": length}";

pub(super) fn distribution(document: &Document, index: usize) -> Read<Distribution> {
    match document.value(index) {
        Value::String(name) if name == "block" => Ok(Distribution::Block(None)),
        Value::String(name) if name == "cyclic" => Ok(Distribution::Cyclic(None)),
        Value::String(name) if name == "none" => Ok(Distribution::None),
        Value::String(name) => {
            let plain = plain_name(name, "MPI_DISTRIBUTE_");
            let hint = match closest(&plain, ["block", "cyclic", "none"]) {
                Some(meant) => format!(" (perhaps \"{meant}\")"),
                None => String::new(),
            };
            Err(document.unexpected(index, format!("{DISTRIBUTION}{hint}")))
        }
        Value::Object => {
            let members = Members::read(document, index, &["block", "cyclic"])?;
            match (members.optional("block"), members.optional("cyclic")) {
                (Some(length), None) => Ok(Distribution::Block(Some(integer(document, length)?))),
                (None, Some(length)) => Ok(Distribution::Cyclic(Some(integer(document, length)?))),
                _ => Err(document.error(index, DISTRIBUTION, keys_of(document, index))),
            }
        }
        _ => Err(document.unexpected(index, DISTRIBUTION)),
    }
}
