//! Arrays whose elements take turns in the packed bytes: a vector of each array at a time, and shuffles between.

use super::emit::{Emitter, Place};
use crate::plan::{Direction, INTERLEAVED_ARRAYS, Offsets, Plan, Step, StepId};
use cranelift_codegen::ir::{ConstantData, InstBuilder, MemFlagsData, Value, types};
use smallvec::SmallVec;

/// Bytes of a vector of Cranelift.
const VECTOR: u64 = 16;

/// Elements of 4 or 8 bytes of several arrays, in turn.
#[derive(Clone, Copy)]
pub(super) struct Arrays<'a> {
    /// The step that moves one element of each.
    list: StepId,
    /// Where the arrays begin.
    offsets: &'a Offsets,
    /// Bytes of an element.
    bytes: u64,
    /// Elements of an array.
    count: u64,
}

/// A vector, and a word of it.
type Pick = (usize, u64);

impl<'a> Emitter<'a, '_> {
    /// The arrays that a loop walks, if shuffles move them.
    pub(super) fn arrays(&self, count: u64, stride: i64, body: StepId) -> Option<Arrays<'a>> {
        let plan: &'a Plan = self.plan;
        let Step::List { ref offsets, bytes } = *plan.step(body) else { return None };
        let serves = self.closed.is_none()
            && matches!(bytes, 4 | 8)
            && stride == bytes as i64
            && offsets.len() <= INTERLEAVED_ARRAYS
            && count >= VECTOR / bytes;
        // An unpack writes overlapping arrays element by element, in packed order.
        let apart = |length: i64| {
            let mut sorted: SmallVec<[i64; INTERLEAVED_ARRAYS]> =
                (0..offsets.len()).map(|at| offsets.get(at)).collect();
            sorted.sort_unstable();
            sorted.windows(2).all(|pair| pair[1].saturating_sub(pair[0]) >= length)
        };
        let length = i64::try_from(count.checked_mul(bytes)?).ok()?;
        let serves = serves && (self.direction == Direction::Pack || apart(length));
        serves.then_some(Arrays { list: body, offsets, bytes, count })
    }

    /// Moves arrays, and returns the place again.
    pub(super) fn interleaved(&mut self, arrays: Arrays<'_>, place: Place) -> Place {
        let Arrays { list, offsets, bytes, count } = arrays;
        let (number, words) = (offsets.len() as u64, VECTOR / bytes);
        let (turns, rest) = (count / words, count % words);
        let size = number * VECTOR;
        let place = self.counted(place, turns, VECTOR as i64, size, |emitter, place| {
            emitter.turns(offsets, bytes, place);
            place
        });
        let (offset, position) = ((turns * VECTOR) as i64, turns * size);
        let behind =
            self.unrolled(rest, bytes as i64, number * bytes, place.further(offset, position), |emitter, place| {
                emitter.step(list, place)
            });
        behind.back(offset, position)
    }

    /// Moves a vector of each array.
    fn turns(&mut self, offsets: &Offsets, bytes: u64, place: Place) {
        self.references.only_calls = false;
        let (number, words) = (offsets.len(), (VECTOR / bytes) as usize);
        let array = |at: usize| place.further(offsets.get(at), 0);
        let packed = |at: usize| place.further(0, at as u64 * VECTOR);
        let pack = self.direction == Direction::Pack;
        let flags = MemFlagsData::new().with_notrap();
        let mut sources: SmallVec<[Value; INTERLEAVED_ARRAYS]> = SmallVec::new();
        for at in 0..number {
            let (base, at) = self.side(if pack { array(at) } else { packed(at) }, pack);
            sources.push(self.builder.ins().load(types::I8X16, flags, base, at));
        }
        for target in 0..number {
            let pick = |word: usize| -> Pick {
                if pack {
                    let word = target * words + word;
                    (word % number, (word / number) as u64)
                } else {
                    let word = word * number + target;
                    (word / words, (word % words) as u64)
                }
            };
            let value = self.picked(&sources, bytes, pick);
            let (base, at) = self.side(if pack { packed(target) } else { array(target) }, !pack);
            self.builder.ins().store(flags, value, base, at);
        }
    }

    /// Where a vector is, on the side of memory or of packed bytes.
    fn side(&mut self, place: Place, memory: bool) -> (Value, i32) {
        let place = self.near(place, VECTOR);
        let (base, at) = if memory { (place.memory, place.offset) } else { (place.packed, place.position) };
        (base, at as i32)
    }

    /// A vector of words of others.
    fn picked(&mut self, sources: &[Value], bytes: u64, pick: impl Fn(usize) -> Pick) -> Value {
        if bytes == 8 {
            let [(first, low), (second, high)] = [0, 1].map(pick);
            return self.halves(sources[first], sources[second], [low * 2, low * 2 + 1, high * 2, high * 2 + 1]);
        }
        let pairs = [(0, 1), (2, 3)].map(|(left, right)| {
            let ((first, low), (second, high)) = (pick(left), pick(right));
            self.halves(sources[first], sources[second], [low, low, high, high])
        });
        self.halves(pairs[0], pairs[1], [0, 2, 0, 2])
    }

    /// Two words of 4 bytes of one vector, then two of another: one instruction on x86-64.
    fn halves(&mut self, first: Value, second: Value, words: [u64; 4]) -> Value {
        let byte = |at: usize| (at / 8 * 16) as u8 + words[at / 4] as u8 * 4 + (at % 4) as u8;
        let bytes: [u8; 16] = std::array::from_fn(byte);
        let bytes = self.builder.func.dfg.immediates.push(ConstantData::from(&bytes[..]));
        self.builder.ins().shuffle(first, second, bytes)
    }
}
