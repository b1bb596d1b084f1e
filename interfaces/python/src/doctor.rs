//! What this machine offers.

use crate::committed::engine;
use dtc_runtime::cuda::{Device, Driver, Nvrtc};
use pyo3::prelude::*;

/// Says what this machine offers: the level of the microkernels, the CUDA driver, GPUs, and NVRTC, and why one is missing. Initialises CUDA.
///
/// >>> import libdtc
/// >>> libdtc.doctor().splitlines()[0].split()[0]
/// 'libdtc'
#[pyfunction]
pub fn doctor(py: Python<'_>) -> String {
    py.detach(|| {
        let driver = match Driver::get() {
            Ok(driver) => driver.version().to_string(),
            Err(error) => error.to_string(),
        };
        let gpus = match Device::list() {
            Ok(devices) => {
                let names = devices
                    .iter()
                    .map(|device| format!("{} {}, sm_{}", device.ordinal, device.name, device.architecture()));
                names.collect::<Vec<_>>().join("; ")
            }
            Err(_) if Driver::get().is_err() => "none without the driver".to_owned(),
            Err(error) => error.to_string(),
        };
        let nvrtc = match Nvrtc::get() {
            Ok(nvrtc) => nvrtc.version().to_string(),
            Err(error) => error.to_string(),
        };
        let level = engine().target().level;
        format!(
            "libdtc       {}\nvectors      {level}\nCUDA driver  {driver}\nGPUs         {gpus}\nNVRTC        {nvrtc}\n",
            env!("CARGO_PKG_VERSION")
        )
    })
}
