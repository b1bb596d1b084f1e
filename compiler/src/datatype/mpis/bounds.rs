//! What a model says of a type.

/// Size and bounds of a type in an MPI, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiBounds {
    /// Bytes that the type packs to.
    pub size: u64,
    /// Lower bound.
    pub lb: i64,
    /// Upper bound.
    pub ub: i64,
    /// What the MPI says of the lowest displacement of a byte.
    pub true_lb: i64,
    /// What the MPI says of one past the highest displacement of a byte.
    pub true_ub: i64,
    /// Strictest alignment that pads a struct around it.
    pub alignment: u64,
}

impl MpiBounds {
    /// Distance from one element of an array to the next.
    #[must_use]
    pub fn extent(&self) -> i64 {
        // The models admit bounds only when their difference fits.
        self.ub - self.lb
    }
}
