//! Calls that complete requests. What they may complete is taken before the MPI does so, and unpacked after it has. In arrays,
//! requests that are the MPI's stand beside those of operations.

use crate::abi::{Abi, MPI_SUCCESS, MPI_UNDEFINED};
use crate::batched_launch;
use crate::operations::{OperationRef, RequestLookup};
use crate::words::Words;
use std::ffi::c_int;

/// A request of an argument, or the null request.
///
/// # Safety
///
/// `request` is null or leads to a request.
unsafe fn request_of<A: Abi>(request: *const A::Handle) -> A::Handle {
    // SAFETY: as the caller says.
    unsafe { request.as_ref() }.copied().unwrap_or(A::handles().request_null)
}

/// After a call that returned `result`: ends the operation if its request has ended, which `ended` says, or its handle. The place is
/// empty then.
///
/// # Safety
///
/// `status` is that of the request.
unsafe fn settle<A: Abi>(
    place: Option<&mut Option<OperationRef<A>>>,
    ended: bool,
    request: A::Handle,
    status: *const A::Status,
    result: c_int,
) -> c_int {
    let has_ended = ended || request == A::handles().request_null;
    match place {
        Some(place) if has_ended => match place.take() {
            // SAFETY: as the caller says; it was taken.
            Some(operation) => unsafe { operation.end(status, result) },
            None => result,
        },
        _ => result,
    }
}

/// Has the MPI do a call that may complete one request, and ends its operation if it did.
///
/// # Safety
///
/// The arguments are those of the program: first the request; `ended` says whether the call completed it.
unsafe fn complete<A: Abi>(words: &mut Words<'_>, status: usize, ended: impl FnOnce(&Words<'_>) -> bool) -> c_int {
    let request: *const A::Handle = words.address(0);
    // SAFETY: as the caller says.
    unsafe {
        let Some(operation) = OperationRef::<A>::take(request_of::<A>(request)) else { return words.mpi() };
        let mut own = A::new_status();
        let status = words.status::<A>(status, &mut own);
        let result = words.mpi();
        let mut place = Some(operation);
        let ended = result == MPI_SUCCESS && ended(words);
        let result = settle(Some(&mut place), ended, *request, status, result);
        if let Some(operation) = place {
            operation.keep();
        }
        result
    }
}

/// Whether the `int` that an argument leads to is not 0.
///
/// # Safety
///
/// It leads to one.
unsafe fn is_set(words: &Words<'_>, flag: usize) -> bool {
    // SAFETY: as the caller says.
    unsafe { *words.address::<c_int>(flag) != 0 }
}

/// `MPI_Wait`: request, status.
pub unsafe fn wait<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { complete::<A>(words, 1, |_| true) }
}

/// `MPI_Test`: request, flag, status.
pub unsafe fn test<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { complete::<A>(words, 2, |words| is_set(words, 1)) }
}

/// Places a result in the status of one of several requests; the code of the call.
///
/// # Safety
///
/// `statuses` leads to `length` statuses.
unsafe fn in_status<A: Abi>(statuses: *mut A::Status, length: usize, at: usize, wrong: c_int, result: c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        // The statuses of a call that succeeded have no errors set.
        if result == MPI_SUCCESS {
            for other in 0..length {
                *A::error_of(statuses.add(other)) = MPI_SUCCESS;
            }
        }
        *A::error_of(statuses.add(at)) = wrong;
    }
    A::CONSTANTS.err_in_status
}

/// The result for one of several requests.
///
/// # Safety
///
/// `statuses` leads to a status at `at`.
unsafe fn each_result<A: Abi>(statuses: *mut A::Status, at: usize, result: c_int) -> c_int {
    // SAFETY: as the caller says.
    if result == A::CONSTANTS.err_in_status { unsafe { *A::error_of(statuses.add(at)) } } else { result }
}

/// After a call that may have ended all of its requests.
///
/// # Safety
///
/// `requests` and `statuses` lead to those of the call.
unsafe fn settle_all<A: Abi>(
    looked: &mut RequestLookup<A>,
    requests: *const A::Handle,
    statuses: *mut A::Status,
    result: c_int,
) -> c_int {
    let length = looked.operations().len();
    let mut whole = result;
    // SAFETY: as the caller says.
    unsafe {
        batched_launch::unpack(looked.operations(), None, statuses, result);
        for at in 0..length {
            let each = each_result::<A>(statuses, at, result);
            if each == A::CONSTANTS.err_pending {
                continue;
            }
            let (request, status) = (*requests.add(at), statuses.add(at));
            let found = settle(looked.place(at), each == MPI_SUCCESS, request, status, each);
            if found != each {
                whole = in_status::<A>(statuses, length, at, found, whole);
            }
        }
    }
    whole
}

