//! What can be wrong with a description.

use crate::suggest;
use std::fmt;

/// Why a text is not the description of a datatype: the place, what was expected there, and what was found.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::json;
/// let text = r#"{"kind": "contiguous", "count": -2, "child": {"kind": "named", "name": "MPI_INT"}}"#;
/// let error = json::read(text).unwrap_err();
/// assert_eq!(error.place(), "$.count");
/// assert_eq!((error.line(), error.column()), (Some(1), Some(33)));
/// assert_eq!(error.to_string(), "$.count (line 1, column 33): expected a count of at least 0, found -2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    place: String,
    expected: String,
    found: String,
    position: Option<(usize, usize)>,
}

impl DescriptionError {
    pub(super) fn new(
        place: String,
        expected: impl Into<String>,
        found: impl Into<String>,
        position: Option<(usize, usize)>,
    ) -> Self {
        let place = suggest::shorten_path(place);
        DescriptionError { place, expected: expected.into(), found: found.into(), position }
    }

    /// The path of the faulty value from the root of the document, such as `$.types.face.child.blocklengths[3]`. Of a path of
    /// hundreds of steps the middle is left out.
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

    /// The line of the faulty value, from 1, when it is known.
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// The column of the faulty value in characters, from 1, when it is known.
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some((line, column)) = self.position {
            write!(f, " (line {line}, column {column})")?;
        }
        write!(f, ": expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for DescriptionError {}
