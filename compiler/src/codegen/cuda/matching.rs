//! Kernels that match messages to receives.

use super::template::{CodegenError, render};
use crate::matching::{Semantics, Wildcards};
use dtc_templates::{MATCHING_HEADER, PRELUDE};
use minijinja::{Value, context};

/// The name of the kernel in a [`MatchingProgram`].
pub const MATCH_ENTRY: &str = "dtc_match";

/// Rows of 32 messages in a chunk: as many as the warp that reduces has lanes.
const ROWS: u32 = 32;

/// Receives that are scanned at a time, 32 to a lane's register. The words of two windows are in shared memory.
const WINDOW: u32 = 64;

/// Warps that scan: three of each four. A scheduler of the GPU has every fourth warp, and the one that reduces has one to itself.
/// Measured on an H200: 3 to 23 % faster than 16 warps on all four, for queues of 512 and 1,024.
const SCANNERS: u32 = THREADS / 32 / 4 * 3;

/// Threads of a block: one for each message of a chunk.
const THREADS: u32 = 1024;

/// Places for classes of messages: twice the messages of a chunk.
const PLACES: u32 = 2 * THREADS;

/// Places of the two tables: the first has five times those of the second.
const FIRST_PLACES: u32 = 2560;
const SECOND_PLACES: u32 = FIRST_PLACES / 5;

/// Entries that the first warp of a service looks for at a time, of each kind. As many are left to the whole block.
const POLLED: u32 = 16;

/// Longest lists of a service that its first warp searches alone: four entries of each list to a lane.
const NEAR: u32 = 128;

/// Batches of one queue after which a service looks at the others of its block.
const TURNS: u32 = 8;

/// Polls in a row without an entry after which a service sleeps between them, and for how long in nanoseconds. Half a millisecond of polls.
const EAGER: u32 = 1000;
const SLEEP: u32 = 200;

/// The names of the kernels in the program of [`matching_service`].
pub const SERVICE_ENTRIES: [&str; 3] = ["dtc_serve", "dtc_post", "dtc_await"];

/// Entries that a launch of the kernel for posting takes. With the other parameters they are less than the 4 KiB of a launch.
pub const POSTED_AT_ONCE: usize = 320;

/// A kernel that matches messages, and how it is launched.
#[derive(Clone, Debug)]
pub struct MatchingProgram {
    /// CUDA C++, for NVRTC. One block serves one queue; of a service, any number.
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
    let build = if checked { ", checked" } else { "" };
    let mut source = format!("// Message matching: {semantics}{build}.\n{PRELUDE}");
    for part in parts(semantics).into_iter().chain(["matching_body", "matching_entry"]) {
        source = source + "\n" + &render(part, &values(semantics, checked, false))? + "\n";
    }
    Ok(MatchingProgram { source, threads: THREADS })
}

/// Writes the kernels of a service for these guarantees: one that stays and serves queues, one that posts entries of the host, and one
/// that waits for an outcome. Messages may wait for their receives, whatever was promised: there are no calls that would see both.
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
/// let program = cuda::matching_service(Semantics::MPI)?;
/// assert!(program.source.contains("dtc_serve(u8 *queues"));
/// # Ok::<(), cuda::CodegenError>(())
/// ```
pub fn matching_service(semantics: Semantics) -> Result<MatchingProgram, CodegenError> {
    let mut source = format!("// A matching service: {semantics}.\n{PRELUDE}\n{MATCHING_HEADER}");
    for part in parts(semantics).into_iter().chain(["matching_near", "matching_body", "matching_serve"]) {
        source = source + "\n" + &render(part, &values(semantics, false, true))? + "\n";
    }
    Ok(MatchingProgram { source, threads: THREADS })
}

/// The methods that these guarantees need, behind the queues.
fn parts(semantics: Semantics) -> Vec<&'static str> {
    let mut parts = vec!["matching"];
    if semantics.wildcards() != Wildcards::None {
        parts.push("matching_matrix");
    }
    parts.push("matching_ranks");
    if !semantics.ordering() {
        parts.push("matching_hash");
    }
    parts
}

fn values(semantics: Semantics, checked: bool, serves: bool) -> Value {
    context! {
        threads => THREADS,
        checked => checked,
        serves => serves,
        wildcards => match semantics.wildcards() {
            Wildcards::SourceAndTag => "both",
            Wildcards::Tag => "tag",
            Wildcards::None => "none",
        },
        unexpected => semantics.unexpected() || serves,
        ordering => semantics.ordering(),
        chunk => THREADS,
        places => PLACES,
        first_places => FIRST_PLACES,
        second_places => SECOND_PLACES,
        rows => ROWS,
        window => WINDOW,
        scanners => SCANNERS,
        polled => POLLED,
        near => NEAR,
        turns => TURNS,
        eager => EAGER,
        sleep => SLEEP,
        batch => POSTED_AT_ONCE,
    }
}
