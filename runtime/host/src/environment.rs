//! Variables of the environment that may be trusted, and the files that they name.
//!
//! This is the one place where the engine reads the environment. A program with more rights than the user who started it (the
//! system says so by `AT_SECURE`: set-user-id, set-group-id, file capabilities) is given no variable at all. In any other program
//! a file that a variable leads to is opened only if no other user could have put it there or changed it, by the rules of
//! [`trust`].

use crate::{Finding, trust};
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A variable that is set and not empty; nothing in a program with more rights than its user.
pub fn variable(name: &CStr) -> Option<OsString> {
    if is_privileged() {
        return None;
    }
    // The standard library's function takes a lock, which a thread of the parent may hold in a forked child.
    // SAFETY: the name ends with a NUL byte. The value is read at once; that nobody changes the environment meanwhile is the duty
    // of whoever does, since every C library reads it at any time.
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

/// Refuses a file that another user could have put where a path from the environment leads, or could change. A bare name passes:
/// the loader looks it up where the system and `LD_LIBRARY_PATH` say.
pub fn check_file(path: &Path) -> Result<(), Finding> {
    if path.as_os_str().as_bytes().contains(&b'/') { trust::file(path) } else { Ok(()) }
}

/// Whether the program has more rights than the user who started it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_privileged() -> bool {
    // SAFETY: any number may be asked for.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether the program has more rights than the user who started it.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_privileged() -> bool {
    // SAFETY: none of them takes anything or can fail.
    unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() }
}
