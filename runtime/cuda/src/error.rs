//! Errors of CUDA, from a missing library to a failed call.

use std::fmt;
use thiserror::Error;

/// Major and minor number of a CUDA release.
///
/// ```
/// use dtc_cuda::Version;
/// assert!(Version { major: 12, minor: 4 } < Version { major: 13, minor: 0 });
/// assert_eq!(Version { major: 12, minor: 4 }.to_string(), "12.4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Number before the point.
    pub major: u32,
    /// Number after the point.
    pub minor: u32,
}

impl Version {
    /// Decodes CUDA's 1000 * major + 10 * minor.
    pub(super) fn from_code(code: i32) -> Version {
        let code = code.unsigned_abs();
        Version { major: code / 1000, minor: code % 1000 / 10 }
    }

    /// Encodes it as 1000 * major + 10 * minor.
    pub(super) fn code(self) -> i32 {
        i32::try_from(self.major * 1000 + self.minor * 10).unwrap_or(i32::MAX)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Reason why a CUDA operation failed. If something is missing, the message says how to get it.
///
/// ```
/// use dtc_cuda::{CudaError, Device};
/// match Device::get(0) {
///     Ok(device) => println!("{}", device.info().name),
///     Err(CudaError::LibraryMissing { hint, .. }) => println!("no GPU here: {hint}"),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// A library cannot be opened.
    #[error("{library}: expected a library to open, found none among {}; {hint}", tried.join(", "))]
    LibraryMissing {
        /// Name of the library: the CUDA driver, or NVRTC.
        library: &'static str,
        /// Names and paths tried, with the loader's reason where a file exists.
        tried: Vec<String>,
        /// How to get it.
        hint: &'static str,
    },
    /// A library lacks a function that dtc needs.
    #[error("{library}: expected the function {symbol}, found none in {path}; {hint}")]
    SymbolMissing {
        /// Name of the library: the CUDA driver, or NVRTC.
        library: &'static str,
        /// The function.
        symbol: &'static str,
        /// Path of the library.
        path: String,
        /// How to get a library that has it.
        hint: &'static str,
    },
    /// The driver is older than the oldest supported one.
    #[error("CUDA driver: expected version {needed} or newer, found {found}; install a newer NVIDIA driver")]
    DriverTooOld {
        /// Version of the installed driver.
        found: Version,
        /// Oldest supported version.
        needed: Version,
    },
    /// The driver works and finds no device.
    #[error(
        "GPU: expected a device, found none ({reason}); see whether nvidia-smi lists one, and what \
         CUDA_VISIBLE_DEVICES hides"
    )]
    NoDevice {
        /// Message of the driver.
        reason: String,
    },
    /// The ordinal is too large.
    #[error("GPU: expected an ordinal below {count}, found {ordinal}")]
    Ordinal {
        /// Requested ordinal.
        ordinal: u32,
        /// Number of devices.
        count: u32,
    },
    /// A call of the driver or of NVRTC failed.
    #[error("{call}: expected success, found {name} ({code})")]
    Call {
        /// The function.
        call: &'static str,
        /// Its status code.
        code: i32,
        /// Name of the code, and the library's description of it.
        name: String,
    },
    /// A compiler rejects a source or a binary.
    #[error("{compiler}: expected code that compiles, found {name}:\n{log}")]
    Compile {
        /// The compiler that rejects it: NVRTC, or the driver.
        compiler: &'static str,
        /// Name of the status code.
        name: String,
        /// Log of the compiler.
        log: String,
    },
    /// NVRTC cannot compile for an architecture.
    #[error("NVRTC {version}: expected an architecture among {supported:?}, found {architecture}; {hint}")]
    Architecture {
        /// The version of NVRTC.
        version: Version,
        /// Ten times the compute capability: 90 is sm_90.
        architecture: u32,
        /// Architectures it supports.
        supported: Vec<u32>,
        /// How to get an NVRTC that supports it.
        hint: &'static str,
    },
    /// A range reaches outside a buffer.
    #[error("buffer: expected a range within {length} bytes, found {bytes} bytes from {offset}")]
    Bounds {
        /// Offset of the range in bytes.
        offset: usize,
        /// Length of the range in bytes.
        bytes: usize,
        /// Length of the buffer in bytes.
        length: usize,
    },
    /// The engine's allocator has no staging memory, or memory that transfers cannot use.
    #[error("staging memory: expected {bytes} bytes that were allocated or registered with CUDA, found {found}")]
    Staging {
        /// Requested bytes.
        bytes: usize,
        /// What the allocator returned instead.
        found: String,
    },
    /// A module has no kernel of this name.
    #[error("GPU code: expected the kernel {kernel}, found none of this name")]
    KernelMissing {
        /// Name of the kernel.
        kernel: &'static str,
    },
    /// A call moves more bytes than a launch has threads for.
    #[error("call: expected at most as many bytes as 2^31 - 1 blocks move, found {bytes}")]
    GridTooLarge {
        /// Bytes of the call.
        bytes: u64,
    },
    /// A name or source for a C function holds a NUL byte.
    #[error("{place}: expected text without NUL, found one")]
    Nul {
        /// Which text: "kernel name", for example.
        place: &'static str,
    },
    /// This process was forked from one that uses CUDA, and CUDA does not work in such a child.
    #[error("CUDA: expected the process that initialised it, found a forked child; start the child with exec")]
    Forked,
}

impl CudaError {
    /// The status code of a failed call.
    ///
    /// ```
    /// use dtc_cuda::CudaError;
    /// assert_eq!(CudaError::Forked.code(), None);
    /// ```
    pub fn code(&self) -> Option<i32> {
        match self {
            CudaError::Call { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the driver has no memory left of the kind that was asked for (`CUDA_ERROR_OUT_OF_MEMORY`).
    ///
    /// ```
    /// use dtc_cuda::CudaError;
    /// assert!(!CudaError::Forked.is_out_of_memory());
    /// ```
    pub fn is_out_of_memory(&self) -> bool {
        self.code() == Some(2)
    }

    /// Whether CUDA is unusable in this process: no driver, too old a driver, no device, or a forked child. Callers
    /// then continue without a GPU.
    ///
    /// ```
    /// use dtc_cuda::CudaError;
    /// assert!(CudaError::Forked.is_absence());
    /// assert!(!CudaError::Nul { place: "kernel name" }.is_absence());
    /// ```
    pub fn is_absence(&self) -> bool {
        use CudaError::{DriverTooOld, Forked, LibraryMissing, NoDevice, SymbolMissing};
        matches!(self, LibraryMissing { .. } | SymbolMissing { .. } | DriverTooOld { .. } | NoDevice { .. } | Forked)
    }
}
