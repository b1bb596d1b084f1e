//! Memory of devices that several processes use.

use super::abi::*;
use super::buffer::DeviceBuffer;
use super::device::Device;
use super::error::CudaError;

impl DeviceBuffer {
    /// What another process of this machine opens the memory by, with [`ImportedBuffer::open`]. Freeing the memory while it is open there is
    /// undefined behaviour of CUDA.
    ///
    /// # Errors
    ///
    /// The driver refuses: such a handle names neither managed memory nor that of virtual addresses or pools.
    ///
    /// ```
    /// use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     let buffer = DeviceBuffer::new(&device, 4096)?;
    ///     println!("{:02x?}", buffer.export()?);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn export(&self) -> Result<[u8; 64], CudaError> {
        let mut handle = IpcHandle([0; 64]);
        let _scope = self.device().scope_outside_capture()?;
        // SAFETY: `handle` is a live place to fill; the driver refuses an address that it did not allocate.
        unsafe { self.device().driver().ipc_get_handle(&mut handle, self.address())? };
        Ok(handle.0)
    }
}

/// Memory of another process, as a device of this one sees it. Dropping it closes it here.
///
/// ```
/// use dtc_cuda::{CudaError, Device, ImportedBuffer};
/// fn address_here(device: &Device, handle: [u8; 64]) -> Result<u64, CudaError> {
///     Ok(ImportedBuffer::open(device, handle)?.address())
/// }
/// if let Ok(device) = Device::get(0) {
///     assert!(address_here(&device, [0; 64]).is_err());
/// }
/// ```
#[derive(Debug)]
pub struct ImportedBuffer {
    device: Device,
    address: DevicePointer,
}

impl Drop for ImportedBuffer {
    fn drop(&mut self) {
        if let Ok(_scope) = self.device.scope_outside_capture() {
            // SAFETY: `open` opened `address`, and `drop` runs once, after every other use.
            let _ = unsafe { self.device.driver().ipc_close_handle(self.address) };
        }
    }
}

impl ImportedBuffer {
    /// Opens memory that [`DeviceBuffer::export`] named in another process, for kernels and copies of `device`.
    ///
    /// # Errors
    ///
    /// The driver refuses: the process, the memory or its device is out of reach, or it is memory of this process.
    ///
    /// ```
    /// # use dtc_cuda::{Device, ImportedBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert!(ImportedBuffer::open(&device, [0; 64]).is_err());
    /// }
    /// ```
    pub fn open(device: &Device, handle: [u8; 64]) -> Result<ImportedBuffer, CudaError> {
        let mut address = 0;
        let _scope = device.scope_outside_capture()?;
        // SAFETY: `address` is a live integer to fill; the driver checks the handle.
        unsafe { device.driver().ipc_open_handle(&mut address, IpcHandle(handle), IPC_ENABLE_PEER_ACCESS)? };
        Ok(ImportedBuffer { device: device.clone(), address })
    }

    /// The device address of the first byte of the buffer that was exported.
    ///
    /// ```
    /// # use dtc_cuda::{Device, ImportedBuffer};
    /// # fn show(device: &Device, handle: [u8; 64]) -> Result<(), dtc_cuda::CudaError> {
    /// println!("{:#x}", ImportedBuffer::open(device, handle)?.address());
    /// # Ok(())
    /// # }
    /// ```
    pub fn address(&self) -> u64 {
        self.address
    }
}
