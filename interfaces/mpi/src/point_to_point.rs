//! Blocking messages.

use crate::abi::{Abi, MPI_SUCCESS};
use crate::calls::Call;
use crate::memory::fail;
use crate::rent::Refused;
use crate::staged::{Message, MessageKind, Staged, Staging, stage_packed, stage_received};
use crate::words::Words;
use dtc_mpi_table::Use;
use std::ffi::c_int;

/// `MPI_Send` and its modes: memory, elements, datatype, rank, tag, communicator.
pub unsafe fn send<A: Abi>(words: &mut Words<'_>) -> c_int {
    let staged = match stage_packed(&words.message::<A>(0, 5, Use::Message)) {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    words.give(0, staged.as_ref());
    // SAFETY: the program's arguments, or staging memory that lives until the call has ended.
    unsafe { words.mpi() }
}

/// `MPI_Recv`: memory, elements, datatype, rank, tag, communicator, status.
pub unsafe fn recv<A: Abi>(words: &mut Words<'_>) -> c_int {
    let message = words.message::<A>(0, 5, Use::Message);
    // SAFETY: the program's arguments.
    unsafe { receive(words, &message, 6) }
}

/// What a matched message is to be received into, of a call whose arguments begin with memory, elements, datatype and the message: it comes
/// from nowhere, or from any process.
///
/// # Safety
///
/// The message is null or leads to one.
pub unsafe fn matched<A: Abi>(words: &Words<'_>, of: Use) -> Message<A> {
    let (handles, constants) = (A::handles(), A::CONSTANTS);
    let message: *const A::Handle = words.address(3);
    // SAFETY: null or readable (contract of this function).
    let peer = match unsafe { message.as_ref() } {
        Some(message) if *message != handles.message_null && *message != handles.message_no_proc => {
            constants.any_source
        }
        _ => constants.proc_null,
    };
    Message { buffer: words.buffer::<A>(0), peer, communicator: handles.comm_self, of, uses: 1 }
}

/// `MPI_Mrecv`: memory, elements, datatype, message, status.
pub unsafe fn mrecv<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let message = matched::<A>(words, Use::Message);
        receive(words, &message, 4)
    }
}

/// A blocking receive.
///
/// # Safety
///
/// The arguments are those of the program, with a status at `status`.
unsafe fn receive<A: Abi>(words: &mut Words<'_>, message: &Message<A>, status: usize) -> c_int {
    let staged = match stage_received(message, MessageKind::Received) {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    // SAFETY: as the caller says.
    unsafe { end_received(words, 0, staged, status) }
}

/// Has the MPI do a call that receives elements at `first`, and unpacks what is staged of them.
///
/// # Safety
///
/// The arguments are those of the program, with a status at `status`.
unsafe fn end_received<A: Abi>(words: &mut Words<'_>, first: usize, staged: Option<Staged<A>>, status: usize) -> c_int {
    let Some(mut staged) = staged else {
        // SAFETY: as the caller says.
        return unsafe { words.mpi() };
    };
    words.give(first, Some(&staged));
    let mut own = A::new_status();
    let status = words.status::<A>(status, &mut own);
    // SAFETY: as the caller says, or staging memory that lives until the call has ended.
    unsafe {
        let result = words.mpi();
        staged.posted();
        if result == MPI_SUCCESS { staged.unpack(status) } else { result }
    }
}

/// Both halves of an exchange: memory, elements, datatype, rank and tag of either, and the communicator.
pub fn halves<A: Abi>(words: &Words<'_>) -> [Message<A>; 2] {
    [words.message::<A>(0, 10, Use::Exchange), words.message::<A>(5, 10, Use::Exchange)]
}

/// The arguments of the exchange that a call in place stands for (memory, elements, datatype, rank and tag of what is sent, rank and tag
/// of what is received, communicator, status or request): both halves have the same elements.
pub fn replaced(words: &Words<'_>) -> [usize; 12] {
    let word = |at| words.word(at);
    let elements = words.count(1) as usize;
    [word(0), elements, word(2), word(3), word(4), word(0), elements, word(2), word(5), word(6), word(7), word(8)]
}

/// `MPI_Sendrecv`: both halves, communicator, status. Either half is staged by itself.
pub unsafe fn sendrecv<A: Abi>(words: &mut Words<'_>) -> c_int {
    let [sent, received] = halves::<A>(words);
    let staged = stage_packed(&sent).and_then(|out| Ok((out, stage_received(&received, MessageKind::Received)?)));
    match staged {
        Err(Refused(code)) => code,
        // SAFETY: the program's arguments.
        Ok((out, input)) => unsafe { exchange(words, out, input) },
    }
}

/// A blocking exchange of what is staged or not.
///
/// # Safety
///
/// The arguments are those of the program.
unsafe fn exchange<A: Abi>(words: &mut Words<'_>, out: Option<Staged<A>>, input: Option<Staged<A>>) -> c_int {
    words.give(0, out.as_ref());
    // SAFETY: as the caller says; what is sent is staged until then.
    unsafe { end_received(words, 5, input, 11) }
}

/// Whether an `int` holds what the MPI is given of elements.
pub fn are_few<A: Abi>(staged: Option<&Staged<A>>, elements: i64) -> bool {
    i32::try_from(staged.map_or(elements, |staged| staged.given.elements)).is_ok()
}

/// What is staged of either half of an exchange.
type Halves<A> = (Option<Staged<A>>, Option<Staged<A>>);

/// Stages both halves of an exchange in place.
fn stage_both<A: Abi>([sent, received]: &[Message<A>; 2]) -> Result<Halves<A>, Refused> {
    let out = stage_packed(sent)?;
    // What is sent to no process lies where the MPI may receive over it.
    let may = out.is_some() || sent.peer == A::CONSTANTS.proc_null;
    let input: Staging<A> = if may { stage_received(received, MessageKind::Received) } else { Ok(None) };
    Ok((out, input?))
}

/// `MPI_Sendrecv_replace`. That of the MPI would copy the bytes once more; what was packed may be received over.
pub unsafe fn sendrecv_replace<A: Abi>(words: &mut Words<'_>) -> c_int {
    let mut both = replaced(words);
    let mut exchanged = Words::new(Call::MPI_Sendrecv, &mut both);
    let elements = words.count(1);
    let mut halves = halves::<A>(&exchanged);
    halves.iter_mut().for_each(|half| half.buffer.elements = elements);
    let (out, input) = match stage_both(&halves) {
        Err(Refused(code)) => return code,
        Ok(staged) => staged,
    };
    if out.is_none() && input.is_none() {
        // SAFETY: the program's arguments.
        return unsafe { words.mpi() };
    }
    if !are_few(out.as_ref(), elements) || !are_few(input.as_ref(), elements) {
        return fail::<A>(A::CONSTANTS.err_other);
    }
    // SAFETY: the program's arguments, twice.
    unsafe { exchange(&mut exchanged, out, input) }
}
