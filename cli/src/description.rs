//! Reading the file that describes a type.

use crate::failure::{Failure, reason};
use dtc_compiler::datatype::json::{self, Description};
use dtc_compiler::datatype::text;
use std::path::Path;

/// A description and the name that reports give it.
pub struct Named {
    /// The file's name without its extension, or the name of a case.
    pub name: String,
    /// The type and what the file says about its use.
    pub description: Description,
}

/// Reads JSON, or the short notation from files that end in `.dtc` or `.txt`.
pub fn read(path: &Path) -> Result<Named, Failure> {
    let text = std::fs::read(path)
        .map_err(|error| Failure::description(path.display(), "a type description", reason(&error)))?;
    let text = String::from_utf8(text).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::description(path.display(), "UTF-8 text", format_args!("another byte at offset {at}"))
    })?;
    let name = path.file_stem().map_or_else(|| "type".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let description = match extension.as_deref() {
        Some("dtc" | "txt") => {
            let datatype =
                text::parse(&text).map_err(|error| Failure::Description(format!("{}: {error}", path.display())))?;
            Description { datatype, story: None, source: None, count: 1, origin_bytes: 0, buffer_bytes: None }
        }
        _ => json::read(&text).map_err(|error| Failure::Description(format!("{}: {error}", path.display())))?,
    };
    Ok(Named { name, description })
}
