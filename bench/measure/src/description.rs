//! Reading the file that describes a type.

use crate::failure::{Failure, reason};
use crate::paths::{STANDARD, shown};
use dtc_compiler::TextError;
use dtc_compiler::datatype::json::{self, Description, DescriptionError};
use dtc_compiler::datatype::{Datatype, TabledDatatype, text};
use std::io::{self, Read};
use std::path::Path;

/// A description and the name that reports give it.
pub struct Named<T = Datatype> {
    /// The file's name without its extension, or the name of a case.
    pub name: String,
    /// The type and what the file says about its use.
    pub description: Description<T>,
}

/// How descriptions of a sort of types are read.
struct Readers<T> {
    text: fn(&str) -> Result<T, TextError>,
    json: fn(&str) -> Result<Description<T>, DescriptionError>,
}

/// Reads JSON, or the short notation from files that end in `.dtc` or `.txt`. On standard input, which is `-`, the short
/// notation is what does not begin as JSON does. What names no file may be the short notation itself.
///
/// # Errors
///
/// [`Failure::Description`], which names the place.
pub fn read(path: &Path) -> Result<Named, Failure> {
    read_by(path, &Readers { text: text::parse, json: json::read })
}

/// The same for a type that may have index tables.
///
/// # Errors
///
/// As for [`read`].
pub fn read_tabled(path: &Path) -> Result<Named<TabledDatatype>, Failure> {
    read_by(path, &Readers { text: text::parse_tabled, json: json::read_tabled })
}

fn read_by<T>(path: &Path, readers: &Readers<T>) -> Result<Named<T>, Failure> {
    let place = shown(path);
    if let Some(datatype) = written(path, readers.text) {
        let datatype = datatype.map_err(|error| Failure::Description(format!("TYPE: {error}")))?;
        let description =
            Description { datatype, story: None, source: None, count: 1, origin_bytes: 0, buffer_bytes: None };
        return Ok(Named { name: "type".to_owned(), description });
    }
    let standard = path == Path::new(STANDARD);
    let text = text_of(path, "a type description")?;
    let stem = path.file_stem().filter(|_| !standard);
    let name = stem.map_or_else(|| "type".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let short = match extension.as_deref() {
        _ if standard => !text.trim_start().starts_with(['{', '[']),
        Some("dtc" | "txt") => true,
        _ => false,
    };
    let description = if short {
        let hint = match text.trim_start().starts_with('{') {
            true => "; this looks like JSON, which is read from files that end in neither .dtc nor .txt",
            false => "",
        };
        let failed = |error| Failure::Description(format!("{place}: {error}{hint}"));
        let datatype = (readers.text)(&text).map_err(failed)?;
        Description { datatype, story: None, source: None, count: 1, origin_bytes: 0, buffer_bytes: None }
    } else {
        (readers.json)(&text).map_err(|error| {
            let hint = match (readers.text)(&text) {
                Ok(_) => "; this is the short notation, which is read from files that end in .dtc or .txt",
                Err(_) => "",
            };
            Failure::Description(format!("{place}: {error}{hint}"))
        })?
    };
    Ok(Named { name, description })
}

/// The type that an argument is in the short notation, where it names no file: several words, or one that is a type.
fn written<T>(argument: &Path, parse: fn(&str) -> Result<T, TextError>) -> Option<Result<T, TextError>> {
    let notation = argument.to_str().filter(|_| argument.symlink_metadata().is_err())?;
    let is_name = ["json", "dtc", "txt", "recorded"].iter().any(|end| notation.ends_with(&format!(".{end}")));
    if is_name {
        return None;
    }
    let parsed = parse(notation);
    let several = notation.trim().contains(|character: char| character.is_whitespace() || character == '(');
    (parsed.is_ok() || (several && !notation.contains('/'))).then_some(parsed)
}

/// The text of a file, or of standard input for `-`.
pub fn text_of(path: &Path, expected: &str) -> Result<String, Failure> {
    let text = if path == Path::new(STANDARD) { read_standard() } else { std::fs::read(path) };
    let text = text.map_err(|error| Failure::description(shown(path), expected, reason(&error)))?;
    String::from_utf8(text).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::description(shown(path), "UTF-8 text", format_args!("another byte at offset {at}"))
    })
}

fn read_standard() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}
