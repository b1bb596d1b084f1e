//! Which elements thunks move by shuffles of two vectors.

use super::pieces::ShortPieces;
use super::{Level, Strategy};
use crate::plan::Direction;

/// Most bytes of memory and of packed bytes that are shuffled: two vectors of 64 bytes.
const MOST_BYTES: u64 = 128;

/// Fewest packed bytes that are shuffled: the shortest vector.
const FEWEST_BYTES: u64 = 16;

/// Fewest words of an element for which shuffles are faster: the masks, which are set at each call, take as long.
const FEWEST_WORDS: usize = 10;

/// Fewest words of an element for which shuffles of several are faster: two loads, three shuffles and three stores take as long.
const FEWEST_WORDS_OF_SEVERAL: usize = 6;

/// The places of the bytes of an element that thunks shuffle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// Where the memory of the element begins, in bytes from the place of the plan's root.
    pub first: i64,
    /// Bytes of memory, 128 at most.
    pub span: usize,
    /// Of each packed byte, its place from the first.
    pub places: Vec<u8>,
    /// Whether calls for one element are shuffled.
    pub one: bool,
    /// Whether calls for several elements are. Elements between each other are transposed in registers instead.
    pub several: bool,
}

impl Permutation {
    /// The packed byte at each place of memory: the last one, where there are several.
    pub fn packed(&self) -> Vec<Option<u8>> {
        let mut packed = vec![None; self.span];
        for (byte, &place) in self.places.iter().enumerate() {
            packed[usize::from(place)] = Some(byte as u8);
        }
        packed
    }
}

impl Strategy<'_> {
    /// How a thunk shuffles the bytes of an element; `None` where something else is as fast. An unpack writes no gaps: it has masks for
    /// them, where the processor stores by masks.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::strategy::{Level, Strategy, Target};
    /// use dtc_compiler::plan::{Direction, Plan};
    /// let text = "layout lb 0 extent 48 {\n  %0 = dense 4 x byte\n  %1 = stream 6 x 8 of %0\n  %2 = stream 2 x 4 of %1\n  root %2\n}";
    /// let target = Target { level: Level::Zen4, ..Target::default() };
    /// let permutation = Strategy::new(&Plan::new(&Layout::parse(text)?), &target, 1).permutation(Direction::Unpack).unwrap();
    /// assert_eq!((permutation.span, permutation.places[4]), (48, 8));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn permutation(&self, direction: Direction) -> Option<Permutation> {
        let (plan, root) = (self.plan, self.plan.root().step);
        if self.level.instructions() < Level::Avx512 || !(FEWEST_BYTES..=MOST_BYTES).contains(&plan.size()) {
            return None;
        }
        let pieces = ShortPieces::of(plan.steps(), root)?;
        let first = pieces.list.iter().map(|&(offset, _)| offset).min()?;
        let end = pieces.list.iter().map(|&(offset, bytes)| offset.saturating_add(bytes as i64)).max()?;
        let span = end.abs_diff(first);
        if pieces.words() < FEWEST_WORDS_OF_SEVERAL || span > MOST_BYTES {
            return None;
        }
        let bytes = |&(offset, bytes): &(i64, u64)| (0..bytes as i64).map(move |byte| (offset - first + byte) as u8);
        let places: Vec<u8> = pieces.list.iter().flat_map(bytes).collect();
        let permutation = Permutation {
            first,
            span: span as usize,
            places,
            one: pieces.words() >= FEWEST_WORDS,
            several: plan.extent().unsigned_abs() >= span || plan.repeated(2).is_none(),
        };
        let serves = direction == Direction::Pack
            || self.level.stores_masks()
            || permutation.packed().iter().all(Option::is_some);
        serves.then_some(permutation)
    }
}
