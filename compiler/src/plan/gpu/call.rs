//! The part of a call that decides which kernel serves it.

/// The part of a call that decides which kernel serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The address of element 0.
    pub memory: u64,
    /// The address of packed byte `first`.
    pub packed: u64,
    /// The first packed byte to move.
    pub first: u64,
    /// How many bytes to move, at least 1.
    pub bytes: u64,
}

impl Call {
    /// Whole elements between buffers that are aligned as allocations are.
    ///
    /// ```
    /// assert_eq!(dtc_compiler::plan::gpu::Call::whole(4096).first, 0);
    /// ```
    pub fn whole(bytes: u64) -> Call {
        Call { memory: 0, packed: 0, first: 0, bytes }
    }

    /// The packed byte behind the last.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.bytes)
    }
}
