//! How much of a device a transfer may use.

/// The multiprocessors of a device that a pack or unpack may use.
///
/// A kernel that waits for a free multiprocessor waits for as long as another one holds all of them. Nests of rows that go over
/// a link, to the host or to another device, need none: copy engines move them, in the same time whatever the
/// multiprocessors do. Within a device there is no such path: the driver's copies of rows are kernels.
///
/// ```
/// use dtc_runtime::{Committed, Endpoint, Multiprocessors, Range, TransferError};
/// /// Packs while a solver holds the GPU.
/// fn send(plane: &Committed, grid: Endpoint, packed: Endpoint) -> Result<usize, TransferError> {
///     let pack = plane.at(grid, Range::elements(1)).pack(packed);
///     // SAFETY: `grid` and `packed` have every byte of one element, in memory of the kinds that they name.
///     unsafe { pack.on(Multiprocessors::None).run() }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Multiprocessors {
    /// All that are free, or an eighth of them if one end is pinned memory: an eighth fills the link.
    #[default]
    All,
    /// At most this many, at least one: the kernel has as many blocks at most.
    AtMost(u32),
    /// None, if the bytes go over a link, the layout is a nest of at most four levels, and the call moves whole elements. Otherwise
    /// as `All`.
    None,
}
