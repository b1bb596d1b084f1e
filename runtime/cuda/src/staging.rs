//! Staging memory that the application provides.

use std::fmt::Debug;

/// Allocates the pinned host memory that transfers go through. Applications implement it to lend memory of their own
/// pools, for example memory that is registered with a network card. `EngineBuilder::staging` takes one.
///
/// Calls come from any thread, concurrently, also from threads of the engine. The engine reuses memory, so calls are
/// few, and frees it when it is dropped.
///
/// # Safety
///
/// [`StagingAllocator::allocate`] returns null, or the address of `bytes` bytes of host memory that nothing else uses
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
    /// Returns `bytes` bytes for transfers of `device`, aligned to 64, allocated or registered with CUDA for all
    /// devices and with a mapping (`CU_MEMHOSTALLOC_PORTABLE`, `CU_MEMHOSTALLOC_DEVICEMAP`). Null if there are none:
    /// the transfer fails.
    ///
    /// See [`StagingAllocator`] for an example.
    fn allocate(&self, device: u32, bytes: usize) -> *mut u8;

    /// Takes memory back that is no longer in use. CUDA may be unloaded by then.
    ///
    /// # Safety
    ///
    /// `memory` came from `allocate` with the same device and length, and is freed once.
    ///
    /// See [`StagingAllocator`] for an example.
    unsafe fn free(&self, device: u32, memory: *mut u8, bytes: usize);
}
