//! Short pieces, inline.

use crate::plan::{PieceWord, words_of};
use cranelift_codegen::ir::{Type, types};
use smallvec::SmallVec;

/// One load and one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// From the start of the piece, in bytes.
    pub(super) offset: i64,
    /// What is loaded and stored.
    pub(super) word: Type,
}

/// The words of a piece, as values of Cranelift.
pub(super) fn chunks(bytes: u64) -> impl ExactSizeIterator<Item = Chunk> {
    let word = |width: u64| match width {
        16 => types::I8X16,
        8 => types::I64,
        4 => types::I32,
        2 => types::I16,
        _ => types::I8,
    };
    let words: SmallVec<[PieceWord; 20]> = words_of(bytes).collect();
    words.into_iter().map(move |PieceWord { offset, width }| Chunk { offset: offset as i64, word: word(width) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::INLINE_BYTES;

    #[test]
    fn chunks_cover_exactly_the_piece() {
        for bytes in 1..=INLINE_BYTES {
            let mut covered = vec![false; bytes as usize];
            for chunk in chunks(bytes) {
                for byte in chunk.offset..chunk.offset + i64::from(chunk.word.bytes()) {
                    covered[byte as usize] = true;
                }
            }
            assert!(covered.iter().all(|&byte| byte), "{bytes}");
            assert!(chunks(bytes).len() as u64 <= bytes / 16 + 2);
        }
    }
}
