//! Blocking messages.

use crate::abi::{Abi, Count, MPI_SUCCESS};
use crate::calls::{Call, next};
use crate::memory::fail;
use crate::rent::Refused;
use crate::staged::{Buffer, Message, Staged, Way, is_left, stage_packed, stage_received};
use std::ffi::{c_int, c_void};

/// A status of the program, or one of this library where the program ignores it.
///
/// # Safety
///
/// `status` is ignored or leads to a status.
pub unsafe fn with_status<A: Abi, T>(status: *mut A::Status, call: impl FnOnce(*mut A::Status) -> T) -> T {
    let mut own = A::new_status();
    call(if std::ptr::eq(status, A::STATUS_IGNORE) { &mut own } else { status })
}

/// After a blocking call that received.
///
/// # Safety
///
/// `status` leads to the status of the call.
unsafe fn end_received<A: Abi>(staged: &Staged<A>, status: *const A::Status, result: c_int) -> c_int {
    // SAFETY: as the caller says.
    if result == MPI_SUCCESS { unsafe { staged.unpack(status) } } else { result }
}

/// The elements of an argument list.
pub fn buffer<A: Abi, C: Count>(memory: *const c_void, elements: C, datatype: A::Handle) -> Buffer<A> {
    Buffer { memory: memory.cast_mut(), elements: elements.get(), datatype }
}

/// What the MPI is given of elements: as staged, or as the program gave them.
pub fn given<A: Abi>(staged: Option<&Staged<A>>, buffer: Buffer<A>) -> Buffer<A> {
    staged.map_or(buffer, |staged| staged.given)
}

