//! `dtc pack`: from a data file to a file of packed bytes.

use super::through_gpu::StagedFile;
use super::transfer::{Arguments as Transferred, FRAGMENT_BYTES, Progress, Transfer, refused};
use crate::array_file::{Expected, Source, is_npy};
use crate::elements;
use crate::npy;
use dtc_measure::failure::{Failure, reason};
use dtc_measure::output::{self, Output};
use dtc_measure::report;
use dtc_runtime::{Memory, Range};
use std::io::Write;

/// Packs a file: writes the bytes of a type, in packed order
///
/// The output appears when it is whole; a run that fails or is interrupted leaves what was there before. An output that
/// ends in .npy has the type's elements, or bytes (|u1) where the type has several kinds of elements, where --offset or --max
/// cuts one, or with --raw. An input that is no regular file is read into memory, as far as the elements reach.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    transfer: Transferred,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let arguments = &arguments.transfer;
    arguments.check_files()?;
    output::not_a_terminal("--out", &arguments.output)?;
    let transfer = Transfer::prepare(arguments)?;
    let requested = transfer.elements.as_ref().map_or(Expected::Bytes, Expected::InMemory);
    let source = Source::open(&arguments.input, transfer.reach(arguments), requested)?;
    // Asks for no bytes, to learn whether all are inside the data before anything is written.
    let checked = transfer.committed.pack(
        Memory::at(source.bytes(), arguments.origin),
        Range::elements(transfer.count).fragment(arguments.offset, 0),
        &mut [0u8; 0],
    );
    checked.map_err(|error| refused(&arguments.input, error))?;

    let wanted = transfer.wanted(arguments);
    let staged = transfer.kinds.map(|kinds| StagedFile::new(kinds, &transfer, arguments, wanted));
    let mut staged = staged.transpose()?;
    let mut output = Output::create(&arguments.output)?;
    if is_npy(&arguments.output) {
        let array = transfer.elements.as_ref().map(|elements| elements.packed_array(arguments.offset, wanted));
        let (descr, count) = array.unwrap_or((elements::BYTES, wanted));
        output.write(&npy::header(descr, count))?;
    }
    match &mut staged {
        Some(staged) => staged.pack(source.bytes(), |fragment| output.write(fragment))?,
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
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let mut fragment = vec![0u8; usize::try_from(wanted.min(FRAGMENT_BYTES)).unwrap_or(usize::MAX)];
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
    let range = |offset, piece: &mut [u8]| match committed.pack(
        Memory::at(source.bytes(), arguments.origin),
        Range::elements(*count).fragment(offset, piece.len() as u64),
        piece,
    ) {
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