/// `MPI_Waitall`: length, requests, statuses.
pub unsafe fn waitall<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { complete_all::<A>(words, 2, |_| true) }
}

/// `MPI_Testall`: length, requests, flag, statuses.
pub unsafe fn testall<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { complete_all::<A>(words, 3, |words| is_set(words, 2)) }
}

/// Has the MPI do a call that may complete all of its requests, and ends their operations if it did.
///
/// # Safety
///
/// The arguments are those of the program: first length and requests; `ended` says whether the call completed them.
unsafe fn complete_all<A: Abi>(
    words: &mut Words<'_>,
    statuses: usize,
    ended: impl FnOnce(&Words<'_>) -> bool,
) -> c_int {
    let requests: *const A::Handle = words.address(1);
    // SAFETY: as the caller says.
    unsafe {
        let Some(mut looked) = RequestLookup::<A>::new(words.int(0), requests, true) else { return words.mpi() };
        let given = looked.statuses(words.address(statuses));
        words.put(statuses, given as usize);
        let result = words.mpi();
        let ended = result != MPI_SUCCESS || ended(words);
        if ended { settle_all(&mut looked, requests, given, result) } else { result }
    }
}

/// After a call that has ended one request, or failed.
///
/// # Safety
///
/// `requests` and `status` are those of the call.
unsafe fn settle_any<A: Abi>(
    looked: &mut RequestLookup<A>,
    requests: *const A::Handle,
    index: c_int,
    status: *const A::Status,
    result: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        if result == MPI_SUCCESS {
            let Some(at) = usize::try_from(index).ok().filter(|_| index != MPI_UNDEFINED) else { return result };
            return settle(looked.place(at), true, *requests.add(at), status, result);
        }
        for at in 0..looked.operations().len() {
            settle(looked.place(at), false, *requests.add(at), status, result);
        }
    }
    result
}

/// Has the MPI do a call that may complete one of several requests, and ends its operation if it did.
///
/// # Safety
///
/// The arguments are those of the program: length, requests and index; `ended` says whether the call completed one.
unsafe fn complete_any<A: Abi>(words: &mut Words<'_>, status: usize, ended: impl FnOnce(&Words<'_>) -> bool) -> c_int {
    let requests: *const A::Handle = words.address(1);
    // SAFETY: as the caller says.
    unsafe {
        let Some(mut looked) = RequestLookup::<A>::new(words.int(0), requests, true) else { return words.mpi() };
        let mut own = A::new_status();
        let status = words.status::<A>(status, &mut own);
        let result = words.mpi();
        let ended = result != MPI_SUCCESS || ended(words);
        if ended { settle_any(&mut looked, requests, *words.address(2), status, result) } else { result }
    }
}

/// `MPI_Waitany`: length, requests, index, status.
pub unsafe fn waitany<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { complete_any::<A>(words, 3, |_| true) }
}

/// `MPI_Testany`: length, requests, index, flag, status.
pub unsafe fn testany<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe { complete_any::<A>(words, 4, |words| is_set(words, 3)) }
}

/// After a call that has ended those of `indices`, or failed.
///
/// # Safety
///
/// The arguments are those of the call.
unsafe fn settle_some<A: Abi>(
    looked: &mut RequestLookup<A>,
    requests: *const A::Handle,
    (ended, indices): (c_int, *const c_int),
    statuses: *mut A::Status,
    result: c_int,
) -> c_int {
    let failed = result != MPI_SUCCESS && result != A::CONSTANTS.err_in_status;
    let Some(length) = usize::try_from(ended).ok().filter(|_| !failed && ended != MPI_UNDEFINED) else { return result };
    let mut whole = result;
    // SAFETY: as the caller says.
    unsafe {
        let indices = if length == 0 { &[] } else { std::slice::from_raw_parts(indices, length) };
        batched_launch::unpack(looked.operations(), Some(indices), statuses, result);
        for (at, index) in indices.iter().enumerate() {
            let each = each_result::<A>(statuses, at, result);
            let index = *index as usize;
            let (request, status) = (*requests.add(index), statuses.add(at));
            let found = settle(looked.place(index), each == MPI_SUCCESS, request, status, each);
            if found != each {
                whole = in_status::<A>(statuses, length, at, found, whole);
            }
        }
    }
    whole
}

