//! The calls of microkernels that move whole elements, for thunks to make.

use super::permuted::Permuted;
use super::program::{Bound, Program, Root};
use super::straight::Straight;
use super::thunk::{Call, Calls, Thunk};
use dtc_compiler::plan::strategy::{Strategy, Target};
use dtc_compiler::plan::{Direction, Offsets, Step};
use dtc_microkernels::Level;

impl Program {
    /// The calls that move one whole element, and several, each if one microkernel does, on a CPU of the level that the program was
    /// made for.
    pub(crate) fn calls<const PACK: bool>(&self, level: Level) -> Calls {
        [self.call_of_one::<PACK>(level), self.call_of_several::<PACK>()].map(|call| call.map(Thunk::Call))
    }

    /// The code that moves one whole element, and several, without a call, where that is faster than any.
    pub(crate) fn without_call<const PACK: bool>(&self, target: &Target) -> Calls {
        let strategy = Strategy::new(self.plan(), target, 1);
        let direction = if PACK { Direction::Pack } else { Direction::Unpack };
        let (offset, extent) = (self.root.offset, self.plan().extent());
        let permutation = strategy.permutation(direction);
        let shuffled = permutation.map_or([None, None], |permutation| {
            [
                permutation.one.then(|| Permuted::one::<PACK>(&permutation, offset)),
                permutation.several.then(|| Permuted::several::<PACK>(&permutation, offset, extent)).flatten(),
            ]
        });
        let straight = strategy.straight().map_or([None, None], |straight| {
            [
                Straight::one::<PACK>(&straight.group, offset),
                straight.several.then(|| Straight::several::<PACK>(&straight.group, offset, extent)).flatten(),
            ]
        });
        let mut straight = straight.into_iter();
        shuffled.map(|shuffled| shuffled.map(Thunk::Permuted).or(straight.next().flatten().map(Thunk::Straight)))
    }

    /// Tiles are left out: they are not short, and their microkernel takes more arguments than the others.
    fn call_of_one<const PACK: bool>(&self, level: Level) -> Option<Call> {
        let Root { offset, step, bound, .. } = &self.root;
        let non_temporal = self.is_non_temporal::<PACK>(self.plan().size());
        Some(match (step, bound) {
            (&Step::Copy { bytes }, _) => {
                Call::copy::<PACK>(dtc_microkernels::select_copy(level, bytes) as usize, *offset, bytes)
            }
            (&Step::Rows { rows, stride, bytes }, Bound::Strided(strided)) => match strided.nest.of::<PACK>() {
                Some(nest) => Call::new(nest as usize, *offset, [1, 0, rows, stride.cast_unsigned()]),
                None => {
                    let function =
                        if non_temporal { strided.rows::<PACK, true>() } else { strided.rows::<PACK, false>() };
                    Call::new(function as usize, *offset, [rows, bytes, stride.cast_unsigned()])
                }
            },
            (&Step::Planes { planes, plane_stride, rows, stride, bytes }, Bound::Strided(strided)) => {
                let [plane_stride, stride] = [plane_stride, stride].map(i64::cast_unsigned);
                match strided.nest.of::<PACK>() {
                    Some(nest) => Call::new(nest as usize, *offset, [planes, plane_stride, rows, stride]),
                    None => {
                        let function =
                            if non_temporal { strided.planes::<PACK, true>() } else { strided.planes::<PACK, false>() };
                        Call::new(function as usize, *offset, [planes, plane_stride, rows, stride, bytes])
                    }
                }
            }
            (Step::List { offsets: Offsets::Narrow(offsets), bytes }, Bound::List32(list)) => {
                let table = [offsets.as_ptr() as u64, offsets.len() as u64, *bytes];
                Call::new(list.of::<PACK>() as usize, *offset, table)
            }
            (Step::List { offsets: Offsets::Wide(offsets), bytes }, Bound::List64(list)) => {
                let table = [offsets.as_ptr() as u64, offsets.len() as u64, *bytes];
                Call::new(list.of::<PACK>() as usize, *offset, table)
            }
            (Step::Runs(table), Bound::Runs(runs)) => {
                let table = [table.runs.as_ptr() as u64, table.runs.len() as u64];
                Call::new(runs.of::<PACK>() as usize, *offset, table)
            }
            _ => return None,
        })
    }

    /// For elements that make a longer nest of the same kind, whose packed bytes do not bypass the caches.
    fn call_of_several<const PACK: bool>(&self) -> Option<Call> {
        /// As many elements as two, but for the choice between planes and tiles.
        const MANY: u64 = 1 << 16;
        let Root { offset, bound: Bound::Strided(strided), .. } = &self.root else { return None };
        let two = self.plan().repeated(2)?;
        if std::mem::discriminant(&two) != std::mem::discriminant(&self.plan().repeated(MANY)?) {
            return None;
        }
        // Two elements have twice as many of what an element has.
        match two {
            Step::Copy { bytes } => {
                Call::copy_of_several::<PACK>(dtc_microkernels::copy as *const () as usize, *offset, bytes / 2)
            }
            Step::Rows { rows, stride, bytes } => {
                let function = strided.rows::<PACK, false>() as usize;
                Call::of_several(function, *offset, rows / 2, [bytes, stride.cast_unsigned()])
            }
            Step::Planes { planes, plane_stride, rows, stride, bytes } => {
                let function = strided.planes::<PACK, false>() as usize;
                let [plane_stride, stride] = [plane_stride, stride].map(i64::cast_unsigned);
                Call::of_several(function, *offset, planes / 2, [plane_stride, rows, stride, bytes])
            }
            _ => None,
        }
    }
}
