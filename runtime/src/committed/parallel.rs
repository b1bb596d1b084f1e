//! Packing and unpacking by several threads.

use super::Committed;
use crate::cpu::Sides;
use crate::error::PackError;
use crate::signals::{self, Blocked};

/// A pointer that threads may carry: each moves other bytes.
#[derive(Clone, Copy)]
struct Carried(Sides);

// SAFETY: the threads of a parallel call move disjoint ranges, and the call waits for them.
unsafe impl Send for Carried {}
// SAFETY: as above.
unsafe impl Sync for Carried {}

impl Carried {
    fn sides(self) -> Sides {
        self.0
    }
}

impl Committed {
    /// Like [`Committed::pack`] from byte 0 on, by several threads of this call.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let byte = types.named(Predefined::BYTE);
    /// let every_other = types.vector(1 << 20, 1, 2, byte)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let memory: Vec<u8> = (0..2u32 << 20).map(|index| index as u8).collect();
    /// let mut packed = vec![0; 1 << 20];
    /// every_other.pack_parallel(&memory, 0, 1, &mut packed, 4)?;
    /// assert!(packed.iter().enumerate().all(|(index, &byte)| byte == (2 * index) as u8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pack_parallel(
        &self,
        source: &[u8],
        origin: usize,
        count: u64,
        packed: &mut [u8],
        threads: usize,
    ) -> Result<usize, PackError> {
        let take = self.check(source.len(), origin, count, 0, packed.len())?;
        let memory = source.as_ptr().wrapping_add(origin).cast_mut();
        // SAFETY: as for `pack`; `memory` is only read.
        unsafe { self.parallel::<true>(Sides { memory, packed: packed.as_mut_ptr() }, count, take as u64, threads) };
        Ok(take)
    }

    /// Like [`Committed::unpack`] from byte 0 on, by several threads of this call.
    ///
    /// # Errors
    ///
    /// As for [`Committed::unpack`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let mut memory = [0xa5; 20];
    /// assert_eq!(every_other.unpack_parallel(&[1; 12], &mut memory, 0, 1, 2)?, 12);
    /// assert_eq!(memory[12..], [0xa5, 0xa5, 0xa5, 0xa5, 1, 1, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unpack_parallel(
        &self,
        packed: &[u8],
        destination: &mut [u8],
        origin: usize,
        count: u64,
        threads: usize,
    ) -> Result<usize, PackError> {
        let take = self.check(destination.len(), origin, count, 0, packed.len())?;
        let memory = destination.as_mut_ptr().wrapping_add(origin);
        // SAFETY: as for `unpack`; `packed` is only read.
        unsafe {
            let sides = Sides { memory, packed: packed.as_ptr().cast_mut() };
            self.parallel::<false>(sides, count, take as u64, threads);
        }
        Ok(take)
    }

    /// # Safety
    ///
    /// As for [`Committed::run`] from byte 0 on.
    unsafe fn parallel<const PACK: bool>(&self, sides: Sides, count: u64, take: u64, threads: usize) {
        // Pieces are multiples of a page, so that no two threads share a line of the packed side.
        let piece = take.div_ceil(threads.max(1) as u64).next_multiple_of(4096).max(4096);
        let carried = Carried(sides);
        let range = move |start: u64| {
            let sides = carried.sides();
            let sides = Sides { packed: sides.packed.wrapping_add(start as usize), ..sides };
            // SAFETY: a range of the caller's, and no other thread has it.
            unsafe { self.run::<PACK>(sides, count, start, piece.min(take - start)) };
        };
        std::thread::scope(|scope| {
            for start in (0..take).step_by(piece as usize).skip(1) {
                let thread = std::thread::Builder::new();
                let spawned =
                    signals::spawn_with(Blocked::AllButFaults, || thread.spawn_scoped(scope, move || range(start)));
                if spawned.is_err() {
                    range(start);
                }
            }
            if take > 0 {
                range(0);
            }
        });
    }
}
