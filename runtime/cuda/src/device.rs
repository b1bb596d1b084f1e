//! Devices, and the context that their calls run in.

use super::abi::*;
use super::driver::Driver;
use super::error::{CudaError, Version};
use crate::fork;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Properties of a device, as the driver reports them.
///
/// ```
/// use dtc_cuda::Device;
/// for info in Device::list().unwrap_or_default() {
///     println!("{}: {} of {} bytes", info.ordinal, info.name, info.memory_bytes);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The driver's number of the device, from 0, counted after `CUDA_VISIBLE_DEVICES` has hidden some.
    pub ordinal: u32,
    /// Its name, such as "NVIDIA H200".
    pub name: String,
    /// Identity of the device, unique and stable across processes.
    pub uuid: [u8; 16],
    /// Its compute capability, such as 9.0.
    pub compute_capability: Version,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Threads that a multiprocessor holds at a time.
    pub threads_per_multiprocessor: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes_per_multiprocessor: u64,
    /// Bytes of shared memory that one block may request.
    pub shared_bytes_per_block: u64,
    /// Bytes of its second-level cache.
    pub l2_bytes: u64,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Copy engines: copies that run concurrently with kernels.
    pub copy_engines: u32,
    /// Whether it shares its memory with the host.
    pub integrated: bool,
    /// Whether its kernels can dereference any host pointer, also to memory that CUDA does not know.
    pub reads_pageable_memory: bool,
    /// Whether they do so through the page tables of the host, at the speed of the link, without migrating pages.
    pub shares_page_tables: bool,
}

impl DeviceInfo {
    /// Ten times the compute capability: 90 for sm_90.
    ///
    /// ```
    /// # use dtc_cuda::Device;
    /// for info in Device::list().unwrap_or_default() {
    ///     println!("sm_{}", info.architecture());
    /// }
    /// ```
    pub fn architecture(&self) -> u32 {
        self.compute_capability.major * 10 + self.compute_capability.minor
    }

    fn ask(driver: &Driver, ordinal: u32, device: c_int) -> Result<DeviceInfo, CudaError> {
        let mut name: [c_char; 256] = [0; 256];
        // SAFETY: the driver writes at most 255 of the 256 bytes of `name`, so the last one stays NUL.
        unsafe { driver.device_get_name(name.as_mut_ptr(), 255, device)? };
        // SAFETY: the last byte of `name` is NUL.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let mut uuid = [0; 16];
        let mut memory = 0;
        // SAFETY: `uuid` and `memory` are live values of the types that the driver fills.
        unsafe {
            driver.device_get_uuid(&mut uuid, device)?;
            driver.device_total_memory(&mut memory, device)?;
        }
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the out pointer is to a live `c_int`.
            unsafe { driver.device_get_attribute(&mut value, attribute, device)? };
            Ok::<u32, CudaError>(u32::try_from(value).unwrap_or(0))
        };
        Ok(DeviceInfo {
            ordinal,
            name,
            uuid,
            compute_capability: Version {
                major: attribute(COMPUTE_CAPABILITY_MAJOR)?,
                minor: attribute(COMPUTE_CAPABILITY_MINOR)?,
            },
            multiprocessors: attribute(MULTIPROCESSOR_COUNT)?,
            threads_per_multiprocessor: attribute(MAX_THREADS_PER_MULTIPROCESSOR)?,
            shared_bytes_per_multiprocessor: attribute(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?.into(),
            shared_bytes_per_block: attribute(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?.into(),
            l2_bytes: attribute(L2_CACHE_SIZE)?.into(),
            memory_bytes: memory as u64,
            copy_engines: attribute(ASYNC_ENGINE_COUNT)?,
            integrated: attribute(INTEGRATED)? != 0,
            reads_pageable_memory: attribute(PAGEABLE_MEMORY_ACCESS)? != 0,
            shares_page_tables: attribute(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)? != 0,
        })
    }
}

/// A device with its primary context, which the CUDA runtime uses too. Cheap to clone. The context is released with the
/// last clone and the last object created on it.
///
/// ```
/// use dtc_cuda::Device;
/// match Device::get(0) {
///     Ok(device) => println!("{} has {} multiprocessors", device.info().name, device.info().multiprocessors),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone)]
pub struct Device {
    shared: Arc<OpenDevice>,
}

struct OpenDevice {
    driver: &'static Driver,
    handle: c_int,
    context: ContextHandle,
    info: DeviceInfo,
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        if fork::DRIVER.check().is_ok() {
            // SAFETY: `Device::get` retained the context once, and every object created on it holds a clone of this
            // value.
            let _ = unsafe { self.driver.primary_context_release(self.handle) };
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.shared.handle == other.shared.handle
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("info", &self.shared.info).finish_non_exhaustive()
    }
}

impl Device {
    /// Number of devices. Initialises CUDA.
    ///
    /// # Errors
    ///
    /// The driver is missing or too old, or finds no device.
    ///
    /// ```
    /// use dtc_cuda::Device;
    /// assert_ne!(Device::count(), Ok(0));
    /// ```
    pub fn count() -> Result<u32, CudaError> {
        let driver = Driver::initialised()?;
        let mut count = 0;
        // SAFETY: the out pointer is to a live `c_int`.
        unsafe { driver.device_get_count(&mut count)? };
        match u32::try_from(count) {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(CudaError::NoDevice { reason: "the driver counts none".to_owned() }),
        }
    }

