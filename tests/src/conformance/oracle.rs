//! Subjects made of the oracle: a correct one, and ones with one mistake each. They test the conformance run itself.
#![expect(unsafe_code, reason = "the calls on raw addresses are part of the interface")]

use super::{Expectation, Subject};
use dtc_compiler::datatype::Datatype;

/// The mistake of an [`OracleSubject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Nothing.
    None,
    /// Two packed bytes are swapped.
    PackOrder,
    /// Element 1 of a count is displaced by one byte.
    Extent,
    /// The first byte of a fragment is that of the next position.
    Offset,
    /// One byte after the end of the fragment is written.
    PackPastEnd,
    /// A byte outside the map is written.
    UnpackOutside,
    /// The last byte of a fragment is not unpacked.
    UnpackShort,
    /// The returned length is off by one at the end of the stream.
    Result,
}

impl Mistake {
    /// Every mistake but [`Mistake::None`].
    pub const ALL: [Mistake; 7] = [
        Mistake::PackOrder,
        Mistake::Extent,
        Mistake::Offset,
        Mistake::PackPastEnd,
        Mistake::UnpackOutside,
        Mistake::UnpackShort,
        Mistake::Result,
    ];
}

/// Packs byte by byte, like the oracle, except for one mistake.
#[derive(Clone, Debug)]
pub struct OracleSubject {
    datatype: Datatype,
    mistake: Mistake,
}

impl OracleSubject {
    /// A subject for a datatype.
    pub fn new(datatype: &Datatype, mistake: Mistake) -> OracleSubject {
        OracleSubject { datatype: datatype.clone(), mistake }
    }

    /// The displacements of the fragment, and the length to return.
    fn fragment(&self, count: u64, offset: u64, most: usize) -> (Vec<i64>, usize) {
        let mut bytes = Expectation::new(&self.datatype, count).bytes;
        let size = bytes.len();
        let one = self.datatype.facts().size as usize;
        match self.mistake {
            Mistake::PackOrder if size > 1 => bytes.swap(size / 2, size / 2 - 1),
            Mistake::Extent if count > 1 => bytes[one..].iter_mut().for_each(|byte| *byte += 1),
            _ => {}
        }
        let from = (offset as usize).min(size);
        let to = size.min(from + most);
        let shift = usize::from(self.mistake == Mistake::Offset && to < size);
        let answer = to - from + usize::from(self.mistake == Mistake::Result && to == size && size > 0);
        (bytes[from + shift..to + shift].to_vec(), answer)
    }
}

impl Subject for OracleSubject {
    fn name(&self) -> String {
        format!("the oracle with mistake {:?}", self.mistake)
    }

    fn pack(&self, source: &[u8], origin: usize, count: u64, offset: u64, packed: &mut [u8]) -> Result<usize, String> {
        let (bytes, answer) = self.fragment(count, offset, packed.len());
        let index = |byte: &i64| (origin as i64 + byte) as usize;
        for (target, byte) in packed.iter_mut().zip(&bytes) {
            *target = source[index(byte)];
        }
        if self.mistake == Mistake::PackPastEnd && packed.len() > bytes.len() {
            packed[bytes.len()] ^= 1;
        }
        Ok(answer)
    }

    fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, String> {
        let (bytes, answer) = self.fragment(count, offset, packed.len());
        let keep = bytes.len() - usize::from(self.mistake == Mistake::UnpackShort && !bytes.is_empty());
        for (value, byte) in packed.iter().zip(&bytes[..keep]) {
            destination[(origin as i64 + byte) as usize] = *value;
        }
        if self.mistake == Mistake::UnpackOutside
            && let Some(last) = bytes.last()
        {
            destination[(origin as i64 + last + 1) as usize] ^= 1;
        }
        Ok(answer)
    }

    unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, most: usize) -> usize {
        let (bytes, answer) = self.fragment(count, offset, most);
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: `byte` is a displacement of the requested range and `at` is below `most`, for which `source` and
            // `packed` are valid (contract of `pack_raw`). A mistake may leave them; that is the test.
            unsafe { *packed.add(at) = *source.wrapping_offset(*byte as isize) };
        }
        answer
    }

    unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        most: usize,
        offset: u64,
        destination: *mut u8,
        count: u64,
    ) -> usize {
        let (bytes, answer) = self.fragment(count, offset, most);
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: `byte` is a displacement of the requested range and `at` is below `most`, for which `destination`
            // and `packed` are valid (contract of `unpack_raw`). A mistake may leave them; that is the test.
            unsafe { *destination.wrapping_offset(*byte as isize) = *packed.add(at) };
        }
        answer
    }
}
