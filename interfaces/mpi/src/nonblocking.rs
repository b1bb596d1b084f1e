//! Nonblocking messages: what is staged is packed when they begin, and unpacked when they end.

use crate::abi::{Abi, Count};
use crate::calls::{Call, next};
use crate::memory::fail;
use crate::operations::Operation;
use crate::point_to_point::{Route, buffer, given, source_of};
use crate::rent::Refused;
use crate::seen::sees_completions;
use crate::staged::{Buffer, Message, Staging, Way, stage_packed, stage_received};
use std::ffi::{c_int, c_void};

/// The type of `MPI_Isend` and `MPI_Irecv`.
pub(crate) type Begin<A, C> = unsafe extern "C" fn(
    *mut c_void,
    C,
    <A as Abi>::Handle,
    c_int,
    c_int,
    <A as Abi>::Handle,
    *mut <A as Abi>::Handle,
) -> c_int;

/// Begins a message of what is staged or not, as an operation if it is.
///
/// # Safety
///
/// `request` is where the MPI's call, which `mpi` makes, puts the request.
pub(crate) unsafe fn begin<A: Abi>(
    operation: Option<Box<Operation<A>>>,
    request: *const A::Handle,
    buffer: Buffer<A>,
    mpi: impl FnOnce(Buffer<A>) -> c_int,
) -> c_int {
    let Some(operation) = operation else { return mpi(buffer) };
    let staged = operation.out.as_ref().or(operation.input.as_ref());
    let result = mpi(given(staged, buffer));
    // SAFETY: as the caller says.
    unsafe { operation.begin(request, result) }
}

/// What is staged, if its end will be seen.
fn if_seen<A: Abi>(stage: impl FnOnce() -> Staging<A>) -> Staging<A> {
    if sees_completions::<A>() { stage() } else { Ok(None) }
}

