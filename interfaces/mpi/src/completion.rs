//! Calls that complete requests. What they may complete is taken before the MPI does so, and unpacked after it has. In arrays,
//! requests that are the MPI's stand beside those of operations.

use crate::abi::{Abi, Count, MPI_SUCCESS, MPI_UNDEFINED};
use crate::calls::next;
use crate::operations::{Looked, OperationRef};
use crate::point_to_point::with_status;
use crate::together;
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

/// `MPI_Wait`.
pub unsafe extern "C" fn wait<A: Abi, C: Count, const CALL: usize>(
    request: *mut A::Handle,
    status: *mut A::Status,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(*mut <A as Abi>::Handle, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |status| next::<Function<A>>(CALL)(request, status);
        let Some(operation) = OperationRef::<A>::take(request_of::<A>(request)) else { return mpi(status) };
        with_status::<A, _>(status, |status| {
            let result = mpi(status);
            let mut place = Some(operation);
            let result = settle(Some(&mut place), result == MPI_SUCCESS, *request, status, result);
            if let Some(operation) = place {
                operation.keep();
            }
            result
        })
    }
}

/// `MPI_Test`.
pub unsafe extern "C" fn test<A: Abi, C: Count, const CALL: usize>(
    request: *mut A::Handle,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(*mut <A as Abi>::Handle, *mut c_int, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |status| next::<Function<A>>(CALL)(request, flag, status);
        let Some(operation) = OperationRef::<A>::take(request_of::<A>(request)) else { return mpi(status) };
        with_status::<A, _>(status, |status| {
            let result = mpi(status);
            let mut place = Some(operation);
            let ended = result == MPI_SUCCESS && *flag != 0;
            let result = settle(Some(&mut place), ended, *request, status, result);
            if let Some(operation) = place {
                operation.keep();
            }
            result
        })
    }
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
    looked: &mut Looked<A>,
    requests: *const A::Handle,
    statuses: *mut A::Status,
    result: c_int,
) -> c_int {
    let length = looked.operations().len();
    let mut whole = result;
    // SAFETY: as the caller says.
    unsafe {
        together::unpack(looked.operations(), None, statuses, result);
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

/// `MPI_Waitall`.
pub unsafe extern "C" fn waitall<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *mut A::Handle,
    statuses: *mut A::Status,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(c_int, *mut <A as Abi>::Handle, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |statuses| next::<Function<A>>(CALL)(length, requests, statuses);
        let Some(mut looked) = Looked::<A>::new(length, requests, true) else { return mpi(statuses) };
        let statuses = looked.statuses(statuses);
        let result = mpi(statuses);
        settle_all(&mut looked, requests, statuses, result)
    }
}

/// `MPI_Testall`.
pub unsafe extern "C" fn testall<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *mut A::Handle,
    flag: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    type Function<A> =
        unsafe extern "C" fn(c_int, *mut <A as Abi>::Handle, *mut c_int, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |statuses| next::<Function<A>>(CALL)(length, requests, flag, statuses);
        let Some(mut looked) = Looked::<A>::new(length, requests, true) else { return mpi(statuses) };
        let statuses = looked.statuses(statuses);
        let result = mpi(statuses);
        let ended = result != MPI_SUCCESS || *flag != 0;
        if ended { settle_all(&mut looked, requests, statuses, result) } else { result }
    }
}

/// After a call that has ended one request, or failed.
///
/// # Safety
///
/// `requests` and `status` are those of the call.
unsafe fn settle_any<A: Abi>(
    looked: &mut Looked<A>,
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

/// `MPI_Waitany`.
pub unsafe extern "C" fn waitany<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *mut A::Handle,
    index: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    type Function<A> =
        unsafe extern "C" fn(c_int, *mut <A as Abi>::Handle, *mut c_int, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |status| next::<Function<A>>(CALL)(length, requests, index, status);
        let Some(mut looked) = Looked::<A>::new(length, requests, true) else { return mpi(status) };
        with_status::<A, _>(status, |status| {
            let result = mpi(status);
            settle_any(&mut looked, requests, *index, status, result)
        })
    }
}

/// `MPI_Testany`.
pub unsafe extern "C" fn testany<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *mut A::Handle,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    type Function<A> =
        unsafe extern "C" fn(c_int, *mut <A as Abi>::Handle, *mut c_int, *mut c_int, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |status| next::<Function<A>>(CALL)(length, requests, index, flag, status);
        let Some(mut looked) = Looked::<A>::new(length, requests, true) else { return mpi(status) };
        with_status::<A, _>(status, |status| {
            let result = mpi(status);
            let ended = result != MPI_SUCCESS || *flag != 0;
            if ended { settle_any(&mut looked, requests, *index, status, result) } else { result }
        })
    }
}

