//! Tiles: planes of rows that are far apart in memory while planes are neighbours.

use super::emit::{Emitter, Place, Tile};
use super::function::{Count, Function, Lanes};
use crate::plan::Direction;
use crate::plan::strategy::{blockwise_bytes, writes_rows_first};
use std::cell::RefCell;

/// Rows of a block of a tile: as many lines of a pack stay in the first-level cache, and as many of an unpack in one set of it.
fn block_rows(direction: Direction) -> u64 {
    match direction {
        Direction::Pack => 16,
        Direction::Unpack => 8,
    }
}

/// Bytes of the blocks that a vector is divided into when it is transposed: shuffles within them are the fastest.
const BLOCK: u64 = 16;

impl Emitter<'_> {
    /// A tile, in squares that are transposed in registers where planes are neighbours.
    pub(super) fn tile(&mut self, function: &mut Function, tile: &Tile, place: &Place) {
        let side = self.vectors.bytes / tile.bytes;
        let blockwise = blockwise_bytes(&self.vectors, self.direction, tile.plane_stride, tile.bytes);
        let Some(blockwise) = blockwise.filter(|_| tile.rows >= side) else {
            return self.blocks(function, tile, place);
        };
        match &tile.planes {
            _ if blockwise.is_empty() => self.squares(function, tile, side, place),
            Count::Known(planes) if blockwise.contains(&planes.saturating_mul(tile.pitch)) => {
                self.blocks(function, tile, place);
            }
            Count::Known(_) => self.squares(function, tile, side, place),
            Count::Value(planes) => {
                // The planes of as many bytes, less the fewest.
                let (fewest, end) = (blockwise.start / tile.pitch, blockwise.end / tile.pitch);
                let beyond = function.value("beyond", format_args!("sub i64 {planes}, {fewest}"));
                let serves = function.value("serves", format_args!("icmp ult i64 {beyond}, {}", end - fewest));
                let emitter = RefCell::new(self);
                function.either(
                    &serves,
                    |function| emitter.borrow_mut().blocks(function, tile, place),
                    |function| emitter.borrow_mut().squares(function, tile, side, place),
                );
            }
        }
    }

    /// Squares, and what is left of rows and planes block by block.
    fn squares(&mut self, function: &mut Function, tile: &Tile, side: u64, place: &Place) {
        let (strips, planes) = function.divided(&tile.planes, side);
        let whole = tile.rows / side;
        let bytes = side * tile.bytes;
        let along_planes = (bytes as i64, side * tile.pitch);
        let along_rows = (tile.stride.wrapping_mul(side as i64), bytes);
        // A number that is not known is a large one; `body` has seen that planes do not reach into the next rows.
        let room = (tile.stride.unsigned_abs() / tile.bytes) as usize;
        let known = if let Count::Known(planes) = tile.planes { planes as usize } else { room };
        let squares = Count::Known(whole);
        let (outer, inner) = if writes_rows_first(self.direction, known, tile.stride as isize, tile.bytes as usize) {
            ((&squares, along_rows), (&strips, along_planes))
        } else {
            ((&strips, along_planes), (&squares, along_rows))
        };
        function.repeat(outer.0, |function, index| {
            let place = place.at(function, index, outer.1.0, outer.1.1);
            function.repeat(inner.0, |function, index| {
                let place = place.at(function, index, inner.1.0, inner.1.1);
                self.square(function, tile, side, &place);
            });
        });
        let rows = tile.rows - whole * side;
        if rows > 0 {
            let offset = tile.stride.wrapping_mul((whole * side) as i64);
            let below = place.further(function, offset, whole * bytes);
            let planes = function.scaled(&strips, side);
            self.blocks(function, &Tile { planes, rows, ..tile.clone() }, &below);
        }
        if planes != Count::Known(0) {
            let beside = match &strips {
                Count::Known(strips) => {
                    place.further(function, (strips * bytes) as i64, strips.wrapping_mul(side * tile.pitch))
                }
                Count::Value(strips) => place.at(function, strips, bytes as i64, side * tile.pitch),
            };
            self.blocks(function, &Tile { planes, ..tile.clone() }, &beside);
        }
    }

    /// A few rows of all planes, then the next rows.
    fn blocks(&mut self, function: &mut Function, tile: &Tile, place: &Place) {
        let height = block_rows(self.direction);
        let (tiles, left) = (tile.rows / height, tile.rows % height);
        let of_all_planes = |emitter: &mut Self, function: &mut Function, rows: u64, place: &Place| {
            function.repeat(&tile.planes, |function, plane| {
                let plane = place.at(function, plane, tile.plane_stride, tile.pitch);
                function.repeat(&Count::Known(rows), |function, row| {
                    let row = plane.at(function, row, tile.stride, tile.bytes);
                    emitter.copy(function, tile.bytes, &row);
                });
            });
        };
        function.repeat(&Count::Known(tiles), |function, number| {
            let place = place.at(function, number, tile.stride.wrapping_mul(height as i64), height * tile.bytes);
            of_all_planes(self, function, height, &place);
        });
        if left > 0 {
            let offset = tile.stride.wrapping_mul((tiles * height) as i64);
            let place = place.further(function, offset, tiles * height * tile.bytes);
            of_all_planes(self, function, left, &place);
        }
    }

    /// A square of `side` rows of `side` planes: loaded by the lines of one side, stored by those of the other.
    fn square(&mut self, function: &mut Function, tile: &Tile, side: u64, place: &Place) {
        let vector = side * tile.bytes;
        let word = tile.bytes.min(8);
        let lanes = Lanes { count: vector / word, bytes: word };
        let (lines, line) = (tile.stride, tile.pitch as i64);
        let (from, from_stride, to, to_stride) = match self.direction {
            Direction::Pack => (&place.memory, lines, &place.packed, line),
            Direction::Unpack => (&place.packed, line, &place.memory, lines),
        };
        let at = |stride: i64, number: u64| stride.wrapping_mul(number as i64);
        let loaded = (0..side).map(|number| {
            let address = function.offset(from, at(from_stride, number));
            function.load(lanes, &address)
        });
        let mut vectors: Vec<String> = loaded.collect();
        // Within blocks: groups of as many rows as a block has elements.
        let elements = BLOCK / tile.bytes;
        let mut distance = 1;
        while distance < elements {
            vectors = interleaved(function, lanes, &vectors, elements, distance);
            distance *= 2;
        }
        // Blocks as wholes, between the groups.
        let (blocks, words) = (side / elements, BLOCK / word);
        for element in 0..elements {
            let mut distance = blocks / 2;
            while distance > 0 {
                for group in (0..blocks).filter(|group| group & distance == 0) {
                    let [first, second] = [group, group + distance].map(|group| (group * elements + element) as usize);
                    let pair = [vectors[first].clone(), vectors[second].clone()];
                    let pick = |half: u64| {
                        let lane = move |lane: u64| {
                            let (block, word) = (lane / words, lane % words);
                            let (of_second, block) = match (block & distance != 0, half) {
                                (false, 0) => (0, block),
                                (true, 0) => (lanes.count, block - distance),
                                (false, _) => (0, block + distance),
                                (true, _) => (lanes.count, block),
                            };
                            Some(of_second + block * words + word)
                        };
                        (0..lanes.count).map(lane).collect::<Vec<_>>()
                    };
                    vectors[first] = function.shuffle(lanes, [&pair[0], &pair[1]], &pick(0));
                    vectors[second] = function.shuffle(lanes, [&pair[0], &pair[1]], &pick(1));
                }
                distance /= 2;
            }
        }
        for (number, vector) in (0..).zip(&vectors) {
            let address = function.offset(to, at(to_stride, number));
            function.store(lanes, vector, &address);
        }
    }
}

