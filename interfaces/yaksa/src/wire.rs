//! Flattened types: the description as bytes that another process reads back.
//!
//! Words of 64 bits, little endian: "dtcyaksa", version 2, the length of everything in bytes, how many types follow, a checksum
//! of the types, a checksum of the header before it, and the types, children before parents, each a code with its arguments.
//! Children are named by their place.
//!
//! `yaksa_unflatten` has no argument for the length of its input. So nothing behind the header is read before the header's
//! own checksum is right and its length within [`LONGEST`]; the types must fill that length exactly. Checksums are no
//! protection against bytes that were forged: a forger may state a false length.
//!
//! | code | arguments |
//! | --- | --- |
//! | 0 builtin | handle |
//! | 1 strided | count, blocklength, stride, child |
//! | 2 blocks | blocklength, child, n, n displacements |
//! | 3 listed | child, n, n blocklengths, n displacements |
//! | 4 struct | n, n times blocklength, displacement, child |
//! | 5 resized | child, lower bound, extent |

use crate::builtin::Builtin;
use crate::construct;
use crate::memory;
use crate::status::{Status, copied};
use crate::types::{Form, Ordered, Shared, Type};

const MAGIC: u64 = u64::from_le_bytes(*b"dtcyaksa");
const VERSION: u64 = 2;
const WORD: usize = size_of::<u64>();
const HEADER: usize = 6 * WORD;

/// Bytes of the longest flattened type that is read: 2^27 displacements.
const LONGEST: u64 = 1 << 30;

/// The fewest words of a type.
const FEWEST_WORDS: u64 = 2;

/// A checksum of words, in order. It finds damage, not forgery.
#[derive(Clone, Copy)]
struct Checksum(u64);

impl Checksum {
    const EMPTY: Checksum = Checksum(0x6474_6379_616b_7361);

    /// Every step is a bijection of the sum and of the word, so any one word that is changed changes the result.
    fn add(self, word: u64) -> Checksum {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Checksum(mixed ^ (mixed >> 29))
    }

    fn of(words: impl IntoIterator<Item = u64>) -> u64 {
        words.into_iter().fold(Checksum::EMPTY, Checksum::add).0
    }
}

/// Hands all words behind the header to `put`.
fn each_word(ordered: &Ordered, mut put: impl FnMut(i64)) {
    let place = |child: &Shared| ordered.place(child).unwrap_or(0) as i64;
    for each in &ordered.types {
        let mut all = |words: &[i64]| words.iter().for_each(|&word| put(word));
        match &each.form {
            Form::Builtin(builtin) => all(&[0, builtin.handle() as i64]),
            Form::Strided { count, blocklength, stride, child } => {
                all(&[1, *count as i64, *blocklength as i64, *stride, place(child)]);
            }
            Form::Blocks { blocklength, displacements, child } => {
                all(&[2, *blocklength as i64, place(child), displacements.len() as i64]);
                all(displacements);
            }
            Form::Listed { blocklengths, displacements, child } => {
                all(&[3, place(child), blocklengths.len() as i64]);
                all(blocklengths);
                all(displacements);
            }
            Form::Struct { parts } => {
                all(&[4, parts.len() as i64]);
                for part in parts {
                    all(&[part.blocklength, part.displacement, place(&part.child)]);
                }
            }
            Form::Resized { child } | Form::Dup { child } => {
                all(&[5, place(child), each.shape.lb, each.shape.extent()]);
            }
        }
    }
}

impl Type {
    /// Bytes of the flattened type; an error if they are more than any reader takes.
    pub(crate) fn flattened_size(&self) -> Result<usize, Status> {
        let _claim = memory::for_entries(self.entries())?;
        let mut bytes = HEADER;
        each_word(&self.origin().ordered(), |_| bytes += WORD);
        if bytes as u64 <= LONGEST { Ok(bytes) } else { Err(Status::Internal) }
    }

