//! Rows at one stride, by the vectors of the target.

use super::emit::{Emitter, Place};
use super::function::{Count, Function, Lanes};
use crate::plan::Direction;
use crate::plan::strategy::{RowsMethod, closed_rows};

/// Rows that are in one vector of packed bytes, in words that all their offsets and lengths are multiples of.
struct VectorGroup {
    lanes: Lanes,
    rows: u64,
    /// Vectors of memory that the rows are in.
    vectors: u64,
    /// Words of a row, and from one row to the next.
    in_row: u64,
    in_step: u64,
}

impl VectorGroup {
    /// The address of a vector of memory.
    fn vector(&self, function: &mut Function, number: u64, place: &Place) -> String {
        function.offset(&place.memory, (number * self.lanes.count * self.lanes.bytes) as i64)
    }
}

impl Emitter<'_> {
    /// Rows at one stride.
    pub(super) fn rows(&mut self, function: &mut Function, rows: &Count, (stride, bytes): (i64, u64), place: &Place) {
        let known = match rows {
            Count::Known(rows) => Some(*rows),
            Count::Value(_) => None,
        };
        match closed_rows(&self.vectors, self.direction, (known, stride, bytes), self.around) {
            RowsMethod::Words => self.each(function, rows, (stride, bytes), place),
            RowsMethod::Masked => {
                let lanes = Lanes { count: bytes.next_power_of_two(), bytes: 1 };
                self.strided(function, rows, (stride, bytes), place, |emitter, function, place| {
                    emitter.copy_masked(function, lanes, bytes, place);
                });
            }
            RowsMethod::Overhanging { width } => self.overhanging(function, rows, (stride, bytes), width, place),
            RowsMethod::Reversed => self.reversed(function, rows, bytes, place),
            RowsMethod::Shuffled { rows: of_group, vectors } => {
                self.shuffled(function, rows, (stride, bytes), (of_group, vectors), place);
            }
            RowsMethod::Gathered => self.gathered(function, rows, (stride, bytes), place),
        }
    }

    /// A loop over rows.
    fn strided(
        &mut self,
        function: &mut Function,
        rows: &Count,
        (stride, size): (i64, u64),
        place: &Place,
        body: impl FnOnce(&mut Self, &mut Function, &Place),
    ) {
        function.repeat(rows, |function, row| {
            let place = place.at(function, row, stride, size);
            body(self, function, &place);
        });
    }

    fn each(&mut self, function: &mut Function, rows: &Count, (stride, bytes): (i64, u64), place: &Place) {
        let vectors = self.vectors;
        self.vectors = vectors.of_rows(stride, bytes);
        self.strided(function, rows, (stride, bytes), place, |emitter, function, place| {
            emitter.copy(function, bytes, place);
        });
        self.vectors = vectors;
    }

    /// Rows as whole vectors, which begin where a row does; those at the end, by words.
    fn overhanging(
        &mut self,
        function: &mut Function,
        rows: &Count,
        (stride, bytes): (i64, u64),
        width: u64,
        place: &Place,
    ) {
        let last = (width - bytes).div_ceil(bytes);
        let before = function.less(rows, last);
        self.strided(function, &before, (stride, bytes), place, |emitter, function, place| {
            emitter.copy_vector(function, Lanes::of(width), place);
        });
        self.behind(function, rows, &before, (stride, bytes), place);
    }

    /// The rows behind the first `before`, by words.
    fn behind(
        &mut self,
        function: &mut Function,
        rows: &Count,
        before: &Count,
        (stride, bytes): (i64, u64),
        place: &Place,
    ) {
        let left = function.difference(rows, before);
        let place = place.at(function, &before.to_string(), stride, bytes);
        self.each(function, &left, (stride, bytes), &place);
    }

    /// Words in descending order of their addresses.
    fn reversed(&mut self, function: &mut Function, rows: &Count, bytes: u64, place: &Place) {
        let stride = -(bytes as i64);
        let most = self.vectors.bytes / bytes;
        let count = match rows {
            Count::Known(rows) => most.min(1 << rows.ilog2()),
            Count::Value(_) => most,
        };
        let lanes = Lanes { count, bytes };
        let (groups, left) = function.divided(rows, count);
        let size = count * bytes;
        self.strided(function, &groups, (-(size as i64), size), place, |emitter, function, place| {
            // The vector begins at the last of its words.
            let place = place.further(function, bytes as i64 - size as i64, 0);
            let (from, to) = emitter.ends(&place);
            let vector = function.load(lanes, from);
            let turned: Vec<_> = (0..count).rev().map(Some).collect();
            let turned = function.shuffle(lanes, [&vector, "poison"], &turned);
            function.store(lanes, &turned, to);
        });
        if left != Count::Known(0) {
            let place = place.at(function, &groups.to_string(), -(size as i64), size);
            self.each(function, &left, (stride, bytes), &place);
        }
    }

    /// Groups of rows in one vector of packed bytes. In a pack the bytes between rows are loaded, too; what is stored behind a group is
    /// overwritten by the next. An unpack stores rows alone.
    fn shuffled(
        &mut self,
        function: &mut Function,
        rows: &Count,
        (stride, bytes): (i64, u64),
        (of_group, vectors): (u64, u64),
        place: &Place,
    ) {
        let (width, step) = (self.vectors.bytes, stride as u64);
        // As many rows reach as far as the vectors of one group do.
        let in_memory = (vectors * width - bytes).div_ceil(step) + 1;
        let in_packed = width.div_ceil(bytes);
        let least = if self.direction == Direction::Pack { in_memory.max(in_packed) } else { in_packed };
        let spare = least.max(of_group) - of_group;
        let before = function.less(rows, spare);
        let (groups, _) = function.divided(&before, of_group);
        let word = [8, 4, 2, 1].into_iter().find(|&word| (bytes | step).is_multiple_of(word)).unwrap_or(1);
        let lanes = Lanes { count: width / word, bytes: word };
        let group = VectorGroup { lanes, rows: of_group, vectors, in_row: bytes / word, in_step: step / word };
        let size = bytes * of_group;
        self.strided(function, &groups, (stride * of_group as i64, size), place, |emitter, function, place| {
            match emitter.direction {
                Direction::Pack => pack_group(function, &group, place),
                Direction::Unpack => unpack_group(function, &group, place),
            }
        });
        let before = function.scaled(&groups, of_group);
        self.behind(function, rows, &before, (stride, bytes), place);
    }

    /// Words far apart, a vector of them at a time.
    fn gathered(&mut self, function: &mut Function, rows: &Count, (stride, bytes): (i64, u64), place: &Place) {
        let lanes = Lanes { count: self.vectors.bytes / bytes, bytes };
        let (groups, _) = function.divided(rows, lanes.count);
        let (step, size) = (stride.wrapping_mul(lanes.count as i64), lanes.count * bytes);
        self.strided(function, &groups, (step, size), place, |emitter, function, place| {
            let offsets: Vec<_> =
                (0..lanes.count as i64).map(|lane| format!("i64 {}", lane.wrapping_mul(stride))).collect();
            let words = function.value(
                "words",
                format_args!(
                    "getelementptr i8, ptr {}, <{} x i64> <{}>",
                    place.memory,
                    lanes.count,
                    offsets.join(", ")
                ),
            );
            emitter.copy_words(function, lanes, &words, &place.packed);
        });
        let before = function.scaled(&groups, lanes.count);
        self.behind(function, rows, &before, (stride, bytes), place);
    }
}