/// `MPI_Waitsome` and `MPI_Testsome`: length, requests, number of those that have ended, their indices, statuses.
pub unsafe fn some<A: Abi>(words: &mut Words<'_>) -> c_int {
    let requests: *const A::Handle = words.address(1);
    // SAFETY: the program's arguments.
    unsafe {
        let Some(mut looked) = RequestLookup::<A>::new(words.int(0), requests, true) else { return words.mpi() };
        let statuses = looked.statuses(words.address(4));
        words.put(4, statuses as usize);
        let result = words.mpi();
        settle_some(&mut looked, requests, (*words.address(2), words.address(3)), statuses, result)
    }
}

/// `MPI_Request_get_status`: request, flag, status. A program may read what it received once it has been told that a request has ended.
pub unsafe fn request_get_status<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let Some(operation) = OperationRef::<A>::find(words.handle::<A>(0)) else { return words.mpi() };
        let mut own = A::new_status();
        let status = words.status::<A>(2, &mut own);
        let result = words.mpi();
        if result == MPI_SUCCESS && is_set(words, 1) { operation.unpack(status) } else { result }
    }
}

/// Statuses of the program, or `own` if the program ignores them, which stand in their place then.
fn own_statuses<A: Abi>(words: &mut Words<'_>, at: usize, length: usize, own: &mut Vec<A::Status>) -> *mut A::Status {
    let of_program: *mut A::Status = words.address(at);
    if !std::ptr::eq(of_program, A::STATUS_IGNORE) {
        return of_program;
    }
    own.resize(length, A::new_status());
    words.put(at, own.as_mut_ptr() as usize);
    own.as_mut_ptr()
}

/// `MPI_Request_get_status_all`: length, requests, flag, statuses.
pub unsafe fn request_get_status_all<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let Some(looked) = RequestLookup::<A>::new(words.int(0), words.address(1), false) else { return words.mpi() };
        let mut own = Vec::new();
        let statuses = own_statuses::<A>(words, 3, looked.operations().len(), &mut own);
        let mut result = words.mpi();
        for (at, operation) in looked.operations().iter().enumerate() {
            if result == MPI_SUCCESS
                && is_set(words, 2)
                && let Some(operation) = operation
            {
                result = operation.unpack(statuses.add(at));
            }
        }
        result
    }
}

/// `MPI_Request_get_status_any`: length, requests, index, flag, status.
pub unsafe fn request_get_status_any<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let Some(looked) = RequestLookup::<A>::new(words.int(0), words.address(1), false) else { return words.mpi() };
        let mut own = A::new_status();
        let status = words.status::<A>(4, &mut own);
        let result = words.mpi();
        let index: c_int = *words.address(2);
        let found = result == MPI_SUCCESS && is_set(words, 3) && index != MPI_UNDEFINED;
        match looked.operations().get(index as usize) {
            Some(Some(operation)) if found => operation.unpack(status),
            _ => result,
        }
    }
}

/// `MPI_Request_get_status_some`: length, requests, number of those that have ended, their indices, statuses.
pub unsafe fn request_get_status_some<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let Some(looked) = RequestLookup::<A>::new(words.int(0), words.address(1), false) else { return words.mpi() };
        let mut own = Vec::new();
        let statuses = own_statuses::<A>(words, 4, looked.operations().len(), &mut own);
        let mut result = words.mpi();
        let (ended, indices): (c_int, *const c_int) = (*words.address(2), words.address(3));
        let count = if ended == MPI_UNDEFINED { 0 } else { ended.max(0) as usize };
        for at in 0..count {
            let operation = looked.operations().get(*indices.add(at) as usize).copied().flatten();
            if result == MPI_SUCCESS
                && let Some(operation) = operation
            {
                result = operation.unpack(statuses.add(at));
            }
        }
        result
    }
}

/// `MPI_Request_free`: request.
pub unsafe fn request_free<A: Abi>(words: &mut Words<'_>) -> c_int {
    let request: *mut A::Handle = words.address(0);
    // SAFETY: the program's request.
    unsafe {
        match OperationRef::<A>::take(request_of::<A>(request)) {
            Some(operation) => operation.free(request, || words.mpi()),
            None => words.mpi(),
        }
    }
}
