//! Environment variables that are safe to obey, and the files that they name.
//!
//! Only this module reads the environment for the engine. A program with more rights than the user who started it
//! (`AT_SECURE`: set-user-id, set-group-id, file capabilities) gets no variable at all. Any other program opens a file
//! named by a variable only if no other user could have created or changed it, by the rules of [`trust`].

use crate::{Finding, trust};
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A variable that is set and not empty; `None` in a program with more rights than its user.
pub fn variable(name: &CStr) -> Option<OsString> {
    if is_privileged() {
        return None;
    }
    // `std::env::var_os` takes a lock, which a thread of the parent may hold in a forked child.
    // SAFETY: `name` ends in a NUL byte, and the value is copied before this returns. A program that changes its
    // environment while another thread runs breaks every C library, so it must not do so.
    let value = unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    };
    value.map(|value| OsStr::from_bytes(value.to_bytes()).to_owned()).filter(|value| !value.is_empty())
}

/// A path from such a variable.
pub fn path(name: &CStr) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

/// Refuses a file that another user could have created or changed. A bare name passes: the loader searches it where the
/// system and `LD_LIBRARY_PATH` say.
pub fn check_file(path: &Path) -> Result<(), Finding> {
    if path.as_os_str().as_bytes().contains(&b'/') { trust::file(path) } else { Ok(()) }
}

/// Whether the program has more rights than the user who started it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_privileged() -> bool {
    // SAFETY: `getauxval` accepts any number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether the program has more rights than the user who started it.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_privileged() -> bool {
    // SAFETY: the four functions have no preconditions and cannot fail.
    unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() }
}
