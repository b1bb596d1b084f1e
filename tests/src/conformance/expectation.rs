//! Expectations of the oracle about a type.

use crate::type_map::TypeMap;
use dtc_compiler::datatype::Datatype;

/// `count` elements of a type, according to the oracle.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Number of elements.
    pub count: u64,
    /// The displacement of every packed byte.
    pub bytes: Vec<i64>,
    /// Lowest displacement; 0 if there is none.
    pub low: i64,
    /// One past the highest displacement; 0 if there is none.
    pub high: i64,
    /// Whether some byte is in the map twice.
    pub overlaps: bool,
}

impl Expectation {
    /// The expectation for `count` elements.
    pub fn new(datatype: &Datatype, count: u64) -> Expectation {
        let map = TypeMap::new(datatype);
        let (one, extent) = (map.bytes(), map.bounds().extent());
        // A single element has no use for the extent, which may be anything.
        let shift = |element: u64| if element == 0 { 0 } else { element as i64 * extent };
        let element = |index: u64| one.iter().map(move |byte| byte + shift(index));
        let bytes: Vec<i64> = (0..count).flat_map(element).collect();
        let low = bytes.iter().copied().min().unwrap_or(0);
        let high = bytes.iter().copied().max().map_or(0, |last| last + 1);
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        let overlaps = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        Expectation { count, bytes, low, high, overlaps }
    }

    /// The contents of a buffer that begins at displacement `start`, after an unpack of the packed bytes `from..to`. A
    /// byte that is written more than once may get any of its values; the indices of such bytes are returned, to be
    /// left out.
    pub(super) fn unpacked(
        &self,
        packed: &[u8],
        from: usize,
        to: usize,
        start: i64,
        before: &[u8],
    ) -> (Vec<u8>, Vec<usize>) {
        let mut after = before.to_vec();
        let mut written = vec![false; if self.overlaps { before.len() } else { 0 }];
        let mut undefined = Vec::new();
        for (byte, value) in self.bytes[from..to].iter().zip(&packed[from..to]) {
            let index = (byte - start) as usize;
            after[index] = *value;
            if self.overlaps && std::mem::replace(&mut written[index], true) {
                undefined.push(index);
            }
        }
        (after, undefined)
    }
}