/// `MPI_Send` and its modes.
pub unsafe extern "C" fn send<A: Abi, C: Count, const CALL: usize>(
    memory: *const c_void,
    elements: C,
    datatype: A::Handle,
    rank: c_int,
    tag: c_int,
    communicator: A::Handle,
) -> c_int {
    type Function<A, C> =
        unsafe extern "C" fn(*const c_void, C, <A as Abi>::Handle, c_int, c_int, <A as Abi>::Handle) -> c_int;
    let buffer = buffer::<A, C>(memory, elements, datatype);
    let staged = match stage_packed(&Message { buffer, peer: rank, communicator }) {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    let Buffer { memory, elements, datatype } = given(staged.as_ref(), buffer);
    // SAFETY: the program's arguments, or staging memory that lives until the call has ended.
    unsafe { next::<Function<A, C>>(CALL)(memory, C::of(elements), datatype, rank, tag, communicator) }
}

/// `MPI_Recv`.
pub unsafe extern "C" fn recv<A: Abi, C: Count, const CALL: usize>(
    memory: *mut c_void,
    elements: C,
    datatype: A::Handle,
    rank: c_int,
    tag: c_int,
    communicator: A::Handle,
    status: *mut A::Status,
) -> c_int {
    type Function<A, C> = unsafe extern "C" fn(
        *mut c_void,
        C,
        <A as Abi>::Handle,
        c_int,
        c_int,
        <A as Abi>::Handle,
        *mut <A as Abi>::Status,
    ) -> c_int;
    let buffer = buffer::<A, C>(memory, elements, datatype);
    let message = Message { buffer, peer: rank, communicator };
    // SAFETY: the program's arguments, or staging memory that lives until the call has ended.
    let mpi = |given: Buffer<A>, status| unsafe {
        next::<Function<A, C>>(CALL)(
            given.memory,
            C::of(given.elements),
            given.datatype,
            rank,
            tag,
            communicator,
            status,
        )
    };
    // SAFETY: the program's status.
    unsafe { receive(&message, status, mpi) }
}

/// Where a matched message comes from: nowhere, or any process.
///
/// # Safety
///
/// `message` is null or leads to a message.
pub unsafe fn source_of<A: Abi>(message: *const A::Handle) -> c_int {
    let handles = A::handles();
    // SAFETY: null or readable (contract of this function).
    match unsafe { message.as_ref() } {
        Some(message) if *message != handles.message_null && *message != handles.message_no_proc => {
            A::CONSTANTS.any_source
        }
        _ => A::CONSTANTS.proc_null,
    }
}

/// `MPI_Mrecv`.
pub unsafe extern "C" fn mrecv<A: Abi, C: Count, const CALL: usize>(
    memory: *mut c_void,
    elements: C,
    datatype: A::Handle,
    message: *mut A::Handle,
    status: *mut A::Status,
) -> c_int {
    type Function<A, C> = unsafe extern "C" fn(
        *mut c_void,
        C,
        <A as Abi>::Handle,
        *mut <A as Abi>::Handle,
        *mut <A as Abi>::Status,
    ) -> c_int;
    let buffer = buffer::<A, C>(memory, elements, datatype);
    // SAFETY: the program's message.
    let peer = unsafe { source_of::<A>(message) };
    let received = Message { buffer, peer, communicator: A::handles().comm_self };
    // SAFETY: the program's arguments, or staging memory that lives until the call has ended.
    let mpi = |given: Buffer<A>, status| unsafe {
        next::<Function<A, C>>(CALL)(given.memory, C::of(given.elements), given.datatype, message, status)
    };
    // SAFETY: the program's status.
    unsafe { receive(&received, status, mpi) }
}

/// A blocking receive by a call of the MPI.
///
/// # Safety
///
/// `status` is ignored or leads to a status.
unsafe fn receive<A: Abi>(
    message: &Message<A>,
    status: *mut A::Status,
    mpi: impl FnOnce(Buffer<A>, *mut A::Status) -> c_int,
) -> c_int {
    let mut staged = match stage_received(message, Way::Received) {
        Err(Refused(code)) => return code,
        Ok(None) => return mpi(message.buffer, status),
        Ok(Some(staged)) => staged,
    };
    let end = |status| {
        let result = mpi(staged.given, status);
        staged.posted();
        // SAFETY: the status of the call.
        unsafe { end_received(&staged, status, result) }
    };
    // SAFETY: as the caller says.
    unsafe { with_status::<A, _>(status, end) }
}

/// The type of `MPI_Sendrecv`.
pub type Exchange<A, C> = unsafe extern "C" fn(
    *const c_void,
    C,
    <A as Abi>::Handle,
    c_int,
    c_int,
    *mut c_void,
    C,
    <A as Abi>::Handle,
    c_int,
    c_int,
    <A as Abi>::Handle,
    *mut <A as Abi>::Status,
) -> c_int;

/// Ranks and tags of an exchange.
#[derive(Clone, Copy)]
pub struct Route<A: Abi> {
    /// Where elements are sent, and with which tag.
    pub destination: (c_int, c_int),
    /// Where they come from, and with which tag.
    pub source: (c_int, c_int),
    /// In this communicator.
    pub communicator: A::Handle,
}

impl<A: Abi> Route<A> {
    /// What is sent.
    pub fn sent(&self, buffer: Buffer<A>) -> Message<A> {
        Message { buffer, peer: self.destination.0, communicator: self.communicator }
    }

    /// What is received.
    pub fn received(&self, buffer: Buffer<A>) -> Message<A> {
        Message { buffer, peer: self.source.0, communicator: self.communicator }
    }
}

/// `MPI_Sendrecv`: either half is staged by itself.
pub unsafe extern "C" fn sendrecv<A: Abi, C: Count, const CALL: usize>(
    sent: *const c_void,
    sent_elements: C,
    sent_datatype: A::Handle,
    destination: c_int,
    sent_tag: c_int,
    received: *mut c_void,
    received_elements: C,
    received_datatype: A::Handle,
    source: c_int,
    received_tag: c_int,
    communicator: A::Handle,
    status: *mut A::Status,
) -> c_int {
    let route = Route { destination: (destination, sent_tag), source: (source, received_tag), communicator };
    let from = buffer::<A, C>(sent, sent_elements, sent_datatype);
    let into = buffer::<A, C>(received, received_elements, received_datatype);
    let (sent_message, received_message) = (route.sent(from), route.received(into));
    if is_left(&sent_message) && is_left(&received_message) {
        // SAFETY: the program's arguments.
        return unsafe {
            next::<Exchange<A, C>>(CALL)(
                sent,
                sent_elements,
                sent_datatype,
                destination,
                sent_tag,
                received,
                received_elements,
                received_datatype,
                source,
                received_tag,
                communicator,
                status,
            )
        };
    }
    let staged =
        stage_packed(&sent_message).and_then(|out| Ok((out, stage_received(&received_message, Way::Received)?)));
    match staged {
        Err(Refused(code)) => code,
        // SAFETY: the program's arguments.
        Ok((out, input)) => unsafe {
            let mpi = next::<Exchange<A, C>>(CALL);
            exchange(&route, (out, from), (input, into), status, mpi)
        },
    }
}

/// Elements, as staged, and as the program gave them.
type Half<A> = (Option<Staged<A>>, Buffer<A>);

/// A blocking exchange of what is staged or not.
///
/// # Safety
///
/// `status` is ignored or leads to a status, the program's elements may be sent and received, and their numbers fit `C`.
unsafe fn exchange<A: Abi, C: Count>(
    route: &Route<A>,
    (out, from): Half<A>,
    (mut input, into): Half<A>,
    status: *mut A::Status,
    mpi: Exchange<A, C>,
) -> c_int {
    let (from, into) = (given(out.as_ref(), from), given(input.as_ref(), into));
    let Route { destination, source, communicator } = *route;
    // SAFETY: the program's arguments, or staging memory that lives until the call has ended.
    let call = |status| unsafe {
        mpi(
            from.memory,
            C::of(from.elements),
            from.datatype,
            destination.0,
            destination.1,
            into.memory,
            C::of(into.elements),
            into.datatype,
            source.0,
            source.1,
            communicator,
            status,
        )
    };
    let Some(staged) = &mut input else { return call(status) };
    let end = |status| {
        let result = call(status);
        drop(out);
        staged.posted();
        // SAFETY: the status of the call.
        unsafe { end_received(staged, status, result) }
    };
    // SAFETY: as the caller says.
    unsafe { with_status::<A, _>(status, end) }
}

/// `MPI_Sendrecv_replace`. That of the MPI would copy the bytes once more; what was packed may be received over.
pub unsafe extern "C" fn sendrecv_replace<A: Abi, C: Count, const CALL: usize>(
    memory: *mut c_void,
    elements: C,
    datatype: A::Handle,
    destination: c_int,
    sent_tag: c_int,
    source: c_int,
    received_tag: c_int,
    communicator: A::Handle,
    status: *mut A::Status,
) -> c_int {
    type Function<A, C> = unsafe extern "C" fn(
        *mut c_void,
        C,
        <A as Abi>::Handle,
        c_int,
        c_int,
        c_int,
        c_int,
        <A as Abi>::Handle,
        *mut <A as Abi>::Status,
    ) -> c_int;
    let route = Route { destination: (destination, sent_tag), source: (source, received_tag), communicator };
    let buffer = buffer::<A, C>(memory, elements, datatype);
    let staged = stage_packed(&route.sent(buffer)).and_then(|out| {
        // What is sent to no process lies where the MPI may receive over it.
        let may = out.is_some() || destination == A::CONSTANTS.proc_null;
        Ok((out, if may { stage_received(&route.received(buffer), Way::Received)? } else { None }))
    });
    let (out, input) = match staged {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    // SAFETY: the program's arguments.
    unsafe {
        if out.is_none() && input.is_none() {
            return next::<Function<A, C>>(CALL)(
                memory,
                elements,
                datatype,
                destination,
                sent_tag,
                source,
                received_tag,
                communicator,
                status,
            );
        }
        let numbers = [given(out.as_ref(), buffer).elements, given(input.as_ref(), buffer).elements];
        if numbers.iter().any(|number| *number > i64::from(i32::MAX)) {
            return fail::<A>(A::CONSTANTS.err_other);
        }
        let mpi = next::<Exchange<A, c_int>>(Call::MPI_Sendrecv as usize);
        exchange(&route, (out, buffer), (input, buffer), status, mpi)
    }
}