/// One group of a pack: the words of its rows, from the first two vectors, then one vector after the other.
fn pack_group(function: &mut Function, group: &VectorGroup, place: &Place) {
    let VectorGroup { lanes, rows, vectors, in_row, in_step } = *group;
    let words = lanes.count;
    let load = |vector: u64| {
        let at = group.vector(function, vector, place);
        function.load(lanes, &at)
    };
    let loaded: Vec<String> = (0..vectors).map(load).collect();
    // Which word of the span each packed word is.
    let source = |lane: u64| (lane < rows * in_row).then(|| lane / in_row * in_step + lane % in_row);
    let from_two: Vec<_> = (0..words).map(|lane| source(lane).filter(|&word| word < 2 * words)).collect();
    let second = loaded.get(1).map_or("poison", String::as_str);
    let mut packed = function.shuffle(lanes, [&loaded[0], second], &from_two);
    for (vector, loaded) in (0..).zip(&loaded).skip(2) {
        let pick = |lane: u64| {
            let word = source(lane)?;
            if word / words == vector { Some(words + word % words) } else { (word / words < vector).then_some(lane) }
        };
        let picked: Vec<_> = (0..words).map(pick).collect();
        packed = function.shuffle(lanes, [&packed, loaded], &picked);
    }
    function.store(lanes, &packed, &place.packed);
}

/// One group of an unpack: the packed words at their places in each vector of the span, stored under a mask.
fn unpack_group(function: &mut Function, group: &VectorGroup, place: &Place) {
    let VectorGroup { lanes, rows, vectors, in_row, in_step } = *group;
    let packed = function.load(lanes, &place.packed);
    for vector in 0..vectors {
        let source = |lane: u64| {
            let word = vector * lanes.count + lane;
            let (row, inside) = (word / in_step, word % in_step);
            (row < rows && inside < in_row).then_some(row * in_row + inside)
        };
        let spread: Vec<_> = (0..lanes.count).map(source).collect();
        if spread.iter().all(Option::is_none) {
            continue;
        }
        let there = function.shuffle(lanes, [&packed, "poison"], &spread);
        let at = group.vector(function, vector, place);
        let mask: Vec<_> = spread.iter().map(Option::is_some).collect();
        function.store_masked(lanes, &there, &at, &mask);
    }
}
