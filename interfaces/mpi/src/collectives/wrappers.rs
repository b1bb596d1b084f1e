//! The calls: blocking, nonblocking and persistent ones, of all processes or of neighbors.

use super::arguments::{Given, absent_neighbors, degrees};
use super::direct;
use super::exchange::{Directions, Exchange, decode};
use crate::abi::{Abi, Count, MPI_SUCCESS};
use crate::calls::next;
use crate::memory::has_gpu;
use crate::operations::Operation;
use crate::rent::Refused;
use crate::seen::sees_completions;
use crate::start::{is_aside, is_ready};
use std::ffi::{c_int, c_void};

/// The arguments of one direction of a call.
type Side<A> = (*const c_void, *const c_void, *const c_void, *const <A as Abi>::Handle);

/// Whether the library may do a part of a collective.
fn may_exchange<A: Abi>() -> bool {
    !is_aside() && (!has_gpu() || is_ready::<A>())
}

/// Both directions of a call, as the program gives them; none if dtc has no part in it. Displacements of neighbors are wide in all forms.
fn directions_of<A: Abi, C: Count>(
    out: Side<A>,
    input: Side<A>,
    communicator: A::Handle,
    neighbors: bool,
) -> Option<Directions<A>> {
    if !may_exchange::<A>() {
        return None;
    }
    let (out_length, length) = degrees::<A>(communicator, neighbors)?;
    let absent = if neighbors { absent_neighbors::<A>(communicator, length) } else { 0 };
    let in_place = std::ptr::eq(out.0, A::IN_PLACE);
    let given = |(memory, counts, places, datatypes): Side<A>, length| Given {
        length,
        wide_counts: C::WIDE,
        wide_places: C::WIDE || neighbors,
        memory: memory.cast_mut(),
        counts,
        places,
        datatypes,
        absent,
    };
    let out = given(out, if in_place { 0 } else { out_length });
    Some(Directions { out, input: given(input, length), in_place, communicator })
}

/// What the MPI is given of a direction.
fn arguments<A: Abi>(given: &Given<A>) -> Side<A> {
    (given.memory, given.counts, given.places, given.datatypes)
}

/// What the MPI is given of both directions of an exchange.
fn given<A: Abi>(exchange: &Exchange<A>, of_program: &Directions<A>) -> (Side<A>, Side<A>) {
    let given = exchange.given(of_program);
    let mut out = arguments(&given.out);
    if of_program.in_place {
        out.0 = A::IN_PLACE;
    }
    (out, arguments(&given.input))
}

/// A blocking call.
fn exchange<A: Abi, C: Count>(
    sides: (Side<A>, Side<A>),
    communicator: A::Handle,
    neighbors: bool,
    mpi: impl Fn(Side<A>, Side<A>) -> c_int,
) -> c_int {
    let passed = || mpi(sides.0, sides.1);
    let Some(directions) = directions_of::<A, C>(sides.0, sides.1, communicator, neighbors) else { return passed() };
    if let Some(code) = direct::exchange(&directions, neighbors) {
        return code;
    }
    let mut exchange = match Exchange::stage(&directions, false) {
        Err(Refused(code)) => return code,
        Ok(None) => return passed(),
        Ok(Some(exchange)) => exchange,
    };
    let (out, input) = given(&exchange, &directions);
    let result = mpi(out, input);
    exchange.posted();
    if result == MPI_SUCCESS { exchange.unpack() } else { result }
}

