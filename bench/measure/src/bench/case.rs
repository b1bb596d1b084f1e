//! What is measured: types with their placement in a buffer.

use super::checkout::checkout_file;
use crate::description::{self, Named};
use crate::failure::{Failure, reason};
use crate::recorded::{self, Recorded, RecordedTypes};
use dtc_compiler::datatype::{Datatype, json};
use std::path::{Path, PathBuf};

/// One type to measure.
pub struct Case {
    /// Its name in tables and file names; unique.
    pub name: String,
    /// The type.
    pub datatype: Datatype,
    /// Elements of a transfer.
    pub count: u64,
    /// Where address 0 is when packing.
    pub pack_origin: u64,
    /// The same when unpacking.
    pub unpack_origin: u64,
    /// Bytes of the buffer.
    pub buffer: Option<u64>,
}

impl Case {
    /// Reads a description.
    pub fn read(file: &Path) -> Result<Case, Failure> {
        let Named { name, description } = description::read(file)?;
        let origin = description.origin_bytes;
        Ok(Case {
            name,
            count: description.count,
            pack_origin: origin,
            unpack_origin: origin,
            buffer: description.buffer_bytes,
            datatype: description.datatype,
        })
    }

    /// A recorded type: as many elements as its largest call had.
    fn of_recorded(recorded: &Recorded) -> Case {
        Case {
            name: recorded.name.clone(),
            datatype: recorded.pipeline.datatype().clone(),
            count: recorded.largest_count(),
            pack_origin: 0,
            unpack_origin: 0,
            buffer: None,
        }
    }

    /// The description of the type alone in JSON, below a name, as other programs read it.
    pub fn text(&self) -> String {
        let text = json::write(&self.datatype);
        if text.starts_with("{\"types\"") { text } else { format!("{{\"type\": {text}}}") }
    }
}

/// Reads the files, recordings and folders of both, or the examples of the checkout where there are neither files nor `listed` cases, and keeps the cases whose
/// names contain `only`. Names become those of files.
pub fn collect(files: &[PathBuf], listed: Option<Vec<Case>>, only: Option<&str>) -> Result<Vec<Case>, Failure> {
    let examples = if files.is_empty() && listed.is_none() { examples()? } else { Vec::new() };
    let (recordings, files) = recorded::files(files)?;
    let mut cases = files.iter().chain(&examples).map(|file| Case::read(file)).collect::<Result<Vec<_>, _>>()?;
    // What moved most comes first.
    let RecordedTypes { plain: mut recorded, tabled } = recorded::read(&recordings)?;
    if !tabled.is_empty() {
        eprintln!("dtc: left out {} with index tables; explain has their least traffic", types(tabled.len()));
    }
    recorded.sort_by_key(|recorded| std::cmp::Reverse(recorded.moved()));
    cases.extend(recorded.iter().map(Case::of_recorded));
    cases.extend(listed.into_iter().flatten());
    let mut names: Vec<String> = Vec::new();
    for case in &mut cases {
        let keep = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        let name: String = case.name.chars().map(|character| if keep(character) { character } else { '_' }).collect();
        // Names become file names: none is hidden, an option, or taken.
        let name = if name.starts_with(['.', '-']) || name.is_empty() { format!("type{name}") } else { name };
        let free = |name: &String| !names.contains(name);
        case.name = std::iter::once(name.clone())
            .chain((2..).map(|number| format!("{name}_{number}")))
            .find(free)
            .unwrap_or(name);
        names.push(case.name.clone());
    }
    let Some(text) = only else { return Ok(cases) };
    cases.retain(|case| case.name.contains(text));
    if cases.is_empty() { Err(nothing_named(text)) } else { Ok(cases) }
}

fn types(number: usize) -> String {
    format!("{number} type{}", if number == 1 { "" } else { "s" })
}

/// The failure where no name contains the text of `--only`.
pub fn nothing_named(text: &str) -> Failure {
    Failure::description("--only", "a part of a type's name", format_args!("\"{text}\""))
}

/// The examples of the checkout or the installation.
fn examples() -> Result<Vec<PathBuf>, Failure> {
    let missing = || {
        Failure::description("TYPE.json", "at least one type, outside a checkout and an installation of dtc", "none")
    };
    let folder = checkout_file("ir-examples").ok_or_else(missing)?;
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| Failure::description(folder.display(), "a readable folder", reason(&error)))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    if files.is_empty() { Err(missing()) } else { Ok(files) }
}
