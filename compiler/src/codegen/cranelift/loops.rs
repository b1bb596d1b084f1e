//! Loops of several bodies per iteration, and those of closed functions, which kernels of the runtime have microkernels for.

use super::emit::{Emitter, Place};
use crate::plan::{RunTable, StepId, UNROLLED_WORDS};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, types};

/// Rows of a tile. As many lines stay in the first-level cache from plane to plane.
const TILE_ROWS: u64 = 16;

/// Rows that one iteration moves at most.
const UNROLLED_ROWS: u64 = 8;

impl Emitter<'_, '_> {
    /// A loop with several bodies in each iteration: the largest divisor of `count` above half of `most`, or `most`, where the rest follows the
    /// loop. `count` is larger than `most`.
    pub(super) fn several(
        &mut self,
        place: Place,
        count: u64,
        most: u64,
        (stride, size): (i64, u64),
        mut body: impl FnMut(&mut Self, Place) -> Place,
    ) -> Place {
        let divisor = (most / 2 + 1..=most).rev().find(|&copies| count.is_multiple_of(copies));
        let copies = divisor.unwrap_or(most);
        let (iterations, rest) = (count / copies, count % copies);
        let (long, large) = (stride.wrapping_mul(copies as i64), size * copies);
        let place = self.counted(place, iterations, long, large, |emitter, place| {
            emitter.unrolled(copies, stride, size, place, &mut body)
        });
        let (offset, position) = (long.wrapping_mul(iterations as i64), large * iterations);
        self.unrolled(rest, stride, size, place.further(offset, position), body).back(offset, position)
    }

    /// Rows, several in each iteration.
    pub(super) fn closed_rows(&mut self, rows: u64, stride: i64, bytes: u64, place: Place) -> Place {
        let at = |place: Place, row: u64| place.further((row as i64).wrapping_mul(stride), row * bytes);
        let unrolled = (UNROLLED_WORDS / self.piece(bytes)).clamp(1, UNROLLED_ROWS).min(rows);
        let iterations = rows / unrolled;
        let (step, size) = (stride.wrapping_mul(unrolled as i64), bytes * unrolled);
        let place = self.counted(place, iterations, step, size, |emitter, place| {
            (0..unrolled).for_each(|row| emitter.copy(bytes, at(place, row)));
            place
        });
        (iterations * unrolled..rows).for_each(|row| self.copy(bytes, at(place, row)));
        place
    }

    /// Planes of rows that are far apart in memory: a few rows of all planes, then the next ones.
    ///
    /// `planes` and `rows`: how many, and their distance in memory, in bytes; then the packed bytes from plane to plane, and the
    /// length of a row.
    pub(super) fn closed_tile(
        &mut self,
        (planes, plane_stride, pitch): (u64, i64, u64),
        (rows, stride, bytes): (u64, i64, u64),
        place: Place,
    ) -> Place {
        let of_all_planes = |emitter: &mut Self, rows: u64, place: Place| {
            emitter
                .counted(place, planes, plane_stride, pitch, |emitter, place| emitter.rows(rows, stride, bytes, place))
        };
        let (tiles, rest) = (rows / TILE_ROWS, rows % TILE_ROWS);
        let step = stride.wrapping_mul(TILE_ROWS as i64);
        let place = match tiles {
            0 => place,
            _ => self.counted(place, tiles, step, bytes * TILE_ROWS, |emitter, place| {
                of_all_planes(emitter, TILE_ROWS, place)
            }),
        };
        if rest == 0 {
            return place;
        }
        let (offset, position) = (step.wrapping_mul(tiles as i64), tiles * TILE_ROWS * bytes);
        of_all_planes(self, rest, place.further(offset, position)).back(offset, position)
    }

    /// Runs of differing length, by a list of offset and length in 8 bytes each.
    pub(super) fn closed_runs(&mut self, id: StepId, table: &RunTable, place: Place) -> Place {
        let (memory, packed) = self.pointers(place);
        let list = self.table(id);
        let count = self.constant(table.runs.len() as i64);
        let (header, exit) = (self.builder.create_block(), self.builder.create_block());
        let [entry, packed_in, left] = [(); 3].map(|()| self.builder.append_block_param(header, types::I64));
        self.builder.ins().jump(header, &[list, packed, count].map(BlockArg::from));
        self.builder.switch_to_block(header);
        let flags = MemFlagsData::trusted().with_readonly();
        let offset = self.builder.ins().load(types::I64, flags, entry, 0);
        let bytes = self.builder.ins().load(types::I64, flags, entry, 8);
        let from = self.builder.ins().iadd(memory, offset);
        self.copy_long(from, packed_in, bytes);
        let entry = self.plus(entry, 16);
        let packed = self.builder.ins().iadd(packed_in, bytes);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        let next = [entry, packed, left].map(BlockArg::from);
        self.builder.ins().brif(left, header, &next, exit, &[]);
        self.builder.switch_to_block(exit);
        let size = table.runs.iter().fold(0, |sum: u64, run| sum.wrapping_add(run.count));
        Place { memory, offset: 0, packed, position: 0 }.back(0, size)
    }
}
