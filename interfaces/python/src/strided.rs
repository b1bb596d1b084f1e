//! Elements at strides: shape, strides and offset, as NumPy has them, without any array.

use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A number for each axis. Six axes need no allocation.
pub type Axes = SmallVec<[i64; 6]>;

/// An index table of a call: its name there, and how many entries it has at most.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Table {
    /// The name of the argument that the table is passed as.
    pub name: String,
    /// Entries of the longest table.
    pub most: i64,
}

/// One entry of an index, for one axis or none.
pub enum Index {
    /// `x[at]`: the axis goes.
    At(i64),
    /// `x[start:stop:step]` within the axis: the first index, the step, and how many there are.
    Slice { start: i64, step: i64, count: i64 },
    /// `x[None]`: an axis of length 1.
    NewAxis,
    /// The elements of the axis that an index table of the call lists.
    Table(Arc<Table>),
}

/// Elements at strides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Strided {
    /// Bytes from the address that the strides belong to, to the first element.
    pub offset: i64,
    /// Elements along each axis.
    pub shape: Axes,
    /// Bytes from an element to the next along each axis.
    pub strides: Axes,
}

impl Strided {
    /// Elements of `item` bytes in C order without gaps; nothing if their bytes do not fit 63 bits.
    pub fn contiguous(shape: Axes, item: i64) -> Option<Strided> {
        let mut strides: Axes = SmallVec::from_elem(item, shape.len());
        let mut stride = item;
        for (axis, &count) in shape.iter().enumerate().rev() {
            strides[axis] = stride;
            stride = stride.checked_mul(count.max(1))?;
        }
        Some(Strided { offset: 0, shape, strides })
    }

    /// How many elements there are. Those of a layout whose [`span`](Strided::span) was found fit 63 bits.
    pub fn count(&self) -> i64 {
        self.shape.iter().product()
    }

    /// The lowest byte of an element of `item` bytes, and one past the highest, from where the strides belong; `(0, 0)` if there are no
    /// elements, and nothing if they do not fit 63 bits.
    pub fn span(&self, item: i64) -> Option<(i64, i64)> {
        let mut elements: i64 = 1;
        let (mut low, mut high) = (self.offset, self.offset.checked_add(item)?);
        if self.shape.contains(&0) {
            return Some((0, 0));
        }
        for (&count, &stride) in self.shape.iter().zip(&self.strides) {
            elements = elements.checked_mul(count)?;
            let reach = stride.checked_mul(count - 1)?;
            (low, high) = (low.checked_add(reach.min(0))?, high.checked_add(reach.max(0))?);
        }
        // The packed bytes fit, too.
        elements.checked_mul(item.max(1))?;
        Some((low, high))
    }

    /// Whether the elements, of `item` bytes, follow each other in C order. Strides of axes of length 1 do not count.
    pub fn is_contiguous(&self, item: i64) -> bool {
        let mut expected = item;
        let axes = self.shape.iter().zip(&self.strides).rev();
        self.shape.contains(&0)
            || axes.filter(|&(&count, _)| count != 1).all(|(&count, &stride)| {
                let fits = stride == expected;
                expected = expected.saturating_mul(count);
                fits
            })
    }

    /// Whether two elements of `item` bytes may have a byte in common. Exact where each axis steps over all of the shorter ones, as it
    /// does in slices of arrays; others are said to overlap.
    pub fn may_overlap(&self, item: i64) -> bool {
        let mut axes: SmallVec<[(i64, i64); 6]> = self
            .shape
            .iter()
            .zip(&self.strides)
            .filter(|&(&count, _)| count > 1)
            .map(|(&c, &s)| (s.abs(), c))
            .collect();
        axes.sort_unstable();
        let mut reach = item;
        !self.shape.contains(&0)
            && axes.into_iter().any(|(stride, count)| {
                let overlaps = stride < reach;
                reach = reach.saturating_add(stride.saturating_mul(count - 1));
                overlaps
            })
    }

    /// The same elements with their axes in another order. `axes`: each axis once.
    pub fn permuted(&self, axes: &[usize]) -> Strided {
        let of = |numbers: &Axes| axes.iter().map(|&axis| numbers[axis]).collect();
        Strided { offset: self.offset, shape: of(&self.shape), strides: of(&self.strides) }
    }

    /// The elements that an index names, which has an entry for every axis and lies within the shape.
    pub fn at(&self, index: &[Index]) -> Strided {
        let mut found = Strided { offset: self.offset, shape: Axes::new(), strides: Axes::new() };
        let mut axis = 0;
        for entry in index {
            let (count, stride) = match *entry {
                Index::NewAxis => (1, 0),
                Index::At(at) => {
                    found.offset += at * self.strides[axis];
                    axis += 1;
                    continue;
                }
                Index::Slice { start, step, count } => {
                    let stride = self.strides[axis];
                    axis += 1;
                    // A slice without elements may begin behind the last one, and its step may be anything.
                    let begins = if count > 0 { start * stride } else { 0 };
                    found.offset += begins;
                    (count, if count > 1 { step * stride } else { stride })
                }
                Index::Table(ref table) => {
                    axis += 1;
                    (table.most, self.strides[axis - 1])
                }
            };
            found.shape.push(count);
            found.strides.push(stride);
        }
        found
    }

    /// The elements, each divided into `inner` elements of `item` bytes in C order.
    pub fn divided(&self, inner: &[i64], item: i64) -> Option<Strided> {
        let inner = Strided::contiguous(inner.into(), item)?;
        let mut divided = self.clone();
        divided.shape.extend_from_slice(&inner.shape);
        divided.strides.extend_from_slice(&inner.strides);
        Some(divided)
    }
}

/// Numbers as a tuple of Python.
pub struct Tuple<'a>(pub &'a [i64]);

impl fmt::Display for Tuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => write!(f, "({one},)"),
            several => {
                let numbers: Vec<String> = several.iter().map(i64::to_string).collect();
                write!(f, "({})", numbers.join(", "))
            }
        }
    }
}
