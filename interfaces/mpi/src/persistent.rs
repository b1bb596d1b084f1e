//! Persistent messages: what is staged is packed when they are started, and unpacked when they end.

use crate::abi::Abi;
use crate::batched_launch;
use crate::memory::fail;
use crate::nonblocking::begin;
use crate::operations::{Operation, OperationRef, RequestLookup};
use crate::rent::USES_OF_PERSISTENT;
use crate::seen::sees_completions;
use crate::staged::{Message, MessageKind, Staging, stage_received, stage_sent};
use crate::start::passes_through;
use crate::words::Words;
use dtc_mpi_table::Use;
use std::ffi::c_int;

/// What is staged of the message of a persistent request.
fn staged<A: Abi>(words: &Words<'_>, stage: impl FnOnce(&Message<A>) -> Staging<A>) -> Staging<A> {
    if passes_through() || !sees_completions::<A>() {
        return Ok(None);
    }
    stage(&Message { uses: USES_OF_PERSISTENT, ..words.message::<A>(0, 5, Use::Exchange) })
}

/// `MPI_Send_init` and its modes: memory, elements, datatype, rank, tag, communicator, request.
pub unsafe fn send_init<A: Abi>(words: &mut Words<'_>) -> c_int {
    let out = staged(words, stage_sent::<A>);
    // SAFETY: the program's arguments.
    unsafe { begin(words, out, |out| Operation::new(Some(out), None, true), 6) }
}

/// `MPI_Recv_init`: memory, elements, datatype, rank, tag, communicator, request.
pub unsafe fn recv_init<A: Abi>(words: &mut Words<'_>) -> c_int {
    let input = staged(words, |message| stage_received::<A>(message, MessageKind::Received));
    // SAFETY: the program's arguments.
    unsafe { begin(words, input, |input| Operation::new(None, Some(input), true), 6) }
}

/// `MPI_Start`: request.
pub unsafe fn start<A: Abi>(words: &mut Words<'_>) -> c_int {
    let request: *const A::Handle = words.address(0);
    // SAFETY: null or the program's request.
    unsafe {
        let Some(operation) = request.as_ref().and_then(|request| OperationRef::<A>::find(*request)) else {
            return words.mpi();
        };
        if !operation.start(false) {
            return fail::<A>(A::CONSTANTS.err_other);
        }
        let result = words.mpi();
        operation.started(*request, result);
        result
    }
}

/// `MPI_Startall`: length, requests.
pub unsafe fn startall<A: Abi>(words: &mut Words<'_>) -> c_int {
    let requests: *const A::Handle = words.address(1);
    // SAFETY: the program's requests.
    unsafe {
        let Some(looked) = RequestLookup::<A>::new(words.int(0), requests, false) else { return words.mpi() };
        let packed = batched_launch::pack(looked.operations());
        let mut started = looked.operations().iter().zip(packed);
        if !started.all(|(operation, packed)| operation.is_none_or(|operation| operation.start(packed))) {
            return fail::<A>(A::CONSTANTS.err_other);
        }
        let result = words.mpi();
        for (at, operation) in looked.operations().iter().enumerate() {
            if let Some(operation) = operation {
                operation.started(*requests.add(at), result);
            }
        }
        result
    }
}
