//! What `dtc explain` says first of a recording: the types, and how programs used them.

use dtc_measure::recorded::Recorded;
use dtc_measure::report;
use std::io::{self, Write};

/// Columns of a line.
const COLUMNS: usize = 80;

/// Lines of a type's notation that are shown.
const LINES: usize = 3;

/// Prints a paragraph for each type.
pub fn list(types: &[Recorded], out: &mut dyn Write) -> io::Result<()> {
    let number = types.len();
    writeln!(out, "{number} recorded type{}", if number == 1 { "" } else { "s; those that moved most come first" })?;
    for Recorded { name, pipeline, uses, .. } in types {
        let calls = |number: u64, what: &str, bytes: u64| {
            format!(
                "{} {what}{} of {}",
                report::grouped(number),
                if number == 1 { "" } else { "s" },
                report::bytes(bytes)
            )
        };
        let (packs, unpacks) =
            (calls(uses.packs, "pack", uses.packed_bytes), calls(uses.unpacks, "unpack", uses.unpacked_bytes));
        let runs = report::grouped(pipeline.runs());
        writeln!(
            out,
            "{name}: {packs}, {unpacks}; {} a call at most; {runs} runs an element",
            report::bytes(uses.largest)
        )?;
        write!(out, "{}", report::shortened(&pipeline.datatype().to_string(), LINES, COLUMNS))?;
    }
    Ok(())
}
