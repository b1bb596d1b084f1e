//! Calls that the MPI lacks, made of those that it has. This library exports them all the same, so that programs that look for them at run
//! time, as mpi4py does, find them. A large-count form takes counts that an `int` holds, and refuses others.

use crate::abi::{Abi, Handle, MPI_SUCCESS, MPI_UNDEFINED};
use crate::calls::{Arguments, CALLS, Call, Function, Table, for_each_call, is_of_neighbors, next};
use crate::collectives::arguments::{degrees, is_inter};
use crate::find;
use crate::memory::fail;
use crate::operations::{Operation, OperationRef};
use crate::pmpi::pmpi;
use crate::point_to_point::replaced;
use crate::words::{Words, enter, pass, taken, with_words};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Has the MPI do the small form of a call, which stands in front of it, with the same words: a word is passed as an `int` by its lower half.
///
/// # Safety
///
/// The arguments are those of the small form.
unsafe fn go_on(call: Call, words: &[usize]) -> c_int {
    // SAFETY: as the caller says.
    unsafe { pass(next(call as usize - 1), words) }
}

fn is_small(number: i64) -> bool {
    i32::try_from(number).is_ok()
}

/// `MPI_Pack_c` or `MPI_Unpack_c`, whose position is an argument that an `int` holds too, as it does those of their counts.
unsafe fn with_position<A: Abi>(words: &Words<'_>, position: usize) -> c_int {
    let place: *mut i64 = words.address(position);
    // SAFETY: the program's position.
    let at = unsafe { *place };
    if !is_small(at) || ![1, 4].iter().all(|at| is_small(words.count(*at))) {
        return fail::<A>(A::CONSTANTS.err_count);
    }
    let (mut small, mut given) = (at as c_int, words.all().to_vec());
    given[position] = (&raw mut small) as usize;
    // SAFETY: the program's arguments, whose counts an `int` holds.
    unsafe {
        let result = go_on(words.call(), &given);
        *place = small.into();
        result
    }
}

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

/// A call for all to all. The MPIs that lack the large forms have read counts and displacements when a nonblocking call returns, or one that
/// makes a persistent request. Displacements of neighbors are as large in either form.
unsafe fn arrays<A: Abi>(words: &Words<'_>) -> c_int {
    let (constants, neighbors) = (A::CONSTANTS, is_of_neighbors(words.call()));
    let Some((sent, received)) = degrees_of::<A>(words.handle::<A>(8), neighbors) else {
        return fail::<A>(constants.err_comm);
    };
    let sent = if words.word(0) == A::IN_PLACE as usize { 0 } else { sent };
    let mut given = words.all().to_vec();
    let mut kept: Vec<Vec<c_int>> = Vec::new();
    for (at, length, is_wide) in
        [(1, sent, false), (2, sent, neighbors), (5, received, false), (6, received, neighbors)]
    {
        if is_wide {
            continue;
        }
        // SAFETY: the program's arrays.
        let Some(numbers) = (unsafe { small(words.address(at), length) }) else {
            return fail::<A>(constants.err_count);
        };
        given[at] = numbers.as_ptr().cast::<c_void>() as usize;
        kept.push(numbers);
    }
    // SAFETY: the program's arguments, whose counts an `int` holds.
    unsafe { go_on(words.call(), &given) }
}

/// The large-count form of any call, by what stands in its arguments.
unsafe fn large<A: Abi>(words: &mut Words<'_>) -> c_int {
    let arguments = words.arguments();
    let mut counts = arguments.elements().into_iter().flatten().map(|elements| words.count(elements.first + 1));
    // SAFETY: the program's arguments, whose counts an `int` holds.
    unsafe {
        match arguments {
            Arguments::Pack => with_position::<A>(words, 5),
            Arguments::Unpack => with_position::<A>(words, 2),
            Arguments::Other => arrays::<A>(words),
            _ if counts.all(is_small) => go_on(words.call(), words.all()),
            _ => fail::<A>(A::CONSTANTS.err_count),
        }
    }
}

