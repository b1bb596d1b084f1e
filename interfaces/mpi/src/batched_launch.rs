//! Messages of one call whose elements lie on one GPU: they are packed, or unpacked, by one launch. A launch that is waited for takes about
//! 10 us, and 275 us where processes share a GPU.

use crate::abi::{Abi, MPI_SUCCESS};
use crate::moves::{self, Packing, batch_call};
use crate::operations::OperationRef;
use crate::report::{Counted, count};
use crate::staged::Staged;
use dtc::{DTC_MEMORY_DEVICE, DTC_MEMORY_PINNED, dtc_batch_call};
use std::ffi::c_int;

/// Most bytes of a message that is moved with others: a longer one has a path of its own.
const MAX_BYTES: i64 = 4 << 20;

/// What one launch moves.
struct BatchedLaunch<A: Abi> {
    packing: Packing,
    calls: Vec<dtc_batch_call>,
    operations: Vec<OperationRef<A>>,
    /// The GPU, and the kind of memory of packed bytes; none before the first.
    place: Option<(i32, i32)>,
}

/// The GPU that reaches both ends of a message, and the kind of memory of its packed bytes.
fn place_of<A: Abi>(staged: &Staged<A>) -> Option<(i32, i32)> {
    let transfer = staged.transfer();
    if transfer.memory != DTC_MEMORY_DEVICE || staged.bytes() > MAX_BYTES {
        return None;
    }
    let device = transfer.memory_device;
    let here = transfer.packed == DTC_MEMORY_DEVICE && transfer.packed_device == device;
    (transfer.packed == DTC_MEMORY_PINNED || here).then_some((device, transfer.packed))
}

impl<A: Abi> BatchedLaunch<A> {
    fn new(packing: Packing) -> BatchedLaunch<A> {
        BatchedLaunch { packing, calls: Vec::new(), operations: Vec::new(), place: None }
    }

    /// Whether a message may be moved with the others.
    fn takes(&self, staged: &Staged<A>) -> bool {
        let place = place_of(staged);
        place.is_some() && (self.place.is_none() || self.place == place)
    }

    fn add(&mut self, operation: OperationRef<A>, staged: &Staged<A>, bytes: i64) {
        if let Some(call) = batch_call(self.packing, staged.moved(), staged.packed(), bytes) {
            self.place = place_of(staged);
            self.calls.push(call);
            self.operations.push(operation);
        }
    }

    /// Moves them; false if there are fewer than two, or if that fails.
    fn run(&self) -> bool {
        let Some((device, packed)) = self.place.filter(|_| self.calls.len() > 1) else { return false };
        // SAFETY: the program's elements, and staging memory for their bytes.
        unsafe { moves::launch(device, self.packing, &self.calls, packed) }
    }
}

/// Unpacks what has been received when a call has ended several requests: those of `indices`, or all. Messages that are not unpacked here are
/// unpacked one by one.
///
/// # Safety
///
/// `statuses` leads to a status for each of them; their members `MPI_ERROR` are set where `result` says so.
pub unsafe fn unpack<A: Abi>(
    operations: &[Option<OperationRef<A>>],
    indices: Option<&[c_int]>,
    statuses: *mut A::Status,
    result: c_int,
) {
    let mut launch = BatchedLaunch::new(Packing::Unpack);
    let length = indices.map_or(operations.len(), <[c_int]>::len);
    for at in 0..length {
        let index = indices.map_or(at, |indices| indices[at] as usize);
        // SAFETY: as the caller says.
        let (status, error) = unsafe { (statuses.add(at), A::error_of(statuses.add(at))) };
        // SAFETY: set by the MPI.
        let ended = result == MPI_SUCCESS || (result == A::CONSTANTS.err_in_status && unsafe { *error } == MPI_SUCCESS);
        let Some(operation) = operations.get(index).copied().flatten().filter(|_| ended) else { continue };
        let Some(input) = operation.input.as_ref().filter(|input| launch.takes(input)) else { continue };
        if !operation.claim() {
            continue;
        }
        // SAFETY: the status of this request.
        let received = unsafe { input.received(status) };
        if received > 0 {
            launch.add(operation, input, received);
        } else {
            operation.end_claim(true);
        }
    }
    let done = launch.run();
    for (operation, call) in launch.operations.iter().zip(&launch.calls) {
        if done {
            count(Counted::Received, call.max);
        }
        operation.end_claim(done);
    }
}

/// Packs what persistent requests send; whether each is packed.
pub fn pack<A: Abi>(operations: &[Option<OperationRef<A>>]) -> Vec<bool> {
    let mut launch = BatchedLaunch::new(Packing::Pack);
    let mut joined = vec![false; operations.len()];
    for (operation, joined) in operations.iter().zip(&mut joined) {
        let Some(operation) = *operation else { continue };
        let Some(out) = operation.out.as_ref().filter(|out| launch.takes(out)) else { continue };
        launch.add(operation, out, out.bytes());
        *joined = true;
    }
    if !launch.run() {
        return vec![false; operations.len()];
    }
    for call in &launch.calls {
        count(Counted::Sent, call.max);
    }
    joined
}
