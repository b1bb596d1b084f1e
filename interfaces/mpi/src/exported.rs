//! Addresses of exported functions.

/// The address of an exported function.
pub struct Exported(pub *const ());

// SAFETY: an address of code.
unsafe impl Sync for Exported {}