    /// Writes the flattened type.
    ///
    /// # Errors
    ///
    /// There is no memory.
    ///
    /// # Safety
    ///
    /// `to` is writable for [`Type::flattened_size`] bytes.
    pub(crate) unsafe fn flatten(&self, to: *mut u8) -> Result<(), Status> {
        let _claim = memory::for_entries(self.entries())?;
        let ordered = self.origin().ordered();
        let (mut at, mut sum) = (HEADER, Checksum::EMPTY);
        let write = |at: usize, word: u64| {
            // SAFETY: `to` is writable for `flattened_size` bytes (contract of this function): the header, and a word for
            // each that `each_word` hands out. `at + WORD` is at most their end.
            unsafe { to.add(at).cast::<[u8; WORD]>().write_unaligned(word.to_le_bytes()) };
        };
        each_word(&ordered, |word| {
            write(at, word as u64);
            sum = sum.add(word as u64);
            at += WORD;
        });
        let header = [MAGIC, VERSION, at as u64, ordered.types.len() as u64, sum.0];
        for (place, word) in header.into_iter().chain([Checksum::of(header)]).enumerate() {
            write(place * WORD, word);
        }
        Ok(())
    }

    /// Reads a flattened type.
    ///
    /// # Errors
    ///
    /// The bytes are not a flattened type of this version, are damaged, or longer than [`LONGEST`].
    ///
    /// # Safety
    ///
    /// A header is readable at `from`, and, if its checksum is right, as many bytes as it states.
    pub(crate) unsafe fn unflatten(from: *const u8) -> Result<Shared, Status> {
        let word = |at: usize| {
            // SAFETY: a header is readable at `from` (contract of this function), and has 6 words; `at` is at most 5.
            u64::from_le_bytes(unsafe { from.add(at * WORD).cast::<[u8; WORD]>().read_unaligned() })
        };
        if (word(0), word(1)) != (MAGIC, VERSION) || word(5) != Checksum::of((0..5).map(word)) {
            return Err(Status::Internal);
        }
        let (length, types) = (word(2), word(3));
        if length > LONGEST || length % WORD as u64 != 0 {
            return Err(Status::Internal);
        }
        let body = (length as usize).checked_sub(HEADER).ok_or(Status::Internal)?;
        if types > body as u64 / WORD as u64 / FEWEST_WORDS {
            return Err(Status::Internal);
        }
        let _claim = memory::for_flattened(length)?;
        // SAFETY: the checksum shows that this is a header, so as many bytes are readable as it states (contract of this
        // function): `HEADER + body` is that number.
        let body = unsafe { std::slice::from_raw_parts(from.add(HEADER), body) };
        let words = body.as_chunks::<WORD>().0.iter().map(|word| u64::from_le_bytes(*word));
        if Checksum::of(words) != word(4) {
            return Err(Status::Internal);
        }
        read(body, types)
    }
}

/// Reads `types` types from a body; the last is the type.
fn read(body: &[u8], types: u64) -> Result<Shared, Status> {
    let mut reader = Reader { body };
    let mut made: Vec<Shared> = Vec::new();
    for _ in 0..types {
        let next = reader.next_type(&made)?;
        made.try_reserve(1).map_err(|_| Status::OutOfMemory)?;
        made.push(next);
    }
    if !reader.body.is_empty() {
        return Err(Status::Internal);
    }
    made.pop().ok_or(Status::Internal)
}

struct Reader<'a> {
    body: &'a [u8],
}

