//! The subroutines of the module mpi_f08 that complete or start requests, free what has attributes, or end. In MPICH, those that begin messages
//! call the functions of C, which are interposed, and these call PMPI functions, which are not.
//!
//! A handle of MPICH is a structure of one integer, a status that of C, and the last argument is null if the program leaves it out. (MPI 4.1, 19.1)
//! The subroutines that begin an MPI are here so that this library finds the MPI of a program that calls no function of C.

use crate::abi::{Abi, MPI_SUCCESS, MPI_UNDEFINED, Mpich};
use crate::calls::{Call, Function, next};
use crate::completion::{request_free, request_get_status, some, test, testall, testany, wait, waitall, waitany};
use crate::exports::{Bound, bound};
use crate::find;
use crate::life::{comm_free, finalize, type_free};
use crate::persistent::{start, startall};
use crate::words::Words;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

type Handle = <Mpich as Abi>::Handle;
type Status = <Mpich as Abi>::Status;

/// A status, or what C takes for the object `ignored`, whose address the MPI knows.
unsafe fn status_of(status: *mut Status, ignored: &CStr) -> *mut Status {
    let object: *mut *mut Status = find::object(ignored).cast();
    // SAFETY: null, or an object of the MPI that holds an address.
    match unsafe { object.as_ref() } {
        Some(object) if std::ptr::eq(status, *object) => Mpich::STATUS_IGNORE,
        _ => status,
    }
}

unsafe fn one(status: *mut Status) -> *mut Status {
    // SAFETY: the program's status.
    unsafe { status_of(status, c"MPI_F08_STATUS_IGNORE") }
}

unsafe fn all(statuses: *mut Status) -> *mut Status {
    // SAFETY: the program's statuses.
    unsafe { status_of(statuses, c"MPI_F08_STATUSES_IGNORE") }
}

/// Tells a result, if the program asks.
unsafe fn tell(error: *mut c_int, result: c_int) {
    if !error.is_null() {
        // SAFETY: the program's integer.
        unsafe { *error = result };
    }
}

/// The index of the first request: 1, but 0 in MPICH 4.0, whose programs know. Its own subroutine tells, of a receive from nowhere.
fn first_index() -> c_int {
    type Waitany = unsafe extern "C" fn(*const c_int, *mut Handle, *mut c_int, *mut Status, *mut c_int);
    type Irecv = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
    static KNOWN: AtomicI32 = AtomicI32::new(-1);
    let known = KNOWN.load(Ordering::Relaxed);
    if known >= 0 {
        return known;
    }
    let handles = Mpich::handles();
    let (mut index, length, mut error, mut request) = (1, 1, 0, handles.request_null);
    let mut status = Mpich::new_status();
    let theirs = find::function(c"mpi_waitany_f08_");
    // SAFETY: nothing is received, and the subroutine has this type in MPICH.
    unsafe {
        let memory: *mut c_void = (&raw mut index).cast();
        let irecv = next::<Irecv>(Call::MPI_Irecv as usize);
        if !theirs.is_null()
            && irecv(memory, 0, handles.int, Mpich::CONSTANTS.proc_null, 0, handles.comm_self, &mut request)
                == MPI_SUCCESS
        {
            let theirs: Waitany = std::mem::transmute(theirs);
            theirs(&length, &mut request, &mut index, &mut status, &mut error);
        }
    }
    KNOWN.store(index, Ordering::Relaxed);
    index
}

/// Turns the indices that a call has given, by the numbering of C, into those of Fortran; the result of the call. `length` is read after the call.
unsafe fn with_indices(indices: *mut c_int, length: *const c_int, result: c_int) -> c_int {
    // SAFETY: the program's number of indices.
    let count = if result == MPI_SUCCESS { unsafe { *length }.max(0) as usize } else { 0 };
    for at in 0..count {
        // SAFETY: the program's indices.
        let index = unsafe { &mut *indices.add(at) };
        if *index != MPI_UNDEFINED {
            *index += first_index();
        }
    }
    result
}

/// Calls a wrapper.
macro_rules! wrapped {
    ($wrapper:ident, $call:ident, $($argument:expr),*) => {
        $wrapper::<Mpich>(&mut Words::new(Call::$call, &mut [$($argument as usize),*]))
    };
}

/// What a subroutine goes on to: that of this library for MPICH, if there is one, or the MPI's.
#[cold]
fn find_subroutine(name: &CStr, ours: Function) -> Function {
    if bound() == Bound::Mpich && !ours.is_null() { ours } else { find::function(name) }
}

