//! Calls that the MPI lacks, made of those that it has. This library exports them all the same, so that programs that look for them at run
//! time, as mpi4py does, find them. A large-count form takes counts that an `int` holds, and refuses others.

use crate::abi::{Abi, MPI_SUCCESS, MPI_UNDEFINED};
use crate::calls::{CALLS, Call, Function, Table, for_each_call, next};
use crate::collectives::arguments::{degrees, is_inter};
use crate::find;
use crate::memory::fail;
use crate::operations::{Operation, OperationRef};
use crate::pmpi::pmpi;
use std::ffi::{c_int, c_void};

/// The large-count forms. Each goes on to the call `SMALL`; a machine word is passed as an `int` by its lower half, in the same place
/// ([`exports`](crate::exports)).
mod large {
    use super::{Abi, c_int, fail, next};

    /// Whether an `int` holds each of some words.
    fn are_small<const N: usize>(words: [usize; N]) -> bool {
        words.iter().all(|word| i32::try_from(*word as i64).is_ok())
    }

    /// Defines calls whose counts are single numbers, by the names of all arguments and those of the counts.
    macro_rules! numbers {
        ($($name:ident ($($argument:ident),*) [$($count:ident),*];)*) => {$(
            pub(super) unsafe extern "C" fn $name<A: Abi, const SMALL: usize>($($argument: usize),*) -> c_int {
                type Function = unsafe extern "C" fn($(numbers!(@word $argument)),*) -> c_int;
                if !are_small([$($count),*]) {
                    return fail::<A>(A::CONSTANTS.err_count);
                }
                // SAFETY: the program's arguments, whose counts an `int` holds.
                unsafe { next::<Function>(SMALL)($($argument),*) }
            }
        )*};
        (@word $argument:ident) => { usize };
    }

    numbers! {
        send(memory, elements, datatype, rank, tag, communicator) [elements];
        recv(memory, elements, datatype, rank, tag, communicator, status) [elements];
        mrecv(memory, elements, datatype, message, status) [elements];
        imrecv(memory, elements, datatype, message, request) [elements];
        isend(memory, elements, datatype, rank, tag, communicator, request) [elements];
        irecv(memory, elements, datatype, rank, tag, communicator, request) [elements];
        send_init(memory, elements, datatype, rank, tag, communicator, request) [elements];
        recv_init(memory, elements, datatype, rank, tag, communicator, request) [elements];
        sendrecv(sent, elements, datatype, destination, tag, received, length, kind, source, label, communicator, status)
            [elements, length];
        isendrecv(sent, elements, datatype, destination, tag, received, length, kind, source, label, communicator, request)
            [elements, length];
        sendrecv_replace(memory, elements, datatype, destination, tag, source, label, communicator, status) [elements];
        isendrecv_replace(memory, elements, datatype, destination, tag, source, label, communicator, request) [elements];
    }

    /// A position as an `int`, and back.
    ///
    /// # Safety
    ///
    /// `position` leads to a position.
    unsafe fn at_position<A: Abi>(
        numbers: [usize; 2],
        position: *mut i64,
        call: impl FnOnce(*mut c_int) -> c_int,
    ) -> c_int {
        // SAFETY: as the caller says.
        unsafe {
            if !are_small([numbers[0], numbers[1], *position as usize]) {
                return fail::<A>(A::CONSTANTS.err_count);
            }
            let mut small = *position as c_int;
            let result = call(&mut small);
            *position = small.into();
            result
        }
    }

    pub(super) unsafe extern "C" fn pack<A: Abi, const SMALL: usize>(
        memory: usize,
        elements: usize,
        datatype: usize,
        packed: usize,
        size: usize,
        position: *mut i64,
        communicator: usize,
    ) -> c_int {
        type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, *mut c_int, usize) -> c_int;
        // SAFETY: the program's arguments, whose counts an `int` holds.
        unsafe {
            at_position::<A>([elements, size], position, |position| {
                next::<Function>(SMALL)(memory, elements, datatype, packed, size, position, communicator)
            })
        }
    }

    pub(super) unsafe extern "C" fn unpack<A: Abi, const SMALL: usize>(
        packed: usize,
        size: usize,
        position: *mut i64,
        memory: usize,
        elements: usize,
        datatype: usize,
        communicator: usize,
    ) -> c_int {
        type Function = unsafe extern "C" fn(usize, usize, *mut c_int, usize, usize, usize, usize) -> c_int;
        // SAFETY: the program's arguments, whose counts an `int` holds.
        unsafe {
            at_position::<A>([elements, size], position, |position| {
                next::<Function>(SMALL)(packed, size, position, memory, elements, datatype, communicator)
            })
        }
    }

    pub(super) use super::arrays::{
        alltoallw, alltoallw_init, ialltoallw, ineighbor_alltoallw, neighbor_alltoallw, neighbor_alltoallw_init,
    };
}

