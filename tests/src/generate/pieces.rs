//! Writes runs, repetitions and concatenations with random constructors.

use super::arrays;
use super::writer::{Placed, Writer, sound};
use dtc_compiler::datatype::Predefined;
use rand::Rng;

/// Most items of a list that stands for a repetition.
const LONGEST_LIST: i64 = 64;

impl Writer<'_> {
    /// `length` consecutive bytes from 0 on, at least one.
    pub fn run(&mut self, length: i64) -> Placed {
        let mut sizes: Vec<i64> = [1, 2, 4, 8, 16, 32].into_iter().filter(|size| length % size == 0).collect();
        if self.one_in(3) {
            sizes.truncate(1);
        }
        let size = sizes[self.rng.random_range(0..sizes.len())];
        if length == 12 && self.one_in(4) {
            return Placed { id: self.types.named(Predefined::DOUBLE_INT), shift: 0 };
        }
        if length == 8 && self.one_in(6) {
            return Placed { id: self.types.named(Predefined::FLOAT_INT), shift: 0 };
        }
        let element = Placed { id: self.element(size), shift: 0 };
        if length == size { element } else { self.repeat(element, length / size, size) }
    }

    /// `count` copies of the child, `stride` bytes apart; at least one copy.
    pub fn repeat(&mut self, child: Placed, count: i64, stride: i64) -> Placed {
        if count == 1 {
            return self.wrapped(child);
        }
        if let Some((outer, inner)) = self.factors(count).filter(|_| self.rng.random_ratio(1, 3)) {
            return self.repeat_of_repeat(child, outer, inner, stride);
        }
        if self.one_in(6) {
            let first = self.rng.random_range(1..count);
            let head = self.repeat(child, first, stride);
            let tail = self.repeat(child, count - first, stride).moved(first * stride);
            return self.concatenation(&[head, tail]);
        }
        if self.one_in(3)
            && let Some(placed) = arrays::repeat(self, child, count, stride)
        {
            return placed;
        }
        let short_list = count <= LONGEST_LIST;
        let id = match self.rng.random_range(0..if short_list { 9 } else { 5 }) {
            0 => sound(self.types.hvector(count, 1, stride, child.id)),
            1 => {
                let unit = self.with_extent(child.id, stride);
                sound(self.types.contiguous(count, unit))
            }
            2 => {
                let unit = self.with_extent(child.id, stride);
                let any = self.rng.random_range(-5..=5);
                sound(self.types.vector(1, count, any, unit))
            }
            3 => {
                let steps = [1, -1, 2, 3, -4][self.rng.random_range(0..5)];
                let steps = if stride % steps == 0 { steps } else { 1 };
                let unit = self.with_extent(child.id, stride / steps);
                sound(self.types.vector(count, 1, steps, unit))
            }
            4 => {
                let unit = self.with_extent(child.id, stride);
                let any = self.rng.random_range(-500..=500);
                sound(self.types.hvector(1, count, any, unit))
            }
            5 => {
                let displacements: Vec<i64> = (0..count).map(|copy| copy * stride).collect();
                sound(self.types.hindexed_block(1, &displacements, child.id))
            }
            6 => {
                let unit = self.with_extent(child.id, -stride);
                let displacements: Vec<i64> = (0..count).map(|copy| -copy).collect();
                sound(self.types.indexed_block(1, &displacements, unit))
            }
            form => {
                let unit = self.with_extent(child.id, stride);
                let (lengths, firsts) = self.blocks(count);
                let bytes: Vec<i64> = firsts.iter().map(|first| first * stride).collect();
                match form {
                    7 if self.one_in(2) => sound(self.types.indexed(&lengths, &firsts, unit)),
                    7 => sound(self.types.hindexed(&lengths, &bytes, unit)),
                    _ => sound(self.types.structure(&lengths, &bytes, &vec![unit; lengths.len()])),
                }
            }
        };
        self.wrapped(Placed { id, ..child })
    }

    fn repeat_of_repeat(&mut self, child: Placed, outer: i64, inner: i64, stride: i64) -> Placed {
        let id = match self.rng.random_range(0..4) {
            0 => {
                let unit = self.with_extent(child.id, stride);
                sound(self.types.hvector(outer, inner, inner * stride, unit))
            }
            1 => {
                let unit = self.with_extent(child.id, stride);
                sound(self.types.vector(outer, inner, inner, unit))
            }
            2 if outer <= LONGEST_LIST => {
                let unit = self.with_extent(child.id, stride);
                let firsts: Vec<i64> = (0..outer).map(|block| block * inner).collect();
                sound(self.types.indexed_block(inner, &firsts, unit))
            }
            _ => {
                let block = self.repeat(child, inner, stride);
                return self.repeat(block, outer, inner * stride);
            }
        };
        self.wrapped(Placed { id, ..child })
    }

    /// Cuts `count` copies into blocks: lengths and first copies, with some empty blocks.
    fn blocks(&mut self, count: i64) -> (Vec<i64>, Vec<i64>) {
        let (mut lengths, mut firsts) = (Vec::new(), Vec::new());
        let mut first = 0;
        while first < count {
            if self.one_in(5) {
                lengths.push(0);
                firsts.push(self.rng.random_range(-100..100));
            }
            let length = self.rng.random_range(1..=(count - first).min(6));
            lengths.push(length);
            firsts.push(first);
            first += length;
        }
        (lengths, firsts)
    }

    /// The concatenation of pieces.
    pub fn concatenation(&mut self, pieces: &[Placed]) -> Placed {
        let shift = if self.one_in(2) { 0 } else { self.rng.random_range(-64..=64) };
        let (mut lengths, mut displacements, mut children) = (Vec::new(), Vec::new(), Vec::new());
        for piece in pieces {
            if self.one_in(12) {
                lengths.push(0);
                displacements.push(self.rng.random_range(-1000..1000));
                let empty = if self.one_in(2) { self.nothing() } else { piece.id };
                children.push(empty);
            }
            if self.one_in(20) {
                lengths.push(self.rng.random_range(1..3));
                displacements.push(self.rng.random_range(-1000..1000));
                let empty = self.nothing();
                children.push(empty);
            }
            lengths.push(1);
            displacements.push(piece.shift - shift);
            children.push(piece.id);
        }
        let id = sound(self.types.structure(&lengths, &displacements, &children));
        self.wrapped(Placed { id, shift })
    }

    /// The maximal runs `(displacement, length)` as one flat list, whose entries may be cut further.
    pub fn list(&mut self, runs: &[(i64, i64)]) -> Placed {
        let shift = if self.one_in(2) { 0 } else { runs[0].0 };
        let widths: Vec<i64> =
            [1, 2, 4, 8].into_iter().filter(|width| runs.iter().all(|(_, length)| length % width == 0)).collect();
        let width = widths[self.rng.random_range(0..widths.len())];
        let element = self.element(width);
        let mut lengths = Vec::new();
        let mut displacements = Vec::new();
        let cut = self.one_in(3);
        for &(start, length) in runs {
            let copies = length / width;
            let first = if cut && copies > 1 { self.rng.random_range(1..copies) } else { copies };
            for (from, to) in [(0, first), (first, copies)] {
                if from < to {
                    lengths.push(to - from);
                    displacements.push(start - shift + from * width);
                }
            }
        }
        let equal = lengths.iter().all(|length| *length == lengths[0]);
        let aligned = displacements.iter().all(|displacement| displacement % width == 0);
        let in_elements: Vec<i64> = displacements.iter().map(|displacement| displacement / width).collect();
        let id = match self.rng.random_range(0..4) {
            0 if equal => sound(self.types.hindexed_block(lengths[0], &displacements, element)),
            1 if equal && aligned => sound(self.types.indexed_block(lengths[0], &in_elements, element)),
            0..=2 if aligned => sound(self.types.indexed(&lengths, &in_elements, element)),
            _ => sound(self.types.hindexed(&lengths, &displacements, element)),
        };
        self.wrapped(Placed { id, shift })
    }

    /// The same bytes, perhaps inside constructors that change nothing.
    pub fn wrapped(&mut self, placed: Placed) -> Placed {
        if !self.one_in(7) {
            return placed;
        }
        let Placed { id, shift } = placed;
        let by = self.rng.random_range(-100..100);
        let any = self.rng.random_range(-9..9);
        let (id, shift) = match self.rng.random_range(0..12) {
            0 => (sound(self.types.dup(id)), shift),
            1 => (sound(self.types.contiguous(1, id)), shift),
            2 => (sound(self.types.vector(1, 1, any, id)), shift),
            3 => (sound(self.types.hvector(1, 1, any, id)), shift),
            4 => (sound(self.types.hindexed(&[0, 1], &[any, by], id)), shift - by),
            5 => (sound(self.types.hindexed_block(1, &[by], id)), shift - by),
            6 => {
                let unit = self.with_extent(id, any);
                (sound(self.types.indexed(&[1, 0], &[by, any], unit)), shift - by * any)
            }
            7 => {
                let unit = self.with_extent(id, any);
                (sound(self.types.indexed_block(1, &[by], unit)), shift - by * any)
            }
            8 => (sound(self.types.structure(&[1], &[by], &[id])), shift - by),
            9 => (sound(self.types.resized(any, by, id)), shift),
            _ => return arrays::single(self, placed),
        };
        Placed { id, shift }
    }
}
