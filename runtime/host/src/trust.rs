//! Trusted directories and files: those of the store, and libraries that the environment names.
//!
//! Every component of a path, from the root on, must belong to this user or root. No other user may write the directory
//! that holds it, unless its sticky bit keeps others from replacing the component. Then no other user can change the
//! meaning of the path, now or later, so a checked path stays trusted.
//!
//! The crate fs-mistrust has other rules: it also trusts the group that has the user's name, for which it asks the user database,
//! whose locks a forked child may wait for; and an environment variable turns it off.

use crate::{Cause, Finding};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o022;
/// Most links that a path may contain; Linux has the same limit.
const LINKS: u32 = 40;

/// Refuses a file that another user could have created or changed.
pub fn check(metadata: &Metadata, sticky_suffices: bool) -> Result<(), Cause> {
    let owner = metadata.uid();
    if owner != 0 && owner != user() {
        return Err(Cause::Owner(owner));
    }
    let mode = metadata.mode() & 0o7777;
    // The mode of a link has no meaning.
    let open = mode & OTHERS_WRITE != 0 && !metadata.is_symlink();
    if open && !(sticky_suffices && mode & STICKY != 0) {
        return Err(Cause::Writable(mode));
    }
    Ok(())
}

/// The directory at the end of a path, without links. With `create`, makes it and its missing parents for this user
/// alone.
pub fn directory(path: &Path, create: bool) -> Result<PathBuf, Finding> {
    let (here, metadata) = follow(path, create)?;
    if !metadata.is_dir() {
        return Err(Cause::NotDirectory.at(&here));
    }
    // No other user may add entries, so the sticky bit does not suffice.
    check(&metadata, false).map_err(|cause| cause.at(&here))?;
    Ok(here)
}

/// Refuses a path unless it leads to a regular file that this user or root owns and no other user may write.
pub fn file(path: &Path) -> Result<(), Finding> {
    let (here, metadata) = follow(path, false)?;
    if !metadata.is_file() {
        return Err(Cause::NotRegular.at(&here));
    }
    check(&metadata, false).map_err(|cause| cause.at(&here))
}

/// Resolves a path without links. Checks every directory and link on it, but not its target.
fn follow(path: &Path, create: bool) -> Result<(PathBuf, Metadata), Finding> {
    let whole = std::path::absolute(path).map_err(|error| Cause::of_read(&error).at(path))?;
    let mut pending = Vec::new();
    push(&mut pending, &whole);
    let mut here = PathBuf::from("/");
    let mut metadata = fs::symlink_metadata(&here).map_err(|error| Cause::of_read(&error).at(&here))?;
    let mut links = 0;
    while let Some(name) = pending.pop() {
        if !metadata.is_dir() {
            return Err(Cause::NotDirectory.at(&here));
        }
        check(&metadata, true).map_err(|cause| cause.at(&here))?;
        if name == ".." {
            here.pop();
            metadata = fs::symlink_metadata(&here).map_err(|error| Cause::of_read(&error).at(&here))?;
            continue;
        }
        let next = here.join(&name);
        let found = look(&next, create)?;
        if found.is_symlink() {
            check(&found, true).map_err(|cause| cause.at(&next))?;
            links += 1;
            if links > LINKS {
                return Err(Cause::SymbolicLink.at(&next));
            }
            let target = fs::read_link(&next).map_err(|error| Cause::of_read(&error).at(&next))?;
            if target.is_absolute() {
                here = PathBuf::from("/");
                metadata = fs::symlink_metadata(&here).map_err(|error| Cause::of_read(&error).at(&here))?;
            }
            push(&mut pending, &target);
        } else {
            here = next;
            metadata = found;
        }
    }
    Ok((here, metadata))
}

/// Pushes the components of a path, so that the first one is popped first.
fn push(pending: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    pending.extend(names);
}

fn look(path: &Path, create: bool) -> Result<Metadata, Finding> {
    let failed = |error: io::Error| Cause::of_read(&error).at(path);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && create => {
            match DirBuilder::new().mode(0o700).create(path) {
                // Another process has created the directory; it is checked like any other.
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(Cause::of_write(&error).at(path)),
                _ => fs::symlink_metadata(path).map_err(failed),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Cause::Absent.at(path)),
        found => found.map_err(failed),
    }
}

/// The effective user of this process.
pub fn user() -> u32 {
    // SAFETY: `geteuid` has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}