/// The large-count forms of all to all. The MPIs that lack them have read counts and displacements when a nonblocking call returns, or one that
/// makes a persistent request. Displacements of neighbors are as large in either form.
mod arrays {
    use super::{Abi, c_int, c_void, degrees, fail, is_inter, next};
    use crate::abi::{Handle, MPI_SUCCESS};
    use crate::pmpi::pmpi;

    /// Arrays of one direction: counts and displacements.
    type Arrays = (*const i64, *const i64);

    /// The numbers of processes that a call sends to and receives from.
    fn degrees_of<A: Abi>(communicator: A::Handle, neighbors: bool) -> Option<(usize, usize)> {
        if let Some(degrees) = degrees::<A>(communicator, neighbors) {
            return Some(degrees);
        }
        if neighbors || is_inter::<A>(communicator) != Some(true) {
            return None;
        }
        let mut remote = 0;
        // SAFETY: a communicator of the program, and `remote` is writable.
        let told = unsafe { (pmpi::<A>().comm_remote_size)(communicator, &mut remote) } == MPI_SUCCESS;
        let remote = usize::try_from(remote).ok().filter(|_| told)?;
        Some((remote, remote))
    }

    /// Numbers as `int`; none if one does not fit.
    ///
    /// # Safety
    ///
    /// The array has as many.
    unsafe fn small(numbers: *const i64, length: usize) -> Option<Vec<c_int>> {
        if numbers.is_null() {
            return Some(Vec::new());
        }
        // SAFETY: as the caller says.
        let numbers = unsafe { std::slice::from_raw_parts(numbers, length) };
        numbers.iter().map(|number| c_int::try_from(*number).ok()).collect()
    }

    /// Calls `call` with the arrays of both directions as those of `int`.
    ///
    /// # Safety
    ///
    /// The arrays are those of the program.
    unsafe fn with_small<A: Abi>(
        (out, input): (Arrays, Arrays),
        in_place: bool,
        (communicator, neighbors): (usize, bool),
        call: impl FnOnce([*const c_void; 4]) -> c_int,
    ) -> c_int {
        let constants = A::CONSTANTS;
        let Some((sent, received)) = degrees_of::<A>(A::Handle::of(communicator), neighbors) else {
            return fail::<A>(constants.err_comm);
        };
        let sent = if in_place { 0 } else { sent };
        // SAFETY: as the caller says.
        let arrays = unsafe {
            let places = |places, length| if neighbors { Some(Vec::new()) } else { small(places, length) };
            small(out.0, sent).zip(places(out.1, sent)).zip(small(input.0, received).zip(places(input.1, received)))
        };
        let Some(((counts, places), (received_counts, received_places))) = arrays else {
            return fail::<A>(constants.err_count);
        };
        let given =
            |small: &Vec<c_int>, given: *const i64| if neighbors { given.cast() } else { small.as_ptr().cast() };
        call([
            counts.as_ptr().cast(),
            given(&places, out.1),
            received_counts.as_ptr().cast(),
            given(&received_places, input.1),
        ])
    }

    macro_rules! arrays {
        ($($name:ident $neighbors:literal ($($last:ident),*);)*) => {$(
            pub(super) unsafe extern "C" fn $name<A: Abi, const SMALL: usize>(
                sent: *const c_void,
                sent_counts: *const i64,
                sent_places: *const i64,
                sent_datatypes: usize,
                received: usize,
                received_counts: *const i64,
                received_places: *const i64,
                received_datatypes: usize,
                communicator: usize,
                $($last: usize),*
            ) -> c_int {
                type Pointer = *const c_void;
                type Function = unsafe extern "C" fn(
                    Pointer, Pointer, Pointer, usize, usize, Pointer, Pointer, usize, usize, $(arrays!(@word $last)),*
                ) -> c_int;
                let arrays = ((sent_counts, sent_places), (received_counts, received_places));
                let in_place = std::ptr::eq(sent, A::IN_PLACE);
                // SAFETY: the program's arguments, whose counts an `int` holds.
                unsafe {
                    with_small::<A>(arrays, in_place, (communicator, $neighbors), |given| {
                        let [counts, places, into_counts, into_places] = given;
                        next::<Function>(SMALL)(
                            sent, counts, places, sent_datatypes, received, into_counts, into_places, received_datatypes,
                            communicator, $($last),*
                        )
                    })
                }
            }
        )*};
        (@word $last:ident) => { usize };
    }

