//! What the process shares: the engine, and how often the library was initialised.

use crate::info::Info;
use crate::status::Status;
use dtc_runtime::Engine;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering};

/// Made at the first pack. It outlives the last `yaksa_finalize`, since its types may.
static ENGINE: OnceBox<Engine> = OnceBox::new();

/// How many calls of `yaksa_init` have no `yaksa_finalize` yet, times [`ONE_USER`]; and [`HOST_ONLY`].
static USERS: AtomicU64 = AtomicU64::new(0);

/// One of those calls.
const ONE_USER: u64 = 2;

/// Set if the first of them said that no memory is a device's.
const HOST_ONLY: u64 = 1;

/// The engine of all types.
pub(crate) fn engine() -> &'static Engine {
    ENGINE.get_or_init(|| Box::new(Engine::new()))
}

/// Whether no memory is a device's.
#[inline]
pub(crate) fn is_host_only() -> bool {
    USERS.load(Ordering::Relaxed) & HOST_ONLY != 0
}

/// Adds a user. The info of the first one decides about devices.
pub(crate) fn initialise(info: &Info) {
    let first = if info.is_host_only() { ONE_USER | HOST_ONLY } else { ONE_USER };
    let added = |users| Some(if users < ONE_USER { first } else { users + ONE_USER });
    // Every state gives a next one.
    let _ = USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
}

/// Removes a user.
///
/// # Errors
///
/// No user is left.
pub(crate) fn finalise() -> Result<(), Status> {
    let taken = |users: u64| users.checked_sub(ONE_USER);
    USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).map_err(|_| Status::Internal)?;
    Ok(())
}
