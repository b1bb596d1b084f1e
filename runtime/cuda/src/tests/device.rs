//! Tests of the wrappers on real devices. They skip themselves where there is none, and fail there if the environment
//! has `DTC_REQUIRE_GPU=1`.

use super::exercise;
use crate::module::Module;
use crate::{Architecture, CudaError, Device, Nvrtc};
use std::io::Write;

/// The value found, or `None` if it is missing and may be.
fn present<T>(what: &str, found: Result<T, CudaError>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(error) if std::env::var_os("DTC_REQUIRE_GPU").is_some() => panic!("{error}"),
        Err(error) => {
            // Written past the harness, which hides the output of tests that pass, so that skipped tests are seen and
            // counted.
            let _ = std::io::stderr().write_all(format!("\nskipped: {what}: {error}\n").as_bytes());
            None
        }
    }
}

const KERNELS: &str = r#"
typedef unsigned long long u64;
extern "C" __global__ void copy(char *to, const char *from, u64 bytes) {
    for (u64 i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
}
extern "C" __global__ void reverse(char *to, const char *from, u64 bytes) {
    for (u64 i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[bytes - 1 - i];
}
"#;

#[test]
fn every_device_copies() {
    let Some(devices) = present("every_device_copies", Device::list()) else { return };
    for info in devices {
        let device = Device::get(info.ordinal).unwrap();
        assert_eq!(device.info(), &info);
        exercise::buffers(&device);
        exercise::pointers(&device);
        exercise::copies(&device);
        exercise::events(&device);
        device.synchronize().unwrap();
        let (free, total) = device.memory().unwrap();
        assert!(free <= total);
    }
}

#[test]
fn every_device_runs_what_nvrtc_compiles() {
    let name = "every_device_runs_what_nvrtc_compiles";
    let Some(devices) = present(name, Device::list()) else { return };
    let Some(nvrtc) = present(name, Nvrtc::get()) else { return };
    for info in devices {
        let device = Device::get(info.ordinal).unwrap();
        let cubin = nvrtc.architecture_for(info.architecture()).unwrap();
        let (Architecture::Cubin(number) | Architecture::Ptx(number)) = cubin;
        for architecture in [cubin, Architecture::Ptx(number)] {
            let binary = nvrtc.compile(KERNELS, "kernels.cu", architecture, &[]).unwrap();
            exercise::kernels(&device, &binary.bytes);
            exercise::graphs(&device, &binary.bytes);
        }
        match Module::load(&device, b".version 7.0\n.target sm_80\n.address_size 64\nnonsense").map(drop) {
            Err(CudaError::Compile { log, .. }) => assert!(log.contains("nonsense"), "{log}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn devices_reach_each_other() {
    let Some(devices) = present("devices_reach_each_other", Device::list()) else { return };
    for (one, other) in devices.iter().zip(devices.iter().skip(1)) {
        let (one, other) = (Device::get(one.ordinal).unwrap(), Device::get(other.ordinal).unwrap());
        if one.can_access(&other).unwrap() {
            one.enable_peer(&other).unwrap();
            one.enable_peer(&other).unwrap();
        }
    }
}

#[test]
fn nvrtc_compiles_for_what_it_supports() {
    let Some(nvrtc) = present("nvrtc_compiles_for_what_it_supports", Nvrtc::get()) else { return };
    for number in nvrtc.supported_architectures() {
        let cubin = nvrtc.compile(KERNELS, "kernels.cu", Architecture::Cubin(*number), &[]).unwrap();
        assert!(cubin.bytes.starts_with(b"\x7fELF"), "{number}: {}", cubin.log);
        let ptx = nvrtc.compile(KERNELS, "kernels.cu", Architecture::Ptx(*number), &[]).unwrap();
        assert!(String::from_utf8(ptx.bytes).unwrap().contains(".entry reverse"), "{number}: {}", ptx.log);
    }
}
