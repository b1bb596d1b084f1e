//! The loop that an application programmer would write by hand for a datatype, as C.
//!
//! The loop is a peer in measurements, so it has to be honest in both directions. It is typed by the basic element
//! (`const double *`), has one loop per level of blocks with constant bounds, keeps index lists as constant arrays, and
//! goes through a struct field by field, in packed order. What a compiler makes of such loops is its gain: contiguous
//! stretches are left to it to turn into calls of memcpy. What is not there is what nobody writes by hand: sorting,
//! blocking, merging across fields, prefetching, vector intrinsics.
//!
//! The crate shares no code with dtc, on purpose: it reads descriptions, computes bounds as the MPI standard defines
//! them and prints loops on its own, and its tests compare it with a third expansion of the type.

#![forbid(unsafe_code)]

mod description;
mod print;

use serde_json::Value;

/// C functions `pack` and `unpack` for the type of a description, and four constants about it.
///
/// # Errors
///
/// What is wrong with the description: the place, what was expected, and what was found.
///
/// ```
/// let text = r#"{"type": {"kind": "contiguous", "count": 3, "child": {"kind": "named", "name": "MPI_INT"}}}"#;
/// let document = serde_json::from_str(text)?;
/// assert!(dtc_hand_loop::hand_loop(&document)?.contains("void pack("));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hand_loop(document: &Value) -> Result<String, String> {
    Ok(print::print(&description::read(document)?, "", false).0)
}

/// The loops of one of several types in a C file, and the files that it includes.
pub struct Part {
    /// The C.
    pub text: String,
    /// Names and contents of the files with its long index lists.
    pub files: Vec<(String, Vec<u8>)>,
}

/// The same for one of several types in a C file: every name has a prefix, and long index lists are files, because no program has
/// them in its source, and a compiler takes seconds for them.
///
/// # Errors
///
/// Those of [`hand_loop`].
///
/// ```
/// let text = r#"{"type": {"kind": "indexed_block", "blocklength": 1, "displacements": [4, 2],
///     "child": {"kind": "named", "name": "MPI_INT"}}}"#;
/// let part = dtc_hand_loop::part(&serde_json::from_str(text)?, "seventh_")?;
/// assert!(part.text.contains("void seventh_pack(") && part.files.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn part(document: &Value, prefix: &str) -> Result<Part, String> {
    let (text, files) = print::print(&description::read(document)?, prefix, true);
    Ok(Part { text, files })
}
