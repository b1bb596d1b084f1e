//! Messages whose bytes go through staging memory: packed by dtc and sent as `MPI_PACKED`, or received as bytes and unpacked by dtc.
//!
//! `MPI_PACKED` matches any type signature, at either side (MPI 4.1, 5.2), and an MPI sends the bytes of a datatype in the order of its
//! type map, so the message is the same as without this library: same communicator, tag, order and bytes. The other process need not
//! be interposed. A status counts bytes, so `MPI_Get_count` of the program's datatype is right. (MPI 4.1, 3.2.5)
//!
//! Under MPICH 4, a message is packed for sending only if its basic elements have one size
//! ([`find_defects`](crate::memory::find_defects)).
//!
//! Elements on a GPU are packed into pinned memory of the host, or, for an MPI that is CUDA-aware and more than a few bytes, into memory of that GPU
//! ([`memory`](crate::memory)).

use crate::abi::{Abi, Handle, MPI_SUCCESS};
use crate::kept;
use crate::limits::LARGEST_MESSAGE;
use crate::memory::{
    Direction, Form, Moved, Place, fail, form_of, has_gpu, is_without_cuda_at_once, offset, place_of, sends_packed,
    span_of, take_for_message, takes_devices, transfer_of, true_lb_of,
};
use crate::moves::{Move, Packing};
use crate::plan::DecodedType;
use crate::pmpi::pmpi;
use crate::recall::{Knowledge, if_known, recall};
use crate::receive_type::{ReceiveType, gap};
use crate::rent::{self, Purpose, Refused, plan_now, plan_of_use};
use crate::report::{Counted, count};
use crate::staging::{self, BlockRef};
use crate::start::{is_ready, passes_through};
use dtc::{DTC_MEMORY_DEVICE, dtc_transfer};
use dtc_mpi_table::Use;
use std::ffi::{c_int, c_void};

/// Elements of a call.
#[derive(Clone, Copy)]
pub struct Buffer<A: Abi> {
    /// The address that the datatype is applied to.
    pub memory: *mut c_void,
    /// How many there are.
    pub elements: i64,
    /// Their datatype.
    pub datatype: A::Handle,
}

/// Elements, and the process that they go to or come from.
#[derive(Clone, Copy)]
pub struct Message<A: Abi> {
    /// The elements.
    pub buffer: Buffer<A>,
    /// The rank.
    pub peer: c_int,
    /// In this communicator.
    pub communicator: A::Handle,
    /// [`Use::Message`] if it is the only one under way, as far as the call tells, else [`Use::Exchange`].
    pub of: Use,
    /// How many uses of the datatype it counts as: [`USES_OF_PERSISTENT`](crate::rent::USES_OF_PERSISTENT) where a request is persistent, else 1.
    pub uses: i64,
}

/// What is done with elements of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// They are sent.
    Sent,
    /// They are received.
    Received,
    /// They are received, and the status does not report how many bytes have come.
    ReceivedUncounted,
}

/// Elements whose bytes go through staging memory, or why they do not.
pub type Staging<A> = Result<Option<Staged<A>>, Refused>;

/// Elements whose bytes go through staging memory.
pub struct Staged<A: Abi> {
    moved: Moved,
    transfer: dtc_transfer,
    block: BlockRef,
    /// What the MPI sends or receives.
    pub given: Buffer<A>,
    /// Whether staging memory is received over what the elements are, and is unpacked whole.
    filled: bool,
    /// Whether the status of the request does not report how many bytes have come.
    pub uncounted: bool,
    /// Whether the last byte is received one place further on.
    gap: bool,
    /// Until the MPI has the receive.
    receive_type: Option<ReceiveType<A>>,
    /// Whether the MPI must not be given the elements.
    bound: bool,
}

/// After a failure that came before the MPI was given the message: it moves elements that it may be given.
fn refuse<A: Abi, T>(bound: bool, code: c_int) -> Result<Option<T>, Refused> {
    if bound { Err(Refused(fail::<A>(code))) } else { Ok(None) }
}

