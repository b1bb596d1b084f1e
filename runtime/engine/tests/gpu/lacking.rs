//! What a machine may lack: driver, device, NVRTC, memory.

use crate::child::{calls, let_allocate, let_launches_return};
use crate::{Buffers, builder, listed, packs_on_the_host, rows};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::in_child;
use dtc_runtime::cuda::{CudaError, Stream};
use dtc_runtime::{Engine, GenericCode, Policy, Range, Tier, TransferError};

/// Opening a GPU fails in the same way each time, and the engine goes on without one.
fn has_no_gpu(is_right: impl Fn(&CudaError) -> bool) {
    let engine = Engine::new();
    for _ in 0..2 {
        let error = engine.gpu(0).err().unwrap();
        assert!(is_right(&error) && error.is_absence(), "{error:?}");
    }
    packs_on_the_host(&engine);
}

in_child! {
    fn without_a_driver(driver: Absent, nvrtc: Absent) {
        has_no_gpu(|error| matches!(error, CudaError::LibraryMissing { library: "CUDA driver", .. }));
    }

    fn with_an_old_driver(driver: Built(&["STUB_VERSION=11020"]), nvrtc: Absent) {
        has_no_gpu(|error| matches!(error, CudaError::DriverTooOld { .. }));
    }

    fn with_a_driver_that_lacks_a_function(driver: Built(&["STUB_WITHOUT_LAUNCH"]), nvrtc: Absent) {
        has_no_gpu(|error| matches!(error, CudaError::SymbolMissing { symbol: "cuGraphLaunch", .. }));
    }

    fn without_a_device(driver: Built(&["STUB_NO_DEVICE"]), nvrtc: Absent) {
        has_no_gpu(|error| matches!(error, CudaError::NoDevice { .. }));
    }

    fn with_fewer_devices(driver: Built(&[]), nvrtc: Absent) {
        let engine = Engine::new();
        assert_eq!(engine.gpu(2).err(), Some(CudaError::Ordinal { ordinal: 2, count: 2 }));
        assert!(matches!(engine.gpu(1_000), Err(CudaError::Ordinal { ordinal: 1_000, .. })));
        assert_eq!(engine.gpu(1).unwrap().device().info().ordinal, 1);
        packs_on_the_host(&engine);
    }

    fn without_nvrtc_types_stay_generic(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        for policy in [Policy::Background, Policy::Eager, Policy::Always, Policy::Lazy(0)] {
            let engine = builder(policy).build();
            let gpu = engine.gpu(0).unwrap();
            assert_eq!(gpu.problem(), None);
            let committed = engine.commit(&listed(0));
            assert_eq!(committed.prepare(&gpu), Ok(Tier::Generic), "{policy:?}");
            let problem = gpu.problem().unwrap().to_string();
            assert!(problem.contains("pip install nvidia-cuda-nvrtc") && problem.contains("DTC_NVRTC"), "{problem}");
            let buffers = Buffers::new(&gpu);
            assert_eq!(buffers.enqueue(&committed), Ok(committed.packed_size(1).unwrap()));
            // What cannot be compiled is not tried again and again.
            assert_eq!(engine.compile_pending(std::time::Duration::MAX), 0);
            assert_eq!(committed.gpu_tier(&gpu), Tier::Generic);
        }
    }

    fn with_nvrtc_that_fails_types_stay_generic(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&["STUB_WITHOUT_BUILTINS"])) {
        let engine = builder(Policy::Background).build();
        let gpu = engine.gpu(0).unwrap();
        let committed = engine.commit(&listed(0));
        assert_eq!(committed.prepare(&gpu), Ok(Tier::Generic));
        assert_eq!(gpu.problem().and_then(|problem| problem.code()), Some(7));
        Buffers::new(&gpu).enqueue(&committed).unwrap();
    }

    fn generic_kernels_that_the_driver_refuses(driver: Built(&[]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let committed = engine.commit(&listed(0));
        let refused = |error: &CudaError| matches!(error, CudaError::Compile { compiler: "CUDA driver", .. });
        for _ in 0..2 {
            let error = gpu.load().unwrap_err();
            assert!(refused(&error) && !error.is_absence(), "{error:?}");
            assert!(committed.prepare(&gpu).is_err_and(|error| refused(&error)));
            let buffers = Buffers::new(&gpu);
            assert!(buffers.enqueue(&committed).is_err_and(|error| refused(&error)));
            let (memory, packed) = (buffers.memory.address() as *const u8, buffers.packed.address() as *mut u8);
            // SAFETY: both buffers are long enough.
            let moved = unsafe { committed.at(memory, Range::elements(1).bytes(..4096)).pack(packed).run() };
            assert!(matches!(&moved, Err(TransferError::Cuda(error)) if refused(error)), "{moved:?}");
        }
        packs_on_the_host(&engine);
    }

    fn generic_kernels_are_machine_code_of_the_device(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        for (ordinal, architecture) in [(0, 90), (1, 120)] {
            let gpu = engine.gpu(ordinal).unwrap();
            assert_eq!(gpu.generic_code(), Ok(GenericCode::Machine { architecture }));
            Buffers::new(&gpu).enqueue(&engine.commit(&listed(0))).unwrap();
        }
        // Nor for the kernel that waits for an idle device.
        assert_eq!(calls("PTX"), 0);
    }

    fn machine_code_that_the_driver_refuses(driver: Built(&["STUB_ANY_CODE", "STUB_REFUSES_CUBINS"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let code = gpu.generic_code().unwrap();
        let GenericCode::Ptx { device: 90, refused: Some(CudaError::Compile { .. }) } = &code else { panic!("{code:?}") };
        assert!(code.to_string().contains("refuses the machine code for sm_90: CUDA driver: "), "{code}");
        // The kernels serve as ever.
        assert_eq!(gpu.problem(), None);
        Buffers::new(&gpu).enqueue(&engine.commit(&listed(0))).unwrap();
        assert_eq!(calls("PTX"), 2);
    }

    fn devices_newer_than_all_machine_code(driver: Built(&["STUB_ANY_CODE", "STUB_MAJOR=13"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        assert_eq!(gpu.generic_code(), Ok(GenericCode::Ptx { device: 130, refused: None }));
        Buffers::new(&gpu).enqueue(&engine.commit(&listed(0))).unwrap();
    }

    fn lack_of_memory_passes(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let (needs, does_not) = (engine.commit(&listed(0)), engine.commit(&rows()));
        let buffers = Buffers::new(&gpu);
        let_allocate(0);
        for _ in 0..2 {
            assert_eq!(buffers.enqueue(&needs).unwrap_err().code(), Some(2));
            assert_eq!(needs.prepare(&gpu).unwrap_err().code(), Some(2));
        }
        buffers.enqueue(&does_not).unwrap();
        let_allocate(-1);
        buffers.enqueue(&needs).unwrap();
        needs.prepare(&gpu).unwrap();
    }

    fn lack_of_memory_for_a_compiled_kernel(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).build();
        let gpu = engine.gpu(0).unwrap();
        let committed = engine.commit(&listed(0));
        let buffers = Buffers::new(&gpu);
        // The lists of the generic kernels are the first allocation, those of the compiled ones the second.
        let_allocate(1);
        assert_eq!(committed.prepare(&gpu), Ok(Tier::Generic));
        assert_eq!(gpu.problem().and_then(|problem| problem.code()), Some(2));
        buffers.enqueue(&committed).unwrap();
    }

    fn launches_that_fail(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        for policy in [Policy::Off, Policy::Always] {
            let engine = builder(policy).build();
            let gpu = engine.gpu(0).unwrap();
            let committed = engine.commit(&listed(0));
            let buffers = Buffers::new(&gpu);
            buffers.enqueue(&committed).unwrap();
            let_launches_return(719);
            let error = buffers.enqueue(&committed).unwrap_err();
            assert!(matches!(error, CudaError::Call { call: "cuLaunchKernel", code: 719, .. }), "{error:?}");
            let (memory, packed) = (buffers.memory.address() as *const u8, buffers.packed.address() as *mut u8);
            // SAFETY: both buffers are long enough.
            let started = unsafe { committed.at(memory, Range::elements(1).bytes(..4096)).pack(packed).start() };
            assert!(matches!(started.err(), Some(TransferError::Cuda(error)) if error.code() == Some(719)));
            let_launches_return(0);
            buffers.enqueue(&committed).unwrap();
        }
    }

    fn a_null_base_is_refused_by_name(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let committed = engine.commit(&rows());
        let buffers = Buffers::new(&gpu);
        let (memory, packed) = (buffers.memory.address() as *mut u8, buffers.packed.address() as *mut u8);
        let null = std::ptr::null_mut::<u8>();
        for (memory, packed, side) in [(null, packed, "memory"), (memory, null, "packed bytes"), (null, null, "memory")] {
            // SAFETY: nothing is read or written.
            let results = unsafe {
                [
                    committed.at(memory, Range::elements(1).bytes(..4096)).pack(packed).run(),
                    committed.at(memory, Range::elements(1).bytes(..4096)).unpack(packed).run(),
                    committed.at(memory, Range::elements(1).bytes(..4096)).pack(packed).start().map(|_| 0),
                ]
            };
            for result in results {
                let error = result.unwrap_err();
                assert_eq!(error, TransferError::Address { side, address: 0 });
                assert!(error.to_string().starts_with(side), "{error}");
            }
        }
        // No byte is moved, so no address is looked at.
        // SAFETY: the range has no elements, so nothing is read or written.
        assert_eq!(unsafe { committed.at(null, Range::elements(0).bytes(..4096)).pack(null).run() }, Ok(0));
    }

    fn absolute_addresses_need_no_base(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        use dtc_compiler::datatype::{Predefined, TypeBuilder};
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let buffers = Buffers::new(&gpu);
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let places = [buffers.memory.address() as i64 + 100, buffers.memory.address() as i64 + 7];
        let absolute = types.hindexed(&[5, 6], &places, byte).unwrap();
        let committed = engine.commit(&types.finish(absolute).unwrap());
        let packed = buffers.packed.address() as *mut u8;
        // SAFETY: the bytes lie in the buffers.
        let moved = unsafe { committed.at(std::ptr::null::<u8>(), Range::elements(1).bytes(..11)).pack(packed).run() };
        // On the host the kernel, which does nothing here, would not have been asked.
        assert_eq!((moved, calls("cuLaunchKernel")), (Ok(11), 1));
        drop(Stream::legacy_default(gpu.device()));
    }
}
