//! Accumulation of packed bytes in elements in host memory.

use super::check::check_packed;
use crate::committed::Committed;
use crate::cpu::Addresses;
use crate::error::AccumulateError;
use crate::memory::MemoryMut;
use crate::piece::{Buffer, piece_end};
use crate::range::Range;
use bytemuck::NoUninit;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_compiler::plan::Direction;
use dtc_microkernels::accumulate::{AccumulateFn, select_accumulate};

/// Least length of a run that is accumulated in place, in bytes. Shorter runs are packed first, so that one call serves many.
const IN_PLACE: u64 = 1024;

/// A reduction that fits a type and a range, which are whole elements.
#[derive(Clone, Copy)]
pub(crate) struct CheckedReduction {
    reduction: Reduction,
    /// What the processor computes it by; `None` for a plain unpack.
    accumulate: Option<AccumulateFn>,
}

impl CheckedReduction {
    pub(crate) fn reduction(&self) -> Reduction {
        self.reduction
    }
}

impl Committed {
    /// Combines `packed` with all bytes of a range: each basic element in memory becomes itself OP the packed one. Returns how
    /// many bytes were read. Writes bytes of the type map and no others.
    ///
    /// The offset, the length and the size of the type are multiples of the packed size of an element. Where the type map
    /// has a byte twice, its new value is not defined.
    ///
    /// # Errors
    ///
    /// An [`AccumulateError`] for what [`Committed::unpack`] refuses, for an offset, a length or a type that does not consist
    /// of whole elements, and for a type that certainly consists of other ones ([`Element::contradicts`]). Nothing is
    /// written then.
    ///
    /// [`Element::contradicts`]: crate::operation::Element::contradicts
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 12.3.4 (`MPI_Accumulate`), 6.9.7 (`MPI_Reduce_local`).
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let byte = types.named(Predefined::UINT8_T);
    /// let every_other = types.vector(3, 1, 2, byte)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let sum = Reduction::new(Operation::Sum, Element::U8)?;
    /// let mut memory = [1u8; 5];
    /// assert_eq!(every_other.accumulate(sum, &[10u8, 20, 30], Range::elements(1), &mut memory)?, 3);
    /// assert_eq!(memory, [11, 1, 21, 1, 31]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accumulate<'m, U: NoUninit>(
        &self,
        reduction: Reduction,
        packed: &[U],
        range: Range,
        destination: impl Into<MemoryMut<'m>>,
    ) -> Result<usize, AccumulateError> {
        let (mut destination, packed): (MemoryMut<'m>, &[u8]) = (destination.into(), bytemuck::cast_slice(packed));
        let range = check_packed(self.check(destination.room(), range)?, packed.len())?;
        let reduction = self.check_reduction(reduction, range)?;
        let addresses = Addresses { memory: destination.address(), packed: packed.as_ptr().cast_mut() };
        // SAFETY: `check` found every byte of the elements inside the slice, and `check_packed` the range inside `packed`. They
        // cannot overlap, and `packed` is only read.
        unsafe { self.accumulate_bytes(&reduction, addresses, range) };
        self.record(Direction::Unpack, range.length());
        Ok(range.length() as usize)
    }

    /// Accumulates packed bytes in those of a range, which ends with the packed bytes or before, at any address of the host.
    ///
    /// # Safety
    ///
    /// Clauses 1 to 4 and 6 of the contract of [`Transfer`](crate::Transfer). The reduction was checked for this type, and for a range
    /// that the bytes are whole elements of.
    pub(crate) unsafe fn accumulate_bytes(&self, reduction: &CheckedReduction, addresses: Addresses, range: Range) {
        let CheckedReduction { reduction, accumulate } = *reduction;
        let Some(accumulate) = accumulate else {
            // SAFETY: clauses 1 to 4.
            unsafe { self.some::<false>(addresses, range) };
            return;
        };
        self.count_use();
        let unit = reduction.element().size();
        let length = range.length();
        let mut buffer = Buffer::new();
        let mut done = 0;
        while done < length {
            let (position, end) = (range.offset() + done, range.offset() + length);
            let packed = addresses.packed.wrapping_add(done as usize);
            let run = self.cached().run_at(position);
            let contiguous = run.bytes.min(length - done) / unit * unit;
            // SAFETY: both branches touch bytes of the range only, for which clause 1 speaks. `accumulate` was selected for the
            // level of the cached type, which the CPU has. Packed bytes are initialised, as are the bytes of memory that the type
            // describes, and those of the buffer once the pack has written them.
            unsafe {
                if contiguous >= IN_PLACE || contiguous == length - done {
                    let memory = addresses.memory.wrapping_offset(run.offset as isize);
                    let memory = std::slice::from_raw_parts_mut(memory, contiguous as usize);
                    accumulate(memory, std::slice::from_raw_parts(packed, contiguous as usize));
                    done += contiguous;
                } else {
                    let bytes = piece_end(position, end, self.cached().shape.size, unit) - position;
                    let (collected, piece) =
                        (Addresses { packed: buffer.start(), ..addresses }, range.part(done, bytes));
                    self.cached().run::<true>(collected, piece);
                    let memory = std::slice::from_raw_parts_mut(collected.packed, bytes as usize);
                    accumulate(memory, std::slice::from_raw_parts(packed, bytes as usize));
                    self.cached().run::<false>(collected, piece);
                    done += bytes;
                }
            }
        }
    }

    /// The reduction, if it makes sense for the type and the range.
    pub(crate) fn check_reduction(
        &self,
        reduction: Reduction,
        range: Range,
    ) -> Result<CheckedReduction, AccumulateError> {
        let element = reduction.element();
        let multiples =
            [("size of the type", self.facts().size), ("offset", range.offset()), ("length", range.length())];
        for (field, found) in multiples {
            if !found.is_multiple_of(element.size()) {
                return Err(AccumulateError::Multiple { field, element, found });
            }
        }
        if !self.may_consist_of(element) {
            return Err(AccumulateError::Elements(element));
        }
        match select_accumulate(self.cached().level(), reduction) {
            None if reduction.operation() != Operation::Replace => Err(AccumulateError::Unsupported(reduction)),
            accumulate => Ok(CheckedReduction { reduction, accumulate }),
        }
    }
}
