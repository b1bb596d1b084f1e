//! Packing and unpacking by several threads.

use super::Committed;
use super::check::check_packed;
use crate::cpu::Addresses;
use crate::error::PackError;
use crate::memory::{Memory, MemoryMut};
use crate::range::Range;
use bytemuck::{NoUninit, Pod};
use dtc_compiler::plan::Direction;
use dtc_host::thread;

/// A pointer that threads may carry: each moves other bytes.
#[derive(Clone, Copy)]
struct Carried(Addresses);

// SAFETY: the threads of a parallel call move disjoint ranges, and the call waits for them.
unsafe impl Send for Carried {}
// SAFETY: threads only copy the pointers out of it (`addresses`); what they write through them is disjoint, as for `Send`.
unsafe impl Sync for Carried {}

impl Carried {
    fn addresses(self) -> Addresses {
        self.0
    }
}

impl Committed {
    /// Like [`Committed::pack`], by several threads of this call.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack`].
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let byte = types.named(Predefined::BYTE);
    /// let every_other = types.vector(1 << 20, 1, 2, byte)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let memory: Vec<u8> = (0..2u32 << 20).map(|index| index as u8).collect();
    /// let mut packed = vec![0u8; 1 << 20];
    /// every_other.pack_parallel(&memory, Range::elements(1), &mut packed, 4)?;
    /// assert!(packed.iter().enumerate().all(|(index, &byte)| byte == (2 * index) as u8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pack_parallel<'m, U: Pod>(
        &self,
        source: impl Into<Memory<'m>>,
        range: Range,
        packed: &mut [U],
        threads: usize,
    ) -> Result<usize, PackError> {
        let (source, packed): (Memory<'m>, &mut [u8]) = (source.into(), bytemuck::cast_slice_mut(packed));
        let range = check_packed(self.check(source.room(), range)?, packed.len())?;
        let addresses = Addresses { memory: source.address().cast_mut(), packed: packed.as_mut_ptr() };
        // SAFETY: `check` found every byte of the elements inside `source`, which is only read, and
        // `check_packed` the range inside `packed`; the slices cannot overlap.
        unsafe { self.parallel::<true>(addresses, range, threads) };
        self.record(Direction::Pack, range.length());
        Ok(range.length() as usize)
    }

    /// Like [`Committed::unpack`], by several threads of this call.
    ///
    /// # Errors
    ///
    /// As for [`Committed::unpack`].
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let mut memory = [-1; 5];
    /// assert_eq!(every_other.unpack_parallel(&[1, 2, 3], Range::elements(1), &mut memory, 2)?, 12);
    /// assert_eq!(memory, [1, -1, 2, -1, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unpack_parallel<'m, U: NoUninit>(
        &self,
        packed: &[U],
        range: Range,
        destination: impl Into<MemoryMut<'m>>,
        threads: usize,
    ) -> Result<usize, PackError> {
        let (mut destination, packed): (MemoryMut<'m>, &[u8]) = (destination.into(), bytemuck::cast_slice(packed));
        let range = check_packed(self.check(destination.room(), range)?, packed.len())?;
        let addresses = Addresses { memory: destination.address(), packed: packed.as_ptr().cast_mut() };
        // SAFETY: `check` found every byte of the elements inside `destination`, and `check_packed` the range inside `packed`,
        // which is only read; the slices cannot overlap.
        unsafe { self.parallel::<false>(addresses, range, threads) };
        self.record(Direction::Unpack, range.length());
        Ok(range.length() as usize)
    }

    /// # Safety
    ///
    /// As for [`Committed::run`]; the range ends with the packed bytes or before.
    unsafe fn parallel<const PACK: bool>(&self, addresses: Addresses, range: Range, threads: usize) {
        let take = range.length();
        // Pieces are multiples of a page, so that no two threads share a line of the packed side.
        let piece = take.div_ceil(threads.max(1) as u64).next_multiple_of(4096).max(4096);
        let carried = Carried(addresses);
        let part = move |start: u64| {
            let addresses = carried.addresses();
            let addresses = Addresses { packed: addresses.packed.wrapping_add(start as usize), ..addresses };
            // SAFETY: the piece is part of `range`, whose bytes both sides have (contract of this function). Pieces are disjoint, so no
            // other thread moves the same bytes.
            unsafe { self.some::<PACK>(addresses, range.part(start, piece.min(take - start))) };
        };
        let others = (0..take).step_by(piece as usize).skip(1).map(|start| move || part(start));
        thread::run_beside(others, || {
            if take > 0 {
                part(0);
            }
        });
    }
}