/// Sends a packed copy of the first half of an exchange, so that the memory is the program's again at once. The copy is freed when the
/// send has ended.
///
/// # Safety
///
/// The arguments are those of the program.
unsafe fn send_copy<A: Abi>(words: &Words<'_>) -> c_int {
    let pmpi = pmpi::<A>();
    let (communicator, datatype, elements) = (words.handle::<A>(10), words.handle::<A>(2), words.int(1));
    let (mut bytes, mut position) = (0, 0);
    // SAFETY: as the caller says, and there is room for the packed bytes.
    unsafe {
        let result = (pmpi.pack_size)(elements, datatype, communicator, &mut bytes);
        if result != MPI_SUCCESS {
            return result;
        }
        let mut operation = Operation::<A>::of_copy(vec![0; bytes.max(0) as usize + 1]);
        let copy: *mut c_void = operation.copied().as_mut_ptr().cast();
        let result = (pmpi.pack)(words.address(0), elements, datatype, copy, bytes, &mut position, communicator);
        if result != MPI_SUCCESS {
            return result;
        }
        let mut request = A::handles().request_null;
        let (packed, place) = (A::handles().packed.word(), (&raw mut request) as usize);
        let sent = [copy as usize, position as usize, packed, words.word(3), words.word(4), words.word(10), place];
        let result = pass(next(Call::MPI_Isend as usize), &sent);
        if result == MPI_SUCCESS {
            OperationRef::leave_copy(operation, request);
        }
        result
    }
}

/// `MPI_Isendrecv`; the request is that of the receive.
unsafe fn isendrecv<A: Abi>(words: &mut Words<'_>) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        if words.int(3) != A::CONSTANTS.proc_null {
            let result = send_copy::<A>(words);
            if result != MPI_SUCCESS {
                return result;
            }
        }
        let received = [5, 6, 7, 8, 9, 10, 11].map(|at| words.word(at));
        pass(next(Call::MPI_Irecv as usize), &received)
    }
}

unsafe fn isendrecv_replace<A: Abi>(words: &mut Words<'_>) -> c_int {
    let mut both = replaced(words);
    // SAFETY: the program's arguments, twice.
    unsafe { isendrecv::<A>(&mut Words::new(Call::MPI_Isendrecv, &mut both)) }
}

/// Asks the MPI about one of several requests; its status, if the program wants statuses, is the one `at`.
///
/// # Safety
///
/// The request and the statuses are those of the program.
unsafe fn get_status<A: Abi>(request: A::Handle, flag: *mut c_int, statuses: *mut A::Status, at: usize) -> c_int {
    let ignored = std::ptr::eq(statuses, A::STATUS_IGNORE);
    let status = if ignored { statuses } else { statuses.wrapping_add(at) };
    // SAFETY: as the caller says.
    unsafe { pass(next(Call::MPI_Request_get_status as usize), &[request.word(), flag as usize, status as usize]) }
}

/// The requests of a call that begins with their number.
///
/// # Safety
///
/// The arguments are those of the program.
unsafe fn requests<'a, A: Abi>(words: &Words<'a>) -> &'a [A::Handle] {
    let length = usize::try_from(words.int(0)).unwrap_or(0);
    // SAFETY: as the caller says.
    if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(words.address(1), length) } }
}

/// `MPI_Request_get_status_all`: length, requests, flag, statuses.
unsafe fn request_get_status_all<A: Abi>(words: &mut Words<'_>) -> c_int {
    let flag: *mut c_int = words.address(2);
    // SAFETY: the program's arguments.
    unsafe {
        *flag = 1;
        for (at, request) in requests::<A>(words).iter().enumerate() {
            let result = get_status::<A>(*request, flag, words.address(3), at);
            if result != MPI_SUCCESS || *flag == 0 {
                return result;
            }
        }
    }
    MPI_SUCCESS
}

