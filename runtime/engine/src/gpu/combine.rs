//! Copies from type to type with an operation, between memory of any kind.

use super::accumulate::{Accumulation, check_computes, combines};
use super::request::{Request, TransferError};
use super::transfer::{Memory, Passage, Sides};
use super::type_to_type::{Asked, PlacedCopy};
use crate::committed::Committed;
use crate::copy::Elements;
use crate::error::AccumulateError;
use crate::piece::{Buffer, PIECE};
use crate::range::Range;
use dtc_compiler::operation::Reduction;

impl Committed {
    /// Starts a copy with an operation. The destination is the second side.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`], with a destination that is readable, until the request is done; and both sides lie where
    /// the caller said.
    pub(super) unsafe fn combine_between(
        &self,
        reduction: Reduction,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
        sides: Sides,
    ) -> Result<Request, TransferError> {
        let element = reduction.element();
        let bytes = self.length_of_copy(&source, to, &destination, bytes);
        to.check_reduction(reduction, destination.offset, bytes)?;
        if !self.may_consist_of(element) {
            return Err(AccumulateError::Elements(element).into());
        }
        if !source.offset.is_multiple_of(element.size()) {
            return Err(AccumulateError::Multiple { field: "offset", element, found: source.offset }.into());
        }
        if bytes == 0 {
            return Ok(Request::done(0));
        }
        let whole = Asked::new(source, destination, bytes);
        let (source, target) = (whole.source, whole.target);
        let run = self.entry().run_at(source.offset);
        if run.bytes >= bytes {
            // What lies one after the other is packed already.
            let asked = Accumulation {
                reduction,
                packed: source.memory.wrapping_offset(run.offset as isize),
                range: Range::elements(target.count).fragment(target.offset, bytes),
                memory: target.memory,
            };
            let sides = Sides { memory: sides.packed, packed: sides.memory };
            // SAFETY: the caller's promise.
            return unsafe { to.accumulate_between(&asked, sides, false) };
        }
        let parts = self.parts_of_copy(to, &whole, sides)?;
        // Before anything is moved.
        if parts.iter().any(|part| combines(part.written.kind, part.read.kind)) {
            check_computes(reduction)?;
        }
        for part in &parts {
            // SAFETY: the caller's promise, for a part of the call; what could be refused was checked.
            unsafe { self.combine_part(reduction, to, part)? };
        }
        Ok(Request::done(bytes))
    }

    /// Copies with an operation between memory of one kind on each side, and waits.
    ///
    /// # Safety
    ///
    /// As for [`Committed::combine_between`]. The bytes are whole elements, which whoever has the destination can combine.
    unsafe fn combine_part(
        &self,
        reduction: Reduction,
        to: &Committed,
        part: &PlacedCopy,
    ) -> Result<(), TransferError> {
        let PlacedCopy { asked, read, written } = part;
        let Asked { source, target, bytes } = *asked;
        let element = reduction.element();
        let (from, into) = Memory::movers(read.kind.into(), written.kind.into());
        let combine = |at: u64, bytes: u64, packed: *const u8| {
            // SAFETY: the caller's promise. What could be refused was checked.
            let _ = unsafe {
                to.accumulate_raw(
                    reduction,
                    packed,
                    Range::elements(target.count).fragment(target.offset + at, bytes),
                    target.memory,
                )
            };
        };
        let collect = |at: u64, bytes: u64, packed: *mut u8| {
            // SAFETY: the caller's promise; a buffer of ours is the other side.
            unsafe {
                self.pack_raw(source.memory, Range::elements(source.count).fragment(source.offset + at, bytes), packed)
            };
        };
        if from.is_none() && into.is_none() {
            let mut buffer = Buffer::new();
            let piece = PIECE / element.size() * element.size();
            for at in (0..bytes).step_by(piece as usize) {
                let bytes = piece.min(bytes - at);
                collect(at, bytes, buffer.start());
                combine(at, bytes, buffer.start());
            }
            return Ok(());
        }
        let gpu = |ordinal: Option<u32>| ordinal.map(|ordinal| self.engine().gpu(ordinal)).transpose();
        let (from, into) = (gpu(from)?, gpu(into)?);
        let (from, into) = (from.as_ref(), into.as_ref());
        let ordinal = |gpu: &super::Gpu| gpu.device().info().ordinal;
        let together = from
            .zip(into)
            .is_some_and(|(from, into)| ordinal(from) == ordinal(into) || from.shared.reaches(into.device()));
        Passage { from, to: into, bytes, granule: element.size() }.run(
            together,
            |at, bytes, slot| match from {
                // SAFETY: the caller's promise; the buffer is as long as a chunk, and free.
                Some(gpu) => unsafe {
                    self.on_device(gpu).launch(&gpu.shared.stream, &asked.pack(at, bytes, slot.address))
                },
                None => {
                    collect(at, bytes, slot.host);
                    Ok(())
                }
            },
            |at, bytes, slot| match into {
                Some(gpu) => {
                    // SAFETY: as above; the buffer holds whole elements.
                    unsafe {
                        let part = asked.unpack(at, bytes, slot.address);
                        to.on_device(gpu).accumulate(&gpu.shared.stream, &part, reduction)
                    }
                }
                None => {
                    combine(at, bytes, slot.host);
                    Ok(())
                }
            },
        )?;
        Ok(())
    }
}