    /// Properties of all devices. Initialises CUDA; creates no context.
    ///
    /// # Errors
    ///
    /// As [`Device::count`].
    ///
    /// ```
    /// use dtc_cuda::Device;
    /// assert_eq!(Device::list().map(|list| list.len()).ok(), Device::count().map(|count| count as usize).ok());
    /// ```
    pub fn list() -> Result<Vec<DeviceInfo>, CudaError> {
        let driver = Driver::initialised()?;
        (0..Device::count()?).map(|ordinal| DeviceInfo::ask(driver, ordinal, handle(driver, ordinal)?)).collect()
    }

    /// The device with this ordinal. Initialises CUDA and retains the primary context, which takes memory of the
    /// device.
    ///
    /// # Errors
    ///
    /// As [`Device::count`]; [`CudaError::Ordinal`] if `ordinal` is too large; or the driver can create no context.
    ///
    /// ```
    /// use dtc_cuda::Device;
    /// assert!(Device::get(1_000_000).is_err());
    /// ```
    pub fn get(ordinal: u32) -> Result<Device, CudaError> {
        let count = Device::count()?;
        if ordinal >= count {
            return Err(CudaError::Ordinal { ordinal, count });
        }
        let driver = Driver::initialised()?;
        let handle = handle(driver, ordinal)?;
        let info = DeviceInfo::ask(driver, ordinal, handle)?;
        let mut context = ContextHandle::NULL;
        // SAFETY: `context` is a live handle to fill, and `handle` is a device that `cuDeviceGet` returned.
        unsafe { driver.primary_context_retain(&mut context, handle)? };
        Ok(Device { shared: Arc::new(OpenDevice { driver, handle, context, info }) })
    }

    /// Its properties.
    ///
    /// ```
    /// # use dtc_cuda::Device;
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(device.info().ordinal, 0);
    /// }
    /// ```
    pub fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    /// Makes the device's context current in this thread until the returned value is dropped, which restores the
    /// previous context. Every call of this crate does so itself; an outer scope makes each of several calls cheaper.
    /// If the context is current already, a scope costs one query.
    ///
    /// # Errors
    ///
    /// The driver refuses, or this is a forked child.
    ///
    /// ```
    /// # use dtc_cuda::Device;
    /// if let Ok(device) = Device::get(0) {
    ///     let _scope = device.scope()?;
    ///     device.synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    #[inline]
    pub fn scope(&self) -> Result<Scope<'_>, CudaError> {
        fork::DRIVER.check()?;
        let driver = self.driver();
        let mut current = ContextHandle::NULL;
        // SAFETY: `current` is a live handle to fill.
        unsafe { driver.context_get_current(&mut current)? };
        let pushed = current != self.shared.context;
        if pushed {
            // SAFETY: this device retains the context for as long as it lives.
            unsafe { driver.context_push_current(self.shared.context)? };
        }
        Ok(Scope { device: self, pushed, thread: PhantomData })
    }

    /// [`CudaError::Forked`] in a forked child, where no call of the driver works.
    #[inline]
    pub fn check_process(&self) -> Result<(), CudaError> {
        fork::DRIVER.check()
    }

