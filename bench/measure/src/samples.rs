//! Deterministic bytes for buffers: the same as those of the peers in `bench/`.

use crate::failure::Failure;

/// The seed of every buffer that a command fills.
pub const SEED: u64 = 20_240_229;

/// Word `index` of a buffer: one xorshift64 step. Any word can be computed alone.
pub fn word(seed: u64, index: u64) -> u64 {
    let mut value = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    value
}

/// Fills a buffer, in words of 8 bytes in the byte order of the machine.
pub fn fill(buffer: &mut [u8], seed: u64) {
    for (index, bytes) in buffer.chunks_mut(8).enumerate() {
        bytes.copy_from_slice(&word(seed, index as u64).to_ne_bytes()[..bytes.len()]);
    }
}

/// A buffer that begins on a page, as those of the peers do.
pub struct PageAligned {
    storage: Vec<u8>,
    start: usize,
    length: usize,
}

impl PageAligned {
    /// `length` bytes, all zero and touched, so that no measurement contains page faults.
    pub fn new(length: usize) -> PageAligned {
        let mut storage = vec![0u8; length + 2 * 4096];
        // Zeroed memory may be the system's one page of zeros until it is written.
        for byte in storage.iter_mut().step_by(4096) {
            *std::hint::black_box(byte) = 0;
        }
        let start = storage.as_ptr().align_offset(4096);
        // Alignment may be refused only when evaluated at compile time; 0 keeps it merely unaligned.
        let start = if start > 4096 { 0 } else { start };
        PageAligned { storage, start, length }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.length]
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.length]
    }
}

/// Finds out whether the system gives this process as much memory, so that later allocations do not end it.
///
/// # Errors
///
/// [`Failure::Data`] where it does not.
pub fn room_for(bytes: u64) -> Result<(), Failure> {
    let reserved = usize::try_from(bytes).ok().map(|bytes| Vec::<u8>::new().try_reserve_exact(bytes));
    match reserved {
        Some(Ok(())) => Ok(()),
        _ => Err(Failure::data("buffers", format_args!("{bytes} bytes of memory"), "less")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_on_a_page() {
        let mut buffer = PageAligned::new(10_000);
        assert_eq!(buffer.bytes().as_ptr() as usize % 4096, 0);
        fill(buffer.bytes_mut(), 7);
        let mut other = vec![0; 9_999];
        fill(&mut other, 7);
        assert_eq!(&buffer.bytes()[..9_999], &other[..]);
    }
}
