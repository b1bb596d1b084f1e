//! Pinned memory that comes from the host of the engine.

use std::fmt::Debug;

/// Allocates the pinned host memory that transfers go through: for hosts that have pools of their own, such as memory that is
/// registered with a network card. An engine takes one by `EngineBuilder::staging`.
///
/// Calls come from any thread, several at once, also from the engine's own. Memory is kept and used again, so calls are few; what
/// is kept is freed with the engine.
///
/// # Safety
///
/// What [`StagingAllocator::allocate`] returns is null, or the address of so many bytes of host memory that nobody else uses
/// until they are freed.
///
/// ```
/// use dtc_cuda::StagingAllocator;
/// use std::sync::Arc;
///
/// /// Has no memory at all, so that transfers that need some fail.
/// #[derive(Debug)]
/// struct Nothing;
///
/// // SAFETY: it only returns null.
/// unsafe impl StagingAllocator for Nothing {
///     fn allocate(&self, _device: u32, _bytes: usize) -> *mut u8 {
///         std::ptr::null_mut()
///     }
///     unsafe fn free(&self, _device: u32, _memory: *mut u8, _bytes: usize) {}
/// }
/// let nothing: Arc<dyn StagingAllocator> = Arc::new(Nothing);
/// assert!(nothing.allocate(0, 64).is_null());
/// ```
pub unsafe trait StagingAllocator: Debug + Send + Sync {
    /// So many bytes for transfers of a device, aligned to 64 at least, that were allocated or registered with CUDA, for all
    /// devices and with a mapping (`CU_MEMHOSTALLOC_PORTABLE`, `CU_MEMHOSTALLOC_DEVICEMAP`). Null if there are none: the
    /// transfer fails.
    ///
    /// See [`StagingAllocator`] for an example.
    fn allocate(&self, device: u32, bytes: usize) -> *mut u8;

    /// Takes memory back, when nothing uses it any more. CUDA may be gone by then.
    ///
    /// # Safety
    ///
    /// The memory came from `allocate` with the same device and number of bytes, and is freed once.
    ///
    /// See [`StagingAllocator`] for an example.
    unsafe fn free(&self, device: u32, memory: *mut u8, bytes: usize);
}
