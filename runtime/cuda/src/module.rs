//! Modules of GPU code, and their functions.

use super::abi::*;
use super::device::{Device, Scope};
use super::error::CudaError;
use super::stream::Stream;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::sync::Arc;

/// Bytes for the driver's log about a PTX text that it rejects.
const LOG_BYTES: usize = 16 << 10;

/// A module of GPU code on one device. Cheap to clone. It is unloaded with its last clone and the last of its
/// functions.
#[derive(Clone)]
pub struct Module {
    shared: Arc<LoadedModule>,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("device", &self.shared.device).finish_non_exhaustive()
    }
}

struct LoadedModule {
    device: Device,
    handle: ModuleHandle,
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        if let Ok(_scope) = self.device.scope_outside_capture() {
            // SAFETY: `load` loaded the module once, and every function holds this value.
            let _ = unsafe { self.device.driver().module_unload(self.handle) };
        }
    }
}

impl Module {
    /// Loads a cubin, a fat binary or a PTX text, which the driver compiles. It waits for the device, so it must not
    /// run in a call that moves bytes.
    pub fn load(device: &Device, image: &[u8]) -> Result<Module, CudaError> {
        let driver = device.driver();
        let _scope = device.scope_outside_capture()?;
        // A NUL byte ends a PTX text for the driver; a binary contains its own length.
        let mut terminated = Vec::with_capacity(image.len() + 1);
        terminated.extend_from_slice(image);
        terminated.push(0);
        let mut log = vec![0_u8; LOG_BYTES];
        let mut names = [JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The second value is a number, passed in a pointer.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(LOG_BYTES - 1)];
        let mut handle = ModuleHandle::NULL;
        // SAFETY: `terminated` ends in a NUL byte, there are two options and two values, and `log` has `LOG_BYTES`
        // bytes.
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
            SUCCESS => Ok(Module { shared: Arc::new(LoadedModule { device: device.clone(), handle }) }),
            INVALID_IMAGE | NO_BINARY_FOR_GPU | INVALID_PTX | UNSUPPORTED_PTX_VERSION => {
                let log = CStr::from_bytes_until_nul(&log).map_or_else(|_| "".into(), CStr::to_string_lossy);
                let log = log.trim_end().to_owned();
                Err(CudaError::Compile { compiler: "CUDA driver", name: driver.describe(code), log })
            }
            _ => Err(driver.failure("cuModuleLoadDataEx", code)),
        }
    }

    /// Finds a kernel of the module and loads its code onto the device. Otherwise the driver would load it at the first
    /// launch, and wait there for all running kernels.
    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let device = &self.shared.device;
        let driver = device.driver();
        let name = CString::new(name).map_err(|_| CudaError::Nul { place: "kernel name" })?;
        let _scope = device.scope_outside_capture()?;
        let mut handle = FunctionHandle::NULL;
        // SAFETY: `self` keeps the module alive, and `name` is NUL-terminated.
        unsafe { driver.module_get_function(&mut handle, self.shared.handle, name.as_ptr().cast::<c_char>())? };
        let function = Function { module: self.clone(), handle };
        match driver.function_load {
            // SAFETY: `handle` is a function of the module, which `self` keeps alive.
            Some(load) => driver.check("cuFuncLoad", unsafe { load(handle) })?,
            // Older drivers load a function when one of its attributes is read.
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

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("module", &self.module).finish_non_exhaustive()
    }
}

impl Function {
    /// Enqueues the kernel. Allocates nothing and may be captured.
    ///
    /// # Safety
    ///
    /// `parameters` has one pointer for each parameter of the kernel, to a value of its type; the call copies the
    /// values. The kernel's accesses are valid until it is done. `stream` is of the device that the module was loaded
    /// on.
    #[inline]
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        blocks: [u32; 3],
        threads: [u32; 3],
        dynamic_shared_bytes: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<(), CudaError> {
        let scope = self.module.shared.device.scope()?;
        // SAFETY: `launch_within` has the same contract, and the scope is of the device of the module.
        unsafe { self.launch_within(&scope, stream, blocks, threads, dynamic_shared_bytes, parameters) }
    }

    /// The same in a scope of the device, which saves a question to the driver.
    ///
    /// # Safety
    ///
    /// As for [`Function::launch`]; the scope is of the device that the module was loaded on.
    #[inline]
    pub unsafe fn launch_within(
        &self,
        _: &Scope<'_>,
        stream: &Stream,
        blocks: [u32; 3],
        threads: [u32; 3],
        dynamic_shared_bytes: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<(), CudaError> {
        // SAFETY: `self` keeps the function alive, the scope its context current, and `parameters` fits the kernel
        // (contract of this function).
        unsafe {
            self.module.shared.device.driver().launch_kernel(
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
        // SAFETY: `self` keeps the function alive, its context is current, and `value` is a live integer.
        unsafe { device.driver().function_get_attribute(&mut value, attribute, self.handle)? };
        Ok(u32::try_from(value).unwrap_or(0))
    }
}
