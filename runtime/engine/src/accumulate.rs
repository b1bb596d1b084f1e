//! Unpacking with an operation.

use crate::committed::Committed;
use crate::cpu::Sides;
use crate::engine::Engine;
use crate::error::AccumulateError;
use crate::gpu;
use crate::memory::MemoryMut;
use crate::piece::{Buffer, piece_end};
use crate::range::Range;
use bytemuck::NoUninit;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_cuda::MemoryKind;
use dtc_microkernels::combine::{CombineFn, select_combine};

/// Runs of at least so many bytes are combined where they lie. Shorter ones are collected first, which is one call for many.
const IN_PLACE: u64 = 1024;

impl Engine {
    /// Whether [`Committed::accumulate`] computes a reduction on this machine, for elements and packed bytes in memory of
    /// these kinds: devices have no long doubles.
    ///
    /// ```
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::{Engine, cuda::MemoryKind::{Device, Pageable}};
    /// let engine = Engine::new();
    /// let sum = Reduction::new(Operation::Sum, Element::F64)?;
    /// assert!(engine.computes(sum, Pageable, Pageable) && engine.computes(sum, Device(0), Pageable));
    /// let extended = Reduction::new(Operation::Sum, Element::F80)?;
    /// assert!(!engine.computes(extended, Device(0), Pageable));
    /// # Ok::<(), dtc_compiler::operation::OperationError>(())
    /// ```
    pub fn computes(&self, reduction: Reduction, memory: MemoryKind, packed: MemoryKind) -> bool {
        let by_device = gpu::combines(memory, packed);
        reduction.operation() == Operation::Replace
            || if by_device {
                dtc_compiler::plan::gpu::computes(reduction)
            } else {
                select_combine(self.target().level, reduction).is_some()
            }
    }
}

impl Committed {
    /// Combines `packed` with the bytes of a range, until `packed` or the range ends: each basic element in memory becomes
    /// itself OP the packed one. Returns how many bytes were read. Writes bytes of the type map and no others.
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
    /// [`Element::contradicts`]: dtc_compiler::operation::Element::contradicts
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 12.3.4 (`MPI_Accumulate`), 6.9.7 (`MPI_Reduce_local`).
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
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
        let take = self.check(destination.bytes.len(), destination.origin, range, packed.len())?;
        let (count, offset) = (range.count(), range.offset());
        let combine = self.check_reduction(reduction, offset, take as u64)?;
        let sides = Sides { memory: destination.address(), packed: packed.as_ptr().cast_mut() };
        // SAFETY: `check` found every byte of the elements inside the slice, which cannot overlap `packed`; `packed` is only
        // read.
        unsafe { self.combine(combine, reduction, sides, count, offset, take as u64) };
        Ok(take)
    }

    /// Combines packed bytes with a range of those of elements in memory at any address: [`Committed::accumulate`] on
    /// pointers. Returns how many bytes were read.
    ///
    /// # Errors
    ///
    /// As for [`Committed::accumulate`], but for the bounds, which are the caller's promise.
    ///
    /// # Safety
    ///
    /// Every byte of the elements in the range is readable and writable, `packed` is readable for the returned length, the
    /// two do not overlap, and `count` times the size fits 63 bits. Gaps of less than 4 KiB between bytes of the range may be
    /// read, and what shares an aligned 16 bytes with one.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let largest = Reduction::new(Operation::Max, Element::I32)?;
    /// let (packed, mut memory) = (7i32.to_ne_bytes(), 3i32);
    /// // SAFETY: both sides are as long as the type.
    /// let read = unsafe { int.accumulate_raw(largest, packed.as_ptr(), Range::elements(1).bytes(..4), (&raw mut memory).cast())? };
    /// assert_eq!((read, memory), (4, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn accumulate_raw(
        &self,
        reduction: Reduction,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, AccumulateError> {
        let (count, offset, take) = (range.count(), range.offset(), self.take(range));
        let combine = self.check_reduction(reduction, offset, take)?;
        let sides = Sides { memory: destination, packed: packed.cast_mut() };
        // SAFETY: the caller's promise; `packed` is only read.
        unsafe { self.combine(combine, reduction, sides, count, offset, take) };
        Ok(take)
    }

    /// The function of a reduction, if it makes sense for the type and the range; none for a plain unpack.
    pub(crate) fn check_reduction(
        &self,
        reduction: Reduction,
        offset: u64,
        take: u64,
    ) -> Result<Option<CombineFn>, AccumulateError> {
        let element = reduction.element();
        for (field, found) in [("size of the type", self.facts().size), ("offset", offset), ("length", take)] {
            if !found.is_multiple_of(element.size()) {
                return Err(AccumulateError::Multiple { field, element, found });
            }
        }
        if !self.may_consist_of(element) {
            return Err(AccumulateError::Elements(element));
        }
        match select_combine(self.entry().level(), reduction) {
            None if reduction.operation() != Operation::Replace => Err(AccumulateError::Unsupported(reduction)),
            combine => Ok(combine),
        }
    }

    /// Combines `take` bytes from packed byte `offset` on.
    ///
    /// # Safety
    ///
    /// As for [`Committed::accumulate_raw`]; the function is that of the reduction.
    unsafe fn combine(
        &self,
        combine: Option<CombineFn>,
        reduction: Reduction,
        sides: Sides,
        count: u64,
        offset: u64,
        take: u64,
    ) {
        let Some(combine) = combine else {
            // SAFETY: the caller's promise.
            return unsafe { self.some::<false>(sides, count, offset, take) };
        };
        self.count_use();
        let unit = reduction.element().size();
        let end = offset + take;
        let mut buffer = Buffer::new();
        let mut position = offset;
        while position < end {
            let packed = sides.packed.wrapping_add((position - offset) as usize);
            let run = self.entry().run_at(position);
            let contiguous = run.bytes.min(end - position) / unit * unit;
            // SAFETY: both branches touch bytes of the range only, which the caller vouches for. The CPU has the level of the
            // entry. Packed bytes are initialised, as are the bytes of memory that the type describes, and those of the
            // buffer once the pack has written them.
            unsafe {
                if contiguous >= IN_PLACE || contiguous == end - position {
                    let memory = sides.memory.wrapping_offset(run.offset as isize);
                    let memory = std::slice::from_raw_parts_mut(memory, contiguous as usize);
                    combine(memory, std::slice::from_raw_parts(packed, contiguous as usize));
                    position += contiguous;
                } else {
                    let next = piece_end(position, end, self.entry().shape.size, unit);
                    let bytes = next - position;
                    let collected = Sides { packed: buffer.start(), ..sides };
                    self.entry().run::<true>(collected, count, position, bytes);
                    let memory = std::slice::from_raw_parts_mut(collected.packed, bytes as usize);
                    combine(memory, std::slice::from_raw_parts(packed, bytes as usize));
                    self.entry().run::<false>(collected, count, position, bytes);
                    position = next;
                }
            }
        }
    }
}
