//! Short pieces, inline.

use cranelift_codegen::ir::{Type, types};

/// One load and one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// From the start of the piece, in bytes.
    pub(super) offset: i64,
    /// What is loaded and stored.
    pub(super) word: Type,
}

/// The fewest words that cover a piece and nothing else. The last word may overlap the one before: within one piece
/// both carry the same bytes.
pub(super) fn chunks(bytes: u64) -> Vec<Chunk> {
    let word = |width: u64| match width {
        16 => types::I8X16,
        8 => types::I64,
        4 => types::I32,
        2 => types::I16,
        _ => types::I8,
    };
    let widest = [16, 8, 4, 2, 1].into_iter().find(|&width| width <= bytes).unwrap_or(1);
    let mut chunks: Vec<Chunk> =
        (0..bytes / widest).map(|index| Chunk { offset: (index * widest) as i64, word: word(widest) }).collect();
    let rest = bytes % widest;
    if rest > 0 {
        // A tail that is a word itself needs no overlap.
        let width = if rest.is_power_of_two() { rest } else { rest.next_power_of_two() };
        chunks.push(Chunk { offset: (bytes - width) as i64, word: word(width) });
    }
    chunks
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
