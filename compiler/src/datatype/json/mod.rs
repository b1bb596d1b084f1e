//! Type descriptions in JSON: the form in which types are kept in files.
//!
//! A description is one of
//!
//! - a tree: `{"kind": "vector", "count": 12, "blocklength": 1, "stride": 14, "child": {...}}`;
//! - a tree with remarks on its use: `{"type": tree, "story": ..., "source": ..., "count": ..., "origin_bytes": ...,
//!   "buffer_bytes": ...}`, all but `type` optional;
//! - named trees, with the same remarks: `{"types": {"face": tree, ...}, "root": "face", ...}`. A tree refers to another
//!   by `{"ref": "face"}`, also to a later one. That is how a DAG is written: what is referred to twice is one node.
//! - a case of a benchmark: `{"tree": tree, "count": ..., "buffer_bytes": ..., ...}`. Other members are ignored.
//!
//! | kind | arguments |
//! |---|---|
//! | `named` | `name` |
//! | `contiguous` | `count`, `child` |
//! | `vector` | `count`, `blocklength`, `stride`, `child` |
//! | `hvector` | `count`, `blocklength`, `stride_bytes`, `child` |
//! | `indexed` | `blocklengths`, `displacements`, `child` |
//! | `hindexed` | `blocklengths`, `displacements_bytes`, `child` |
//! | `indexed_block` | `blocklength`, `displacements`, `child` |
//! | `hindexed_block` | `blocklength`, `displacements_bytes`, `child` |
//! | `struct` | `blocklengths`, `displacements_bytes`, `children` |
//! | `subarray` | `sizes`, `subsizes`, `starts`, `order` (`"C"` or `"Fortran"`), `child` |
//! | `darray` | `size`, `rank`, `gsizes`, `distributions`, `psizes`, `order`, `child` |
//! | `resized` | `lb`, `extent`, `child` |
//! | `dup` | `child` |
//! | `table` | `table`, `places`, `most`, `pitch_bytes`, `child`; read by [`read_tabled`] |
//! | `addresses` | `table`, `most`, `alignment`, `child`; read by [`read_tabled`] |
//!
//! An entry of `distributions` is `"block"`, `"cyclic"`, `"none"`, `{"block": k}` or `{"cyclic": k}`. Every node may have
//! `"facts": {"lb": ..., "extent": ...}`, the bounds its MPI reports
//! ([`give_bounds`](super::TypeBuilder::give_bounds)). Numbers are integers of 64 bits, written without fraction or
//! exponent. A member that is unknown, doubled or missing is an error. The outermost object may have `"$schema"`, a text for
//! editors, which is not followed.
//!
//! A [`Datatype`](super::Datatype) is `Serialize` and `Deserialize`, as such a description in formats that people read (JSON, YAML,
//! TOML), and as the [notation](super::text) in others. There, descriptions nest at most 128 levels deep; what serde writes, nests 32 nodes.
//!
//! # Example
//!
//! ```
//! use dtc_compiler::datatype::json;
//! let text = r#"{
//!     "types": {
//!         "both": {"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 4096],
//!                  "children": [{"ref": "face"}, {"ref": "face"}]},
//!         "face": {"kind": "vector", "count": 12, "blocklength": 1, "stride": 14,
//!                  "child": {"kind": "named", "name": "MPI_DOUBLE"}}
//!     },
//!     "root": "both",
//!     "story": "two faces of a block"
//! }"#;
//! let description = json::read(text)?;
//! assert_eq!(description.datatype.facts().size, 2 * 12 * 8);
//! assert_eq!(description.datatype.nodes().len(), 3);
//! assert_eq!(description.count, 1);
//! # Ok::<(), json::DescriptionError>(())
//! ```

mod description;
mod document;
mod error;
mod interpret;
mod members;
mod serde_form;
mod write;

use super::TabledDatatype;
pub use description::Description;
pub use error::DescriptionError;
pub use write::{write, write_tabled};

/// Reads a description. The [module](self) lists what it may hold.
///
/// The text may nest to any depth; time and memory are linear in its length.
///
/// ```
/// use dtc_compiler::datatype::json;
/// let text = r#"{"type": {"kind": "named", "name": "MPI_2INT"}, "count": 1000}"#;
/// let description = json::read(text)?;
/// assert_eq!((description.datatype.facts().size, description.count), (8, 1000));
/// let error = json::read(r#"{"type": {"kind": "dup", "chid": {}}}"#).unwrap_err();
/// assert_eq!(error.place(), "$.type.chid");
/// # Ok::<(), json::DescriptionError>(())
/// ```
pub fn read(text: &str) -> Result<Description, DescriptionError> {
    let document = document::Document::parse(text)?;
    let description = interpret::description(&document)?;
    if description.datatype.is_tabled() {
        let expected = "a type without index tables, which only json::read_tabled reads";
        return Err(document.error(0, expected, "a type with index tables"));
    }
    Ok(description)
}

/// Reads a description of a type that may have index tables.
///
/// ```
/// use dtc_compiler::datatype::json;
/// let text = r#"{"kind": "table", "table": 0, "places": 100, "most": 8, "pitch_bytes": 4096,
///                "child": {"kind": "contiguous", "count": 512, "child": {"kind": "named", "name": "MPI_DOUBLE"}}}"#;
/// let pages = json::read_tabled(text)?.datatype;
/// assert_eq!(pages.tables()[0].most, 8);
/// assert_eq!(json::read_tabled(&json::write_tabled(&pages))?.datatype.to_string(), pages.to_string());
/// assert!(json::read(text).unwrap_err().to_string().contains("index tables"));
/// # Ok::<(), json::DescriptionError>(())
/// ```
pub fn read_tabled(text: &str) -> Result<Description<TabledDatatype>, DescriptionError> {
    let document = document::Document::parse(text)?;
    let Description { datatype, story, source, count, origin_bytes, buffer_bytes } = interpret::description(&document)?;
    let datatype = TabledDatatype::of(datatype)
        .map_err(|error| document.error(0, format!("{}: {}", error.place(), error.expected()), error.found()))?;
    Ok(Description { datatype, story, source, count, origin_bytes, buffer_bytes })
}