/// `MPI_Request_get_status_any`: length, requests, index, flag, status.
unsafe fn request_get_status_any<A: Abi>(words: &mut Words<'_>) -> c_int {
    let null = A::handles().request_null;
    let (index, flag): (*mut c_int, *mut c_int) = (words.address(2), words.address(3));
    let status: *mut A::Status = words.address(4);
    let mut active = false;
    // SAFETY: the program's arguments.
    unsafe {
        *index = MPI_UNDEFINED;
        for (at, request) in requests::<A>(words).iter().enumerate().filter(|(_, request)| **request != null) {
            active = true;
            let result = get_status::<A>(*request, flag, status, 0);
            if result != MPI_SUCCESS || *flag != 0 {
                *index = at as c_int;
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
        get_status::<A>(null, flag, status, 0)
    }
}

/// `MPI_Request_get_status_some`: length, requests, number of those that have ended, their indices, statuses.
unsafe fn request_get_status_some<A: Abi>(words: &mut Words<'_>) -> c_int {
    let null = A::handles().request_null;
    let (ended, indices): (*mut c_int, *mut c_int) = (words.address(2), words.address(3));
    let (mut active, mut found): (bool, usize) = (false, 0);
    // SAFETY: the program's arguments.
    unsafe {
        for (at, request) in requests::<A>(words).iter().enumerate().filter(|(_, request)| **request != null) {
            active = true;
            let mut flag = 0;
            let result = get_status::<A>(*request, &mut flag, words.address(4), found);
            if result != MPI_SUCCESS {
                return result;
            }
            if flag != 0 {
                *indices.add(found) = at as c_int;
                found += 1;
            }
        }
        *ended = if active { found as c_int } else { MPI_UNDEFINED };
    }
    MPI_SUCCESS
}

/// Whether large-count forms are substituted.
static ARE_LARGE_SUBSTITUTED: AtomicBool = AtomicBool::new(false);

/// Puts a substitute where there is a small call, and no large one.
fn put_large(table: &mut Table, call: Call, substitute: Function) {
    let large = call as usize;
    if table.0[large].is_null() && !table.0[large - 1].is_null() {
        table.0[large] = substitute;
        ARE_LARGE_SUBSTITUTED.store(true, Ordering::Relaxed);
    }
}

macro_rules! put {
    ($($name:ident $arity:tt $wrapper:ident $count:tt, $arguments:ident;)*) => {
        /// The large-count forms stand behind the small ones.
        fn put_all_large<A: Abi>(table: &mut Table) {
            $(put!(@one table $name $arity $count);)*
        }
    };
    (@one $table:ident $name:ident $arity:tt i64) => {
        put_large($table, Call::$name, enter!($name $arity, large::<A>));
    };
    (@one $table:ident $name:ident $arity:tt c_int) => {};
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
    put(Call::MPI_Isendrecv, enter!(MPI_Isendrecv 12, isendrecv::<A>));
    put(Call::MPI_Isendrecv_replace, enter!(MPI_Isendrecv_replace 9, isendrecv_replace::<A>));
    // Open MPI 4.1 has them as extensions.
    put(Call::MPI_Alltoallw_init, find::function(c"MPIX_Alltoallw_init"));
    put(Call::MPI_Neighbor_alltoallw_init, find::function(c"MPIX_Neighbor_alltoallw_init"));
    put(Call::MPI_Request_get_status_all, enter!(MPI_Request_get_status_all 4, request_get_status_all::<A>));
    put(Call::MPI_Request_get_status_any, enter!(MPI_Request_get_status_any 5, request_get_status_any::<A>));
    put(Call::MPI_Request_get_status_some, enter!(MPI_Request_get_status_some 5, request_get_status_some::<A>));
    put_all_large::<A>(table);
}

/// Whether large-count forms are substituted.
pub fn are_large_substituted() -> bool {
    ARE_LARGE_SUBSTITUTED.load(Ordering::Relaxed)
}

const _: () = assert!(Call::MPI_Send_c as usize == Call::MPI_Send as usize + 1 && CALLS > Call::MPI_Send_c as usize);
