//! `MPI_Pack` and `MPI_Unpack`, whose packed data are the bytes of the type map in MPICH, Open MPI and dtc. (MPI 4.1, 5.2)

use crate::abi::{Abi, MPI_SUCCESS};
use crate::memory::{Form, Moved, Place, fail, is_decoded, offset, place_of, span_of, takes_devices, true_lb_of};
use crate::moves::{Move, Packing};
use crate::recall::recall;
use crate::rent::{Purpose, Refused, plan_now, plan_of_use};
use crate::report::{Counted, count};
use crate::staged::Buffer;
use crate::start::{is_ready, passes_through};
use crate::words::Words;
use dtc::{DTC_MEMORY_HOST, dtc_transfer};
use dtc_mpi_table::Use;
use std::ffi::{c_int, c_void};

/// A call: elements, the packed data behind its position, and how many bytes these have room for or hold.
struct PackCall<A: Abi> {
    packing: Packing,
    buffer: Buffer<A>,
    packed: *mut c_void,
    room: i64,
    communicator: A::Handle,
}

/// Bytes that a call has moved, none if the MPI shall do it, or why it failed.
type Done = Result<Option<i64>, Refused>;

impl<A: Abi> PackCall<A> {
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
        if nothing || self.communicator == handles.comm_null || passes_through() {
            return Ok(None);
        }
        let place = place_of(memory);
        if place.uses_cuda()
            && is_ready::<A>()
            && let Some((memory, packed)) = self.places_on_device()
        {
            return self.on_device(memory, packed);
        }
        let of = if self.packing == Packing::Pack { Use::Pack } else { Use::Unpack };
        if self.packed.is_null() {
            return Ok(None);
        }
        let plan = plan_of_use::<A>(elements, datatype, Purpose::alone(of), self.communicator)?;
        let Some(plan) = plan.filter(|plan| plan.derived().is_some() && plan.is_at(memory)) else { return Ok(None) };
        let fits = |bytes: &i64| *bytes <= self.room && plan.served(of).hold(*bytes);
        let Some(bytes) = elements.checked_mul(plan.size).filter(fits) else { return Ok(None) };
        let moved = Moved { plan, memory, elements, bytes };
        // Of bytes whose memory is not named, libdtc asks the loader whether the process uses CUDA.
        let host = dtc_transfer { memory: DTC_MEMORY_HOST, packed: DTC_MEMORY_HOST, ..dtc_transfer::default() };
        Ok(self.run(&moved, (!place.uses_cuda()).then_some(&host)).then_some(bytes))
    }
}

/// Where packed data are among the arguments of a call: the data, their size, and the position in them.
struct Packed {
    data: usize,
    size: usize,
    position: usize,
}

/// The position of packed data: an `int`, or an `MPI_Count` in the large-count forms; none if it lies outside.
///
/// # Safety
///
/// The position is null or leads to one.
unsafe fn position_of(words: &Words<'_>, packed: &Packed) -> Option<i64> {
    let Packed { size, position, .. } = *packed;
    // SAFETY: null or readable (contract of this function).
    let at = unsafe {
        if words.is_wide() {
            words.address::<i64>(position).as_ref().copied()
        } else {
            words.address::<c_int>(position).as_ref().map(|at| i64::from(*at))
        }
    };
    at.filter(|at| (0..=words.count(size)).contains(at))
}

/// Does a call, or has the MPI do it.
///
/// # Safety
///
/// The arguments are those of the program.
unsafe fn run<A: Abi>(words: &mut Words<'_>, packing: Packing, elements: usize, packed: &Packed) -> c_int {
    // SAFETY: as the caller says.
    let Some(at) = (unsafe { position_of(words, packed) }) else { return unsafe { words.mpi() } };
    let data: *mut c_void = words.address(packed.data);
    let call = PackCall::<A> {
        packing,
        buffer: words.buffer::<A>(elements),
        packed: if data.is_null() { data } else { offset(data, at) },
        room: words.count(packed.size) - at,
        communicator: words.handle::<A>(6),
    };
    match call.done() {
        // SAFETY: as the caller says.
        Ok(None) => unsafe { words.mpi() },
        Err(Refused(code)) => code,
        Ok(Some(bytes)) => {
            // SAFETY: the position was read above.
            unsafe {
                if words.is_wide() {
                    *words.address::<i64>(packed.position) = at + bytes;
                } else {
                    *words.address::<c_int>(packed.position) = (at + bytes) as c_int;
                }
            }
            MPI_SUCCESS
        }
    }
}

/// `MPI_Pack`: memory, elements, datatype, packed data, their size, position, communicator.
pub unsafe fn pack<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { run::<A>(words, Packing::Pack, 0, &Packed { data: 3, size: 4, position: 5 }) }
}

/// `MPI_Unpack`: packed data, their size, position, memory, elements, datatype, communicator.
pub unsafe fn unpack<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { run::<A>(words, Packing::Unpack, 3, &Packed { data: 0, size: 1, position: 2 }) }
}
