//! Which calls of the program come to this library: a tool may see them first, and calls of Fortran may bypass it.

use crate::abi::Abi;
use crate::calls::{NAMES, has};
use crate::find::{Provider, provider};
use crate::redirect;
use crate::report::say;
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether all calls that complete requests come here, so that no end of an operation is missed.
#[cold]
fn find<A: Abi>() -> bool {
    let here = |(call, name): (usize, &&std::ffi::CStr)| !has(call) || provider(name) == Provider::Here;
    let mut seen = NAMES.iter().enumerate().all(here);
    // These call functions of the MPI that are not interposed, for requests that may come from here.
    seen = seen && provider(c"mpi_wait_f08_") != Provider::Elsewhere;
    if A::IS_OPEN_MPI {
        seen = seen && (redirect::is_redirected() || provider(c"mpi_wait_") != Provider::Elsewhere);
    }
    if !seen {
        say("leaves nonblocking messages to the MPI", "some calls that complete them do not come here");
    }
    seen
}

/// Whether all calls that complete requests come here.
#[inline]
pub fn sees_completions<A: Abi>() -> bool {
    const UNKNOWN: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known == 1;
    }
    let seen = find::<A>();
    KNOWN.store(seen.into(), Ordering::Relaxed);
    seen
}