/// The same as [`stage`], for elements on a GPU, or anywhere.
#[cold]
fn stage_on_device<A: Abi>(message: &Message<A>, kind: MessageKind, place: Place) -> Staging<A> {
    let Message { buffer, peer, communicator, .. } = *message;
    let bound = !takes_devices();
    let plan = plan_now::<A>(buffer.datatype, communicator)?;
    let known = plan.as_deref();
    let Some(span) = span_of::<A>(buffer.elements, buffer.datatype) else {
        return refuse::<A, _>(bound, A::CONSTANTS.err_other);
    };
    let direction = if kind == MessageKind::Sent { Direction::Send } else { Direction::Receive };
    let form = form_of(known, &span, direction);
    if form == Form::Passed || span.bytes == 0 {
        return Ok(None);
    }
    let Some(moved) = Moved::of(form, plan.as_ref(), &span, buffer.memory, buffer.elements) else { return Ok(None) };
    let Some(block) = take_for_message::<A>(place.device, moved.bytes, peer, communicator) else {
        return refuse::<A, _>(bound, A::CONSTANTS.err_no_mem);
    };
    let given = if form == Form::Packed {
        packed_buffer(&block, moved.bytes)
    } else {
        Buffer { memory: offset(block.memory(), span.low.wrapping_neg()), ..buffer }
    };
    Ok(Some(Staged {
        transfer: transfer_of(buffer.memory, place, &block),
        moved,
        block,
        given,
        filled: kind != MessageKind::Sent && (form == Form::Raw || kind == MessageKind::ReceivedUncounted),
        uncounted: kind == MessageKind::ReceivedUncounted,
        gap: false,
        receive_type: None,
        bound,
    }))
}

/// Packed bytes in staging memory, for the MPI.
fn packed_buffer<A: Abi>(block: &BlockRef, bytes: i64) -> Buffer<A> {
    Buffer { memory: block.memory(), elements: bytes, datatype: A::handles().packed }
}

/// Elements in a process that uses CUDA: staged, or left to the MPI, or of the host.
enum BesideCuda<A: Abi> {
    OfHost,
    Decided(Option<Staged<A>>),
}

#[cold]
fn stage_beside_cuda<A: Abi>(message: &Message<A>, kind: MessageKind) -> Result<BesideCuda<A>, Refused> {
    let Buffer { memory, datatype, .. } = message.buffer;
    if !is_ready::<A>() {
        return Ok(BesideCuda::Decided(None));
    }
    let Some((is, known)) = recall::<A, _>(datatype, |known| (known.is, known.plan.clone())) else {
        return Ok(BesideCuda::Decided(None));
    };
    let derived = known.as_deref().and_then(DecodedType::derived).is_some();
    if takes_devices() && is != Knowledge::NotDecoded && !derived {
        return Ok(BesideCuda::Decided(None));
    }
    let place = place_of(offset(memory, true_lb_of::<A>(datatype, known.as_deref())));
    if place.is_device() {
        return stage_on_device(message, kind, place).map(BesideCuda::Decided);
    }
    // Elements at absolute addresses may lie on GPUs, while others of them lie on the host: dtc looks at all of them.
    if memory.is_null() && place.uses_cuda() {
        let plan = plan_now::<A>(datatype, message.communicator)?;
        if plan.as_deref().and_then(DecodedType::derived).is_some() {
            return stage_on_device(message, kind, Place::MIXED).map(BesideCuda::Decided);
        }
    }
    Ok(BesideCuda::OfHost)
}

/// Whether a message has no elements, or names nothing that the MPI accepts.
#[inline(always)]
pub fn is_nothing<A: Abi>(message: &Message<A>) -> bool {
    let Message { buffer, peer, communicator, .. } = *message;
    let handles = A::handles();
    let null = communicator == handles.comm_null || buffer.datatype == handles.datatype_null;
    buffer.elements <= 0 || peer == A::CONSTANTS.proc_null || null
}

/// Whether the MPI moves the elements of a message, as far as a few nanoseconds tell: there are none, they have few bytes, or a datatype that is not packed.
#[inline]
pub fn is_left<A: Abi>(message: &Message<A>) -> bool {
    let (buffer, of) = (message.buffer, message.of);
    if is_nothing(message) || passes_through() {
        return true;
    }
    if message.uses > 1 || place_of(buffer.memory).uses_cuda() {
        return false;
    }
    if_known::<A, _>(buffer.datatype, |known| rent::is_left(known, buffer.elements, of))
        .unwrap_or_else(|| rent::is_left_by_size::<A>(buffer.datatype, buffer.elements, of))
}

