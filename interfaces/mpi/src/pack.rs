//! `MPI_Pack` and `MPI_Unpack`, whose packed data are the bytes of the type map in MPICH, Open MPI and dtc. (MPI 4.1, 5.2)

use crate::abi::{Abi, Count, MPI_SUCCESS};
use crate::calls::next;
use crate::limits::limits;
use crate::memory::{Form, Moved, Place, fail, is_decoded, offset, place_of, span_of, takes_devices, true_lb_of};
use crate::moves::{Move, Packing};
use crate::plan::Known;
use crate::recall::recall;
use crate::rent::{Refused, plan_now, plan_of_use};
use crate::report::{Counted, count};
use crate::staged::Buffer;
use crate::start::{is_aside, is_ready};
use dtc::dtc_transfer;
use std::ffi::{c_int, c_void};

/// A call: elements, the packed data behind its position, and how many bytes these have room for or hold.
struct Call<A: Abi> {
    packing: Packing,
    buffer: Buffer<A>,
    packed: *mut c_void,
    room: i64,
    communicator: A::Handle,
}

/// Bytes that a call has moved, none if the MPI shall do it, or why it failed.
type Done = Result<Option<i64>, Refused>;

impl<A: Abi> Call<A> {
    /// Moves elements; false if that fails.
    fn run(&self, moved: &Moved, transfer: Option<&dtc_transfer>) -> bool {
        let Some(r#type) = &moved.plan.r#type else { return false };
        let Moved { memory, elements, bytes, .. } = *moved;
        let (packing, packed) = (self.packing, self.packed);
        // SAFETY: the program's elements, as the call says, and room for their bytes.
        if bytes > 0 && !unsafe { Move { packing, r#type, memory, elements, packed, bytes, transfer }.run() } {
            return false;
        }
        count(if packing == Packing::Pack { Counted::Packed } else { Counted::Unpacked }, bytes);
        true
    }

    /// Does a call with an end on a GPU. Contiguous elements are copied, for a CUDA-aware MPI too: Open MPI 5.0 asks about the elements alone, and
    /// ends by a signal where the packed data lie in other memory.
    fn on_device(&self, memory: Place, packed: Place) -> Done {
        let Buffer { memory: address, elements, datatype } = self.buffer;
        let plan = plan_now::<A>(datatype, self.communicator)?;
        let span = span_of::<A>(elements, datatype).filter(|span| is_decoded(plan.as_deref(), span));
        let Some(span) = span.filter(|span| span.bytes <= self.room) else {
            let constants = A::CONSTANTS;
            let code = if span.is_some() { constants.err_truncate } else { constants.err_other };
            return if takes_devices() { Ok(None) } else { Err(Refused(fail::<A>(code))) };
        };
        let mut transfer = dtc_transfer::default();
        if !address.is_null() {
            (transfer.memory, transfer.memory_device) = (memory.kind, memory.device);
        }
        (transfer.packed, transfer.packed_device) = (packed.kind, packed.device);
        let moved = Moved::of(Form::Packed, plan.as_ref(), &span, address, elements);
        match moved {
            Some(moved) if self.run(&moved, Some(&transfer)) => Ok(Some(span.bytes)),
            _ => Err(Refused(fail::<A>(A::CONSTANTS.err_other))),
        }
    }

    /// Where both ends lie, in a process that uses CUDA, if one lies on a GPU.
    fn places_on_device(&self) -> Option<(Place, Place)> {
        let Buffer { memory, datatype, .. } = self.buffer;
        let known = recall::<A, _>(datatype, |known| known.plan.clone())?;
        let memory = place_of(offset(memory, true_lb_of::<A>(datatype, known.as_deref())));
        let packed = place_of(self.packed);
        (memory.is_device() || packed.is_device()).then_some((memory, packed))
    }

    /// Does the call, if dtc is to.
    fn done(&self) -> Done {
        let Buffer { memory, elements, datatype } = self.buffer;
        let handles = A::handles();
        let nothing = elements <= 0 || datatype == handles.datatype_null;
        if nothing || self.communicator == handles.comm_null || is_aside() {
            return Ok(None);
        }
        if place_of(memory).uses_cuda()
            && is_ready::<A>()
            && let Some((memory, packed)) = self.places_on_device()
        {
            return self.on_device(memory, packed);
        }
        if memory.is_null() || self.packed.is_null() {
            return Ok(None);
        }
        let limits = limits();
        let plan = plan_of_use::<A>(elements, datatype, limits.packed_bytes, self.communicator)?;
        let short = |known: &Known| known.derived().is_some() && known.piece <= limits.packed_piece;
        let Some(plan) = plan.filter(|plan| short(plan)) else { return Ok(None) };
        let fits = |bytes: &i64| (limits.packed_bytes..=self.room).contains(bytes);
        let Some(bytes) = elements.checked_mul(plan.size).filter(fits) else { return Ok(None) };
        let moved = Moved { plan, memory, elements, bytes };
        Ok(self.run(&moved, None).then_some(bytes))
    }

    /// Does the call, or has the MPI do it.
    ///
    /// # Safety
    ///
    /// `position` is null or leads to the position of the packed data.
    unsafe fn end<C: Count>(&self, position: *mut C, mpi: impl FnOnce() -> c_int) -> c_int {
        match if self.room < 0 { Ok(None) } else { self.done() } {
            Ok(None) => mpi(),
            Err(Refused(code)) => code,
            Ok(Some(bytes)) => {
                // SAFETY: not null, or there would be no room (contract of this function).
                unsafe { *position = C::of((*position).get() + bytes) };
                MPI_SUCCESS
            }
        }
    }
}

/// Packed data behind their position, and how many bytes follow; none if the position lies outside.
///
/// # Safety
///
/// `position` is null or leads to the position of the packed data.
unsafe fn behind<C: Count>(packed: *mut c_void, size: C, position: *mut C) -> (*mut c_void, i64) {
    // SAFETY: null or readable (contract of this function).
    let at = unsafe { position.as_ref() }.map_or(-1, |position| position.get());
    if at < 0 || at > size.get() {
        return (packed, -1);
    }
    let behind = if packed.is_null() { packed } else { offset(packed, at) };
    (behind, size.get() - at)
}

/// `MPI_Pack`.
pub unsafe extern "C" fn pack<A: Abi, C: Count, const CALL: usize>(
    memory: *const c_void,
    elements: C,
    datatype: A::Handle,
    packed: *mut c_void,
    size: C,
    position: *mut C,
    communicator: A::Handle,
) -> c_int {
    type Function<A, C> =
        unsafe extern "C" fn(*const c_void, C, <A as Abi>::Handle, *mut c_void, C, *mut C, <A as Abi>::Handle) -> c_int;
    let buffer = Buffer { memory: memory.cast_mut(), elements: elements.get(), datatype };
    // SAFETY: the program's arguments.
    unsafe {
        let (behind, room) = behind(packed, size, position);
        let call = Call::<A> { packing: Packing::Pack, buffer, packed: behind, room, communicator };
        call.end(position, || {
            next::<Function<A, C>>(CALL)(memory, elements, datatype, packed, size, position, communicator)
        })
    }
}

/// `MPI_Unpack`.
pub unsafe extern "C" fn unpack<A: Abi, C: Count, const CALL: usize>(
    packed: *const c_void,
    size: C,
    position: *mut C,
    memory: *mut c_void,
    elements: C,
    datatype: A::Handle,
    communicator: A::Handle,
) -> c_int {
    type Function<A, C> =
        unsafe extern "C" fn(*const c_void, C, *mut C, *mut c_void, C, <A as Abi>::Handle, <A as Abi>::Handle) -> c_int;
    let buffer = Buffer { memory, elements: elements.get(), datatype };
    // SAFETY: the program's arguments.
    unsafe {
        let (behind, room) = behind(packed.cast_mut(), size, position);
        let call = Call::<A> { packing: Packing::Unpack, buffer, packed: behind, room, communicator };
        call.end(position, || {
            next::<Function<A, C>>(CALL)(packed, size, position, memory, elements, datatype, communicator)
        })
    }
}
