//! The types that are built, with the names of their functions.

use crate::description;
use crate::failure::{Failure, reason};
use dtc_compiler::Pipeline;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A type under the name that its functions begin with.
pub struct BuiltType {
    pub name: String,
    pub file: PathBuf,
    pub pipeline: Pipeline,
}

/// Reads descriptions, and those in folders, in the order of their names.
pub fn read(paths: &[PathBuf]) -> Result<Vec<BuiltType>, Failure> {
    let mut types: BTreeMap<String, BuiltType> = BTreeMap::new();
    for file in files(paths)? {
        let description::Named { name, description } = description::read(&file)?;
        let name = identifier(&name).ok_or_else(|| {
            let expected = "a file whose name begins with a letter, for functions to be named by";
            Failure::description(file.display(), expected, format_args!("{name:?}"))
        })?;
        let pipeline = Pipeline::new(description.datatype);
        if pipeline.lowered().size() == 0 {
            return Err(Failure::description(file.display(), "a type with bytes", "one without"));
        }
        if let Some(other) = types.get(&name) {
            let found = format_args!("{name}, as for {}", other.file.display());
            return Err(Failure::description(file.display(), "functions with a name of their own", found));
        }
        types.insert(name.clone(), BuiltType { name, file, pipeline });
    }
    Ok(types.into_values().collect())
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
            let expected = "files that end in .json, .dtc or .txt";
            return Err(Failure::description(path.display(), expected, "none"));
        }
        files.append(&mut found);
    }
    Ok(files)
}

fn is_description(file: &Path) -> bool {
    let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    matches!(extension.as_deref(), Some("json" | "dtc" | "txt")) && file.is_file()
}

/// A name as C has them: other characters are underscores. `None` where that does not begin with a letter.
pub fn identifier(name: &str) -> Option<String> {
    let known = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = name.chars().map(known).collect();
    name.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(name)
}
