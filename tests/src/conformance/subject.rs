//! What a conformance run is about: something that packs and unpacks one datatype.
#![expect(unsafe_code, reason = "the calls on raw addresses are part of what is tested")]

use crate::memory::SparseMemory;

/// A committed datatype of some engine, or something that acts like one.
pub trait Subject {
    /// For messages.
    fn name(&self) -> String;

    /// Packs bytes `offset..` of `count` elements into the whole of `packed`, or less at the end of the packed stream.
    /// Displacement 0 is at `origin`. Returns the bytes written.
    fn pack(&self, source: &[u8], origin: usize, count: u64, offset: u64, packed: &mut [u8]) -> Result<usize, String>;

    /// Unpacks bytes `offset..` of `count` elements. Returns the bytes read.
    fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, String>;

    /// Lengths of the pieces in which everything is moved once more.
    fn piece_lengths(&self) -> &'static [usize] {
        &[1, 7, 4096]
    }

    /// Like [`Subject::pack`] for displacement 0 at an address.
    ///
    /// # Safety
    ///
    /// The bytes of the map that are asked for must be readable at their displacements, `packed` writable for `most`.
    unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, most: usize) -> usize;

    /// Like [`Subject::unpack`] for displacement 0 at an address.
    ///
    /// # Safety
    ///
    /// `packed` must be readable for `most` bytes, the bytes of the map that are asked for writable.
    unsafe fn unpack_raw(&self, packed: *const u8, most: usize, offset: u64, destination: *mut u8, count: u64)
    -> usize;
}

/// A place in sparse memory.
#[derive(Clone, Copy, Debug)]
pub struct Place<'m> {
    /// The memory.
    pub memory: &'m SparseMemory,
    /// Bytes from its start, perhaps outside.
    pub at: i64,
}

impl Place<'_> {
    fn address(&self) -> *mut u8 {
        self.memory.address(self.at)
    }
}

/// Packs from one sparse memory to another.
pub fn pack_sparse(subject: &dyn Subject, source: Place, count: u64, offset: u64, packed: Place, most: usize) -> usize {
    // SAFETY: whatever the subject touches that is not open kills the process, which is what the test wants to see;
    // open pages belong to the two mappings, of which nothing is borrowed.
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
    // SAFETY: as for `pack_sparse`.
    unsafe { subject.unpack_raw(packed.address(), most, offset, destination.address(), count) }
}
