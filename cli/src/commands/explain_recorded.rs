//! What `dtc explain` says first of a recording: the types, and how programs used them.

use dtc_measure::recorded::{Recorded, RecordedTabled};
use dtc_measure::report;
use dtc_runtime::store::RecordedUses;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Columns of a line.
const COLUMNS: usize = 80;

/// Lines of a type's notation that are shown.
const LINES: usize = 3;

/// Prints a paragraph for each type, and then for each with index tables.
pub fn list(types: &[Recorded], tabled: &[RecordedTabled], out: &mut dyn Write) -> io::Result<()> {
    let number = types.len() + tabled.len();
    writeln!(out, "{number} recorded type{}", if number == 1 { "" } else { "s; those that moved most come first" })?;
    for Recorded { name, pipeline, uses, .. } in types {
        let runs = format!("{} runs an element", report::grouped(pipeline.runs()));
        paragraph(name, (uses, &runs), &pipeline.datatype().to_string(), out)?;
    }
    for RecordedTabled { name, datatype, uses } in tabled {
        paragraph(name, (uses, "with index tables"), &datatype.to_string(), out)?;
    }
    Ok(())
}

fn paragraph(name: &str, (uses, more): (&RecordedUses, &str), notation: &str, out: &mut dyn Write) -> io::Result<()> {
    let calls = |number: u64, what: &str, bytes: u64| {
        format!("{} {what}{} of {}", report::grouped(number), if number == 1 { "" } else { "s" }, report::bytes(bytes))
    };
    let (packs, unpacks) =
        (calls(uses.packs, "pack", uses.packed_bytes), calls(uses.unpacks, "unpack", uses.unpacked_bytes));
    writeln!(out, "{name}: {packs}, {unpacks}; {} a call at most; {more}", report::bytes(uses.largest))?;
    write!(out, "{}", report::shortened(notation, LINES, COLUMNS))
}

/// The object of `--json`.
pub fn uses(uses: &RecordedUses) -> Value {
    let RecordedUses { packs, packed_bytes, unpacks, unpacked_bytes, largest } = uses;
    json!({
        "packs": packs,
        "packed_bytes": packed_bytes,
        "unpacks": unpacks,
        "unpacked_bytes": unpacked_bytes,
        "largest": largest,
    })
}