/// Calls what a subroutine goes on to, which its first call finds. All arguments are addresses; none has more than seven, and a subroutine does not look
/// at those that it does not have.
unsafe fn go_on(entry: &AtomicPtr<c_void>, name: &CStr, ours: Function, arguments: [usize; 7]) {
    type Subroutine = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize);
    let mut found = entry.load(Ordering::Acquire);
    if found.is_null() {
        found = find_subroutine(name, ours);
        entry.store(found, Ordering::Release);
    }
    if !found.is_null() {
        let [a, b, c, d, e, f, g] = arguments;
        // SAFETY: a subroutine of as many addresses at most.
        unsafe { std::mem::transmute::<Function, Subroutine>(found)(a, b, c, d, e, f, g) }
    }
}

/// Exports a subroutine, with that of this library for MPICH.
macro_rules! export {
    ($name:ident $ours:expr) => {
        #[unsafe(no_mangle)]
        #[expect(missing_docs, reason = "the name of MPI")]
        pub unsafe extern "C" fn $name(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize) {
            static ENTRY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            // SAFETY: one byte 0, at the end.
            let name = unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) };
            // SAFETY: the program's arguments.
            unsafe { go_on(&ENTRY, name, $ours, [a, b, c, d, e, f, g]) }
        }
    };
}

/// Defines subroutines: a name, its arguments before the error, which every subroutine of MPICH has as its last, and the result.
macro_rules! subroutines {
    ($($name:ident ($($argument:ident: $type:ty),*) $result:expr;)*) => {$(
        export!($name {
            unsafe extern "C" fn ours($($argument: $type,)* error: *mut c_int) {
                // SAFETY: the program's arguments.
                unsafe { tell(error, $result) }
            }
            ours as *const () as Function
        });
    )*};
}

subroutines! {
    mpi_wait_f08_ (request: *mut Handle, status: *mut Status) wrapped!(wait, MPI_Wait, request, one(status));
    mpi_test_f08_ (request: *mut Handle, flag: *mut c_int, status: *mut Status)
        wrapped!(test, MPI_Test, request, flag, one(status));
    mpi_waitall_f08_ (length: *const c_int, requests: *mut Handle, statuses: *mut Status)
        wrapped!(waitall, MPI_Waitall, *length, requests, all(statuses));
    mpi_testall_f08_ (length: *const c_int, requests: *mut Handle, flag: *mut c_int, statuses: *mut Status)
        wrapped!(testall, MPI_Testall, *length, requests, flag, all(statuses));
    mpi_waitany_f08_ (length: *const c_int, requests: *mut Handle, index: *mut c_int, status: *mut Status)
        with_indices(index, &1, wrapped!(waitany, MPI_Waitany, *length, requests, index, one(status)));
    mpi_testany_f08_ (length: *const c_int, requests: *mut Handle, index: *mut c_int, flag: *mut c_int, status: *mut Status)
        with_indices(index, &1, wrapped!(testany, MPI_Testany, *length, requests, index, flag, one(status)));
    mpi_waitsome_f08_ (length: *const c_int, requests: *mut Handle, ended: *mut c_int, indices: *mut c_int, statuses: *mut Status)
        with_indices(indices, ended, wrapped!(some, MPI_Waitsome, *length, requests, ended, indices, all(statuses)));
    mpi_testsome_f08_ (length: *const c_int, requests: *mut Handle, ended: *mut c_int, indices: *mut c_int, statuses: *mut Status)
        with_indices(indices, ended, wrapped!(some, MPI_Testsome, *length, requests, ended, indices, all(statuses)));
    mpi_request_get_status_f08_ (request: *const Handle, flag: *mut c_int, status: *mut Status)
        wrapped!(request_get_status, MPI_Request_get_status, *request, flag, one(status));
    mpi_request_free_f08_ (request: *mut Handle) wrapped!(request_free, MPI_Request_free, request);
    mpi_finalize_f08_ () wrapped!(finalize, MPI_Finalize,);
    mpi_start_f08_ (request: *mut Handle) wrapped!(start, MPI_Start, request);
    mpi_startall_f08_ (length: *const c_int, requests: *mut Handle) wrapped!(startall, MPI_Startall, *length, requests);
    mpi_type_free_f08_ (datatype: *mut Handle) wrapped!(type_free, MPI_Type_free, datatype);
    mpi_comm_free_f08_ (communicator: *mut Handle) wrapped!(comm_free, MPI_Comm_free, communicator);
    mpi_comm_disconnect_f08_ (communicator: *mut Handle) wrapped!(comm_free, MPI_Comm_disconnect, communicator);
}

export!(mpi_init_ null_mut());
export!(mpi_init_thread_ null_mut());
export!(mpi_init_f08_ null_mut());
export!(mpi_init_thread_f08_ null_mut());
