//! The types that programs recorded (`DTC_RECORD`), and files that name types.

use crate::description::Named;
use crate::failure::{Failure, reason, told};
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::json::Description;
use dtc_compiler::datatype::{TabledDatatype, text};
use dtc_compiler::tabled::TabledLayout;
use dtc_runtime::store::{Finding, RecordedType, RecordedUses, Recording};
use std::path::{Path, PathBuf};

/// Digits of a type's hash in names.
const DIGITS: usize = 12;

/// A type of a recording.
pub struct Recorded {
    /// `type_` and the first digits of its hash.
    pub name: String,
    /// Where it is described, for messages.
    pub place: String,
    /// The type.
    pub pipeline: Pipeline,
    /// How often programs used it.
    pub uses: RecordedUses,
}

impl Recorded {
    /// As a description: with as many elements as the largest call had.
    pub fn named(&self) -> Named {
        let description = Description {
            datatype: self.pipeline.datatype().clone(),
            story: None,
            source: Some(self.place.clone()),
            count: self.largest_count(),
            origin_bytes: 0,
            buffer_bytes: None,
        };
        Named { name: self.name.clone(), description }
    }

    /// Packed bytes that programs moved.
    pub fn moved(&self) -> u64 {
        self.uses.packed_bytes.saturating_add(self.uses.unpacked_bytes)
    }

    /// Elements of the call that moved most; 1 where no call moved any.
    pub fn largest_count(&self) -> u64 {
        (self.uses.largest / self.pipeline.lowered().size().max(1)).max(1)
    }
}

/// A type with index tables of a recording.
pub struct RecordedTabled {
    /// `type_` and the first digits of its digest.
    pub name: String,
    /// The type.
    pub datatype: TabledDatatype,
    /// How often programs used it.
    pub uses: RecordedUses,
}

impl RecordedTabled {
    /// Bytes that programs moved.
    pub fn moved(&self) -> u64 {
        self.uses.packed_bytes.saturating_add(self.uses.unpacked_bytes)
    }
}

/// The types of recordings.
#[derive(Default)]
pub struct RecordedTypes {
    /// Those without index tables.
    pub plain: Vec<Recorded>,
    /// Those with some.
    pub tabled: Vec<RecordedTabled>,
}

/// The types of recordings, each once, with its uses in all. Says on standard error which lines are left out.
///
/// # Errors
///
/// A file cannot be read, or all types are wrong.
pub fn read(files: &[PathBuf]) -> Result<RecordedTypes, Failure> {
    let mut recording = Recording::default();
    for file in files {
        let failed = |finding: Finding| Failure::description(file.display(), "a recording", finding.cause);
        recording.add_file(file).map_err(failed)?;
    }
    let (mut types, mut wrong) = (RecordedTypes::default(), Vec::new());
    for (hash, RecordedType { notations, uses }) in recording.types {
        if notations.is_empty() {
            recording.left_out += 1;
            continue;
        }
        let place = format!("recorded type {hash}");
        // Behind a wrong line of this hash may come a right one.
        for notation in notations {
            match of_line(&hash, &notation) {
                Ok(RecordedLine::Plain(pipeline)) => {
                    let pipeline = *pipeline;
                    types.plain.push(Recorded { name: format!("type_{}", &hash[..DIGITS]), place, pipeline, uses });
                    break;
                }
                Ok(RecordedLine::Tabled(datatype)) => {
                    types.tabled.push(RecordedTabled { name: format!("type_{}", &hash[..DIGITS]), datatype, uses });
                    break;
                }
                Err(error) => wrong.push(format!("{place}: {error}")),
            }
        }
    }
    match recording.left_out {
        0 => {}
        1 => eprintln!("dtc: left out 1 line of the recordings, which is cut short"),
        more => eprintln!("dtc: left out {more} lines of the recordings, which are cut short"),
    }
    if let (true, Some(first)) = (types.plain.is_empty() && types.tabled.is_empty(), wrong.first()) {
        return Err(Failure::Description(first.clone()));
    }
    for error in &wrong {
        eprintln!("dtc: left out {}", told(error));
    }
    Ok(types)
}

/// The type of a line.
enum RecordedLine {
    Plain(Box<Pipeline>),
    Tabled(TabledDatatype),
}

/// The type of a recorded line, or why the line is none.
fn of_line(hash: &str, notation: &str) -> Result<RecordedLine, String> {
    let datatype = text::parse_tabled(notation).map_err(|error| error.to_string())?;
    let (found, size, line) = match datatype.without_tables() {
        Some(datatype) => {
            let pipeline = Pipeline::new(datatype);
            let (hash, size) = (pipeline.hash().to_string(), pipeline.lowered().size());
            (hash, size, RecordedLine::Plain(Box::new(pipeline)))
        }
        None => (TabledLayout::new(&datatype).hash(), datatype.facts().size, RecordedLine::Tabled(datatype)),
    };
    match size {
        _ if found != hash => Err(format!("expected a type with this hash, found {found}")),
        0 => Err("expected a type with bytes, found one without".to_owned()),
        _ => Ok(line),
    }
}

/// The files that paths name, and those in the folders among them: recordings, then descriptions.
///
/// # Errors
///
/// A folder cannot be read, or has no such files.
pub fn files(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |error| Failure::description(path.display(), "a folder of descriptions", reason(&error));
        let mut found = Vec::new();
        for entry in path.read_dir().map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if is_description(&file) {
                found.push(file);
            }
        }
        if found.is_empty() {
            let expected = "files that end in .json, .dtc, .txt or .recorded";
            return Err(Failure::description(path.display(), expected, "none"));
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files.into_iter().partition(|file| Recording::is_file_name(file)))
}

fn is_description(file: &Path) -> bool {
    let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    (matches!(extension.as_deref(), Some("json" | "dtc" | "txt")) || Recording::is_file_name(file)) && file.is_file()
}
