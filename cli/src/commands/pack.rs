//! `dtc pack`: from a data file to a file of packed bytes.

use super::through_gpu::Passage;
use super::transfer::{Arguments as Transferred, FRAGMENT_BYTES, Progress, Transfer, refused};
use crate::array_file::{Source, is_npy, npy_header};
use crate::failure::{Failure, reason};
use crate::report;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Packs a file: writes the bytes of a type, in packed order
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    transfer: Transferred,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let arguments = &arguments.transfer;
    let transfer = Transfer::prepare(arguments)?;
    let source = Source::open(&arguments.input)?;
    // Asks for no bytes, to learn whether all lie inside the data before anything is written.
    let checked = transfer.committed.pack(source.bytes(), arguments.origin, transfer.count, arguments.offset, &mut []);
    checked.map_err(|error| refused(&arguments.input, error))?;

    let wanted = transfer.wanted(arguments);
    let passage = transfer.kinds.map(|kinds| Passage::new(kinds, &transfer, arguments, wanted));
    let mut passage = passage.transpose()?;
    let mut output = Output::create(&arguments.output)?;
    if is_npy(&arguments.output) {
        output.write(&npy_header(wanted))?;
    }
    match &mut passage {
        Some(passage) => passage.pack(source.bytes(), |fragment| output.write(fragment))?,
        None => pack_all(&transfer, &source, arguments, wanted, &mut output)?,
    }
    let regular = output.finish()?;
    if regular {
        writeln!(out, "packed {} into {}", report::bytes(wanted), arguments.output.display())?;
    }
    Ok(())
}

/// Packs on the CPU, fragment by fragment.
fn pack_all(
    transfer: &Transfer,
    source: &Source,
    arguments: &Transferred,
    wanted: u64,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut fragment = vec![0; usize::try_from(wanted.min(FRAGMENT_BYTES)).unwrap_or(usize::MAX)];
    let mut progress = Progress::new(wanted);
    let mut done = 0;
    while done < wanted {
        let take = (wanted - done).min(FRAGMENT_BYTES) as usize;
        pack(transfer, source, arguments, arguments.offset + done, &mut fragment[..take])?;
        output.write(&fragment[..take])?;
        done += take as u64;
        progress.reached(done);
    }
    Ok(())
}

/// Packs a fragment, by several threads if asked for.
fn pack(
    transfer: &Transfer,
    source: &Source,
    arguments: &Transferred,
    offset: u64,
    fragment: &mut [u8],
) -> Result<(), Failure> {
    let Transfer { committed, count, .. } = transfer;
    let range = |offset, piece: &mut [u8]| match committed.pack(source.bytes(), arguments.origin, *count, offset, piece)
    {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(&arguments.input, error)),
    };
    if arguments.threads == 1 {
        return range(offset, fragment);
    }
    // Whole pages, so that no two threads share a line of the packed side.
    let piece = fragment.len().div_ceil(arguments.threads.into()).next_multiple_of(4096);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, part) in fragment.chunks_mut(piece).enumerate() {
            let start = offset + (index * piece) as u64;
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || range(start, part));
            threads.push(thread.map_err(|error| {
                Failure::description("--threads", "as many threads as the system starts", reason(&error))
            })?);
        }
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// A file that appears whole or not at all: it is written beside its place and renamed. What is there but no regular
/// file, such as a pipe, is written directly.
struct Output<'a> {
    path: &'a Path,
    file: File,
    temporary: Option<Temporary>,
}

/// Removes the unfinished file, unless it was renamed.
struct Temporary {
    path: PathBuf,
    target: PathBuf,
    renamed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // A file that cannot be removed is left behind; the failure that led here is what counts.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Output<'_> {
    fn create(path: &Path) -> Result<Output<'_>, Failure> {
        let failed = |error| Failure::file(path, "a file to write", &error);
        // A symbolic link stays one: what it leads to is replaced.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let existing = std::fs::metadata(&target).ok();
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(&target).map_err(failed)?;
            return Ok(Output { path, file, temporary: None });
        }
        let Some(name) = target.file_name() else {
            return Err(Failure::data(path.display(), "the name of a file", "none"));
        };
        let hidden = target.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
        let file = File::options().write(true).create_new(true).open(&hidden).map_err(failed)?;
        let temporary = Temporary { path: hidden, target, renamed: false };
        if let Some(existing) = existing {
            file.set_permissions(existing.permissions()).map_err(failed)?;
        }
        Ok(Output { path, file, temporary: Some(temporary) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| Failure::file(self.path, "room for the packed bytes", &error))
    }

    /// Puts the file in its place; says whether it is a regular one.
    fn finish(mut self) -> Result<bool, Failure> {
        let failed = |error| Failure::file(self.path, "a file to write", &error);
        let Some(temporary) = &mut self.temporary else { return Ok(false) };
        self.file.sync_all().map_err(failed)?;
        std::fs::rename(&temporary.path, &temporary.target).map_err(failed)?;
        temporary.renamed = true;
        Ok(true)
    }
}