impl Reader<'_> {
    fn word(&mut self) -> Result<i64, Status> {
        let (word, rest) = self.body.split_first_chunk::<WORD>().ok_or(Status::Internal)?;
        self.body = rest;
        Ok(i64::from_le_bytes(*word))
    }

    /// A list of `length` words. That the body has them is checked before memory is allocated.
    fn list(&mut self, length: usize) -> Result<Box<[i64]>, Status> {
        let bytes = length.checked_mul(WORD).filter(|&bytes| bytes <= self.body.len()).ok_or(Status::Internal)?;
        let (list, rest) = self.body.split_at(bytes);
        self.body = rest;
        copied(list.as_chunks::<WORD>().0.iter().map(|word| i64::from_le_bytes(*word)))
    }

    fn length(&mut self) -> Result<usize, Status> {
        usize::try_from(self.word()?).map_err(|_| Status::Internal)
    }

    fn child(&mut self, made: &[Shared]) -> Result<Shared, Status> {
        made.get(self.length()?).cloned().ok_or(Status::Internal)
    }

    fn next_type(&mut self, made: &[Shared]) -> Result<Shared, Status> {
        match self.word()? {
            0 => {
                let handle = self.word()? as u64;
                Builtin::of_handle(handle).ok_or(Status::Internal)?;
                // SAFETY: the handle of a builtin.
                Ok(unsafe { Shared::from_handle(handle) })
            }
            1 => {
                let (count, blocklength, stride) = (self.word()?, self.word()?, self.word()?);
                construct::hvector(count, blocklength, stride, self.child(made)?)
            }
            2 => {
                let (blocklength, child, length) = (self.word()?, self.child(made)?, self.length()?);
                construct::hindexed_block(blocklength, &self.list(length)?, child)
            }
            3 => {
                let (child, length) = (self.child(made)?, self.length()?);
                let (blocklengths, displacements) = (self.list(length)?, self.list(length)?);
                construct::hindexed(&blocklengths, &displacements, child)
            }
            4 => {
                let words = self.length()?.checked_mul(3).ok_or(Status::Internal)?;
                let parts = self.list(words)?;
                let column = |at: usize| parts.iter().skip(at).step_by(3).copied();
                let (blocklengths, displacements) = (copied(column(0))?, copied(column(1))?);
                let child = |place: i64| made.get(usize::try_from(place).ok()?).cloned();
                let children: Option<Vec<_>> = column(2).map(child).collect();
                construct::structure(&blocklengths, &displacements, children.ok_or(Status::Internal)?)
            }
            5 => {
                let (child, lb, extent) = (self.child(made)?, self.word()?, self.word()?);
                construct::resized(child, lb, extent)
            }
            _ => Err(Status::Internal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::{hindexed, hvector, resized, structure};

    fn sample() -> Shared {
        // SAFETY: handles of builtins.
        let [int, pair] = [14, 55].map(|handle| unsafe { Shared::from_handle(handle) });
        let list = hindexed(&[2, 0, 3], &[40, 0, 4], int).unwrap();
        let rows = hvector(3, 2, 200, list.clone()).unwrap();
        let blocks = construct::hindexed_block(2, &[0, 100, -40], pair).unwrap();
        let parts = [rows, resized(blocks.clone(), -64, 512).unwrap(), list, blocks];
        structure(&[1, 2, 0, 1], &[-16, 1000, 5, 9000], parts).unwrap()
    }

    fn flat(of: &Type) -> Vec<u8> {
        let mut bytes = vec![0; of.flattened_size().unwrap()];
        // SAFETY: the vector has `flattened_size` bytes.
        unsafe { of.flatten(bytes.as_mut_ptr()) }.unwrap();
        bytes
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let sample = sample();
        let bytes = flat(&sample);
        // SAFETY: `flat` wrote the header, and the vector has the length that it states.
        let back = unsafe { Type::unflatten(bytes.as_ptr()) }.unwrap();
        assert_eq!(back.shape, sample.shape);
        assert_eq!(flat(&back), bytes);
        assert_eq!(back.ordered().types.len(), sample.ordered().types.len());
        let int = flat(&Shared::null());
        // SAFETY: `flat` wrote the header, and the vector has the length that it states.
        assert_eq!(unsafe { Type::unflatten(int.as_ptr()) }.unwrap().into_handle(), 0);
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let bytes = flat(&sample());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                // SAFETY: the vector has a whole header, whose checksum refuses a damaged length before bytes behind it are read.
                assert!(unsafe { Type::unflatten(damaged.as_ptr()) }.is_err(), "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn lengths_beyond_the_limit_are_refused() {
        let bytes = flat(&sample());
        let word = |at: usize| u64::from_le_bytes(bytes[at * WORD..][..WORD].try_into().unwrap());
        for (length, types) in
            [(LONGEST + 8, word(3)), (u64::MAX, word(3)), (8, 1), (word(2) + 1, word(3)), (word(2), 1 << 40)]
        {
            let header = [MAGIC, VERSION, length, types, word(4)];
            let sealed: Vec<u64> = header.into_iter().chain([Checksum::of(header)]).collect();
            // SAFETY: the vector is a whole header; its lengths are refused before bytes behind it are read.
            assert!(unsafe { Type::unflatten(sealed.as_ptr().cast()) }.is_err(), "{length} {types}");
        }
    }

    #[test]
    fn damaged_bodies_are_refused_or_types() {
        let sample = sample();
        let bytes = flat(&sample);
        let types = sample.ordered().types.len() as u64;
        for cut in 0..bytes.len() - HEADER {
            assert!(read(&bytes[HEADER..HEADER + cut], types).is_err());
        }
        for at in HEADER..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes[HEADER..].to_vec();
                damaged[at - HEADER] ^= 1 << bit;
                if let Ok(read) = read(&damaged, types) {
                    assert!(i64::try_from(read.shape.size).is_ok());
                }
            }
        }
        assert!(read(&[], 0).is_err());
        assert!(read(&bytes[HEADER..], u64::MAX).is_err());
    }
}
