//! The calls: blocking, nonblocking and persistent ones, of all processes or of neighbors. Their arguments begin with memory, counts,
//! displacements and datatypes of what is sent, the same of what is received, and the communicator.

use super::arguments::{BlockArguments, absent_neighbors, degrees};
use super::direct;
use super::exchange::{Directions, Exchange};
use crate::abi::{Abi, MPI_SUCCESS};
use crate::calls::is_of_neighbors;
use crate::memory::has_gpu;
use crate::operations::{Collective as _, Operation};
use crate::rent::Refused;
use crate::seen::sees_completions;
use crate::start::{is_ready, passes_through};
use crate::words::Words;
use std::ffi::c_int;

/// The place of the communicator among the arguments.
const COMMUNICATOR: usize = 8;

/// Whether the library may do a part of a collective.
fn may_exchange<A: Abi>() -> bool {
    !passes_through() && (!has_gpu() || is_ready::<A>())
}

/// The arguments of one direction, from the argument `first` on. Displacements of neighbors are wide in all forms.
fn given_at<A: Abi>(words: &Words<'_>, first: usize, length: usize, neighbors: bool) -> BlockArguments<A> {
    BlockArguments {
        length,
        wide_counts: words.is_wide(),
        wide_places: words.is_wide() || neighbors,
        memory: words.address(first),
        counts: words.address(first + 1),
        places: words.address(first + 2),
        datatypes: words.address(first + 3),
        absent: 0,
    }
}

/// Both directions of a call, as the program gives them; none if dtc has no part in it.
fn directions_of<A: Abi>(words: &Words<'_>, neighbors: bool) -> Option<Directions<A>> {
    if !may_exchange::<A>() {
        return None;
    }
    let communicator = words.handle::<A>(COMMUNICATOR);
    let (out_length, length) = degrees::<A>(communicator, neighbors)?;
    let absent = if neighbors { absent_neighbors::<A>(communicator, length) } else { 0 };
    let in_place = words.word(0) == A::IN_PLACE as usize;
    let out = given_at(words, 0, if in_place { 0 } else { out_length }, neighbors);
    let input = given_at(words, 4, length, neighbors);
    Some(Directions {
        out: BlockArguments { absent, ..out },
        input: BlockArguments { absent, ..input },
        in_place,
        communicator,
    })
}

/// Puts what the MPI is given of a direction in the place of the program's arguments.
fn put<A: Abi>(words: &mut Words<'_>, first: usize, given: &BlockArguments<A>) {
    let BlockArguments { memory, counts, places, datatypes, .. } = *given;
    for (at, word) in [memory as usize, counts as usize, places as usize, datatypes as usize].into_iter().enumerate() {
        words.put(first + at, word);
    }
}

/// The same of both directions.
fn put_both<A: Abi>(words: &mut Words<'_>, exchange: &Exchange<A>, of_program: &Directions<A>) {
    let given = exchange.given(of_program);
    put(words, 0, &given.out);
    put(words, 4, &given.input);
    if of_program.in_place {
        words.put(0, A::IN_PLACE as usize);
    }
}

/// A blocking call.
///
/// # Safety
///
/// The arguments are those of the program.
unsafe fn exchange<A: Abi>(words: &mut Words<'_>, neighbors: bool) -> c_int {
    // SAFETY: as the caller says, or staging memory that lives until the call has ended.
    unsafe {
        let Some(directions) = directions_of::<A>(words, neighbors) else { return words.mpi() };
        if let Some(code) = direct::exchange(&directions, neighbors) {
            return code;
        }
        let mut exchange = match Exchange::stage(&directions, false) {
            Err(Refused(code)) => return code,
            Ok(None) => return words.mpi(),
            Ok(Some(exchange)) => exchange,
        };
        put_both(words, &exchange, &directions);
        let result = words.mpi();
        exchange.posted();
        if result == MPI_SUCCESS { exchange.unpack() } else { result }
    }
}

/// A call that makes a request: the argument `request`.
///
/// # Safety
///
/// The arguments are those of the program.
unsafe fn begin<A: Abi>(words: &mut Words<'_>, neighbors: bool, persistent: bool, request: usize) -> c_int {
    // SAFETY: as the caller says, or staging memory that the operation holds.
    unsafe {
        let Some(directions) = directions_of::<A>(words, neighbors).filter(|_| sees_completions::<A>()) else {
            return words.mpi();
        };
        match Exchange::stage(&directions, persistent) {
            Err(Refused(code)) => code,
            Ok(None) => words.mpi(),
            Ok(Some(exchange)) => {
                put_both(words, &exchange, &directions);
                let operation = Operation::<A>::of_exchange(Box::new(exchange), persistent);
                let result = words.mpi();
                operation.begin(words.address(request), result)
            }
        }
    }
}

/// `MPI_Alltoallw` and `MPI_Neighbor_alltoallw`; nonblocking ones have a request behind the communicator, persistent ones info and request.
pub unsafe fn collective<A: Abi>(words: &mut Words<'_>) -> c_int {
    let (neighbors, last) = (is_of_neighbors(words.call()), words.all().len() - 1);
    // SAFETY: the program's arguments.
    unsafe {
        match last {
            COMMUNICATOR => exchange::<A>(words, neighbors),
            _ => begin::<A>(words, neighbors, last > COMMUNICATOR + 1, last),
        }
    }
}