    arrays! {
        alltoallw false ();
        ialltoallw false (request);
        neighbor_alltoallw true ();
        ineighbor_alltoallw true (request);
        alltoallw_init false (info, request);
        neighbor_alltoallw_init true (info, request);
    }
}

/// Sends a packed copy, so that the memory is the program's again at once. The copy is freed when the send has ended.
///
/// # Safety
///
/// The elements are the program's.
unsafe fn send_copy<A: Abi>(
    memory: *const c_void,
    elements: c_int,
    datatype: A::Handle,
    (rank, tag): (c_int, c_int),
    communicator: A::Handle,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(
        *const c_void,
        c_int,
        <A as Abi>::Handle,
        c_int,
        c_int,
        <A as Abi>::Handle,
        *mut <A as Abi>::Handle,
    ) -> c_int;
    let pmpi = pmpi::<A>();
    let (mut bytes, mut position) = (0, 0);
    // SAFETY: as the caller says, and there is room for the packed bytes.
    unsafe {
        let result = (pmpi.pack_size)(elements, datatype, communicator, &mut bytes);
        if result != MPI_SUCCESS {
            return result;
        }
        let mut operation = Operation::<A>::of_copy(vec![0; bytes.max(0) as usize + 1]);
        let copy: *mut c_void = operation.copied().as_mut_ptr().cast();
        let result = (pmpi.pack)(memory, elements, datatype, copy, bytes, &mut position, communicator);
        if result != MPI_SUCCESS {
            return result;
        }
        let mut request = A::handles().request_null;
        let packed = A::handles().packed;
        let mpi = next::<Function<A>>(Call::MPI_Isend as usize);
        let result = mpi(copy, position, packed, rank, tag, communicator, &mut request);
        if result == MPI_SUCCESS {
            OperationRef::leave_copy(operation, request);
        }
        result
    }
}

/// `MPI_Isendrecv`; the request is that of the receive.
unsafe extern "C" fn isendrecv<A: Abi>(
    sent: *const c_void,
    sent_elements: c_int,
    sent_datatype: A::Handle,
    destination: c_int,
    sent_tag: c_int,
    received: *mut c_void,
    received_elements: c_int,
    received_datatype: A::Handle,
    source: c_int,
    received_tag: c_int,
    communicator: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    type Function<A> = unsafe extern "C" fn(
        *mut c_void,
        c_int,
        <A as Abi>::Handle,
        c_int,
        c_int,
        <A as Abi>::Handle,
        *mut <A as Abi>::Handle,
    ) -> c_int;
    // SAFETY: the program's arguments.
    unsafe {
        if destination != A::CONSTANTS.proc_null {
            let to = (destination, sent_tag);
            let result = send_copy::<A>(sent, sent_elements, sent_datatype, to, communicator);
            if result != MPI_SUCCESS {
                return result;
            }
        }
        let mpi = next::<Function<A>>(Call::MPI_Irecv as usize);
        mpi(received, received_elements, received_datatype, source, received_tag, communicator, request)
    }
}

unsafe extern "C" fn isendrecv_replace<A: Abi>(
    memory: *mut c_void,
    elements: c_int,
    datatype: A::Handle,
    destination: c_int,
    sent_tag: c_int,
    source: c_int,
    received_tag: c_int,
    communicator: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        isendrecv::<A>(
            memory,
            elements,
            datatype,
            destination,
            sent_tag,
            memory,
            elements,
            datatype,
            source,
            received_tag,
            communicator,
            request,
        )
    }
}

/// `MPI_Request_get_status` of the MPI.
type GetStatus<A> = unsafe extern "C" fn(<A as Abi>::Handle, *mut c_int, *mut <A as Abi>::Status) -> c_int;

fn get_status<A: Abi>() -> GetStatus<A> {
    // SAFETY: the type of this call.
    unsafe { next(Call::MPI_Request_get_status as usize) }
}

/// One of several statuses, or none where the program ignores them.
fn status_at<A: Abi>(statuses: *mut A::Status, at: usize) -> *mut A::Status {
    if std::ptr::eq(statuses, A::STATUS_IGNORE) { statuses } else { statuses.wrapping_add(at) }
}

