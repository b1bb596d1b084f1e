//! What is measured: types with their placement in a buffer.

use crate::commands::bench::prepare::checkout_file;
use crate::description;
use crate::failure::{Failure, reason};
use crate::input::shown;
use dtc_compiler::datatype::{Datatype, json};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One type to measure.
pub struct Case {
    /// Its name in tables and file names; unique.
    pub name: String,
    /// The type.
    pub datatype: Datatype,
    /// Its description in JSON, for the program that prints loops.
    pub text: String,
    /// Elements of a transfer.
    pub count: u64,
    /// Where address 0 lies when packing.
    pub pack_origin: u64,
    /// The same when unpacking.
    pub unpack_origin: u64,
    /// Bytes of the buffer.
    pub buffer: Option<u64>,
}

/// A description of the type that other programs read too: they want a tree under a name.
fn written(datatype: &Datatype) -> String {
    let text = json::write(datatype);
    if text.starts_with("{\"types\"") { text } else { format!("{{\"type\": {text}}}") }
}

/// Reads all types that the command line names.
pub fn collect(files: &[PathBuf], list: Option<&Path>) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    let examples = if files.is_empty() && list.is_none() { examples()? } else { Vec::new() };
    for file in files.iter().chain(&examples) {
        cases.push(from_file(file)?);
    }
    if let Some(list) = list {
        cases.extend(from_list(list)?);
    }
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
    Ok(cases)
}

/// The examples of the checkout.
fn examples() -> Result<Vec<PathBuf>, Failure> {
    let missing = || Failure::description("TYPE.json", "at least one type, outside a checkout of dtc", "none");
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

fn from_file(file: &Path) -> Result<Case, Failure> {
    let named = description::read(file)?;
    let description = named.description;
    let text = written(&description.datatype);
    let origin = description.origin_bytes;
    Ok(Case {
        name: named.name,
        text,
        count: description.count,
        pack_origin: origin,
        unpack_origin: origin,
        buffer: description.buffer_bytes,
        datatype: description.datatype,
    })
}

fn from_list(file: &Path) -> Result<Vec<Case>, Failure> {
    let place = shown(file);
    let text = description::text_of(file, "a list of cases")?;
    let document: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::description(place.to_string(), "a list of cases in JSON", error))?;
    let Some(list) = document.get("cases").and_then(Value::as_array) else {
        return Err(Failure::description(format_args!("{place}: $.cases"), "a list", "none"));
    };
    let mut cases = Vec::new();
    for (index, case) in list.iter().enumerate() {
        let text = case.to_string();
        let description = json::read(&text).map_err(|error| {
            let path = error.place().trim_start_matches('$');
            Failure::description(format_args!("{place}: $.cases[{index}]{path}"), error.expected(), error.found())
        })?;
        let origin = |name: &str| case.get(name).and_then(Value::as_u64).unwrap_or(description.origin_bytes);
        let name = case.get("name").and_then(Value::as_str).map_or_else(|| format!("case_{index}"), str::to_owned);
        cases.push(Case {
            name,
            count: description.count,
            pack_origin: origin("send_origin_bytes"),
            unpack_origin: origin("recv_origin_bytes"),
            buffer: description.buffer_bytes,
            text: written(&description.datatype),
            datatype: description.datatype,
        });
    }
    Ok(cases)
}