/// Whether the MPI moves the elements of a message for certain, without a question to the MPI and without what threads remember.
#[inline(always)]
pub fn is_left_at_once<A: Abi>(message: &Message<A>) -> bool {
    let (buffer, of) = (message.buffer, message.of);
    is_nothing(message)
        || passes_through()
        || (is_without_cuda_at_once() && kept::is_left(buffer.datatype.word(), buffer.elements, of))
}

/// Whether what [`is_left`] says of one half of an exchange holds for the other: both have as many elements of one datatype, none of them on a GPU.
#[inline(always)]
pub fn are_alike<A: Abi>(one: &Message<A>, other: &Message<A>) -> bool {
    let (first, second) = (one.buffer, other.buffer);
    !is_nothing(one) && first.datatype == second.datatype && first.elements == second.elements && !has_gpu()
}

/// Takes staging memory for a message; none if the MPI shall move it.
fn stage<A: Abi>(message: &Message<A>, kind: MessageKind) -> Staging<A> {
    let Message { buffer, communicator, of, uses, .. } = *message;
    if is_nothing(message) || passes_through() {
        return Ok(None);
    }
    let place = place_of(buffer.memory);
    if place.uses_cuda()
        && let BesideCuda::Decided(staged) = stage_beside_cuda(message, kind)?
    {
        return Ok(staged);
    }
    if kind == MessageKind::ReceivedUncounted {
        return Ok(None);
    }
    let purpose = Purpose { uses, ..Purpose::alone(of) };
    let plan = plan_of_use::<A>(buffer.elements, buffer.datatype, purpose, communicator)?;
    let Some(plan) = plan.filter(|plan| plan.derived().is_some() && plan.is_at(buffer.memory)) else { return Ok(None) };
    if kind == MessageKind::Sent && !sends_packed(&plan) {
        return Ok(None);
    }
    let fits = |bytes: &i64| *bytes <= LARGEST_MESSAGE && plan.served(of).hold(*bytes);
    let Some(bytes) = buffer.elements.checked_mul(plan.size).filter(fits) else { return Ok(None) };
    let Some(block) = staging::take(staging::HOST, 0, bytes) else { return Ok(None) };
    Ok(Some(Staged {
        transfer: transfer_of(buffer.memory, place, &block),
        given: packed_buffer(&block, bytes),
        moved: Moved { plan, memory: buffer.memory, elements: buffer.elements, bytes },
        block,
        filled: false,
        uncounted: false,
        gap: false,
        receive_type: None,
        bound: false,
    }))
}

/// Takes staging memory for elements that are sent; none if the MPI shall send them.
///
/// # Errors
///
/// The MPI does not accept the datatype, or must not be given the elements.
pub fn stage_sent<A: Abi>(message: &Message<A>) -> Staging<A> {
    stage(message, MessageKind::Sent)
}

/// The same, and packs them.
///
/// # Errors
///
/// See [`stage_sent`].
pub fn stage_packed<A: Abi>(message: &Message<A>) -> Staging<A> {
    if is_left(message) {
        return Ok(None);
    }
    match stage_sent(message)? {
        Some(staged) if staged.pack_sent() => Ok(Some(staged)),
        Some(staged) => refuse::<A, _>(staged.bound, A::CONSTANTS.err_other),
        None => Ok(None),
    }
}

/// Takes staging memory for elements that are received; none if the MPI shall receive them. The caller gives the datatype back by
/// [`Staged::posted`] when the MPI has it.
///
/// # Errors
///
/// See [`stage_sent`].
pub fn stage_received<A: Abi>(message: &Message<A>, kind: MessageKind) -> Staging<A> {
    if is_left(message) {
        return Ok(None);
    }
    let Some(mut staged) = stage(message, kind)? else { return Ok(None) };
    if !staged.receive_with_gap() {
        return refuse::<A, _>(staged.bound, A::CONSTANTS.err_no_mem);
    }
    if staged.filled && !staged.pack() {
        return refuse::<A, _>(staged.bound, A::CONSTANTS.err_other);
    }
    Ok(Some(staged))
}

