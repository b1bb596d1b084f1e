//! The types that are built, with the names of their functions.

use crate::description;
use crate::failure::{Failure, reason};
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::text;
use dtc_runtime::store::{Finding, RecordedType, RecordedUses, Recording};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A type under the name that its functions begin with.
pub struct BuiltType {
    pub name: String,
    /// Where it is described, for messages.
    pub place: String,
    pub pipeline: Pipeline,
    /// How often programs used it, if it was recorded.
    pub uses: Option<RecordedUses>,
}

/// Reads descriptions and recordings, and those in folders, in the order of the names of their functions. These differ in more than
/// the case of letters: macros of the header are in capitals.
pub fn read(paths: &[PathBuf]) -> Result<Vec<BuiltType>, Failure> {
    let mut types: BTreeMap<String, BuiltType> = BTreeMap::new();
    let (recordings, descriptions): (Vec<_>, Vec<_>) =
        files(paths)?.into_iter().partition(|file| Recording::is_file_name(file));
    for built in recorded(&recordings)? {
        types.insert(built.name.to_lowercase(), built);
    }
    for file in descriptions {
        let description::Named { name, description } = description::read(&file)?;
        let name = identifier(&name).ok_or_else(|| {
            let expected = "a file whose name begins with a letter, for functions to be named by";
            Failure::description(file.display(), expected, format_args!("{name:?}"))
        })?;
        let pipeline = Pipeline::new(description.datatype);
        if pipeline.lowered().size() == 0 {
            return Err(Failure::description(file.display(), "a type with bytes", "one without"));
        }
        if let Some(other) = types.get(&name.to_lowercase()) {
            let found = format_args!("{}, as for {}", other.name, other.place);
            return Err(Failure::description(file.display(), "functions with a name of their own", found));
        }
        types.insert(name.to_lowercase(), BuiltType { name, place: file.display().to_string(), pipeline, uses: None });
    }
    Ok(types.into_values().collect())
}

/// Digits of a type's hash in the names of its functions.
const DIGITS: usize = 12;

/// The types of recordings, each once, with its uses in all.
fn recorded(files: &[PathBuf]) -> Result<Vec<BuiltType>, Failure> {
    let mut recording = Recording::default();
    for file in files {
        let failed = |finding: Finding| Failure::description(file.display(), "a recording", finding.cause);
        recording.add_file(file).map_err(failed)?;
    }
    let mut types = Vec::new();
    for (hash, RecordedType { notation, uses }) in recording.types {
        if notation.is_empty() {
            recording.left_out += 1;
            continue;
        }
        let place = format!("recorded type {hash}");
        let datatype = text::parse(&notation).map_err(|error| Failure::Description(format!("{place}: {error}")))?;
        let pipeline = Pipeline::new(datatype);
        let found = pipeline.hash().to_string();
        if found != hash {
            return Err(Failure::description(place, "a type with this hash", found));
        }
        types.push(BuiltType { name: format!("type_{}", &hash[..DIGITS]), place, pipeline, uses: Some(uses) });
    }
    match recording.left_out {
        0 => {}
        1 => eprintln!("dtc: left out 1 line of the recordings, which is cut short"),
        more => eprintln!("dtc: left out {more} lines of the recordings, which are cut short"),
    }
    Ok(types)
}

/// The files that paths name, and those in the folders among them.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
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
        files.append(&mut found);
    }
    Ok(files)
}

fn is_description(file: &Path) -> bool {
    let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    (matches!(extension.as_deref(), Some("json" | "dtc" | "txt")) || Recording::is_file_name(file)) && file.is_file()
}

/// A name as C has them: other characters are underscores. `None` where that does not begin with a letter.
pub fn identifier(name: &str) -> Option<String> {
    let known = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = name.chars().map(known).collect();
    name.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(name)
}
