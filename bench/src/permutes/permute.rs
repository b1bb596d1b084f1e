//! Permutes that are drawn from a seed.

use crate::drawn::draws::{Draws, draw};
use crate::drawn::element;
use dtc_compiler::datatype::{Datatype, DatatypeError, TypeBuilder};
use std::fmt;
use std::ops::RangeInclusive;

/// A range of sizes, by the level of the memory that holds the array and its packed bytes.
pub struct SizeClass {
    /// What names of layouts and rows of tables have.
    pub name: &'static str,
    /// Bytes of an array.
    pub bytes: RangeInclusive<u64>,
}

/// The classes that are drawn in turn.
pub const CLASSES: [SizeClass; 3] = [
    SizeClass { name: "L2", bytes: 64 << 10..=512 << 10 },
    SizeClass { name: "L3", bytes: 2 << 20..=8 << 20 },
    SizeClass { name: "memory", bytes: 56 << 20..=72 << 20 },
];

/// Bytes of an element.
const ELEMENTS: [u64; 5] = [1, 2, 4, 8, 16];

/// Axes of an array.
const AXES: RangeInclusive<u64> = 2..=6;

/// A dense array whose axes are packed in another order.
pub struct Permute {
    /// Its number and its class.
    pub name: String,
    /// The class of its size.
    pub class: &'static SizeClass,
    /// Bytes of an element.
    pub element: u64,
    /// Lengths of the axes, from the slowest in memory to the fastest.
    lengths: Vec<u64>,
    /// The axes from the slowest in the packed bytes to the fastest.
    order: Vec<usize>,
}

/// An axis of a permute, in elements.
#[derive(Clone, Copy)]
pub struct Axis {
    /// How many places it has.
    pub length: usize,
    /// From a place to the next one in memory.
    pub stride: usize,
}

impl Permute {
    /// The permute that a seed has at an index.
    pub fn draw(seed: u64, index: u64) -> Permute {
        let mut draws = Draws::new(draw(seed, index));
        let class = &CLASSES[(index % CLASSES.len() as u64) as usize];
        let element = draws.of(&ELEMENTS);
        let axes = draws.between(*AXES.start(), *AXES.end());
        let lengths = loop {
            let bytes = draws.about(*class.bytes.start(), *class.bytes.end());
            let lengths = lengths(&mut draws, bytes / element, axes);
            if class.bytes.contains(&(lengths.iter().product::<u64>() * element)) {
                break lengths;
            }
        };
        let order = loop {
            let order = draws.order(axes);
            if !order.is_sorted() {
                break order.into_iter().map(|axis| axis as usize).collect();
            }
        };
        Permute { name: format!("{index:03}_{}", class.name), class, element, lengths, order }
    }

    /// Bytes of the array.
    pub fn bytes(&self) -> u64 {
        self.lengths.iter().product::<u64>() * self.element
    }

    /// The axes from the slowest in the packed bytes to the fastest.
    pub fn axes(&self) -> Vec<Axis> {
        let stride = |axis: usize| self.lengths[axis + 1..].iter().product::<u64>() as usize;
        self.order.iter().map(|&axis| Axis { length: self.lengths[axis] as usize, stride: stride(axis) }).collect()
    }

    /// The type whose packed bytes are the array in the other order.
    pub fn datatype(&self) -> Result<Datatype, DatatypeError> {
        let mut types = TypeBuilder::new();
        let mut root = element(&mut types, self.element);
        for Axis { length, stride } in self.axes().into_iter().rev() {
            root = types.hvector(length as i64, 1, (stride as u64 * self.element) as i64, root)?;
        }
        types.finish(root)
    }

    /// The packed bytes of an array, copied element by element.
    pub fn packed(&self, memory: &[u8]) -> Vec<u8> {
        let (axes, bytes) = (self.axes(), self.element as usize);
        let mut packed = Vec::with_capacity(memory.len());
        let mut indices = vec![0; axes.len()];
        while packed.len() < memory.len() {
            let place: usize = indices.iter().zip(&axes).map(|(index, axis)| index * axis.stride).sum();
            packed.extend_from_slice(&memory[place * bytes..][..bytes]);
            for (index, axis) in indices.iter_mut().zip(&axes).rev() {
                *index = (*index + 1) % axis.length;
                if *index > 0 {
                    break;
                }
            }
        }
        packed
    }
}

/// Lengths of axes whose product is about `elements`. Each axis has two places at least; any of them may be the longest.
fn lengths(draws: &mut Draws, elements: u64, axes: u64) -> Vec<u64> {
    let (mut lengths, mut rest) = (Vec::new(), elements);
    for others in (1..axes).rev() {
        let length = draws.about(2, rest >> others);
        lengths.push(length);
        rest /= length;
    }
    lengths.push(rest);
    draws.order(axes).into_iter().map(|axis| lengths[axis as usize]).collect()
}

impl fmt::Display for Permute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<String> = self.lengths.iter().map(u64::to_string).collect();
        write!(f, "{} elements of {} bytes, axes ", lengths.join(" x "), self.element)?;
        self.order.iter().try_for_each(|axis| write!(f, "{axis}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_permutes_of_their_class() {
        let mut seen = Vec::new();
        for (seed, index) in (0..20).flat_map(|seed| (0..30).map(move |index| (seed, index))) {
            let permute = Permute::draw(seed, index);
            let text = permute.to_string();
            assert_eq!(text, Permute::draw(seed, index).to_string(), "equal seeds draw equal permutes");
            let mut order = permute.order.clone();
            assert!(!order.is_sorted(), "{text}");
            order.sort_unstable();
            assert_eq!(order, (0..permute.lengths.len()).collect::<Vec<_>>(), "{text}");
            assert!(permute.class.bytes.contains(&permute.bytes()), "{text}");
            assert!(permute.lengths.iter().all(|length| *length >= 2), "{text}");
            assert_eq!(permute.datatype().unwrap().facts().size, permute.bytes(), "{text}");
            seen.push((permute.class.name, permute.element, permute.lengths.len() as u64));
        }
        for class in &CLASSES {
            assert!(ELEMENTS.iter().all(|element| seen.iter().any(|seen| (seen.0, seen.1) == (class.name, *element))));
            assert!(AXES.into_iter().all(|axes| seen.iter().any(|seen| (seen.0, seen.2) == (class.name, axes))));
        }
    }

    #[test]
    fn elements_are_packed_in_the_other_order() {
        let permute = Permute {
            name: String::new(),
            class: &CLASSES[0],
            element: 2,
            lengths: vec![2, 3, 2],
            order: vec![2, 0, 1],
        };
        let memory: Vec<u8> = (0..24).collect();
        let elements = [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11];
        let expected: Vec<u8> = elements.iter().flat_map(|element| [2 * element, 2 * element + 1]).collect();
        assert_eq!((permute.packed(&memory), permute.bytes()), (expected, 24));
        assert_eq!(permute.to_string(), "2 x 3 x 2 elements of 2 bytes, axes 201");
    }
}
