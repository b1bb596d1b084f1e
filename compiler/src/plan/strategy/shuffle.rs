//! How short rows at short strides are grouped: several rows of a few neighbouring vectors, moved by byte shuffles.

use crate::plan::Direction;

/// Bytes of a vector.
const VECTOR: usize = 64;

/// Most vectors that a group of rows may span. Positions in a span must fit a byte.
const MOST: usize = 4;

/// Longest row, in bytes, that fits a vector twice.
pub const LONGEST: usize = 31;

/// Longest stride at which a span may hold two rows for each vector, in bytes.
pub const FARTHEST: usize = 64;

/// How the rows of a shape are grouped; no vectors if each is better moved by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Vectors of memory that a group spans.
    pub vectors: u8,
    /// Rows of a group.
    pub rows: u8,
}

/// The best group for each direction (pack last), length and stride.
static GROUPS: [[[Group; FARTHEST + 1]; LONGEST + 1]; 2] = {
    let mut table = [[[Group { vectors: 0, rows: 0 }; FARTHEST + 1]; LONGEST + 1]; 2];
    let mut bytes = 1;
    while bytes <= LONGEST {
        let mut stride = bytes;
        while stride <= FARTHEST {
            table[0][bytes][stride] = cheapest(bytes, stride, [10, 22, 7]);
            table[1][bytes][stride] = cheapest(bytes, stride, [20, 10, 9]);
            stride += 1;
        }
        bytes += 1;
    }
    table
};

/// The group that costs least, given measured tenths of a cycle on Sapphire Rapids: the packed side of a group, a vector of its
/// span, and a row that is moved by itself.
const fn cheapest(bytes: usize, stride: usize, [group, vector, alone]: [usize; 3]) -> Group {
    let mut best = Group { vectors: 0, rows: 1 };
    let mut least = alone;
    let mut vectors = 1;
    while vectors <= MOST {
        let fitting = (vectors * VECTOR - bytes) / stride + 1;
        let rows = if fitting * bytes <= VECTOR { fitting } else { VECTOR / bytes };
        let cost = group + vectors * vector;
        if cost * (best.rows as usize) < least * rows {
            best = Group { vectors: vectors as u8, rows: rows as u8 };
            least = cost;
        }
        vectors += 1;
    }
    best
}

/// The group for rows of at most [`LONGEST`] bytes at a stride of at most [`FARTHEST`].
#[inline]
pub(super) fn group(direction: Direction, bytes: usize, stride: usize) -> Group {
    GROUPS[usize::from(direction == Direction::Pack)][bytes.min(LONGEST)][stride.min(FARTHEST)]
}
