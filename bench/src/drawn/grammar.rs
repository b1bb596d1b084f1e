//! The parts that types are composed of: elements, records, and what is built of them, level by level.

use super::classes::element;
use super::draws::Draws;
use dtc_compiler::datatype::{DatatypeError, Predefined, TypeBuilder, TypeId};

/// A type, or why there is none.
pub type Built = Result<TypeId, DatatypeError>;

/// Entries of the longest list.
pub const LONGEST_LIST: u64 = 1 << 20;

/// How a list of places goes through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// From low addresses to high ones.
    Ascending,
    /// Groups of neighbours, the groups in any order.
    Clustered,
    /// In any order.
    Shuffled,
}

/// Types under construction, and the numbers that decide on them.
pub struct Grammar<'a> {
    /// Where numbers come from.
    pub draws: &'a mut Draws,
    /// Where types go.
    pub types: TypeBuilder,
}

impl<'a> Grammar<'a> {
    /// No type yet.
    pub fn new(draws: &'a mut Draws) -> Grammar<'a> {
        Grammar { draws, types: TypeBuilder::new() }
    }

    /// Packed bytes of a type, at least 1.
    pub fn size(&self, id: TypeId) -> Result<u64, DatatypeError> {
        Ok(self.types.facts(id)?.size.max(1))
    }

    /// Bytes from one copy of a type to the next.
    pub fn extent(&self, id: TypeId) -> Result<i64, DatatypeError> {
        Ok(self.types.facts(id)?.extent())
    }

    /// A number, mostly of 4 or 8 bytes.
    pub fn number(&mut self) -> TypeId {
        let bytes = self.draws.of(&[1, 2, 4, 4, 4, 4, 8, 8, 8, 16]);
        element(&mut self.types, bytes)
    }

    /// What an array consists of: numbers, a few of them together, or records of so many levels.
    pub fn cell(&mut self, levels: u64) -> Built {
        match self.draws.between(0, 4) {
            0 | 1 => Ok(self.number()),
            2 => {
                let (number, child) = (self.draws.between(2, 6), self.number());
                self.types.contiguous(number as i64, child)
            }
            _ => self.record(levels),
        }
    }

    /// A record of some fields, of which some have levels of their own, with gaps between.
    pub fn record(&mut self, levels: u64) -> Built {
        let fields = self.draws.between(2, 7);
        let (mut lengths, mut displacements, mut children) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0_i64;
        for _ in 0..fields {
            let (length, child) = match self.draws.between(0, 5) {
                0 if levels > 0 => (1, self.spread(levels - 1)?),
                1 if levels > 1 => (1, self.record(levels - 1)?),
                2 | 3 => (self.draws.between(2, 7), self.number()),
                _ => (1, self.number()),
            };
            let alignment = self.types.facts(child)?.size.next_power_of_two().min(8) as i64;
            let gap = if self.draws.one_in(2) { self.draws.about(1, 24) as i64 } else { 0 };
            at = (at + gap + alignment - 1) / alignment * alignment;
            lengths.push(length as i64);
            displacements.push(at);
            children.push(child);
            at += length as i64 * self.extent(child)?;
        }
        if self.draws.one_in(5) {
            let order = self.draws.order(fields);
            (lengths, displacements, children) = order
                .iter()
                .map(|&index| (lengths[index as usize], displacements[index as usize], children[index as usize]))
                .collect();
        }
        let record = self.types.structure(&lengths, &displacements, &children)?;
        // Behind the last field that is sent there may be others.
        let rest = if self.draws.one_in(2) { 8 * self.draws.between(0, 5) as i64 } else { 0 };
        let extent = (at + rest + 7) / 8 * 8;
        self.types.resized(0, extent, record)
    }

    /// Numbers or records at strides, as a field of a struct has them.
    fn spread(&mut self, levels: u64) -> Built {
        let child = if levels > 0 && self.draws.one_in(3) { self.record(levels - 1)? } else { self.number() };
        let (count, length) = (self.draws.between(2, 6) as i64, self.draws.between(1, 3) as i64);
        let stride = length + self.draws.between(1, 3) as i64;
        self.types.vector(count, length, stride, child)
    }

    /// How a list goes through memory.
    pub fn walk(&mut self) -> Walk {
        self.draws.of(&[Walk::Ascending, Walk::Clustered, Walk::Shuffled])
    }

    /// Different places, of which one in about `sparse` is taken.
    pub fn places(&mut self, number: u64, sparse: u64, walk: Walk) -> Vec<i64> {
        let mut at = 0;
        let mut places: Vec<i64> = Vec::with_capacity(number as usize);
        for _ in 0..number {
            at += if sparse > 1 { self.draws.between(0, 2 * (sparse - 1)) } else { 0 };
            places.push(at as i64);
            at += 1;
        }
        let together = match walk {
            Walk::Ascending => return places,
            Walk::Clustered => self.draws.about(2, 64),
            Walk::Shuffled => 1,
        };
        let groups = self.draws.order(number.div_ceil(together));
        groups
            .iter()
            .flat_map(|group| {
                let start = (group * together) as usize;
                places[start..(start + together as usize).min(places.len())].iter().copied()
            })
            .collect()
    }

    /// A list of blocks of a child, by one of the four constructors of lists; `number` blocks of about `length` copies.
    pub fn list(&mut self, number: u64, length: u64, sparse: u64, child: TypeId) -> Built {
        let walk = self.walk();
        let extent = self.extent(child)?;
        let places = self.places(number, sparse, walk);
        let equal = length == 1 || self.draws.one_in(2);
        let starts: Vec<i64> = places.iter().map(|place| place * length as i64).collect();
        let in_bytes: Vec<i64> = starts.iter().map(|start| start * extent).collect();
        if equal {
            return match self.draws.one_in(2) {
                true => self.types.indexed_block(length as i64, &starts, child),
                false => self.types.hindexed_block(length as i64, &in_bytes, child),
            };
        }
        let lengths: Vec<i64> = (0..number).map(|_| self.draws.between(1, length) as i64).collect();
        match self.draws.one_in(2) {
            true => self.types.indexed(&lengths, &starts, child),
            false => self.types.hindexed(&lengths, &in_bytes, child),
        }
    }

    /// An element of a number of bytes that no predefined type need have.
    pub fn bytes(&mut self, bytes: u64) -> Built {
        match bytes {
            1 | 2 | 4 | 8 | 16 => Ok(element(&mut self.types, bytes)),
            _ => {
                let unit = [8, 4, 2, 1].into_iter().find(|unit| bytes.is_multiple_of(*unit)).unwrap_or(1);
                let child = if unit == 1 { self.types.named(Predefined::BYTE) } else { element(&mut self.types, unit) };
                self.types.contiguous((bytes / unit) as i64, child)
            }
        }
    }
}
