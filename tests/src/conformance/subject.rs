//! Subjects of a conformance run: implementations that pack and unpack one datatype.
#![expect(unsafe_code, reason = "the calls on raw addresses are part of what is tested")]

use crate::memory::SparseMemory;

/// A committed datatype of some engine, or an imitation of one.
pub trait Subject {
    /// Name in messages.
    fn name(&self) -> String;

    /// Packs bytes `offset..` of `count` elements into all of `packed`, or less at the end of the packed stream.
    /// Displacement 0 is at `origin`. Returns the number of bytes written.
    fn pack(&self, source: &[u8], origin: usize, count: u64, offset: u64, packed: &mut [u8]) -> Result<usize, String>;

    /// Unpacks bytes `offset..` of `count` elements. Returns the number of bytes read.
    fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, String>;

    /// Lengths of the pieces for a second run over everything.
    fn piece_lengths(&self) -> &'static [usize] {
        &[1, 7, 4096]
    }

    /// Like [`Subject::pack`], with displacement 0 at an address.
    ///
    /// # Safety
    ///
    /// The requested bytes of the map are readable at their displacements from `source`, and `packed` is writable for
    /// `most` bytes.
    unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, most: usize) -> usize;

    /// Like [`Subject::unpack`], with displacement 0 at an address.
    ///
    /// # Safety
    ///
    /// `packed` is readable for `most` bytes, and the requested bytes of the map are writable at their displacements
    /// from `destination`.
    unsafe fn unpack_raw(&self, packed: *const u8, most: usize, offset: u64, destination: *mut u8, count: u64)
    -> usize;
}

/// A position in sparse memory.
#[derive(Clone, Copy, Debug)]
pub struct Place<'m> {
    /// The memory.
    pub memory: &'m SparseMemory,
    /// Bytes from its begin, perhaps outside.
    pub at: i64,
}

impl Place<'_> {
    fn address(&self) -> *mut u8 {
        self.memory.address(self.at)
    }
}

/// Packs from one sparse memory to another.
pub fn pack_sparse(subject: &dyn Subject, source: Place, count: u64, offset: u64, packed: Place, most: usize) -> usize {
    // SAFETY: open pages belong to the two mappings, which nothing borrows. A subject that touches a closed page kills
    // the process, which is the fault that the test looks for.
    unsafe { subject.pack_raw(source.address(), count, offset, packed.address(), most) }
}

/// Unpacks from one sparse memory to another.
pub fn unpack_sparse(
    subject: &dyn Subject,
    packed: Place,
    most: usize,
    offset: u64,
    destination: Place,
    count: u64,
) -> usize {
    // SAFETY: open pages belong to the two mappings, which nothing borrows. A subject that touches a closed page kills
    // the process, which is the fault that the test looks for.
    unsafe { subject.unpack_raw(packed.address(), most, offset, destination.address(), count) }
}
