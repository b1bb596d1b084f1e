//! Rows: by a microkernel, by straight code, or by a loop without a call.

use super::emit::{Emitter, Place};
use super::microkernel::Microkernel;
use crate::plan::{
    Direction, INLINE_BYTES, INLINE_CLOSE_ROWS, INLINE_ROWS, INLINE_STRIDE, INLINE_WORD_BYTES, LOOP_WORDS,
    MICROKERNEL_ROWS, UNROLLED_WORDS,
};
use cranelift_codegen::ir::{ConstantData, Endianness, InstBuilder, MemFlagsData, Value, types};

/// Bytes of a vector of Cranelift.
const VECTOR: u64 = 16;

/// The first bytes of two vectors in turn, 4 at a time.
const FOURS: [u8; 16] = [0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23];

/// The first 8 bytes of two vectors.
const EIGHTS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];

impl Emitter<'_, '_> {
    /// Rows at a stride, and the place again.
    pub(super) fn rows(&mut self, rows: u64, stride: i64, bytes: u64, place: Place) -> Place {
        if self.closed.is_some() {
            return self.rows_of_closed(rows, stride, bytes, place);
        }
        let words = self.piece(bytes).saturating_mul(rows);
        let few = rows < MICROKERNEL_ROWS || (bytes <= INLINE_WORD_BYTES && words <= UNROLLED_WORDS);
        // Microkernels shuffle more rows that are close together.
        let loops = words <= INLINE_ROWS && (rows <= INLINE_CLOSE_ROWS || stride.unsigned_abs() >= INLINE_STRIDE);
        let short = bytes <= INLINE_WORD_BYTES && loops;
        if bytes > INLINE_BYTES || !(few || short || self.small()) {
            let (memory, packed) = self.pointers(place);
            let [rows, length, stride] = [rows as i64, bytes as i64, stride].map(|value| self.constant(value));
            self.call(Microkernel::Rows(bytes), &[memory, packed, rows, length, stride]);
            return place;
        }
        self.short_rows(rows, stride, bytes, place)
    }

    fn rows_of_closed(&mut self, rows: u64, stride: i64, bytes: u64, place: Place) -> Place {
        if !self.small() && self.piece(bytes).saturating_mul(rows) > UNROLLED_WORDS {
            return self.closed_rows(rows, stride, bytes, place);
        }
        self.unrolled(rows, stride, bytes, place, |emitter, place| {
            emitter.copy(bytes, place);
            place
        })
    }

    /// Rows without a call, as many to a vector of packed bytes as it holds.
    fn short_rows(&mut self, rows: u64, stride: i64, bytes: u64, place: Place) -> Place {
        let together = match (self.direction, bytes) {
            (Direction::Pack, 4 | 8) => VECTOR / bytes,
            _ => 1,
        };
        let (groups, rest) = (rows / together, rows % together);
        let (long, large) = (stride.wrapping_mul(together as i64), bytes * together);
        let group = |emitter: &mut Self, place: Place| {
            match together {
                1 => emitter.copy(bytes, place),
                _ => emitter.pack_vector(stride, bytes, place),
            }
            place
        };
        let words = self.piece(bytes) * together;
        let most = (LOOP_WORDS / words).max(1);
        let place = if self.small() || groups * words <= UNROLLED_WORDS || groups <= most {
            self.unrolled(groups, long, large, place, group)
        } else {
            self.several(place, groups, most, (long, large), group)
        };
        let (offset, position) = (long.wrapping_mul(groups as i64), large * groups);
        let behind = self.unrolled(rest, stride, bytes, place.further(offset, position), |emitter, place| {
            emitter.copy(bytes, place);
            place
        });
        behind.back(offset, position)
    }

    /// Packs rows of 4 or 8 bytes, as many as fill a vector.
    fn pack_vector(&mut self, stride: i64, bytes: u64, place: Place) {
        let row = |row: i64| place.further(stride.wrapping_mul(row), 0);
        let vector = if bytes == 4 {
            let [first, second, third, fourth] = [0, 1, 2, 3].map(|at| self.word_of_vector(types::I32, row(at)));
            let [low, high] = [(first, second), (third, fourth)].map(|pair| self.alternating(pair, FOURS));
            self.alternating((low, high), EIGHTS)
        } else {
            let [first, second] = [0, 1].map(|at| self.word_of_vector(types::I64, row(at)));
            self.alternating((first, second), EIGHTS)
        };
        let Place { packed, position, .. } = self.near(place, VECTOR);
        self.builder.ins().store(MemFlagsData::new().with_notrap(), vector, packed, position as i32);
        self.references.only_calls = false;
    }

    /// A word of memory as the first of a vector of bytes.
    fn word_of_vector(&mut self, word: types::Type, place: Place) -> Value {
        let Place { memory, offset, .. } = self.near(place, VECTOR);
        let value = self.builder.ins().load(word, MemFlagsData::new().with_notrap(), memory, offset as i32);
        let vector = word.by(VECTOR as u32 / word.bytes()).unwrap_or(types::I8X16);
        let value = self.builder.ins().scalar_to_vector(vector, value);
        self.builder.ins().bitcast(types::I8X16, MemFlagsData::new().with_endianness(Endianness::Little), value)
    }

    /// Bytes of two vectors, by their numbers in both.
    fn alternating(&mut self, (first, second): (Value, Value), bytes: [u8; 16]) -> Value {
        let bytes = self.builder.func.dfg.immediates.push(ConstantData::from(&bytes[..]));
        self.builder.ins().shuffle(first, second, bytes)
    }
}
