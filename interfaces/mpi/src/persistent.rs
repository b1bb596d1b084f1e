//! Persistent messages: what is staged is packed when they are started, and unpacked when they end.

use crate::abi::{Abi, Count};
use crate::calls::next;
use crate::memory::fail;
use crate::nonblocking::{Begin, begin};
use crate::operations::{Looked, Operation, OperationRef};
use crate::point_to_point::buffer;
use crate::rent::{Refused, decode_first};
use crate::seen::sees_completions;
use crate::staged::{Buffer, Message, Staging, Way, stage_received, stage_sent};
use crate::start::is_aside;
use crate::together;
use std::ffi::{c_int, c_void};

/// What is staged of a persistent message, whose datatype is decoded first.
fn staged<A: Abi>(message: &Message<A>, stage: impl FnOnce() -> Staging<A>) -> Staging<A> {
    let Message { buffer, peer, communicator } = *message;
    if is_aside() {
        return Ok(None);
    }
    decode_first::<A>(buffer.elements, buffer.datatype, peer, communicator)?;
    if sees_completions::<A>() { stage() } else { Ok(None) }
}

/// `MPI_Send_init` and its modes.
pub unsafe extern "C" fn send_init<A: Abi, C: Count, const CALL: usize>(
    memory: *const c_void,
    elements: C,
    datatype: A::Handle,
    rank: c_int,
    tag: c_int,
    communicator: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    let buffer = buffer::<A, C>(memory, elements, datatype);
    let message = Message { buffer, peer: rank, communicator };
    let out = match staged(&message, || stage_sent(&message)) {
        Err(Refused(code)) => return code,
        Ok(out) => out,
    };
    let operation = out.map(|out| Operation::new(Some(out), None, true));
    // SAFETY: the program's arguments, or staging memory that the operation holds.
    unsafe {
        begin(operation, request, buffer, |given| {
            let Buffer { memory, elements, datatype } = given;
            next::<Begin<A, C>>(CALL)(memory, C::of(elements), datatype, rank, tag, communicator, request)
        })
    }
}

/// `MPI_Recv_init`.
pub unsafe extern "C" fn recv_init<A: Abi, C: Count, const CALL: usize>(
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
    let input = match staged(&message, || stage_received(&message, Way::Received)) {
        Err(Refused(code)) => return code,
        Ok(input) => input,
    };
    let operation = input.map(|input| Operation::new(None, Some(input), true));
    // SAFETY: the program's arguments, or staging memory that the operation holds.
    unsafe {
        begin(operation, request, buffer, |given| {
            let Buffer { memory, elements, datatype } = given;
            next::<Begin<A, C>>(CALL)(memory, C::of(elements), datatype, rank, tag, communicator, request)
        })
    }
}

/// `MPI_Start`.
pub unsafe extern "C" fn start<A: Abi, C: Count, const CALL: usize>(request: *mut A::Handle) -> c_int {
    type Function<A> = unsafe extern "C" fn(*mut <A as Abi>::Handle) -> c_int;
    // SAFETY: null or the program's request.
    unsafe {
        let mpi = || next::<Function<A>>(CALL)(request);
        let Some(operation) = request.as_ref().and_then(|request| OperationRef::<A>::find(*request)) else {
            return mpi();
        };
        if !operation.start(false) {
            return fail::<A>(A::CONSTANTS.err_other);
        }
        let result = mpi();
        operation.started(*request, result);
        result
    }
}

/// `MPI_Startall`.
pub unsafe extern "C" fn startall<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *mut A::Handle,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(c_int, *mut <A as Abi>::Handle) -> c_int;
    // SAFETY: the program's requests.
    unsafe {
        let mpi = || next::<Function<A>>(CALL)(length, requests);
        let Some(looked) = Looked::<A>::new(length, requests, false) else { return mpi() };
        let packed = together::pack(looked.operations());
        let mut started = looked.operations().iter().zip(packed);
        if !started.all(|(operation, packed)| operation.is_none_or(|operation| operation.start(packed))) {
            return fail::<A>(A::CONSTANTS.err_other);
        }
        let result = mpi();
        for (at, operation) in looked.operations().iter().enumerate() {
            if let Some(operation) = operation {
                operation.started(*requests.add(at), result);
            }
        }
        result
    }
}
