//! Missing and broken libraries are reported as errors.

use crate::pointer;
use crate::search;
use crate::{Architecture, CudaError, Device, Driver, MemoryKind, Nvrtc, Version};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::in_child;
use std::path::PathBuf;

in_child! {
    fn missing_libraries_say_how_to_get_them(driver: Absent, nvrtc: Absent) {
        let error = Device::get(0).unwrap_err();
        let CudaError::LibraryMissing { library: "CUDA driver", tried, .. } = &error else { panic!("{error}") };
        assert!(tried.len() == 1 && tried[0].contains("libdriver.so"), "{tried:?}");
        let text = error.to_string();
        assert!(text.contains("install the NVIDIA driver") && text.contains("DTC_CUDA_DRIVER"), "{text}");
        assert!(error.is_absence());
        assert_eq!(Device::list(), Err(error.clone()));
        assert_eq!(Driver::get().err(), Some(error));
        let text = Nvrtc::get().err().unwrap().to_string();
        assert!(text.contains("pip install nvidia-cuda-nvrtc") && text.contains("DTC_NVRTC"), "{text}");
        assert_eq!(pointer::classify(text.as_ptr()).unwrap().kind, MemoryKind::Pageable);
    }

    fn old_drivers_are_called_old(driver: Built(&["STUB_VERSION=11020", "STUB_WITHOUT_LAUNCH"]), nvrtc: Absent) {
        let (found, needed) = (Version { major: 11, minor: 2 }, Version { major: 11, minor: 4 });
        assert_eq!(Device::get(0), Err(CudaError::DriverTooOld { found, needed }));
    }

    fn a_missing_function_is_named(driver: Built(&["STUB_WITHOUT_LAUNCH"]), nvrtc: Built(&["STUB_WITHOUT_CUBIN"])) {
        match Device::get(0) {
            Err(CudaError::SymbolMissing { library: "CUDA driver", symbol: "cuGraphLaunch", path, .. }) => {
                assert!(path.ends_with("libdriver.so"), "{path}");
            }
            other => panic!("{other:?}"),
        }
        match Nvrtc::get() {
            Err(CudaError::SymbolMissing { library: "NVRTC", symbol: "nvrtcGetCUBIN", .. }) => {}
            other => panic!("{:?}", other.err()),
        }
    }

    fn a_machine_without_devices_has_none(driver: Built(&["STUB_NO_DEVICE"]), nvrtc: Absent) {
        assert!(Driver::get().is_ok());
        for error in [Device::get(0).err(), Device::count().err(), Device::list().err()] {
            match error {
                Some(CudaError::NoDevice { reason }) => assert_eq!(reason, "CUDA_ERROR_NO_DEVICE"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(pointer::classify(&0_u8).unwrap().kind, MemoryKind::Pageable);
    }

    fn a_path_in_the_environment_is_taken(driver: Built(&["STUB_VERSION=13000"]), nvrtc: Absent) {
        let driver = std::env::var_os("DTC_CUDA_DRIVER").unwrap();
        assert_eq!(Driver::get().unwrap().path(), Some(std::path::Path::new(&driver)));
        assert_eq!(Driver::get().unwrap().version(), Version { major: 13, minor: 0 });
    }

    fn nvrtc_compiles_with_its_options(driver: Absent, nvrtc: Built(&[])) {
        let nvrtc = Nvrtc::get().unwrap();
        assert_eq!(nvrtc.version(), Version { major: 12, minor: 9 });
        assert_eq!(nvrtc.supported_architectures(), [75, 80, 90]);
        let binary = nvrtc.compile("right", "a.cu", Architecture::Ptx(80), &["-lineinfo"]).unwrap();
        assert_eq!((binary.bytes.as_slice(), binary.architecture), (&b"right"[..], Architecture::Ptx(80)));
        assert_eq!(binary.log, "-arch=compute_80\n-default-device\n--minimal\n-lineinfo");
        let binary = nvrtc.compile("right", "a.cu", Architecture::Cubin(90), &[]).unwrap();
        assert_eq!(binary.bytes, b"right\0");
        assert!(binary.log.contains("-arch=sm_90"));
    }

    fn nvrtc_says_what_is_wrong(driver: Absent, nvrtc: Built(&[])) {
        let nvrtc = Nvrtc::get().unwrap();
        let compile = |source, architecture, options: &[&str]| nvrtc.compile(source, "a.cu", architecture, options);
        match compile("wrong", Architecture::Ptx(80), &[]) {
            Err(CudaError::Compile { compiler: "NVRTC", log, .. }) => assert_eq!(log, "a.cu(1): error: wrong"),
            other => panic!("{other:?}"),
        }
        match compile("right", Architecture::Ptx(80), &["--no-such-option"]) {
            Err(CudaError::Compile { name, .. }) => assert_eq!(name, "NVRTC_ERROR_INVALID_OPTION"),
            other => panic!("{other:?}"),
        }
        assert_eq!(compile("\0", Architecture::Ptx(80), &[]), Err(CudaError::Nul { place: "source" }));
        match compile("right", Architecture::Cubin(70), &[]) {
            Err(CudaError::Architecture { architecture: 70, hint, .. }) => assert!(hint.contains("cu12")),
            other => panic!("{other:?}"),
        }
        assert_eq!(nvrtc.architecture_for(90), Ok(Architecture::Cubin(90)));
        assert_eq!(nvrtc.architecture_for(86), Ok(Architecture::Ptx(80)));
        assert_eq!(nvrtc.architecture_for(121), Ok(Architecture::Ptx(90)));
        assert!(nvrtc.architecture_for(70).is_err());
        // A wrong option does not clear the flag for `--minimal`.
        assert!(compile("right", Architecture::Ptx(80), &[]).unwrap().log.contains("--minimal"));
    }

    fn an_option_that_old_nvrtc_lacks_is_left_out(driver: Absent, nvrtc: Built(&["STUB_WITHOUT_MINIMAL"])) {
        let nvrtc = Nvrtc::get().unwrap();
        for _ in 0..2 {
            let binary = nvrtc.compile("right", "a.cu", Architecture::Ptx(80), &[]).unwrap();
            assert_eq!(binary.log, "-arch=compute_80\n-default-device");
        }
    }

    fn nvrtc_is_looked_for_in_order(driver: Absent, nvrtc: Absent) {
        let environment = tempfile::tempdir().unwrap();
        let folder = environment.path().join("lib/python3.13/site-packages/nvidia/cu13/lib");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libnvrtc.so.13"), "").unwrap();
        // SAFETY: this process runs this test alone, in one thread.
        unsafe { std::env::set_var("VIRTUAL_ENV", environment.path()) };
        let order = |driver: Option<u32>| {
            let paths = search::nvrtc(driver.map(|major| Version { major, minor: 0 }));
            let paths: Vec<PathBuf> = paths.iter().map(|candidate| candidate.path().to_owned()).collect();
            // Other candidates depend on the machine.
            let ours = |path: &PathBuf| path.is_relative() || path.starts_with(&folder);
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().replace("libnvrtc.so", "");
            paths.iter().filter(|path| ours(path)).map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(None), ".14 .13 .13 .12 .11.2 ");
        assert_eq!(order(Some(13)), ".13 .13 .12 .11.2 .14 ");
        assert_eq!(order(Some(12)), ".12 .11.2 .14 .13 .13 ");
    }

    fn missing_builtins_are_named(driver: Absent, nvrtc: Built(&["STUB_WITHOUT_BUILTINS"])) {
        let error = Nvrtc::get().unwrap().compile("right", "a.cu", Architecture::Ptx(80), &[]).unwrap_err();
        assert_eq!(error.code(), Some(7));
        assert!(error.to_string().contains("libnvrtc-builtins.so.12.9"), "{error}");
    }
}
