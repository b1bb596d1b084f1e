//! The elements, extents and random choices with which types are written.

use dtc_compiler::datatype::{Datatype, DatatypeError, Facts, Predefined, TypeBuilder, TypeId};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

/// A type that stands for the bytes of its map, moved by `shift`.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The type.
    pub id: TypeId,
    /// Offset to add to its displacements.
    pub shift: i64,
}

impl Placed {
    /// The same type at another offset.
    pub fn moved(self, by: i64) -> Placed {
        Placed { shift: self.shift + by, ..self }
    }
}

/// Writes types for given bytes with random constructors.
///
/// A parent places a child by its displacements alone, or gives it the extent that it needs. So the bounds of children
/// never matter.
pub struct Writer<'r> {
    /// The types written so far.
    pub types: TypeBuilder,
    /// Random source of every choice.
    pub rng: &'r mut SmallRng,
}

/// The type that was built. Every choice must be valid, so an error is a fault of the generator.
pub(super) fn sound(built: Result<TypeId, DatatypeError>) -> TypeId {
    built.unwrap_or_else(|error| panic!("the generator wrote an unsound type: {error}"))
}

impl<'r> Writer<'r> {
    /// A writer without types.
    pub fn new(rng: &'r mut SmallRng) -> Writer<'r> {
        Writer { types: TypeBuilder::new(), rng }
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.rng.random_ratio(1, n)
    }

    /// A predefined type of one element of `size` bytes: 1, 2, 4, 8, 16 or 32.
    pub(super) fn element(&mut self, size: i64) -> TypeId {
        let fits = |each: &Predefined| each.fields().len() == 1 && each.size() as i64 == size;
        let choices: Vec<Predefined> = Predefined::all().filter(fits).collect();
        let choice = choices[self.rng.random_range(0..choices.len())];
        self.types.named(choice)
    }

    /// The bytes of `MPI_SHORT_INT`, with its hole.
    pub fn pair_with_a_hole(&mut self) -> Placed {
        Placed { id: self.types.named(Predefined::SHORT_INT), shift: 0 }
    }

    /// The child with that extent, resized if it has another one.
    pub fn with_extent(&mut self, child: TypeId, extent: i64) -> TypeId {
        if self.facts(child).extent() == extent && !self.one_in(8) {
            return child;
        }
        let lb = match self.rng.random_range(0..3) {
            0 => 0,
            1 => self.facts(child).true_lb,
            _ => self.rng.random_range(-40..40),
        };
        sound(self.types.resized(lb, extent, child))
    }

    /// A type without bytes, perhaps with bounds that could mislead a parent.
    pub fn nothing(&mut self) -> TypeId {
        let element = self.element(4);
        match self.rng.random_range(0..5) {
            0 => sound(self.types.contiguous(0, element)),
            1 => sound(self.types.vector(3, 0, 5, element)),
            2 => sound(self.types.hindexed(&[0, 0], &[-9, 99], element)),
            3 => sound(self.types.structure(&[], &[], &[])),
            _ => {
                let empty = sound(self.types.indexed_block(0, &[7], element));
                sound(self.types.resized(-5, 300, empty))
            }
        }
    }

    /// Two factors above 1, if a short search finds them.
    pub fn factors(&mut self, number: i64) -> Option<(i64, i64)> {
        let small: Vec<i64> = (2..60).filter(|factor| number % factor == 0 && number > *factor).collect();
        if small.is_empty() {
            return None;
        }
        let factor = small[self.rng.random_range(0..small.len())];
        Some(if self.one_in(2) { (factor, number / factor) } else { (number / factor, factor) })
    }

    /// The finished datatype, with exactly the given displacements and bounds.
    pub fn finish(mut self, placed: Placed, lb: i64, extent: i64) -> Datatype {
        let Placed { mut id, shift } = placed;
        let explicit = self.facts(id).explicit;
        match self.rng.random_range(0..4) {
            0 if !explicit => {
                // An empty resized type beside the content marks the bounds.
                let empty = self.nothing();
                let markers = sound(self.types.resized(lb, extent, empty));
                id = sound(self.types.structure(&[1, 1], &[0, shift], &[markers, id]));
                return self.finished(id);
            }
            1 => id = sound(self.types.structure(&[1], &[shift], &[id])),
            2 => id = sound(self.types.hindexed(&[1], &[shift], id)),
            _ if shift != 0 => id = sound(self.types.hindexed_block(1, &[shift], id)),
            _ => {}
        }
        id = sound(self.types.resized(lb, extent, id));
        if self.one_in(4) {
            id = sound(self.types.dup(id));
        }
        self.finished(id)
    }

    fn finished(&self, root: TypeId) -> Datatype {
        self.types.finish(root).expect("the writer made the root")
    }

    fn facts(&self, id: TypeId) -> &Facts {
        self.types.facts(id).expect("the writer made the type")
    }
}

/// Counts the constructors of a datatype.
pub fn count_constructors(datatype: &Datatype, counts: &mut BTreeMap<&'static str, u64>) {
    for node in datatype.nodes().iter() {
        *counts.entry(node.constructor().name()).or_default() += 1;
    }
}
