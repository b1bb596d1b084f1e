//! A folder that appears when it is whole, or not at all.

use crate::failure::Failure;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that is being made.
pub struct Folder {
    target: PathBuf,
    /// A hidden folder beside the target, and in it what becomes the target. Dropping removes it.
    unfinished: TempDir,
}

impl Folder {
    /// Prepares a folder that will be `target`.
    pub fn create(target: &Path) -> Result<Folder, Failure> {
        if target.symlink_metadata().is_ok() {
            return Err(Failure::data(target.display(), "a name for a new folder", "one that exists"));
        }
        let failed = |error: io::Error| Failure::file(target, "a folder to write", &error);
        let target = std::path::absolute(target).map_err(failed)?;
        let parent = target.parent().unwrap_or(Path::new("/"));
        let unfinished = tempfile::Builder::new().prefix(".dtc-").tempdir_in(parent).map_err(failed)?;
        let folder = Folder { target: target.clone(), unfinished };
        make_folder(&folder.inside()).map_err(failed)?;
        Ok(folder)
    }

    fn inside(&self) -> PathBuf {
        self.unfinished.path().join("whole")
    }

    /// Writes a file, and the folders that lead to it.
    pub fn add(&mut self, file: PathBuf, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        let path = self.inside().join(&file);
        let written = make_folder(path.parent().unwrap_or(&path))
            .and_then(|()| readable().write(true).create_new(true).open(&path))
            .and_then(|mut created| created.write_all(bytes.as_ref()));
        written.map_err(|error| Failure::file(&self.target.join(file), "room for the output", &error))
    }

    /// Puts the folder in its place.
    pub fn finish(self) -> Result<(), Failure> {
        let renamed = fs::rename(self.inside(), &self.target);
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
