//! What can be wrong with a datatype.

use std::fmt;

/// Why a datatype cannot be built: the place, what was expected there, and what was found.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let error = types.vector(-1, 1, 1, int).unwrap_err();
/// assert_eq!(error.place(), "vector.count");
/// assert_eq!(error.to_string(), "vector.count: expected a count of at least 0, found -1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatatypeError {
    place: String,
    expected: String,
    found: String,
}

impl DatatypeError {
    pub(crate) fn new(place: impl Into<String>, expected: impl Into<String>, found: impl fmt::Display) -> Self {
        DatatypeError { place: place.into(), expected: expected.into(), found: found.to_string() }
    }

    /// The argument or field that is wrong.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What the place should hold.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What it holds.
    pub fn found(&self) -> &str {
        &self.found
    }
}

impl fmt::Display for DatatypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.place, self.expected, self.found)
    }
}

impl std::error::Error for DatatypeError {}
