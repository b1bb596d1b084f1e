//! The size and the bounds of a layout.

/// What calls need of a layout, side by side.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) size: u64,
    pub(crate) extent: i64,
    pub(crate) true_lb: i64,
    pub(crate) true_ub: i64,
}
