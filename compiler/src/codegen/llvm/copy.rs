//! Single pieces, and runs of any length.

use super::emit::{Emitter, Place};
use super::function::{Count, Function, Lanes};
use crate::plan::Direction;
use crate::plan::strategy::{CLOSED_INLINE_BYTES, CLOSED_LOOP_BYTES};

/// Loads of a piece from which on all are done before the first store: a load behind a store to the same place of another page waits
/// for it.
const IN_ORDER: usize = 3;

impl Lanes {
    /// The lanes that are copied as one word or vector of `bytes`, a power of two.
    pub(super) fn of(bytes: u64) -> Lanes {
        match bytes {
            0..=8 => Lanes { count: 1, bytes },
            _ => Lanes { count: bytes / 8, bytes: 8 },
        }
    }
}

/// The fewest words of at most `widest` bytes that cover a piece and nothing else, by offset and length. The last may overlap the one
/// before.
fn words(bytes: u64, widest: u64) -> Vec<(u64, u64)> {
    let width = widest.min(1 << bytes.ilog2());
    let mut words: Vec<(u64, u64)> = (0..bytes / width).map(|index| (index * width, width)).collect();
    let rest = bytes % width;
    if rest > 0 {
        let width = rest.next_power_of_two();
        words.push((bytes - width, width));
    }
    words
}

impl Emitter<'_> {
    /// One piece of a known length.
    pub(super) fn copy(&mut self, function: &mut Function, bytes: u64, place: &Place) {
        if bytes == 0 {
            return;
        }
        if bytes > CLOSED_LOOP_BYTES {
            return self.copy_long(function, &bytes.to_string(), place);
        }
        if bytes > CLOSED_INLINE_BYTES {
            let (pieces, rest) = (bytes / CLOSED_INLINE_BYTES, bytes % CLOSED_INLINE_BYTES);
            function.repeat(&Count::Known(pieces), |function, piece| {
                let place = place.at(function, piece, CLOSED_INLINE_BYTES as i64, CLOSED_INLINE_BYTES);
                self.copy(function, CLOSED_INLINE_BYTES, &place);
            });
            let behind = place.further(function, (bytes - rest) as i64, bytes - rest);
            return self.copy(function, rest, &behind);
        }
        let words = words(bytes, self.vectors.bytes);
        let in_order = words.len() >= IN_ORDER;
        let places: Vec<_> = words
            .iter()
            .map(|&(offset, width)| (place.further(function, offset as i64, offset), Lanes::of(width)))
            .collect();
        let loaded: Vec<_> = places.iter().map(|(place, lanes)| function.load(*lanes, self.ends(place).0)).collect();
        if in_order {
            function.line("fence syncscope(\"singlethread\") seq_cst");
        }
        for ((place, lanes), vector) in places.iter().zip(&loaded) {
            function.store(*lanes, vector, self.ends(place).1);
        }
    }

    /// One word or vector.
    pub(super) fn copy_vector(&self, function: &mut Function, lanes: Lanes, place: &Place) {
        let (from, to) = self.ends(place);
        let vector = function.load(lanes, from);
        function.store(lanes, &vector, to);
    }

    /// The first `bytes` bytes of a vector, and no others.
    pub(super) fn copy_masked(&mut self, function: &mut Function, lanes: Lanes, bytes: u64, place: &Place) {
        let mask: Vec<_> = (0..lanes.count).map(|lane| lane * lanes.bytes < bytes).collect();
        let (from, to) = self.ends(place);
        let vector = function.load_masked(lanes, from, &mask);
        function.store_masked(lanes, &vector, to, &mask);
    }

    /// The first `bytes` bytes of a vector, and any others behind them among the packed bytes.
    pub(super) fn copy_overhanging(&mut self, function: &mut Function, lanes: Lanes, bytes: u64, place: &Place) {
        let mask: Vec<_> = (0..lanes.count).map(|lane| lane * lanes.bytes < bytes).collect();
        let vector = function.load_masked(lanes, &place.memory, &mask);
        function.store(lanes, &vector, &place.packed);
    }

    /// Words at a vector of addresses, which are a vector of packed bytes.
    pub(super) fn copy_words(&mut self, function: &mut Function, lanes: Lanes, addresses: &str, packed: &str) {
        match self.direction {
            Direction::Pack => {
                let words = function.gather(lanes, addresses);
                function.store(lanes, &words, packed);
            }
            Direction::Unpack => {
                let words = function.load(lanes, packed);
                function.scatter(lanes, &words, addresses);
            }
        }
    }

    /// One piece whose length is a value or a constant, by the C library.
    pub(super) fn copy_long(&self, function: &mut Function, bytes: &str, place: &Place) {
        let (from, to) = self.ends(place);
        function.copy(to, from, bytes);
    }

    /// A run whose length is a value: by vectors. The last one overlaps the one before.
    pub(super) fn copy_run(&mut self, function: &mut Function, bytes: &str, place: &Place) {
        let lanes = Lanes::of(self.vectors.bytes);
        let width = self.vectors.bytes;
        let long = function.value("long", format_args!("icmp uge i64 {bytes}, {width}"));
        let emitter = &*self;
        function.either(
            &long,
            |function| {
                let last = function.value("last", format_args!("sub i64 {bytes}, {width}"));
                let before = function.value("before", format_args!("add i64 {last}, {}", width - 1));
                let whole = Count::Value(function.value("whole", format_args!("udiv i64 {before}, {width}")));
                function.repeat(&whole, |function, vector| {
                    let place = place.at(function, vector, width as i64, width);
                    emitter.copy_vector(function, lanes, &place);
                });
                let end = Place {
                    memory: function.address(&place.memory, &last),
                    packed: function.address(&place.packed, &last),
                };
                emitter.copy_vector(function, lanes, &end);
            },
            |function| emitter.copy_long(function, bytes, place),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cover_exactly_the_piece() {
        for widest in [16, 32, 64] {
            for bytes in 1..=CLOSED_INLINE_BYTES {
                let mut covered = vec![false; bytes as usize];
                for (offset, width) in words(bytes, widest) {
                    covered[offset as usize..(offset + width) as usize].fill(true);
                }
                assert!(covered.iter().all(|&byte| byte), "{bytes}");
                assert!(words(bytes, widest).len() as u64 <= bytes / widest + 2);
            }
        }
    }
}
