//! Modules of GPU code, and the functions in them.

use super::abi::*;
use super::device::Device;
use super::error::CudaError;
use super::stream::Stream;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

/// Bytes that the driver may fill with what it has against a PTX text.
const LOG_BYTES: usize = 16 << 10;

/// A module of GPU code on one device. Cheap to clone; unloaded with the last clone and the last of its functions.
#[derive(Clone)]
pub struct Module {
    shared: Arc<Shared>,
}

struct Shared {
    device: Device,
    handle: ModuleHandle,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Ok(_scope) = self.device.scope_outside_capture() {
            // SAFETY: the module was loaded by this value, and every function holds the value.
            let _ = unsafe { self.device.driver().module_unload(self.handle) };
        }
    }
}

impl Module {
    /// Loads a cubin, a fat binary or a PTX text, which the driver then compiles. Waits; not for the hot path.
    pub fn load(device: &Device, image: &[u8]) -> Result<Module, CudaError> {
        let driver = device.driver();
        let _scope = device.scope_outside_capture()?;
        // The driver reads a PTX text up to its NUL byte; a binary tells its own length.
        let mut terminated = Vec::with_capacity(image.len() + 1);
        terminated.extend_from_slice(image);
        terminated.push(0);
        let mut log = vec![0_u8; LOG_BYTES];
        let mut names = [JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The second value is a number that travels in a pointer.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(LOG_BYTES - 1)];
        let mut handle = ModuleHandle::NULL;
        // SAFETY: the image ends in a NUL byte; there are two options and two values, and the log is as long as its
        // option says.
        let code = unsafe {
            (driver.functions.module_load_data)(
                &mut handle,
                terminated.as_ptr().cast(),
                2,
                names.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match code {
            SUCCESS => Ok(Module { shared: Arc::new(Shared { device: device.clone(), handle }) }),
            INVALID_IMAGE | NO_BINARY_FOR_GPU | INVALID_PTX | UNSUPPORTED_PTX_VERSION => {
                let log = CStr::from_bytes_until_nul(&log).map_or_else(|_| "".into(), CStr::to_string_lossy);
                let log = log.trim_end().to_owned();
                Err(CudaError::Compile { compiler: "CUDA driver", name: driver.describe(code), log })
            }
            _ => Err(driver.failure("cuModuleLoadDataEx", code)),
        }
    }

    /// A kernel of the module, its code loaded onto the device: the driver would else do so at the first launch, where
    /// it waits for all kernels that run.
    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let device = &self.shared.device;
        let driver = device.driver();
        let name = CString::new(name).map_err(|_| CudaError::Nul { place: "kernel name" })?;
        let _scope = device.scope_outside_capture()?;
        let mut handle = FunctionHandle::NULL;
        // SAFETY: the module is alive and the name is NUL-terminated.
        unsafe { driver.module_get_function(&mut handle, self.shared.handle, name.as_ptr().cast::<c_char>())? };
        let function = Function { module: self.clone(), handle };
        match driver.function_load {
            // SAFETY: the function is the module's, which is alive.
            Some(load) => driver.check("cuFuncLoad", unsafe { load(handle) })?,
            // Older drivers load what they are asked about.
            None => {
                function.attribute(NUM_REGS)?;
            }
        }
        Ok(function)
    }
}

/// A kernel that can be launched. Cheap to clone; holds its module.
#[derive(Clone)]
pub struct Function {
    module: Module,
    handle: FunctionHandle,
}

impl Function {
    /// Enqueues the kernel. Allocates nothing and may be captured.
    ///
    /// # Safety
    ///
    /// There is one pointer for each parameter of the kernel, to a value of the parameter's type; the values are copied
    /// before the call returns. What the kernel does with them is allowed, until it is done. The stream is of the
    /// device that the module was loaded on.
    #[inline]
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        blocks: [u32; 3],
        threads: [u32; 3],
        dynamic_shared_bytes: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<(), CudaError> {
        let device = &self.module.shared.device;
        let _scope = device.scope()?;
        // SAFETY: the function is alive and its context current; the caller answers for the parameters.
        unsafe {
            device.driver().launch_kernel(
                self.handle,
                blocks[0],
                blocks[1],
                blocks[2],
                threads[0],
                threads[1],
                threads[2],
                dynamic_shared_bytes,
                stream.handle(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
    }

    fn attribute(&self, attribute: c_int) -> Result<u32, CudaError> {
        let device = &self.module.shared.device;
        let _scope = device.scope()?;
        let mut value = 0;
        // SAFETY: the function is alive, its context current, and the pointer is to a live integer.
        unsafe { device.driver().function_get_attribute(&mut value, attribute, self.handle)? };
        Ok(u32::try_from(value).unwrap_or(0))
    }
}