/// `MPI_Isend` and its modes.
pub unsafe extern "C" fn isend<A: Abi, C: Count, const CALL: usize>(
    memory: *const c_void,
    elements: C,
    datatype: A::Handle,
    rank: c_int,
    tag: c_int,
    communicator: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    let buffer = buffer::<A, C>(memory, elements, datatype);
    let staged = match if_seen(|| stage_packed(&Message { buffer, peer: rank, communicator })) {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    let operation = staged.map(|out| Operation::new(Some(out), None, false));
    // SAFETY: the program's arguments, or staging memory that the operation holds.
    unsafe {
        begin(operation, request, buffer, |given| {
            let Buffer { memory, elements, datatype } = given;
            next::<Begin<A, C>>(CALL)(memory, C::of(elements), datatype, rank, tag, communicator, request)
        })
    }
}

/// `MPI_Irecv`.
pub unsafe extern "C" fn irecv<A: Abi, C: Count, const CALL: usize>(
    memory: *mut c_void,
    elements: C,
    datatype: A::Handle,
    rank: c_int,
    tag: c_int,
    communicator: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    let buffer = buffer::<A, C>(memory, elements, datatype);
    let message = Message { buffer, peer: rank, communicator };
    let staged = match if_seen(|| stage_received(&message, Way::Received)) {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    let operation = staged.map(|input| Operation::new(None, Some(input), false));
    // SAFETY: the program's arguments, or staging memory that the operation holds.
    unsafe {
        begin(operation, request, buffer, |given| {
            let Buffer { memory, elements, datatype } = given;
            next::<Begin<A, C>>(CALL)(memory, C::of(elements), datatype, rank, tag, communicator, request)
        })
    }
}

/// `MPI_Imrecv`.
pub unsafe extern "C" fn imrecv<A: Abi, C: Count, const CALL: usize>(
    memory: *mut c_void,
    elements: C,
    datatype: A::Handle,
    message: *mut A::Handle,
    request: *mut A::Handle,
) -> c_int {
    type Function<A, C> = unsafe extern "C" fn(
        *mut c_void,
        C,
        <A as Abi>::Handle,
        *mut <A as Abi>::Handle,
        *mut <A as Abi>::Handle,
    ) -> c_int;
    let buffer = buffer::<A, C>(memory, elements, datatype);
    // SAFETY: the program's message.
    let peer = unsafe { source_of::<A>(message) };
    let received = Message { buffer, peer, communicator: A::handles().comm_self };
    let staged = match if_seen(|| stage_received(&received, Way::Received)) {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    let operation = staged.map(|input| Operation::new(None, Some(input), false));
    // SAFETY: the program's arguments, or staging memory that the operation holds.
    unsafe {
        begin(operation, request, buffer, |given| {
            let Buffer { memory, elements, datatype } = given;
            next::<Function<A, C>>(CALL)(memory, C::of(elements), datatype, message, request)
        })
    }
}

/// The type of `MPI_Isendrecv`.
pub(crate) type BeginExchange<A, C> = unsafe extern "C" fn(
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
    *mut <A as Abi>::Handle,
) -> c_int;

/// The operation of an exchange whose halves are staged or not; none if neither is. MPICH 4.0 and 5.0 do not tell how many bytes have come: the
/// MPI receives, but for elements on a GPU that it must not be given, or that are noncontiguous: `MPI_Isendrecv` of Open MPI 5.0.7 ends by a signal
/// where such a message has come before it.
fn operation_of<A: Abi>(
    route: &Route<A>,
    from: Buffer<A>,
    into: Buffer<A>,
) -> Result<Option<Box<Operation<A>>>, Refused> {
    if !sees_completions::<A>() {
        return Ok(None);
    }
    let out = stage_packed(&route.sent(from))?;
    let input = stage_received(&route.received(into), Way::ReceivedUncounted)?;
    let staged = out.is_some() || input.is_some();
    Ok(staged.then(|| Operation::new(out, input, false)))
}

/// Begins an exchange, by the MPI's call.
///
/// # Safety
///
/// The arguments are those of the program, and their numbers fit `C`.
unsafe fn begin_exchange<A: Abi, C: Count>(
    operation: Option<Box<Operation<A>>>,
    route: &Route<A>,
    (from, into): (Buffer<A>, Buffer<A>),
    request: *mut A::Handle,
    mpi: BeginExchange<A, C>,
) -> c_int {
    let staged = operation.as_deref();
    let from = given(staged.and_then(|operation| operation.out.as_ref()), from);
    let into = given(staged.and_then(|operation| operation.input.as_ref()), into);
    let Route { destination, source, communicator } = *route;
    // SAFETY: as the caller says, or staging memory that the operation holds.
    unsafe {
        let result = mpi(
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
            request,
        );
        operation.map_or(result, |operation| operation.begin(request, result))
    }
}

/// `MPI_Isendrecv`.
pub unsafe extern "C" fn isendrecv<A: Abi, C: Count, const CALL: usize>(
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
    request: *mut A::Handle,
) -> c_int {
    let route = Route { destination: (destination, sent_tag), source: (source, received_tag), communicator };
    let from = buffer::<A, C>(sent, sent_elements, sent_datatype);
    let into = buffer::<A, C>(received, received_elements, received_datatype);
    match operation_of(&route, from, into) {
        Err(Refused(code)) => code,
        // SAFETY: the program's arguments.
        Ok(operation) => unsafe {
            begin_exchange(operation, &route, (from, into), request, next::<BeginExchange<A, C>>(CALL))
        },
    }
}

/// `MPI_Isendrecv_replace`: what was packed may be received over.
pub unsafe extern "C" fn isendrecv_replace<A: Abi, C: Count, const CALL: usize>(
    memory: *mut c_void,
    elements: C,
    datatype: A::Handle,
    destination: c_int,
    sent_tag: c_int,
    source: c_int,
    received_tag: c_int,
    communicator: A::Handle,
    request: *mut A::Handle,
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
        *mut <A as Abi>::Handle,
    ) -> c_int;
    let route = Route { destination: (destination, sent_tag), source: (source, received_tag), communicator };
    let buffer = buffer::<A, C>(memory, elements, datatype);
    let operation = match operation_of(&route, buffer, buffer) {
        Err(Refused(code)) => return code,
        Ok(operation) => operation,
    };
    // SAFETY: the program's arguments.
    unsafe {
        let Some(operation) = operation else {
            return next::<Function<A, C>>(CALL)(
                memory,
                elements,
                datatype,
                destination,
                sent_tag,
                source,
                received_tag,
                communicator,
                request,
            );
        };
        let numbers = [operation.out.as_ref(), operation.input.as_ref()].map(|staged| given(staged, buffer).elements);
        if numbers.iter().any(|number| *number > i64::from(i32::MAX)) {
            return fail::<A>(A::CONSTANTS.err_other);
        }
        let mpi = next::<BeginExchange<A, c_int>>(Call::MPI_Isendrecv as usize);
        begin_exchange(Some(operation), &route, (buffer, buffer), request, mpi)
    }
}
