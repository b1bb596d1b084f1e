//! Which directories and files may be believed: those of the store, and libraries that the environment names.
//!
//! From the root on, every component of a path must belong to this user or root, and no other user may write the
//! directory that holds it, unless the sticky bit keeps others from replacing it. Then nobody else can change what the
//! path means, now or later, so that a path once found good may be used as one.

use crate::{Cause, Finding};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o022;
/// As many as Linux follows.
const LINKS: u32 = 40;

/// Whether another user could have made or changed what this describes.
pub fn check(metadata: &Metadata, sticky_suffices: bool) -> Result<(), Cause> {
    let owner = metadata.uid();
    if owner != 0 && owner != user() {
        return Err(Cause::Owner(owner));
    }
    let mode = metadata.mode() & 0o7777;
    // The mode of a link means nothing.
    let open = mode & OTHERS_WRITE != 0 && !metadata.is_symlink();
    if open && !(sticky_suffices && mode & STICKY != 0) {
        return Err(Cause::Writable(mode));
    }
    Ok(())
}

/// The directory that a path leads to, without links; makes it, and missing parents, for this user alone if asked.
pub fn directory(path: &Path, create: bool) -> Result<PathBuf, Finding> {
    let (here, metadata) = follow(path, create)?;
    if !metadata.is_dir() {
        return Err(Cause::NotDirectory.at(&here));
    }
    // Nobody else puts entries there, sticky or not.
    check(&metadata, false).map_err(|cause| cause.at(&here))?;
    Ok(here)
}

/// Refuses a path that leads to anything but a file that this user or root owns and no other user may write.
pub fn file(path: &Path) -> Result<(), Finding> {
    let (here, metadata) = follow(path, false)?;
    if !metadata.is_file() {
        return Err(Cause::NotRegular.at(&here));
    }
    check(&metadata, false).map_err(|cause| cause.at(&here))
}

/// What a path leads to, without links. Every directory and link on the way is checked, what it leads to is not.
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

/// Adds the components of a path to those that are still to be followed, the first one last.
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
                // Another process was faster; what it made is looked at all the same.
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(Cause::of_write(&error).at(path)),
                _ => fs::symlink_metadata(path).map_err(failed),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Cause::Absent.at(path)),
        found => found.map_err(failed),
    }
}

/// The user whose rights this process has.
pub fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}
