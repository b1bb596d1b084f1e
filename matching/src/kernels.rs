//! CUDA C++ of the kernels that match messages to receives.
//!
//! A file of `kernels/` is a template: the queues, one method of matching, or a kernel that calls them. Kernels move no bytes of a type. Their
//! parameters are `(u8 *queues, u8 *matches, const u8 *, u64 capacity, u64 stride)`: a block has the queue at `queues + blockIdx.x * stride`. Those of
//! the service have its memory in the place of `matches`, and more parameters after these.

use crate::semantics::{Semantics, Wildcards};
use dtc_runtime::cuda::CudaError;
use dtc_templates::PRELUDE;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use once_cell::race::OnceBox;

/// The header for kernels that post messages and receives: C++11 for NVRTC and nvcc, `dtc_matching.cuh` where dtc is installed. It
/// includes nothing, and says how it is used.
///
/// ```
/// assert!(dtc_matching::port::HEADER.contains("dtc_matching_send"));
/// ```
pub const HEADER: &str = include_str!("../kernels/dtc_matching.cuh");

/// The templates, by their names.
const TEMPLATES: [(&str, &str); 9] = [
    ("queues", include_str!("../kernels/queues.cu")),
    ("matrix", include_str!("../kernels/matrix.cu")),
    ("classes", include_str!("../kernels/classes.cu")),
    ("ranks", include_str!("../kernels/ranks.cu")),
    ("hash", include_str!("../kernels/hash.cu")),
    ("body", include_str!("../kernels/body.cu")),
    ("entry", include_str!("../kernels/entry.cu")),
    ("near", include_str!("../kernels/near.cu")),
    ("serve", include_str!("../kernels/serve.cu")),
];

/// The name of the kernel in a [`MatchingProgram`].
pub const MATCH_ENTRY: &str = "dtc_match";

/// Rows of 32 messages in a chunk: as many as the warp that reduces has lanes.
const ROWS: u32 = 32;

/// Receives that are scanned at a time, 32 to a lane's register. The words of two windows are in shared memory.
const WINDOW: u32 = 64;

/// Threads of a block: one for each message of a chunk.
const THREADS: u32 = 1024;

/// Threads of a block for short lists, and the longest of these. Measured on an H200: 16 queues of 64 messages take 4.6 us with 512 threads,
/// 5.2 with 1,024 and 5.0 with 128.
const FEW_THREADS: u32 = 512;
const SHORT: u32 = 256;

/// Products of messages and receives, of queues with wildcards, up to which all pairs are compared.
const COMPARED: u32 = 160 * 160;

/// Places for classes of one kind of pattern. With those of three kinds, and the candidates of four, a block has 47 KiB of shared memory.
const CLASS_PLACES: u32 = 1664;

/// Candidates that a receive looks at together when it has lost one.
const AHEAD: u32 = 8;

/// Proposals that a thread makes one after the other before the rest is left to the matrix.
const LONGEST_CHAIN: u32 = 144;

/// Messages of a class, by the mean of a kind, from which on there are no proposals; and the least receives to one with a wildcard. Chains of
/// proposals are long beyond, and each step takes half a microsecond while most warps propose.
const CROWD: u32 = 64;
const RARE: u32 = 3;

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

