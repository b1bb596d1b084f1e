//! `dtc unpack`: from a file of packed bytes into an existing data file.

use super::through_gpu::StagedFile;
use super::transfer::{Arguments as Transferred, FRAGMENT_BYTES, Progress, Transfer, refused};
use crate::array_file::{Destination, Expected, Source};
use dtc_compiler::layout::Overlap;
use dtc_measure::failure::Failure;
use dtc_measure::paths::{STANDARD, shown};
use dtc_measure::report;
use dtc_runtime::{MemoryMut, Range};
use std::io::Write;
use std::path::Path;

/// Unpacks a file into an existing one: writes the bytes of a type and no others
///
/// The output is an existing regular file, which is changed in place: only the bytes of the type are written, so a run that is
/// interrupted has changed a part of them. Everything is checked before the first byte is written. An input that is no
/// regular file is read into memory first, so that one that ends early changes nothing. Without --offset and --max, the packed file holds exactly the bytes of all elements. With several threads, what
/// begins at offset 0 is moved in one go, without a progress bar; what begins elsewhere is moved by one thread. With
/// --backend cuda the bytes between those of the type are read and written back as they were.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    transfer: Transferred,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let arguments = &arguments.transfer;
    arguments.check_files()?;
    if arguments.output == Path::new(STANDARD) {
        let expected = "an existing file to write into, which keeps the bytes that the type has not";
        return Err(Failure::description("--out", expected, "standard output"));
    }
    let transfer = Transfer::prepare(arguments)?;
    let elements = transfer.elements.as_ref();
    // One more byte tells that there are too many.
    let most = transfer.wanted(arguments).saturating_add(1);
    let source = Source::open(&arguments.input, most, elements.map_or(Expected::Bytes, Expected::Packed))?;
    let packed = packed_bytes(&source, arguments, &transfer)?;
    let mut destination = Destination::open(&arguments.output, elements.map_or(Expected::Bytes, Expected::InMemory))?;
    let (origin, count) = (arguments.origin, transfer.count);
    let failed = |error| refused(&arguments.output, error);
    // Hands over no bytes, to learn whether all are inside the data before anything is changed.
    transfer
        .committed
        .unpack(
            &[0u8; 0],
            Range::elements(count).fragment(arguments.offset, 0),
            MemoryMut::at(destination.bytes_mut(), origin),
        )
        .map_err(failed)?;

    if let Some(kinds) = transfer.kinds {
        let mut staged = StagedFile::new(kinds, &transfer, arguments, packed.len() as u64)?;
        staged.unpack(packed, destination.bytes_mut())?;
    } else if arguments.threads > 1 && arguments.offset == 0 {
        let threads = arguments.threads.into();
        transfer
            .committed
            .unpack_parallel(
                packed,
                Range::elements(count).at_most(packed.len() as u64),
                MemoryMut::at(destination.bytes_mut(), origin),
                threads,
            )
            .map_err(failed)?;
    } else {
        let mut progress = Progress::new(packed.len() as u64);
        let mut done = 0;
        for fragment in packed.chunks(FRAGMENT_BYTES as usize) {
            let offset = arguments.offset + done;
            transfer
                .committed
                .unpack(
                    fragment,
                    Range::elements(count).fragment(offset, fragment.len() as u64),
                    MemoryMut::at(destination.bytes_mut(), origin),
                )
                .map_err(failed)?;
            done += fragment.len() as u64;
            progress.reached(done);
        }
    }
    destination.store(&arguments.output)?;
    writeln!(out, "unpacked {} into {}", report::bytes(packed.len() as u64), arguments.output.display())?;
    match transfer.committed.layout().overlap(Some(count)) {
        Overlap::None => {}
        overlap => writeln!(out, "note: {overlap}")?,
    }
    Ok(())
}

/// The packed bytes to move. A file that is shorter or longer than the call needs is most likely the wrong one.
fn packed_bytes<'a>(source: &'a Source, arguments: &Transferred, transfer: &Transfer) -> Result<&'a [u8], Failure> {
    let packed = source.bytes();
    let (found, wanted) = (packed.len() as u64, transfer.wanted(arguments));
    let fine = match arguments.most {
        Some(_) => found >= wanted,
        None if arguments.offset > 0 => found <= wanted,
        None => found == wanted,
    };
    if !fine {
        let quantity = match arguments.most {
            Some(_) => "at least ",
            None if arguments.offset > 0 => "at most ",
            None => "",
        };
        let expected = format!("{quantity}{wanted} packed bytes");
        return Err(Failure::data(shown(&arguments.input), expected, format_args!("{found} bytes")));
    }
    Ok(&packed[..found.min(wanted) as usize])
}
