//! Doing what the driver does only while nothing runs on a device.
//!
//! Loading code and freeing memory wait until every kernel of the context has ended, and the driver holds launches of other
//! threads back meanwhile: a kernel that waits for such a launch never ends. Unloading a module waits in the same way but
//! lets others launch, and spoils no capture, unlike waiting for the context. (Measured with driver 580 on an H200, with lazy and
//! with eager loading.) So a module that does nothing is kept to be unloaded. Nothing keeps the device idle afterwards: a kernel that
//! starts before the work is done is waited for after all.

use dtc_cuda::graph;
use dtc_cuda::module::{Function, Module};
use dtc_cuda::{CudaError, Device};
use dtc_templates::{MachineCode, NOTHING_MACHINE_CODE, NOTHING_PTX};
use std::sync::{Mutex, PoisonError};

/// A module that waits for the device when it goes.
#[derive(Default)]
pub(crate) struct Idle {
    sentinel: Mutex<Option<Function>>,
}

impl Idle {
    /// Waits until what runs now has ended. The background of an engine that is dropped may still be about to load code, so the next
    /// one waits as well.
    pub(super) fn wait(&self, device: &Device) {
        self.during(device, || ());
    }

    /// Waits until what runs now has ended, for the last time.
    pub(super) fn wait_last(&self) {
        drop(self.sentinel.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Waits until what runs now has ended, and does something in the moment after. What graphs let
    /// go is freed too. For threads that nobody waits for.
    pub(super) fn during<T>(&self, device: &Device, work: impl FnOnce() -> T) -> T {
        let mut sentinel = self.sentinel.lock().unwrap_or_else(PoisonError::into_inner);
        drop(sentinel.take());
        graph::release_dropped();
        let done = work();
        // Without it the next one does not wait beforehand, which is no worse than any other program.
        *sentinel = nothing(device).ok();
        done
    }
}

/// The kernel that does nothing: from machine code, since the first PTX of a process has the driver open its compiler.
fn nothing(device: &Device) -> Result<Function, CudaError> {
    let load = |image: &[u8]| Module::load(device, image)?.function("dtc_nothing");
    let known = MachineCode::serving(NOTHING_MACHINE_CODE, device.info().architecture()).and_then(MachineCode::unpack);
    known.and_then(|code| load(&code).ok()).map_or_else(|| load(NOTHING_PTX.as_bytes()), Ok)
}
