//! Input files of commands: regular files, pipes, devices, and `-` for standard input.

use crate::failure::{Failure, reason};
use crate::mapped::Mapped;
use crate::paths::{STANDARD, shown};
use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// The bytes of an input.
pub enum Input {
    /// The mapped bytes of a regular file.
    Mapped(Mapped),
    /// The bytes that a pipe, a device or standard input gave.
    Read(Vec<u8>),
}

impl Input {
    /// Opens a regular file, or reads the first `most` bytes of a pipe, device or standard input. A pipe waits for its
    /// writer, as with any other program.
    ///
    /// # Errors
    ///
    /// [`Failure::Data`] where there is nothing to read, or too little memory.
    pub fn open(path: &Path, most: u64) -> Result<Input, Failure> {
        let failed = |error| Failure::file(path, "a readable file", &error);
        if path == Path::new(STANDARD) {
            return read(path, &mut io::stdin().lock(), most);
        }
        // Before it is opened: a pipe would wait, and a device might do something.
        readable(path, &std::fs::metadata(path).map_err(failed)?)?;
        let mut file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_file() {
            return Mapped::new(&file).map(Input::Mapped).map_err(|error| Failure::file(path, "a file to map", &error));
        }
        read(path, &mut file, most)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Input::Mapped(file) => file.bytes(),
            Input::Read(bytes) => bytes,
        }
    }
}

fn read(path: &Path, source: &mut dyn Read, most: u64) -> Result<Input, Failure> {
    let mut bytes = Vec::new();
    let read = source.take(most).read_to_end(&mut bytes);
    read.map_err(|error| Failure::data(shown(path), "bytes to read, and memory for them", reason(&error)))?;
    Ok(Input::Read(bytes))
}

fn readable(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let kind = metadata.file_type();
    match kind_name(kind) {
        found @ ("a directory" | "a socket") => {
            Err(Failure::data(path.display(), "a file, pipe or device to read", found))
        }
        _ => Ok(()),
    }
}

/// What a file is, in words.
#[cfg(unix)]
pub fn kind_name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_file() => "a regular file",
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

/// What a file is, in words.
#[cfg(not(unix))]
pub fn kind_name(kind: FileType) -> &'static str {
    if kind.is_file() { "a regular file" } else { "a directory" }
}

/// What tells files apart, whatever their names.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    place: std::path::PathBuf,
}

/// Which file a name leads to, if there is one that can be spoilt by being read and written at once: terminals and
/// devices such as `/dev/null` cannot. `-` is the file that standard input, or output, leads to.
#[cfg(unix)]
pub fn identity(path: &Path, read: bool) -> Option<Identity> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = match (path == Path::new(STANDARD), read) {
        (true, true) => Path::new("/dev/stdin").metadata(),
        (true, false) => Path::new("/dev/stdout").metadata(),
        (false, _) => path.metadata(),
    };
    let metadata = metadata.ok().filter(|metadata| !metadata.file_type().is_char_device())?;
    Some(Identity { device_and_inode: (metadata.dev(), metadata.ino()) })
}

/// Which file a name leads to, if there is one.
#[cfg(not(unix))]
pub fn identity(path: &Path, _: bool) -> Option<Identity> {
    std::fs::canonicalize(path).ok().map(|place| Identity { place })
}