/// One step of transposing groups of `elements` vectors, within blocks: pieces of `distance` words of two vectors alternate.
fn interleaved(function: &mut Function, lanes: Lanes, vectors: &[String], elements: u64, distance: u64) -> Vec<String> {
    let words = BLOCK / lanes.bytes;
    let mut next = vectors.to_vec();
    for group in 0..vectors.len() as u64 / elements {
        for pair in 0..elements / 2 {
            // After the first step, neighbours are as far apart as the first step put them.
            let (first, second) = match distance {
                1 => (2 * pair, 2 * pair + 1),
                _ => (pair, pair + elements / 2),
            };
            let pieces = words / distance / 2;
            let pick = |half: u64| {
                let lane = move |lane: u64| {
                    let (block, word) = (lane / words, lane % words);
                    let (piece, inside) = (word / distance, word % distance);
                    let of_second = if piece % 2 == 1 { lanes.count } else { 0 };
                    Some(of_second + block * words + (half * pieces + piece / 2) * distance + inside)
                };
                (0..lanes.count).map(lane).collect::<Vec<_>>()
            };
            let at = |number: u64| vectors[(group * elements + number) as usize].as_str();
            let low = function.shuffle(lanes, [at(first), at(second)], &pick(0));
            let high = function.shuffle(lanes, [at(first), at(second)], &pick(1));
            let put = |number: u64| (group * elements + number) as usize;
            (next[put(2 * pair)], next[put(2 * pair + 1)]) = (low, high);
        }
    }
    next
}
