//! Who moves the bytes of a case.

use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, GpuPlan};
use dtc_runtime::Gpu;
use dtc_runtime::cuda::{CudaError, Stream};

/// Who moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GpuPeer {
    /// The kernel compiled for the type.
    Specialised,
    /// The kernel that serves every type.
    Generic,
    /// The driver's copy of as many bytes, contiguous on both sides.
    Memcpy,
    /// A kernel beside that which the type has, by its number.
    Candidate(usize),
}

/// Those that serve every case.
pub const GPU_PEERS: [GpuPeer; 3] = [GpuPeer::Specialised, GpuPeer::Generic, GpuPeer::Memcpy];

/// A kernel that could serve a call in the place of the one that is chosen.
pub trait Candidate {
    /// What it is.
    fn name(&self) -> String;

    /// Enqueues the call for which it was made.
    fn enqueue(&self, stream: &Stream) -> Result<(), CudaError>;
}

/// A whole call of a case, as candidates are made for it.
pub struct FamilyCandidate<'a> {
    /// Where it runs.
    pub gpu: &'a Gpu,
    /// The plan of the type.
    pub plan: &'a GpuPlan,
    /// Which way.
    pub direction: Direction,
    /// Addresses and lengths.
    pub call: Call,
    /// What the elements span in memory, in bytes from address 0 of the first one.
    pub span: (i64, i64),
}

impl GpuPeer {
    /// The name in figures, beside those of the peers.
    pub fn name(self) -> &'static str {
        match self {
            GpuPeer::Specialised => "dtc",
            GpuPeer::Generic => "dtc generic",
            GpuPeer::Memcpy => "memcpy",
            GpuPeer::Candidate(_) => "candidate",
        }
    }
}
