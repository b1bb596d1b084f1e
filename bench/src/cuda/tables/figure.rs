//! Figures, and the names of those who were measured.

use serde_json::{Value, json};

/// The driver's copy.
pub const COPY: &str = "memcpy";

/// The type with its table written into it.
pub const LISTED: &str = "dtc, listed in the type";

/// The type with a table of the call.
pub const TABLED: &str = "dtc";

/// The same with the table in host memory.
pub const HOSTED: &str = "dtc, table in host memory";

/// The same by copies of the driver.
pub const DRIVER: &str = "dtc, copies of the driver";

/// The same by the generic kernels.
pub const GENERIC: &str = "dtc generic";

/// A kernel by hand.
pub const HAND: &str = "by hand";

/// The median of rounds, in microseconds of the device with the cache emptied, or of the host.
pub struct Figure {
    /// The case.
    pub case: String,
    /// Who.
    pub peer: String,
    /// What was measured.
    pub what: &'static str,
    /// Packed bytes.
    pub bytes: u64,
    /// The time.
    pub us: f64,
}

impl Figure {
    /// The figure as a line of results, in the form of the peers' lines.
    pub fn to_json(&self) -> Value {
        json!({
            "peer": self.peer,
            "case": self.case,
            "what": self.what,
            "packed_bytes": self.bytes,
            "cold_us": (self.us * 1e3).round() / 1e3,
        })
    }
}
