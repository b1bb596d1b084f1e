//! A folder that appears when it is whole, or not at all. It takes the place of an earlier output of the command.

use crate::manifest;
use dtc_measure::failure::Failure;
use dtc_measure::output::Scratch;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder that will be made. What it holds is kept in memory until then, so that a process that is killed while it compiles leaves
/// nothing.
pub struct Folder {
    target: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Folder {
    /// Prepares a folder that will be `target`, if that can be made or is an output of the command, and of nothing else.
    pub fn create(target: &Path) -> Result<Folder, Failure> {
        replaceable(target)?;
        let failed = |error: io::Error| Failure::file(target, "a folder to write", &error);
        let folder = Folder { target: std::path::absolute(target).map_err(failed)?, files: Vec::new() };
        folder.unfinished().map_err(failed)?;
        Ok(folder)
    }

    /// A hidden folder beside the target. Dropping removes it, and the next run does if this one is killed.
    fn unfinished(&self) -> io::Result<Scratch> {
        let mut hasher = DefaultHasher::new();
        self.target.file_name().hash(&mut hasher);
        let folder = self.target.parent().unwrap_or(Path::new("/"));
        Scratch::within(folder, &format!(".dtc-{:016x}", hasher.finish()))
    }

    /// Adds a file.
    pub fn add(&mut self, file: PathBuf, bytes: impl Into<Vec<u8>>) {
        self.files.push((file, bytes.into()));
    }

    /// The names of the files so far, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.files.iter().map(|(file, _)| file.display().to_string()).collect();
        names.sort();
        names
    }

    /// Writes the folder, and puts it in its place.
    pub fn finish(self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::file(&self.target, "a folder to write", &error);
        let unfinished = self.unfinished().map_err(failed)?;
        let whole = unfinished.path().join("whole");
        make_folder(&whole).map_err(failed)?;
        for (file, bytes) in &self.files {
            let path = whole.join(file);
            let written = make_folder(path.parent().unwrap_or(&path))
                .and_then(|()| readable().write(true).create_new(true).open(&path))
                .and_then(|mut created| created.write_all(bytes));
            written.map_err(|error| Failure::file(&self.target.join(file), "room for the output", &error))?;
        }
        let renamed = if replaceable(&self.target)? {
            // What was there vanishes with the unfinished folder.
            exchange(&whole, &self.target).or_else(|_| {
                fs::rename(&self.target, unfinished.path().join("before"))?;
                fs::rename(&whole, &self.target)
            })
        } else {
            fs::rename(whole, &self.target)
        };
        renamed.map_err(|error| Failure::file(&self.target, "a name for a new folder", &error))
    }
}

/// Whether something has the name, which is an output of this command then.
///
/// # Errors
///
/// Something else has it, or the output holds files that others put there.
fn replaceable(target: &Path) -> Result<bool, Failure> {
    let Ok(metadata) = target.symlink_metadata() else { return Ok(false) };
    let expected = "a name for a new folder, or an output of dtc build";
    let refused = |found: String| Failure::data(target.display(), expected, found);
    let listed = manifest::files(&target.join(manifest::NAME)).filter(|_| metadata.is_dir());
    let Some(listed) = listed else { return Err(refused("something else that exists".to_owned())) };
    let mut folders = vec![target.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error: io::Error| Failure::file(&folder, "a folder to read", &error);
        for entry in folder.read_dir().map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(target).unwrap_or(&path).display().to_string();
            if name != manifest::NAME && !listed.contains(&name) {
                return Err(refused(format!("one with another file, {name}")));
            }
        }
    }
    Ok(true)
}

/// Has two folders change their names in one step, where the system can.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes a folder, and those that lead to it, which others may not write whatever the file mode mask says: the runtime refuses such
/// bundles.
fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.recursive(true).create(path)
}

/// How files are made, which others may not write either.
fn readable() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options
}
