//! A folder that appears when it is whole, or not at all.

use crate::failure::Failure;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that will be made. What it holds is kept in memory until then, so that a process that is killed while it compiles leaves
/// nothing.
pub struct Folder {
    target: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Folder {
    /// Prepares a folder that will be `target`, if that can be made.
    pub fn create(target: &Path) -> Result<Folder, Failure> {
        if target.symlink_metadata().is_ok() {
            return Err(Failure::data(target.display(), "a name for a new folder", "one that exists"));
        }
        let failed = |error: io::Error| Failure::file(target, "a folder to write", &error);
        let folder = Folder { target: std::path::absolute(target).map_err(failed)?, files: Vec::new() };
        folder.unfinished().map_err(failed)?;
        Ok(folder)
    }

    /// A hidden folder beside the target. Dropping removes it.
    fn unfinished(&self) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix(".dtc-").tempdir_in(self.target.parent().unwrap_or(Path::new("/")))
    }

    /// Adds a file.
    pub fn add(&mut self, file: PathBuf, bytes: impl Into<Vec<u8>>) {
        self.files.push((file, bytes.into()));
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
        let renamed = fs::rename(whole, &self.target);
        renamed.map_err(|error| Failure::file(&self.target, "a name for a new folder", &error))
    }
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