/// A call that makes a request.
///
/// # Safety
///
/// `request` is where the MPI's call, which `mpi` makes, puts the request.
unsafe fn begin<A: Abi, C: Count>(
    sides: (Side<A>, Side<A>),
    communicator: A::Handle,
    (neighbors, persistent): (bool, bool),
    request: *const A::Handle,
    mpi: impl Fn(Side<A>, Side<A>) -> c_int,
) -> c_int {
    let passed = || mpi(sides.0, sides.1);
    let Some(directions) = directions_of::<A, C>(sides.0, sides.1, communicator, neighbors) else { return passed() };
    if !sees_completions::<A>() {
        return passed();
    }
    let decoded = if persistent { decode(&directions) } else { Ok(()) };
    match decoded.and_then(|()| Exchange::stage(&directions, persistent)) {
        Err(Refused(code)) => code,
        Ok(None) => passed(),
        Ok(Some(exchange)) => {
            let (out, input) = given(&exchange, &directions);
            let operation = Operation::of_exchange(exchange, persistent);
            let result = mpi(out, input);
            // SAFETY: as the caller says.
            unsafe { operation.begin(request, result) }
        }
    }
}

/// The types of the calls; counts and displacements are as wide as the program's.
type Blocking<A> = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *const c_void,
    *const <A as Abi>::Handle,
    *const c_void,
    *const c_void,
    *const c_void,
    *const <A as Abi>::Handle,
    <A as Abi>::Handle,
) -> c_int;
type Nonblocking<A> = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *const c_void,
    *const <A as Abi>::Handle,
    *const c_void,
    *const c_void,
    *const c_void,
    *const <A as Abi>::Handle,
    <A as Abi>::Handle,
    *mut <A as Abi>::Handle,
) -> c_int;
type Persistent<A> = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *const c_void,
    *const <A as Abi>::Handle,
    *const c_void,
    *const c_void,
    *const c_void,
    *const <A as Abi>::Handle,
    <A as Abi>::Handle,
    <A as Abi>::Handle,
    *mut <A as Abi>::Handle,
) -> c_int;

/// `MPI_Alltoallw`.
pub unsafe extern "C" fn alltoallw<A: Abi, C: Count, const CALL: usize>(
    sent: *const c_void,
    sent_counts: *const c_void,
    sent_places: *const c_void,
    sent_datatypes: *const A::Handle,
    received: *const c_void,
    received_counts: *const c_void,
    received_places: *const c_void,
    received_datatypes: *const A::Handle,
    communicator: A::Handle,
) -> c_int {
    let out = (sent, sent_counts, sent_places, sent_datatypes);
    let input = (received, received_counts, received_places, received_datatypes);
    // SAFETY: the program's arguments, or staging memory that lives until the call, or its request, has ended.
    let mpi = |out: Side<A>, input: Side<A>| unsafe {
        next::<Blocking<A>>(CALL)(out.0, out.1, out.2, out.3, input.0, input.1, input.2, input.3, communicator)
    };
    exchange::<A, C>((out, input), communicator, false, mpi)
}

/// `MPI_Neighbor_alltoallw`.
pub unsafe extern "C" fn neighbor_alltoallw<A: Abi, C: Count, const CALL: usize>(
    sent: *const c_void,
    sent_counts: *const c_void,
    sent_places: *const c_void,
    sent_datatypes: *const A::Handle,
    received: *const c_void,
    received_counts: *const c_void,
    received_places: *const c_void,
    received_datatypes: *const A::Handle,
    communicator: A::Handle,
) -> c_int {
    let out = (sent, sent_counts, sent_places, sent_datatypes);
    let input = (received, received_counts, received_places, received_datatypes);
    // SAFETY: the program's arguments, or staging memory that lives until the call, or its request, has ended.
    let mpi = |out: Side<A>, input: Side<A>| unsafe {
        next::<Blocking<A>>(CALL)(out.0, out.1, out.2, out.3, input.0, input.1, input.2, input.3, communicator)
    };
    exchange::<A, C>((out, input), communicator, true, mpi)
}

