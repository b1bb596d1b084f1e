//! The ways that the bytes of a transfer may take.

use crate::device::MeasuredPath;
use std::fmt;

/// How the bytes of a transfer are moved.
///
/// ```
/// assert_eq!(dtc_runtime::TransferPath::Kernel.to_string(), "kernel");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferPath {
    /// The processor moves them.
    Processor,
    /// One kernel moves them, on a device that reaches both sides.
    Kernel,
    /// A kernel moves them between the elements and buffers on its device, and copies between those and the packed bytes,
    /// chunk by chunk, one beside the other.
    Staged,
    /// A kernel moves them between the elements and pinned buffers, and the processor between those and the packed bytes,
    /// one beside the other.
    Ring,
    /// The processor moves them between the elements and pinned buffers, and copies between those and the packed bytes, one
    /// beside the other.
    HostPacked,
}

impl fmt::Display for TransferPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransferPath::Processor => "processor",
            TransferPath::Kernel => "kernel",
            TransferPath::Staged => "staged",
            TransferPath::Ring => "ring",
            TransferPath::HostPacked => "host-packed",
        })
    }
}

/// The transfer path that is measured.
impl From<MeasuredPath> for TransferPath {
    fn from(measured: MeasuredPath) -> TransferPath {
        match measured {
            MeasuredPath::OneShot | MeasuredPath::Mapped => TransferPath::Kernel,
            MeasuredPath::Staged | MeasuredPath::StagedPageable => TransferPath::Staged,
            MeasuredPath::Ring => TransferPath::Ring,
            MeasuredPath::HostPacked => TransferPath::HostPacked,
        }
    }
}
