//! Output of NVRTC, and the architecture it is for.

use std::fmt;

/// Target of a compilation. Numbers are ten times a compute capability.
///
/// ```
/// use dtc_cuda::Architecture;
/// assert_eq!(Architecture::Cubin(90).to_string(), "sm_90");
/// assert_eq!(Architecture::Ptx(80).to_string(), "compute_80");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// Machine code of one architecture. Devices of its major number and of at least its minor number run it.
    Cubin(u32),
    /// PTX text. The driver compiles it for devices of this architecture and newer ones.
    Ptx(u32),
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Architecture::Cubin(number) => write!(f, "sm_{number}"),
            Architecture::Ptx(number) => write!(f, "compute_{number}"),
        }
    }
}

/// A compiled program.
///
/// ```
/// use dtc_cuda::{Architecture, Nvrtc};
/// let source = r#"extern "C" __global__ void nothing() {}"#;
/// match Nvrtc::get().and_then(|nvrtc| nvrtc.compile(source, "nothing.cu", Architecture::Ptx(90), &[])) {
///     Ok(binary) => assert!(binary.bytes.windows(7).any(|part| part == b"nothing")),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Binary {
    /// Target it was compiled for.
    pub architecture: Architecture,
    /// A cubin, or a PTX text without a NUL byte at its end.
    pub bytes: Vec<u8>,
    /// Warnings of the compiler; usually empty.
    pub log: String,
}
