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
    let description = description::read(document).map_err(|error| error.to_string())?;
    Ok(print::print(&description))
}
