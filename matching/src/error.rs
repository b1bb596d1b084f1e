//! What can be wrong with messages, receives and promises.

use crate::queue::{OVERFLOWN, RANGE, UNEXPECTED, WILDCARD};
use crate::semantics::Semantics;
use dtc_runtime::cuda::CudaError;
use thiserror::Error;

/// Why a call was refused, or what the last call of a kernel found. Nothing is lost: entries that are not matched stay in their queues.
///
/// ```
/// use dtc_matching::{MatchError, Semantics};
/// let semantics = Semantics::MPI.without_source_wildcard();
/// let error = MatchError::Wildcard { wildcard: "MPI_ANY_SOURCE", semantics };
/// assert!(error.to_string().starts_with("receive: expected no MPI_ANY_SOURCE"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatchError {
    /// CUDA cannot do it.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// There is no queue for such receives among several for the sources.
    #[error("partitions: expected 1, where receives may have MPI_ANY_SOURCE, found {found}")]
    Partitions {
        /// Partitions that were asked for.
        found: u32,
    },
    /// A number of queues or entries is 0 or too large.
    #[error("{what}: expected 1 to {most}, found {found}")]
    Size {
        /// Which number.
        what: &'static str,
        /// The largest.
        most: u32,
        /// What was asked for.
        found: u32,
    },
    /// The matcher has no such communicator.
    #[error("communicator: expected one below {communicators}, found {found}")]
    Communicator {
        /// How many there are.
        communicators: u32,
        /// Which was named.
        found: u32,
    },
    /// A list of a queue has no room for all entries; none of the call was added.
    #[error("queue {queue}: expected at most {capacity} {list}, found {found}")]
    Overflow {
        /// The queue.
        queue: u32,
        /// Messages or receives.
        list: &'static str,
        /// The room of the list.
        capacity: u32,
        /// How many there would be.
        found: u64,
    },
    /// A receive has a wildcard that the program promised not to use; none of the call was added.
    #[error("receive: expected no {wildcard}, as promised ({semantics}), found one")]
    Wildcard {
        /// Which wildcard.
        wildcard: &'static str,
        /// The promise.
        semantics: Semantics,
    },
    /// A kernel found the lists of a queue longer than their capacity, and left the queue alone.
    #[error("queue {queue}: expected at most {capacity} messages and receives, found more in its header")]
    Overflown {
        /// The queue.
        queue: u32,
        /// The room of its lists.
        capacity: u32,
    },
    /// A checked kernel found messages that no receive takes, against the promise; they wait.
    #[error(
        "queue {queue}: expected a receive for every message, as promised ({semantics}), found {messages} messages without one"
    )]
    Unexpected {
        /// The queue.
        queue: u32,
        /// How many wait.
        messages: u32,
        /// The promise.
        semantics: Semantics,
    },
    /// A checked kernel found a wildcard in a queue, against the promise; such receives wait.
    #[error("queue {queue}: expected no such wildcards, as promised ({semantics}), found some")]
    Forbidden {
        /// The queue.
        queue: u32,
        /// The promise.
        semantics: Semantics,
    },
    /// A handle that the service does not have; nothing was enqueued.
    #[error("handle: expected one below {handles}, found {found}")]
    Handle {
        /// How many there are.
        handles: u32,
        /// Which was named.
        found: u32,
    },
    /// The service does not run; nothing was enqueued.
    #[error("matching service: expected one that runs, found it stopped")]
    Stopped,
    /// The service runs, so what waits is on the move.
    #[error("matching service: expected it stopped, found it running")]
    Running,
    /// Blocks of the service did not begin to run; it was stopped again.
    #[error(
        "matching service: expected {blocks} blocks to run within 10 s, found {running}: do other kernels fill the GPU?"
    )]
    NotStarted {
        /// How many there are.
        blocks: u32,
        /// How many ran.
        running: u32,
    },
    /// The service ended, but kernels had reserved slots and not filled them, so entries behind these were not taken.
    #[error(
        "matching service: expected all reserved slots to be filled within 1 s, found some that were not, in {blocks} blocks"
    )]
    Abandoned {
        /// Blocks that found such slots.
        blocks: u32,
    },
    /// A checked kernel found sources or tags of messages above [`LARGEST`](crate::LARGEST); such messages wait.
    #[error("queue {queue}: expected sources and tags of 0 to 2147483647, found others")]
    Range {
        /// The queue.
        queue: u32,
    },
}

impl MatchError {
    /// What the status of a queue says.
    pub(crate) fn of(
        status: u32,
        queue: u32,
        capacity: u32,
        messages: u32,
        semantics: Semantics,
    ) -> Option<MatchError> {
        let found = |bit| status & bit != 0;
        if found(OVERFLOWN) {
            Some(MatchError::Overflown { queue, capacity })
        } else if found(WILDCARD) {
            Some(MatchError::Forbidden { queue, semantics })
        } else if found(RANGE) {
            Some(MatchError::Range { queue })
        } else if found(UNEXPECTED) {
            Some(MatchError::Unexpected { queue, messages, semantics })
        } else {
            None
        }
    }
}
