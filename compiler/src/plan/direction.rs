//! The direction of a transfer.

use std::fmt;

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From memory to the packed bytes.
    Pack,
    /// From the packed bytes to memory.
    Unpack,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Pack => "pack",
            Direction::Unpack => "unpack",
        })
    }
}