    /// A scope for calls that allocate, free, load or wait. While any thread captures a graph in the global mode, such
    /// calls fail and invalidate that capture. The scope sets this thread to the relaxed mode, which allows them.
    pub(super) fn scope_outside_capture(&self) -> Result<OutsideCapture<'_>, CudaError> {
        let scope = self.scope()?;
        let mut mode = CAPTURE_RELAXED;
        // SAFETY: `mode` is a live integer that holds a capture mode.
        unsafe { self.driver().exchange_capture_mode(&mut mode)? };
        Ok(OutsideCapture { scope, mode })
    }

    /// Waits for all work on the device's context.
    ///
    /// # Errors
    ///
    /// A kernel failed, or this thread is capturing a graph.
    ///
    /// ```
    /// # use dtc_cuda::Device;
    /// if let Ok(device) = Device::get(0) {
    ///     device.synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _scope = self.scope()?;
        // SAFETY: `_scope` has made the device's context current.
        unsafe { self.driver().context_synchronize() }
    }

    /// Whether kernels of this device may use memory of `peer`, once it is mapped. Transfers map it when they first
    /// need it.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::Device;
    /// if let Ok(device) = Device::get(0) {
    ///     // The driver reports no link from a device to itself.
    ///     assert!(!device.can_access(&device)?);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn can_access(&self, peer: &Device) -> Result<bool, CudaError> {
        let mut can = 0;
        // SAFETY: `can` is a live integer, and both handles are devices that `cuDeviceGet` returned.
        unsafe { self.driver().device_can_access_peer(&mut can, self.shared.handle, peer.shared.handle)? };
        Ok(can != 0)
    }

    /// Maps the memory of `peer`, for the whole process. Mapping it again is no error.
    pub fn enable_peer(&self, peer: &Device) -> Result<(), CudaError> {
        let _scope = self.scope_outside_capture()?;
        let driver = self.driver();
        // SAFETY: `_scope` has made this device's context current, and `peer` retains its own.
        let code = unsafe { (driver.functions.context_enable_peer_access)(peer.shared.context, 0) };
        if code == PEER_ACCESS_ALREADY_ENABLED { Ok(()) } else { driver.check("cuCtxEnablePeerAccess", code) }
    }

    /// Sets how many bytes the L2 cache fetches at a time, 32 to 128. It is a hint to the hardware and holds for
    /// **everything that the process runs on the device**. The engine never sets it.
    ///
    /// With 32 bytes, an H200 packs short runs that are far apart up to 1.6 times as fast (blocks of 8 in 64 bytes).
    /// Kernels that read neighbouring sectors one after another become slower.
    ///
    /// # Errors
    ///
    /// The driver refuses the number.
    ///
    /// ```
    /// # use dtc_cuda::Device;
    /// if let Ok(device) = Device::get(0) {
    ///     device.set_l2_fetch_granularity(32)?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn set_l2_fetch_granularity(&self, bytes: usize) -> Result<(), CudaError> {
        let _scope = self.scope()?;
        // SAFETY: `_scope` has made the context current, and the driver checks the value.
        unsafe { self.driver().context_set_limit(LIMIT_MAX_L2_FETCH_GRANULARITY, bytes) }
    }

    /// Bytes of free memory and of all memory.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::Device;
    /// if let Ok(device) = Device::get(0) {
    ///     let (free, all) = device.memory()?;
    ///     assert!(free <= all);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn memory(&self) -> Result<(usize, usize), CudaError> {
        let _scope = self.scope()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: `free` and `total` are live integers, and `_scope` has made the context current.
        unsafe { self.driver().memory_get_info(&mut free, &mut total)? };
        Ok((free, total))
    }

    #[inline]
    pub(super) fn driver(&self) -> &'static Driver {
        self.shared.driver
    }
}

fn handle(driver: &Driver, ordinal: u32) -> Result<c_int, CudaError> {
    let mut device = 0;
    let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: the out pointer is to a live `c_int`.
    unsafe { driver.device_get(&mut device, ordinal)? };
    Ok(device)
}

/// Keeps a device's context current in this thread while it lives. See [`Device::scope`].
///
/// ```
/// # use dtc_cuda::{Device, Scope};
/// fn in_scope(_: &Scope<'_>) {}
/// if let Ok(device) = Device::get(0) {
///     in_scope(&device.scope()?);
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[must_use = "the context is current only as long as the scope lives"]
pub struct Scope<'device> {
    device: &'device Device,
    pushed: bool,
    /// The current context is a property of the thread, so a scope must not leave its thread.
    thread: PhantomData<*const ()>,
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("device", self.device).finish_non_exhaustive()
    }
}

impl Drop for Scope<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = ContextHandle::NULL;
            // SAFETY: `popped` is a live handle. `scope` pushed the context that this pops, unless the application
            // unbalanced the stack, which the driver tolerates.
            let _ = unsafe { self.device.driver().context_pop_current(&mut popped) };
        }
    }
}

/// The scope that [`Device::scope_outside_capture`] returns; restores the capture mode when dropped.
pub(super) struct OutsideCapture<'device> {
    scope: Scope<'device>,
    mode: c_int,
}

impl Drop for OutsideCapture<'_> {
    fn drop(&mut self) {
        // SAFETY: `mode` is a live integer that holds the previous mode of this thread.
        let _ = unsafe { self.scope.device.driver().exchange_capture_mode(&mut self.mode) };
    }
}
