//! What the process shares: the engine, and how often the library was initialised.

use crate::info::Info;
use crate::status::Status;
use dtc_runtime::Engine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Made at the first pack. It outlives the last `yaksa_finalize`, since its types may.
static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::new);

/// How many calls of `yaksa_init` have no `yaksa_finalize` yet.
static USERS: Mutex<u64> = Mutex::new(0);

/// Whether the first of them said that no memory is a device's.
static HOST_ONLY: AtomicBool = AtomicBool::new(false);

/// The engine of all types.
pub(crate) fn engine() -> &'static Engine {
    &ENGINE
}

/// Whether no memory is a device's.
#[inline]
pub(crate) fn is_host_only() -> bool {
    HOST_ONLY.load(Ordering::Relaxed)
}

/// Adds a user. The info of the first one decides about devices.
pub(crate) fn initialise(info: &Info) {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    *users += 1;
    if *users == 1 {
        HOST_ONLY.store(info.is_host_only(), Ordering::Relaxed);
    }
}

/// Takes a user away.
///
/// # Errors
///
/// There is none.
pub(crate) fn finalise() -> Result<(), Status> {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    *users = users.checked_sub(1).ok_or(Status::Internal)?;
    Ok(())
}
