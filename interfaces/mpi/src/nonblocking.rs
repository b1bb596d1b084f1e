//! Nonblocking messages: what is staged is packed when they begin, and unpacked when they end.

use crate::abi::Abi;
use crate::calls::Call;
use crate::memory::fail;
use crate::operations::Operation;
use crate::point_to_point::{are_few, halves, matched, replaced};
use crate::rent::Refused;
use crate::seen::sees_completions;
use crate::staged::{Message, MessageKind, Staging, stage_packed, stage_received};
use crate::words::Words;
use dtc_mpi_table::Use;
use std::ffi::c_int;

/// Begins a message of elements that are staged or not, as an operation if they are.
///
/// # Safety
///
/// The arguments are those of the program, which begin with the elements, and the last is where the request goes.
pub(crate) unsafe fn begin<A: Abi>(
    words: &mut Words<'_>,
    staged: Staging<A>,
    operation: impl FnOnce(crate::staged::Staged<A>) -> Box<Operation<A>>,
    request: usize,
) -> c_int {
    let staged = match staged {
        Err(Refused(code)) => return code,
        // SAFETY: as the caller says.
        Ok(None) => return unsafe { words.mpi() },
        Ok(Some(staged)) => staged,
    };
    words.give(0, Some(&staged));
    let operation = operation(staged);
    // SAFETY: as the caller says, or staging memory that the operation holds.
    unsafe {
        let result = words.mpi();
        operation.begin(words.address(request), result)
    }
}

/// What is staged, if its end will be seen.
fn if_seen<A: Abi>(stage: impl FnOnce() -> Staging<A>) -> Staging<A> {
    if sees_completions::<A>() { stage() } else { Ok(None) }
}

/// `MPI_Isend` and its modes: memory, elements, datatype, rank, tag, communicator, request.
pub unsafe fn isend<A: Abi>(words: &mut Words<'_>) -> c_int {
    let message = words.message::<A>(0, 5, Use::Exchange);
    let staged = if_seen(|| stage_packed(&message));
    // SAFETY: the program's arguments.
    unsafe { begin(words, staged, |out| Operation::new(Some(out), None, false), 6) }
}

/// `MPI_Irecv`: memory, elements, datatype, rank, tag, communicator, request.
pub unsafe fn irecv<A: Abi>(words: &mut Words<'_>) -> c_int {
    let message = words.message::<A>(0, 5, Use::Exchange);
    let staged = if_seen(|| stage_received(&message, MessageKind::Received));
    // SAFETY: the program's arguments.
    unsafe { begin(words, staged, |input| Operation::new(None, Some(input), false), 6) }
}

/// `MPI_Imrecv`: memory, elements, datatype, message, request.
pub unsafe fn imrecv<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let message = matched::<A>(words, Use::Exchange);
        let staged = if_seen(|| stage_received(&message, MessageKind::Received));
        begin(words, staged, |input| Operation::new(None, Some(input), false), 4)
    }
}

/// The operation of an exchange whose halves are staged or not; none if neither is. MPICH 4.0 and 5.0 do not tell how many bytes have come: the
/// MPI receives, but for elements on a GPU that it must not be given, or that are noncontiguous: `MPI_Isendrecv` of Open MPI 5.0.7 ends by a signal
/// where such a message has come before it.
fn operation_of<A: Abi>([sent, received]: &[Message<A>; 2]) -> Result<Option<Box<Operation<A>>>, Refused> {
    if !sees_completions::<A>() {
        return Ok(None);
    }
    let out = stage_packed(sent)?;
    let input = stage_received(received, MessageKind::ReceivedUncounted)?;
    let staged = out.is_some() || input.is_some();
    Ok(staged.then(|| Operation::new(out, input, false)))
}

/// Begins an exchange as an operation.
///
/// # Safety
///
/// The arguments are those of the program.
unsafe fn begin_exchange<A: Abi>(words: &mut Words<'_>, operation: Box<Operation<A>>) -> c_int {
    words.give(0, operation.out.as_ref());
    words.give(5, operation.input.as_ref());
    // SAFETY: as the caller says, or staging memory that the operation holds.
    unsafe {
        let result = words.mpi();
        operation.begin(words.address(11), result)
    }
}

/// `MPI_Isendrecv`: both halves, communicator, request.
pub unsafe fn isendrecv<A: Abi>(words: &mut Words<'_>) -> c_int {
    match operation_of(&halves::<A>(words)) {
        Err(Refused(code)) => code,
        // SAFETY: the program's arguments.
        Ok(None) => unsafe { words.mpi() },
        // SAFETY: the program's arguments.
        Ok(Some(operation)) => unsafe { begin_exchange(words, operation) },
    }
}

/// `MPI_Isendrecv_replace`: what was packed may be received over.
pub unsafe fn isendrecv_replace<A: Abi>(words: &mut Words<'_>) -> c_int {
    let mut both = replaced(words);
    let mut exchanged = Words::new(Call::MPI_Isendrecv, &mut both);
    let elements = words.count(1);
    let mut halves = halves::<A>(&exchanged);
    halves.iter_mut().for_each(|half| half.buffer.elements = elements);
    let operation = match operation_of(&halves) {
        Err(Refused(code)) => return code,
        // SAFETY: the program's arguments.
        Ok(None) => return unsafe { words.mpi() },
        Ok(Some(operation)) => operation,
    };
    if !are_few(operation.out.as_ref(), elements) || !are_few(operation.input.as_ref(), elements) {
        return fail::<A>(A::CONSTANTS.err_other);
    }
    // SAFETY: the program's arguments, twice.
    unsafe { begin_exchange(&mut exchanged, operation) }
}
