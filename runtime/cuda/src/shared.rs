//! Memory of devices that several processes use.

use super::abi::*;
use super::buffer::DeviceBuffer;
use super::device::Device;
use super::error::CudaError;
use super::pointer::{MemoryKind, classify};

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
        name(self.device(), self.address())
    }
}

/// What other processes open the allocation at an address by.
fn name(device: &Device, address: DevicePointer) -> Result<[u8; 64], CudaError> {
    let mut handle = IpcHandle([0; 64]);
    let _scope = device.scope_outside_capture()?;
    // SAFETY: `handle` is a live place to fill; the driver refuses an address that it did not allocate.
    unsafe { device.driver().ipc_get_handle(&mut handle, address)? };
    Ok(handle.0)
}

/// Memory that anything in this process allocated, as other processes of the machine open it.
///
/// ```
/// use dtc_cuda::{Device, DeviceBuffer, Exported};
/// if let Ok(device) = Device::get(0) {
///     let buffer = DeviceBuffer::new(&device, 4096)?;
///     let exported = Exported::of(&device, buffer.address() + 1024, 512)?.expect("one allocation");
///     assert_eq!(exported.offset, 1024);
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// What [`ImportedBuffer::open`] opens the allocation by.
    pub handle: [u8; 64],
    /// Bytes from the first one of the allocation to the address that was asked about.
    pub offset: u64,
    /// A number of the allocation that no other one of the process has, at any time.
    pub allocation: u64,
}

impl Exported {
    /// Names the allocation that holds `bytes` bytes from an address on; none if they are not all in one allocation of this device. Freeing it
    /// while another process has it open is undefined behaviour of CUDA.
    ///
    /// # Errors
    ///
    /// The driver fails, or refuses: such a handle names neither managed memory nor that of virtual addresses or pools.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Exported};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(Exported::of(&device, [0_u8; 8].as_ptr().addr() as u64, 8), Ok(None));
    /// }
    /// ```
    pub fn of(device: &Device, address: u64, bytes: u64) -> Result<Option<Exported>, CudaError> {
        let info = classify(std::ptr::without_provenance(address as usize))?;
        let offset = address.wrapping_sub(info.range_start);
        let holds = offset.checked_add(bytes).is_some_and(|end| end <= info.range_bytes);
        if info.kind != MemoryKind::Device(device.info().ordinal) || !holds {
            return Ok(None);
        }
        Ok(Some(Exported { handle: name(device, info.range_start)?, offset, allocation: info.buffer_id }))
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