/// After a call that has ended those of `indices`, or failed.
///
/// # Safety
///
/// The arguments are those of the call.
unsafe fn settle_some<A: Abi>(
    looked: &mut Looked<A>,
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
        together::unpack(looked.operations(), Some(indices), statuses, result);
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

/// The type of `MPI_Waitsome`.
type Some_<A> =
    unsafe extern "C" fn(c_int, *mut <A as Abi>::Handle, *mut c_int, *mut c_int, *mut <A as Abi>::Status) -> c_int;

/// `MPI_Waitsome` and `MPI_Testsome`.
pub unsafe extern "C" fn some<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *mut A::Handle,
    ended: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |statuses| next::<Some_<A>>(CALL)(length, requests, ended, indices, statuses);
        let Some(mut looked) = Looked::<A>::new(length, requests, true) else { return mpi(statuses) };
        let statuses = looked.statuses(statuses);
        let result = mpi(statuses);
        settle_some(&mut looked, requests, (*ended, indices), statuses, result)
    }
}

/// `MPI_Request_get_status`. A program may read what it received once it has been told that a request has ended.
pub unsafe extern "C" fn request_get_status<A: Abi, C: Count, const CALL: usize>(
    request: A::Handle,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(<A as Abi>::Handle, *mut c_int, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |status| next::<Function<A>>(CALL)(request, flag, status);
        let Some(operation) = OperationRef::<A>::find(request) else { return mpi(status) };
        with_status::<A, _>(status, |status| {
            let result = mpi(status);
            if result == MPI_SUCCESS && *flag != 0 { operation.unpack(status) } else { result }
        })
    }
}

/// Own statuses, where the program ignores them.
fn own_statuses<A: Abi>(length: usize, of_program: *mut A::Status, own: &mut Vec<A::Status>) -> *mut A::Status {
    if !std::ptr::eq(of_program, A::STATUS_IGNORE) {
        return of_program;
    }
    own.resize(length, A::new_status());
    own.as_mut_ptr()
}

/// `MPI_Request_get_status_all`.
pub unsafe extern "C" fn request_get_status_all<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *const A::Handle,
    flag: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    type Function<A> =
        unsafe extern "C" fn(c_int, *const <A as Abi>::Handle, *mut c_int, *mut <A as Abi>::Status) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |statuses| next::<Function<A>>(CALL)(length, requests, flag, statuses);
        let Some(looked) = Looked::<A>::new(length, requests, false) else { return mpi(statuses) };
        let mut own = Vec::new();
        let statuses = own_statuses::<A>(looked.operations().len(), statuses, &mut own);
        let mut result = mpi(statuses);
        for (at, operation) in looked.operations().iter().enumerate() {
            if result == MPI_SUCCESS
                && *flag != 0
                && let Some(operation) = operation
            {
                result = operation.unpack(statuses.add(at));
            }
        }
        result
    }
}

/// `MPI_Request_get_status_any`.
pub unsafe extern "C" fn request_get_status_any<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *const A::Handle,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(
        c_int,
        *const <A as Abi>::Handle,
        *mut c_int,
        *mut c_int,
        *mut <A as Abi>::Status,
    ) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |status| next::<Function<A>>(CALL)(length, requests, index, flag, status);
        let Some(looked) = Looked::<A>::new(length, requests, false) else { return mpi(status) };
        with_status::<A, _>(status, |status| {
            let result = mpi(status);
            let found = result == MPI_SUCCESS && *flag != 0 && *index != MPI_UNDEFINED;
            match looked.operations().get(*index as usize) {
                Some(Some(operation)) if found => operation.unpack(status),
                _ => result,
            }
        })
    }
}

/// `MPI_Request_get_status_some`.
pub unsafe extern "C" fn request_get_status_some<A: Abi, C: Count, const CALL: usize>(
    length: c_int,
    requests: *const A::Handle,
    ended: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(
        c_int,
        *const <A as Abi>::Handle,
        *mut c_int,
        *mut c_int,
        *mut <A as Abi>::Status,
    ) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        let mpi = |statuses| next::<Function<A>>(CALL)(length, requests, ended, indices, statuses);
        let Some(looked) = Looked::<A>::new(length, requests, false) else { return mpi(statuses) };
        let mut own = Vec::new();
        let statuses = own_statuses::<A>(looked.operations().len(), statuses, &mut own);
        let mut result = mpi(statuses);
        let count = if *ended == MPI_UNDEFINED { 0 } else { (*ended).max(0) as usize };
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

/// `MPI_Request_free`.
pub unsafe extern "C" fn request_free<A: Abi, C: Count, const CALL: usize>(request: *mut A::Handle) -> c_int {
    type Function<A> = unsafe extern "C" fn(*mut <A as Abi>::Handle) -> c_int;
    // SAFETY: the program's request.
    unsafe {
        let mpi = || next::<Function<A>>(CALL)(request);
        match OperationRef::<A>::take(request_of::<A>(request)) {
            Some(operation) => operation.free(request, mpi),
            None => mpi(),
        }
    }
}