impl<A: Abi> Staged<A> {
    /// Has the MPI receive staged bytes with a gap, if it needs one; false if there is no memory.
    fn receive_with_gap(&mut self) -> bool {
        let packed = self.given.datatype == A::handles().packed;
        let bytes = self.moved.bytes;
        if gap::<A>() == 0 || !packed || bytes <= 1 || self.block.kind() == DTC_MEMORY_DEVICE {
            return true;
        }
        let Some(receive_type) = ReceiveType::take(bytes) else { return false };
        self.given = Buffer { elements: 1, datatype: receive_type.handle(), ..self.given };
        self.receive_type = Some(receive_type);
        self.gap = true;
        true
    }

    /// Once the MPI has the receive: the datatype may be used for another one.
    pub fn posted(&mut self) {
        self.receive_type = None;
    }

    /// Packed bytes of all elements.
    pub fn bytes(&self) -> i64 {
        self.moved.bytes
    }

    /// What dtc moves.
    pub fn moved(&self) -> &Moved {
        &self.moved
    }

    /// Where both ends lie.
    pub fn transfer(&self) -> &dtc_transfer {
        &self.transfer
    }

    /// Where the packed bytes are.
    pub fn packed(&self) -> *mut c_void {
        self.block.memory()
    }

    /// Packs the elements, or unpacks what there is of their bytes; false if that fails.
    fn run(&self, packing: Packing, bytes: i64) -> bool {
        let Some(r#type) = &self.moved.plan.r#type else { return false };
        let Moved { memory, elements, .. } = self.moved;
        let packed = self.packed();
        let transfer = Some(&self.transfer);
        // SAFETY: the program's elements, as the call says, and staging memory for their bytes.
        unsafe { Move { packing, r#type, memory, elements, packed, bytes, transfer }.run() }
    }

    /// The last byte, and the place where it is received.
    fn last_bytes(&self) -> (*mut u8, *mut u8) {
        let last: *mut u8 = offset(self.packed(), self.moved.bytes - 1).cast();
        (last, last.wrapping_add(gap::<A>()))
    }

    /// Packs the elements; false if that fails.
    pub fn pack(&self) -> bool {
        if !self.run(Packing::Pack, self.moved.bytes) {
            return false;
        }
        if self.gap {
            let (last, received) = self.last_bytes();
            // SAFETY: staging memory of the host has room for the gap.
            unsafe { *received = *last };
        }
        true
    }

    /// Packs elements that are sent; false if that fails.
    pub fn pack_sent(&self) -> bool {
        let packed = self.pack();
        if packed {
            count(Counted::Sent, self.moved.bytes);
        }
        packed
    }

    /// Fills staging memory that is received over, before the MPI starts a persistent receive; false if that fails.
    pub fn fill(&self) -> bool {
        !self.filled || self.pack()
    }

    /// How many bytes were received, which may be fewer than were expected; they lie together from then on.
    ///
    /// # Safety
    ///
    /// `status` leads to the status of the receive.
    pub unsafe fn received(&self, status: *const A::Status) -> i64 {
        let mut received = self.moved.bytes;
        if !self.filled {
            let (mut counted, mut cancelled) = (0, 0);
            let pmpi = pmpi::<A>();
            // SAFETY: a status (contract of this function), and both are writable.
            unsafe {
                (pmpi.test_cancelled)(status, &mut cancelled);
                if cancelled == 0 {
                    (pmpi.get_count)(status, A::handles().packed, &mut counted);
                }
            }
            received = counted.into();
        }
        if self.gap && received == self.moved.bytes {
            let (last, received) = self.last_bytes();
            // SAFETY: staging memory of the host has room for the gap.
            unsafe { *last = *received };
        }
        received
    }

    /// Unpacks what was received.
    ///
    /// # Safety
    ///
    /// See [`Staged::received`].
    pub unsafe fn unpack(&self, status: *const A::Status) -> c_int {
        // SAFETY: as the caller says.
        let received = unsafe { self.received(status) };
        if received <= 0 {
            return MPI_SUCCESS;
        }
        count(Counted::Received, received);
        if self.run(Packing::Unpack, received) {
            return MPI_SUCCESS;
        }
        // A GPU failed. The message is lost: the error handler decides.
        fail::<A>(A::CONSTANTS.err_other)
    }
}