unsafe extern "C" fn request_get_status_all<A: Abi>(
    length: c_int,
    requests: *const A::Handle,
    flag: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        *flag = 1;
        for at in 0..length.max(0) as usize {
            let result = get_status::<A>()(*requests.add(at), flag, status_at::<A>(statuses, at));
            if result != MPI_SUCCESS || *flag == 0 {
                return result;
            }
        }
    }
    MPI_SUCCESS
}

unsafe extern "C" fn request_get_status_any<A: Abi>(
    length: c_int,
    requests: *const A::Handle,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    let null = A::handles().request_null;
    let mut active = false;
    // SAFETY: the program's arguments.
    unsafe {
        *index = MPI_UNDEFINED;
        for at in 0..length.max(0) {
            let request = *requests.add(at as usize);
            if request == null {
                continue;
            }
            active = true;
            let result = get_status::<A>()(request, flag, status);
            if result != MPI_SUCCESS || *flag != 0 {
                *index = at;
                return result;
            }
        }
        *flag = 0;
        if active {
            return MPI_SUCCESS;
        }
        // An empty status has no error; that of a call with one status is left as it was. (MPI 4.1, 3.7.3 and 3.2.5)
        if !std::ptr::eq(status, A::STATUS_IGNORE) {
            *A::error_of(status) = MPI_SUCCESS;
        }
        get_status::<A>()(null, flag, status)
    }
}

unsafe extern "C" fn request_get_status_some<A: Abi>(
    length: c_int,
    requests: *const A::Handle,
    ended: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    let null = A::handles().request_null;
    let (mut active, mut found): (bool, usize) = (false, 0);
    // SAFETY: the program's arguments.
    unsafe {
        for at in 0..length.max(0) {
            let request = *requests.add(at as usize);
            if request == null {
                continue;
            }
            active = true;
            let mut flag = 0;
            let result = get_status::<A>()(request, &mut flag, status_at::<A>(statuses, found));
            if result != MPI_SUCCESS {
                return result;
            }
            if flag != 0 {
                *indices.add(found) = at;
                found += 1;
            }
        }
        *ended = if active { found as c_int } else { MPI_UNDEFINED };
    }
    MPI_SUCCESS
}

/// Puts a substitute where there is a small call, and no large one.
fn put_large(table: &mut Table, call: Call, substitute: Function) {
    let large = call as usize;
    if table.0[large].is_null() && !table.0[large - 1].is_null() {
        table.0[large] = substitute;
    }
}

macro_rules! put {
    ($($name:ident $arity:literal $wrapper:ident $count:tt, $arguments:ident;)*) => {
        /// The large-count forms stand behind the small ones.
        fn put_all_large<A: Abi>(table: &mut Table) {
            $(put!(@one table $name $wrapper $count);)*
        }
    };
    (@one $table:ident $name:ident $wrapper:ident i64) => {
        put_large($table, Call::$name, large::$wrapper::<A, { Call::$name as usize - 1 }> as *const () as Function);
    };
    (@one $table:ident $name:ident $wrapper:ident c_int) => {};
}

for_each_call!(put);

/// Puts substitutes where the MPI has no function.
pub fn substitute<A: Abi>(table: &mut Table) {
    let mut put = |call: Call, substitute: Function| {
        let place = table.place(call);
        if place.is_null() {
            *place = substitute;
        }
    };
    put(Call::MPI_Isendrecv, isendrecv::<A> as *const () as Function);
    put(Call::MPI_Isendrecv_replace, isendrecv_replace::<A> as *const () as Function);
    // Open MPI 4.1 has them as extensions.
    put(Call::MPI_Alltoallw_init, find::function(c"MPIX_Alltoallw_init"));
    put(Call::MPI_Neighbor_alltoallw_init, find::function(c"MPIX_Neighbor_alltoallw_init"));
    put(Call::MPI_Request_get_status_all, request_get_status_all::<A> as *const () as Function);
    put(Call::MPI_Request_get_status_any, request_get_status_any::<A> as *const () as Function);
    put(Call::MPI_Request_get_status_some, request_get_status_some::<A> as *const () as Function);
    put_all_large::<A>(table);
}

/// Whether large-count forms are substituted.
pub fn are_large_substituted<A: Abi>() -> bool {
    let send: Function = large::send::<A, { Call::MPI_Send as usize }> as *const () as Function;
    // SAFETY: compared alone.
    std::ptr::eq(unsafe { next::<Function>(Call::MPI_Send_c as usize) }, send)
}

const _: () = assert!(Call::MPI_Send_c as usize == Call::MPI_Send as usize + 1 && CALLS > Call::MPI_Send_c as usize);
