//! Message matching: which receive takes which message (MPI 4.1, sections 3.2.3 and 3.5).
//!
//! A message has an [`Envelope`], a receive a [`Pattern`] of envelopes. [`SequentialMatcher`] matches them one at a time on a CPU,
//! with lists, as MPI libraries do. A [`Matcher`] matches what is queued in the memory of a GPU, with a kernel that is generated for the
//! guarantees that the program needs, its [`Semantics`]. A [`Service`] is such a kernel that stays on the GPU, and matches what the host
//! and other kernels post. [`workload`] draws messages and receives of the shapes that applications have.
//!
//! # The order of events does not matter
//!
//! Every receive takes the earliest message that fits it, and every message goes to the earliest receive that it fits. So the
//! result is a stable matching whose two sides rank each other by their positions in the queues, and there is exactly one. All
//! interleavings of the same messages and the same receives give the same pairs, which is what a parallel matcher makes use of.
//!
//! # Example
//!
//! ```
//! use dtc_matching::{Envelope, Pattern, SequentialMatcher};
//! let mut matcher = SequentialMatcher::default();
//! // A message of rank 3 comes before its receive, so it is unexpected.
//! assert_eq!(matcher.arrive(Envelope::new(3, 7, 0)?, 100), None);
//! assert_eq!(matcher.post(Pattern::new(None, Some(7), 0)?, 200), Some(100));
//! # Ok::<(), dtc_matching::EnvelopeError>(())
//! ```
#![deny(unsafe_code)]
#![warn(missing_debug_implementations)]

mod envelope;
mod error;
pub mod kernels;
mod matcher;
pub mod port;
pub mod queue;
mod semantics;
mod sequential;
mod service;
mod verify;
pub mod workload;

pub use envelope::{Envelope, EnvelopeError, LARGEST, Pattern};
pub use error::MatchError;
pub use matcher::{Contents, Matcher, Queues};
pub use semantics::{Semantics, Wildcards};
pub use sequential::SequentialMatcher;
pub use service::{End, Outcome, Service, ServiceOptions, Waiting};
pub use verify::{expected_pairs, verify};