/// Writes the kernel for these guarantees, and for lists of up to `longest` entries, which is about its speed alone. A checked one detects
/// broken promises.
///
/// # Errors
///
/// Only by a defect of dtc.
///
/// # Example
///
/// ```
/// use dtc_matching::Semantics;
/// use dtc_matching::kernels;
/// let program = kernels::matching(Semantics::MPI, false, 64)?;
/// assert_eq!(program.threads, 512);
/// assert!(program.source.contains("dtc_match(u8 *queues"));
/// # Ok::<(), dtc_runtime::cuda::CudaError>(())
/// ```
pub fn matching(semantics: Semantics, checked: bool, longest: u32) -> Result<MatchingProgram, CudaError> {
    let threads = if longest <= SHORT { FEW_THREADS } else { THREADS };
    let build = if checked { ", checked" } else { "" };
    let mut source = format!("// Message matching: {semantics}{build}.\n{PRELUDE}");
    for part in parts(semantics, threads).into_iter().chain(["body", "entry"]) {
        source = source + "\n" + &render(part, &values(semantics, checked, false, threads))? + "\n";
    }
    Ok(MatchingProgram { source, threads })
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
/// use dtc_matching::Semantics;
/// use dtc_matching::kernels;
/// let program = kernels::matching_service(Semantics::MPI)?;
/// assert!(program.source.contains("dtc_serve(u8 *queues"));
/// # Ok::<(), dtc_runtime::cuda::CudaError>(())
/// ```
pub fn matching_service(semantics: Semantics) -> Result<MatchingProgram, CudaError> {
    let mut source = format!("// A matching service: {semantics}.\n{PRELUDE}\n{HEADER}");
    for part in parts(semantics, THREADS).into_iter().chain(["near", "body", "serve"]) {
        source = source + "\n" + &render(part, &values(semantics, false, true, THREADS))? + "\n";
    }
    Ok(MatchingProgram { source, threads: THREADS })
}

/// Whether a kernel has proposals. Short lists take 0.9 us more in one that does, by the matrix, too.
fn has_classes(threads: u32) -> bool {
    threads == THREADS
}

/// The methods that these guarantees need, behind the queues.
fn parts(semantics: Semantics, threads: u32) -> Vec<&'static str> {
    let mut parts = vec!["queues"];
    if semantics.wildcards() != Wildcards::None {
        parts.push("matrix");
        if has_classes(threads) {
            parts.push("classes");
        }
    }
    parts.push("ranks");
    if !semantics.ordering() {
        parts.push("hash");
    }
    parts
}

/// The error of a kernel that cannot be made: a defect of dtc.
pub(crate) fn no_kernel(log: &str) -> CudaError {
    CudaError::Compile { compiler: "dtc", name: "no kernel".to_owned(), log: log.to_owned() }
}

/// Fills in a template.
fn render(name: &str, values: &Value) -> Result<String, CudaError> {
    static ENVIRONMENT: OnceBox<Environment<'static>> = OnceBox::new();
    let environment = ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, text) in TEMPLATES {
            // A template that does not parse is missing when it is used, and an error then.
            let _ = environment.add_template(name, text);
        }
        Box::new(environment)
    });
    let text = environment.get_template(name).and_then(|template| template.render(values));
    text.map_err(|error| no_kernel(&format!("template: {error:#}")))
}

fn values(semantics: Semantics, checked: bool, serves: bool, threads: u32) -> Value {
    context! {
        threads => threads,
        checked => checked,
        serves => serves,
        wildcards => match semantics.wildcards() {
            Wildcards::SourceAndTag => "both",
            Wildcards::Tag => "tag",
            Wildcards::None => "none",
        },
        unexpected => semantics.unexpected() || serves,
        ordering => semantics.ordering(),
        chunk => threads,
        // Twice the messages of a chunk.
        places => 2 * threads,
        // The first table has five times the places of the second.
        first_places => threads / 2 * 5,
        second_places => threads / 2,
        rows => ROWS,
        window => WINDOW,
        // Three of each four warps scan. A scheduler of the GPU has every fourth warp, and the one that reduces has one to itself.
        // Measured on an H200: 3 to 23 % faster than 16 warps on all four, for queues of 512 and 1,024.
        scanners => threads / 32 / 4 * 3,
        has_classes => has_classes(threads),
        compared => COMPARED,
        class_places => CLASS_PLACES,
        ahead => AHEAD,
        longest_chain => LONGEST_CHAIN,
        crowd => CROWD,
        rare => RARE,
        polled => POLLED,
        near => NEAR,
        turns => TURNS,
        eager => EAGER,
        sleep => SLEEP,
        batch => POSTED_AT_ONCE,
    }
}
