//! Kernels that match messages to receives.

use super::template::{CodegenError, render};
use crate::matching::{Semantics, Wildcards};
use dtc_templates::PRELUDE;
use minijinja::context;

/// The name of the kernel in a [`MatchingProgram`].
pub const MATCH_ENTRY: &str = "dtc_match";

/// Rows of 32 messages in a chunk: as many as the warp that reduces has lanes.
const ROWS: u32 = 32;

/// Receives that are scanned at a time, 32 to a lane's register. The words of two windows are in shared memory.
const WINDOW: u32 = 64;

/// Warps that scan. Each has two rows of a full chunk.
const SCANNERS: u32 = ROWS / 2;

/// Threads of a block: one for each message of a chunk.
const THREADS: u32 = 1024;

/// Places for classes of messages: twice the messages of a chunk.
const PLACES: u32 = 2 * THREADS;

/// Places of the two tables: the first has five times those of the second.
const FIRST_PLACES: u32 = 2560;
const SECOND_PLACES: u32 = FIRST_PLACES / 5;

/// A kernel that matches messages, and how it is launched.
#[derive(Clone, Debug)]
pub struct MatchingProgram {
    /// CUDA C++, for NVRTC. One block serves one queue.
    pub source: String,
    /// Threads of a block.
    pub threads: u32,
}

/// Writes the kernel for these guarantees. A checked one detects broken promises.
///
/// # Errors
///
/// Only by a defect of dtc.
///
/// # Example
///
/// ```
/// use dtc_compiler::codegen::cuda;
/// use dtc_compiler::matching::Semantics;
/// let program = cuda::matching(Semantics::MPI, false)?;
/// assert!(program.source.contains("dtc_match(u8 *queues"));
/// # Ok::<(), cuda::CodegenError>(())
/// ```
pub fn matching(semantics: Semantics, checked: bool) -> Result<MatchingProgram, CodegenError> {
    let values = context! {
        threads => THREADS,
        checked => checked,
        wildcards => match semantics.wildcards() {
            Wildcards::SourceAndTag => "both",
            Wildcards::Tag => "tag",
            Wildcards::None => "none",
        },
        unexpected => semantics.unexpected(),
        ordering => semantics.ordering(),
        chunk => THREADS,
        places => PLACES,
        first_places => FIRST_PLACES,
        second_places => SECOND_PLACES,
        rows => ROWS,
        window => WINDOW,
        scanners => SCANNERS,
    };
    let build = if checked { ", checked" } else { "" };
    let mut parts = vec!["matching"];
    if semantics.wildcards() != Wildcards::None {
        parts.push("matching_matrix");
    }
    parts.push(if semantics.ordering() { "matching_ranks" } else { "matching_hash" });
    parts.push("matching_entry");
    let mut source = format!("// Message matching: {semantics}{build}.\n{PRELUDE}");
    for part in parts {
        source = source + "\n" + &render(part, &values)? + "\n";
    }
    Ok(MatchingProgram { source, threads: THREADS })
}
