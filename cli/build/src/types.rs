//! The types that are built, with the names of their functions.

use dtc_compiler::Pipeline;
use dtc_compiler::datatype::TabledDatatype;
use dtc_measure::description;
use dtc_measure::failure::Failure;
use dtc_measure::recorded::{self, Recorded, RecordedTabled};
use dtc_runtime::store::RecordedUses;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A type under the name that its functions begin with.
pub struct BuiltType {
    pub name: String,
    /// Where it is described, for messages.
    pub place: String,
    pub pipeline: Pipeline,
    /// How often programs used it, if it was recorded.
    pub uses: Option<RecordedUses>,
}

/// A type with index tables, under the name of its description.
pub struct BuiltTabled {
    pub name: String,
    pub datatype: TabledDatatype,
    /// How often programs used it, if it was recorded.
    pub uses: Option<RecordedUses>,
}

/// What is built.
pub struct BuiltTypes {
    /// Types that become functions and kernels.
    pub plain: Vec<BuiltType>,
    /// Types that become kernels for GPUs.
    pub tabled: Vec<BuiltTabled>,
}

/// Reads descriptions and recordings, and those in folders, in the order of the names of their functions. These differ in more than
/// the case of letters: macros of the header are in capitals.
pub fn read(paths: &[PathBuf]) -> Result<BuiltTypes, Failure> {
    let mut tabled = Vec::new();
    let mut types: BTreeMap<String, BuiltType> = BTreeMap::new();
    let (recordings, descriptions) = recorded::files(paths)?;
    let found = recorded::read(&recordings)?;
    for Recorded { name, place, pipeline, uses } in found.plain {
        types.insert(name.clone(), BuiltType { name, place, pipeline, uses: Some(uses) });
    }
    for RecordedTabled { name, datatype, uses } in found.tabled {
        tabled.push(BuiltTabled { name, datatype, uses: Some(uses) });
    }
    for file in descriptions {
        let description::Named { name, description } = description::read_tabled(&file)?;
        let Some(datatype) = description.datatype.without_tables() else {
            tabled.push(BuiltTabled { name, datatype: description.datatype, uses: None });
            continue;
        };
        let name = identifier(&name).ok_or_else(|| {
            let expected = "a file whose name begins with a letter, for functions to be named by";
            Failure::description(file.display(), expected, format_args!("{name:?}"))
        })?;
        let pipeline = Pipeline::new(datatype);
        if pipeline.lowered().size() == 0 {
            return Err(Failure::description(file.display(), "a type with bytes", "one without"));
        }
        if let Some(other) = types.get(&name.to_lowercase()) {
            let found = format_args!("{}, as for {}", other.name, other.place);
            return Err(Failure::description(file.display(), "functions with a name of their own", found));
        }
        types.insert(name.to_lowercase(), BuiltType { name, place: file.display().to_string(), pipeline, uses: None });
    }
    Ok(BuiltTypes { plain: types.into_values().collect(), tabled })
}

/// A name as C has them: other characters are underscores. `None` where that does not begin with a letter.
pub fn identifier(name: &str) -> Option<String> {
    let known = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = name.chars().map(known).collect();
    name.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(name)
}