/// `MPI_Ialltoallw`.
pub unsafe extern "C" fn ialltoallw<A: Abi, C: Count, const CALL: usize>(
    sent: *const c_void,
    sent_counts: *const c_void,
    sent_places: *const c_void,
    sent_datatypes: *const A::Handle,
    received: *const c_void,
    received_counts: *const c_void,
    received_places: *const c_void,
    received_datatypes: *const A::Handle,
    communicator: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    let out = (sent, sent_counts, sent_places, sent_datatypes);
    let input = (received, received_counts, received_places, received_datatypes);
    // SAFETY: the program's arguments, or staging memory that lives until the call, or its request, has ended.
    let mpi = |out: Side<A>, input: Side<A>| unsafe {
        next::<Nonblocking<A>>(CALL)(
            out.0,
            out.1,
            out.2,
            out.3,
            input.0,
            input.1,
            input.2,
            input.3,
            communicator,
            request,
        )
    };
    // SAFETY: where the MPI puts the request.
    unsafe { begin::<A, C>((out, input), communicator, (false, false), request, mpi) }
}

/// `MPI_Ineighbor_alltoallw`.
pub unsafe extern "C" fn ineighbor_alltoallw<A: Abi, C: Count, const CALL: usize>(
    sent: *const c_void,
    sent_counts: *const c_void,
    sent_places: *const c_void,
    sent_datatypes: *const A::Handle,
    received: *const c_void,
    received_counts: *const c_void,
    received_places: *const c_void,
    received_datatypes: *const A::Handle,
    communicator: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    let out = (sent, sent_counts, sent_places, sent_datatypes);
    let input = (received, received_counts, received_places, received_datatypes);
    // SAFETY: the program's arguments, or staging memory that lives until the call, or its request, has ended.
    let mpi = |out: Side<A>, input: Side<A>| unsafe {
        next::<Nonblocking<A>>(CALL)(
            out.0,
            out.1,
            out.2,
            out.3,
            input.0,
            input.1,
            input.2,
            input.3,
            communicator,
            request,
        )
    };
    // SAFETY: where the MPI puts the request.
    unsafe { begin::<A, C>((out, input), communicator, (true, false), request, mpi) }
}

/// `MPI_Alltoallw_init`.
pub unsafe extern "C" fn alltoallw_init<A: Abi, C: Count, const CALL: usize>(
    sent: *const c_void,
    sent_counts: *const c_void,
    sent_places: *const c_void,
    sent_datatypes: *const A::Handle,
    received: *const c_void,
    received_counts: *const c_void,
    received_places: *const c_void,
    received_datatypes: *const A::Handle,
    communicator: A::Handle,
    info: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    let out = (sent, sent_counts, sent_places, sent_datatypes);
    let input = (received, received_counts, received_places, received_datatypes);
    // SAFETY: the program's arguments, or staging memory that lives until the call, or its request, has ended.
    let mpi = |out: Side<A>, input: Side<A>| unsafe {
        next::<Persistent<A>>(CALL)(
            out.0,
            out.1,
            out.2,
            out.3,
            input.0,
            input.1,
            input.2,
            input.3,
            communicator,
            info,
            request,
        )
    };
    // SAFETY: where the MPI puts the request.
    unsafe { begin::<A, C>((out, input), communicator, (false, true), request, mpi) }
}

/// `MPI_Neighbor_alltoallw_init`.
pub unsafe extern "C" fn neighbor_alltoallw_init<A: Abi, C: Count, const CALL: usize>(
    sent: *const c_void,
    sent_counts: *const c_void,
    sent_places: *const c_void,
    sent_datatypes: *const A::Handle,
    received: *const c_void,
    received_counts: *const c_void,
    received_places: *const c_void,
    received_datatypes: *const A::Handle,
    communicator: A::Handle,
    info: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    let out = (sent, sent_counts, sent_places, sent_datatypes);
    let input = (received, received_counts, received_places, received_datatypes);
    // SAFETY: the program's arguments, or staging memory that lives until the call, or its request, has ended.
    let mpi = |out: Side<A>, input: Side<A>| unsafe {
        next::<Persistent<A>>(CALL)(
            out.0,
            out.1,
            out.2,
            out.3,
            input.0,
            input.1,
            input.2,
            input.3,
            communicator,
            info,
            request,
        )
    };
    // SAFETY: where the MPI puts the request.
    unsafe { begin::<A, C>((out, input), communicator, (true, true), request, mpi) }
}
