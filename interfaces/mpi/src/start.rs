//! When the library begins: with the first datatype that is decoded, or in `MPI_Init` where others have to know of this process.

use crate::abi::{Abi, MPI_SUCCESS};
use crate::pmpi::pmpi;
use crate::report::say;
use dtc_mpi_table::said::LEAVES_ALL;
use once_cell::race::OnceBox;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

/// Nothing has begun, a thread begins, calls may be handled, or all are left to the MPI.
const WAITING: u8 = 0;
const STARTING: u8 = 1;
const READY: u8 = 2;
const PASS_THROUGH: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(WAITING);

/// What is done when the library begins; whether that works.
static BEGIN: OnceBox<fn() -> bool> = OnceBox::new();

/// Says what is done when the library begins, before any call asks.
pub fn on_begin(begin: fn() -> bool) {
    let _ = BEGIN.set(Box::new(begin));
}

/// Whether all calls are left to the MPI: it packs or receives other bytes, or ends.
#[inline]
pub fn passes_through() -> bool {
    STATE.load(Ordering::Acquire) == PASS_THROUGH
}

/// Whether calls are handled.
pub fn has_begun() -> bool {
    STATE.load(Ordering::Acquire) == READY
}

/// Whether calls may be handled; begins at the first that asks.
#[inline]
pub fn is_ready<A: Abi>() -> bool {
    has_begun() || start::<A>()
}

/// A question to the MPI about itself.
fn asks(question: unsafe extern "C" fn(*mut c_int) -> c_int) -> bool {
    let mut answer = 0;
    // SAFETY: MPI_Initialized and MPI_Finalized may be called at any time. (MPI 4.1, 11.4.1)
    let told = unsafe { question(&mut answer) };
    told == MPI_SUCCESS && answer != 0
}

#[cold]
#[inline(never)]
fn start<A: Abi>() -> bool {
    let pmpi = pmpi::<A>();
    // There is no communicator to test with before MPI_Init; a program that only has sessions keeps its MPI.
    if STATE.load(Ordering::Relaxed) != WAITING || !asks(pmpi.initialized) || asks(pmpi.finalized) {
        return false;
    }
    // Other threads go on to the MPI meanwhile.
    if STATE.compare_exchange(WAITING, STARTING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return false;
    }
    let works = BEGIN.get().is_some_and(|begin| begin());
    if !works {
        say(LEAVES_ALL, "the MPI packs or receives other bytes than dtc");
    }
    STATE.store(if works { READY } else { PASS_THROUGH }, Ordering::Release);
    works
}

/// Leaves all calls to the MPI; whether any was handled before.
pub fn end() -> bool {
    STATE.swap(PASS_THROUGH, Ordering::AcqRel) == READY
}
