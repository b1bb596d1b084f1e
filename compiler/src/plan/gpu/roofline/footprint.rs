//! What a transfer touches.

/// The memory that a transfer touches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// Granules of 64 bytes, which DRAM is read in.
    pub granules: u64,
    /// Sectors of 32 bytes, which DRAM is written in.
    pub sectors: u64,
    /// Sectors that the transfer covers whole.
    pub full_sectors: u64,
    /// Two standard errors, relative to the traffic; 0 where the counts are exact.
    pub error: f64,
}
