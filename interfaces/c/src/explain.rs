//! What the compiler knows and decides about a type, for people.

use crate::arguments;
use crate::handle;
use crate::memory;
use crate::status::{Outcome, answer};
use crate::types::{Type, dtc_type};
use dtc_compiler::Pipeline;
use serde::Serialize;
use std::ffi::{c_char, c_int};

/// What is said of a type: the stages of the compiler, and which tier serves it.
#[derive(Serialize)]
struct Explanation {
    #[serde(flatten)]
    pipeline: Pipeline,
    tier: String,
}

fn explanation(requested: &Type) -> Outcome<String> {
    let committed = &requested.ready()?.committed;
    let _claim = memory::for_entries(requested.datatype().most_entries())?;
    let explanation = Explanation { pipeline: committed.pipeline(), tier: committed.tier().to_string() };
    // Texts and numbers under constant names have a form in JSON.
    Ok(serde_json::to_string(&explanation).unwrap_or_default())
}

/// The short notation of a type, for a program in Rust that has its handle; none of what is no type, or has more than `most` nodes and
/// entries of lists, which are as many words.
///
/// # Safety
///
/// `type` is null or a live type.
pub unsafe fn notation(r#type: *const dtc_type, most: u64) -> Option<String> {
    // SAFETY: null or a live type (contract of this function).
    let found = unsafe { handle::borrow(r#type) }.ok()?;
    (found.datatype().most_entries() <= most).then(|| found.datatype().to_string())
}

/// Explains a committed type as a JSON object: the type as described, its facts, canonical layout, passes that fired, plan,
/// and whether compiled code serves it. The fields may grow; they are those of `dtc explain --json`.
///
/// `buffer`: receives a text that ends with a byte 0, cut if it is longer than the buffer; may be null if `length` is 0.
/// `length`: bytes of the buffer.
/// `needed`: receives how many bytes the whole text has, with its last byte 0; may be null.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the length is negative, or `buffer` is null.
///
/// # Safety
///
/// `type` is null or a type; `buffer` is writable for `length` bytes; `needed` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_explain(
    r#type: *const dtc_type,
    buffer: *mut c_char,
    length: i64,
    needed: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let text = explanation(unsafe { handle::borrow(r#type)? })?;
        let room = arguments::length("length", length)? as usize;
        if room > 0 {
            arguments::check_pointer("buffer", buffer)?;
            let mut kept = text.len().min(room - 1);
            while !text.is_char_boundary(kept) {
                kept -= 1;
            }
            // SAFETY: `buffer` is writable for `length` bytes (contract of this function); `kept` is at most `room -
            // 1`, so the text and its final 0 fit.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), kept);
                buffer.add(kept).write(0);
            }
        }
        // SAFETY: `needed` is null or writable (contract of this function).
        unsafe { arguments::offer("needed", needed, text.len() as i64 + 1) }
    })
}
