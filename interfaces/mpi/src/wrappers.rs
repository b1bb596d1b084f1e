//! What the exported functions call, for each ABI.

use crate::abi::Abi;
use crate::calls::{CALLS, Call, ElementArguments, Function, Table, for_each_call};
use crate::collectives::wrappers::collective;
use crate::completion::{
    request_free, request_get_status, request_get_status_all, request_get_status_any, request_get_status_some, some,
    test, testall, testany, wait, waitall, waitany,
};
use crate::life::{comm_free, finalize, init, type_commit, type_free};
use crate::nonblocking::{imrecv, irecv, isend, isendrecv, isendrecv_replace};
use crate::pack::{pack, unpack};
use crate::persistent::{recv_init, send_init, start, startall};
use crate::point_to_point::{mrecv, recv, send, sendrecv, sendrecv_replace};
use crate::staged::{Message, are_alike, is_left, is_left_at_once};
use crate::words::{Words, with_words};
use std::ffi::c_int;

/// The message, or pack, of these elements.
#[inline(always)]
fn message_of<A: Abi>(words: &Words<'_>, elements: ElementArguments) -> Message<A> {
    let ElementArguments { first, rank, communicator, of, .. } = elements;
    let peer = match rank {
        Some(at) => words.int(at),
        None => A::CONSTANTS.any_source,
    };
    Message { buffer: words.buffer::<A>(first), peer, communicator: words.handle::<A>(communicator), of, uses: 1 }
}

/// Whether the MPI does a call, by what is asked of each of its elements.
macro_rules! is_passed {
    ($words:ident, $is_left:ident) => {
        match $words.arguments().elements() {
            _ if !$words.arguments().may_be_passed() => false,
            [Some(one), None] => $is_left(&message_of::<A>($words, one)),
            [Some(one), Some(other)] => {
                let (one, other) = (message_of::<A>($words, one), message_of::<A>($words, other));
                $is_left(&one) && (are_alike(&one, &other) || $is_left(&other))
            }
            [None, _] => false,
        }
    };
}

/// Whether the MPI does a call, by [`is_left`] of all of its elements.
#[inline(always)]
fn is_passed<A: Abi>(words: &Words<'_>) -> bool {
    is_passed!(words, is_left)
}

/// Whether the MPI does a call for certain, as far as that is known at once.
#[inline(always)]
fn is_passed_at_once<A: Abi>(words: &Words<'_>) -> bool {
    is_passed!(words, is_left_at_once)
}

/// Defines a function `taken` that C calls with these words: it goes on to the MPI if that is known at once, without an array of words, else to the wrapper.
macro_rules! define {
    (($($word:ident)*) $name:ident $wrapper:ident) => {
        unsafe extern "C" fn taken<A: Abi>($($word: usize),*) -> c_int {
            unsafe extern "C" fn served<A: Abi>($($word: usize),*) -> c_int {
                let mut words = [$($word),*];
                let mut words = Words::new(Call::$name, &mut words);
                // SAFETY: the program's arguments.
                unsafe { if is_passed::<A>(&words) { words.mpi() } else { $wrapper::<A>(&mut words) } }
            }
            let mut words = [$($word),*];
            let words = Words::new(Call::$name, &mut words);
            // SAFETY: the program's arguments.
            unsafe { if is_passed_at_once::<A>(&words) { words.mpi() } else { served::<A>($($word),*) } }
        }
    };
}

macro_rules! wrap {
    ($($name:ident $arity:tt $wrapper:ident $count:ty, $arguments:ident;)*) => {
        /// The wrappers for an ABI.
        pub fn wrappers<A: Abi>() -> Table {
            let functions: [Function; CALLS] =
                [$({
                    with_words!($arity define! $name $wrapper);
                    taken::<A> as *const () as Function
                },)*];
            Table(functions)
        }
    };
}

for_each_call!(wrap);
