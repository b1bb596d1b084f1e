//! Tests of the wrappers on a stub whose devices are host memory.

use super::exercise;
use crate::abi::ContextHandle;
use crate::latest;
use crate::module::Module;
use crate::pointer;
use crate::{
    CudaError, Device, DeviceBuffer, Driver, Event, Exported, ImportedBuffer, MemoryKind, PinnedBuffer, Stream,
    is_in_use,
};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::in_child;
use libloading::os::unix::Library;
use std::ffi::{CString, c_char, c_long};

/// The stub itself, which counts its calls.
fn stub() -> Library {
    // SAFETY: the stub has no constructors.
    unsafe { Library::new(std::env::var_os("DTC_CUDA_DRIVER").unwrap()).unwrap() }
}

fn calls(function: &str) -> c_long {
    let name = CString::new(function).unwrap();
    // SAFETY: `stub_calls` has this type in the stub's source, and `name` is NUL-terminated.
    unsafe { stub().get::<unsafe extern "C" fn(*const c_char) -> c_long>("stub_calls").unwrap()(name.as_ptr()) }
}

fn alive() -> c_long {
    // SAFETY: `stub_alive` has this type in the stub's source, and only this thread uses it.
    unsafe { **stub().get::<*const c_long>("stub_alive").unwrap() }
}

in_child! {
    fn nothing_initialises_cuda_but_asking_for_a_device(driver: Built(&[]), nvrtc: Absent) {
        let byte = 0;
        assert_eq!(pointer::classify(&byte).unwrap().kind, MemoryKind::Pageable);
        assert_eq!(calls("cuPointerGetAttributes"), 0);
        Driver::get().unwrap();
        assert_eq!(pointer::classify(&byte).unwrap().kind, MemoryKind::Pageable);
        assert_eq!(calls("cuInit"), 0);
        Device::count().unwrap();
        Device::get(0).unwrap();
        assert_eq!(calls("cuInit"), 1);
    }

    fn libraries_that_others_load_show_while_they_are_loaded(driver: Built(&[]), nvrtc: Absent) {
        assert!(!is_in_use());
        // In this process, the last library is one that is never unloaded.
        assert!(!cfg!(all(target_os = "linux", target_env = "gnu")) || latest::is_last());
        let others = stub();
        assert!(!latest::is_last());
        // The stub may be unloaded, so its successors cannot be watched.
        latest::find().remember();
        assert!(!latest::is_last());
        drop(others);
        assert!(!is_in_use());
        let _others = stub();
        assert!(is_in_use());
    }

    fn a_driver_that_others_load_and_initialise_is_seen(driver: Built(&[]), nvrtc: Absent) {
        let byte = 0;
        assert_eq!(pointer::classify(&byte).unwrap().kind, MemoryKind::Pageable);
        assert_eq!(pointer::classify(&byte).unwrap().kind, MemoryKind::Pageable);
        let application = stub();
        // SAFETY: the functions have these types in the stub's source; device 1 has the context 2.
        let address = unsafe {
            application.get::<unsafe extern "C" fn(u32) -> i32>("cuInit").unwrap()(0);
            let push = application.get::<unsafe extern "C" fn(usize) -> i32>("cuCtxPushCurrent_v2").unwrap();
            let allocate = application.get::<unsafe extern "C" fn(*mut u64, usize) -> i32>("cuMemAlloc_v2").unwrap();
            let mut address = 0;
            assert_eq!((push(2), allocate(&mut address, 8)), (0, 0));
            address
        };
        let info = pointer::classify(std::ptr::without_provenance(address as usize)).unwrap();
        assert_eq!((info.kind, info.range_start), (MemoryKind::Device(1), address));
        assert_eq!(pointer::classify(&byte).unwrap().kind, MemoryKind::Pageable);
    }

    fn devices_tell_about_themselves(driver: Built(&[]), nvrtc: Absent) {
        let list = Device::list().unwrap();
        assert_eq!(alive(), 0);
        assert_eq!((list[0].name.as_str(), list[1].name.as_str()), ("first", "second"));
        assert_eq!((list[0].architecture(), list[1].architecture()), (90, 121));
        assert_eq!((list[1].ordinal, list[1].memory_bytes, list[1].l2_bytes), (1, 2 << 30, 50 << 20));
        let (first, second) = (Device::get(0).unwrap(), Device::get(1).unwrap());
        assert_eq!(first.info(), &list[0]);
        assert!(first != second && first == first.clone());
        assert_eq!(Device::get(2), Err(CudaError::Ordinal { ordinal: 2, count: 2 }));
        assert!(first.can_access(&second).unwrap() && !first.can_access(&first).unwrap());
        first.enable_peer(&second).unwrap();
        first.enable_peer(&second).unwrap();
        first.synchronize().unwrap();
        assert_eq!(first.memory().unwrap(), (1 << 20, 1 << 30));
        drop((first, second));
        assert_eq!(alive(), 0);
    }

    fn scopes_bring_back_what_was_current(driver: Built(&[]), nvrtc: Absent) {
        let (first, second) = (Device::get(0).unwrap(), Device::get(1).unwrap());
        let current = || {
            let mut current = ContextHandle::NULL;
            // SAFETY: `current` is a live handle to fill.
            unsafe { first.driver().context_get_current(&mut current).unwrap() };
            current.0.addr()
        };
        assert_eq!(current(), 0);
        {
            let _outer = first.scope().unwrap();
            let before = calls("cuCtxPushCurrent_v2");
            {
                let _same = first.scope().unwrap();
                assert_eq!(current(), 1);
            }
            DeviceBuffer::new(&first, 8).unwrap();
            assert_eq!(calls("cuCtxPushCurrent_v2"), before);
            {
                let _other = second.scope().unwrap();
                assert_eq!(current(), 2);
            }
            assert_eq!(current(), 1);
        }
        assert_eq!(current(), 0);
    }

    fn buffers_hold_bytes(driver: Built(&[]), nvrtc: Absent) {
        exercise::buffers(&Device::get(0).unwrap());
        assert_eq!(alive(), 0);
    }

    fn exported_memory_is_opened_and_closed(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        let buffer = DeviceBuffer::new(&device, 8).unwrap();
        let before = alive();
        let opened = ImportedBuffer::open(&device, buffer.export().unwrap()).unwrap();
        assert_eq!((opened.address(), alive()), (buffer.address(), before + 1));
        drop(opened);
        assert_eq!(alive(), before);
        let exported = |address, bytes| Exported::of(&device, address, bytes).unwrap();
        let part = exported(buffer.address() + 3, 5).unwrap();
        assert_eq!((part.handle, part.offset), (buffer.export().unwrap(), 3));
        assert_eq!(exported(buffer.address() + 3, 6), None);
        assert_eq!(Exported::of(&Device::get(1).unwrap(), buffer.address(), 8).unwrap(), None);
        assert_eq!(ImportedBuffer::open(&device, [0; 64]).unwrap_err().code(), Some(1));
        assert!(DeviceBuffer::new(&device, 0).unwrap().export().is_err());
    }

    fn failing_calls_are_named(driver: Built(&["STUB_NO_MEMORY"]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        let error = DeviceBuffer::new(&device, 8).unwrap_err();
        assert_eq!(error.code(), Some(2));
        assert_eq!(
            error.to_string(),
            "cuMemAlloc_v2: expected success, found CUDA_ERROR_OUT_OF_MEMORY, out of memory (2)"
        );
        assert!(PinnedBuffer::new(&device, 8).is_err() && !error.is_absence());
        drop(device);
        assert_eq!(alive(), 0);
    }

    fn pointers_are_told_apart(driver: Built(&[]), nvrtc: Absent) {
        let second = Device::get(1).unwrap();
        exercise::pointers(&second);
        let before = calls("cuPointerGetAttributes");
        pointer::classify(&0_u8).unwrap();
        assert_eq!(calls("cuPointerGetAttributes"), before + 1);
    }

    fn streams_copy(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        assert!(exercise::copies(&device));
        let stream = Stream::new(&device).unwrap();
        assert!(!stream.query().unwrap());
        assert!(stream.query().unwrap());
        drop((stream, device));
        assert_eq!(alive(), 0);
    }

    fn old_drivers_have_no_batches(driver: Built(&["STUB_VERSION=11040"]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        assert!(!exercise::copies(&device));
        let function = Module::load(&device, b"stub").unwrap().function("copy").unwrap();
        assert_eq!((calls("cuFuncLoad"), calls("cuFuncGetAttribute")), (0, 1));
        drop(function);
    }

    fn events_mark_and_measure(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        let stream = Stream::legacy_default(&device);
        let (start, end) = (Event::timed(&device).unwrap(), Event::new(&device).unwrap());
        start.record(&stream).unwrap();
        end.record(&stream).unwrap();
        assert!(!start.query().unwrap() && start.query().unwrap());
        stream.wait_event(&end).unwrap();
        end.synchronize().unwrap();
        assert_eq!(start.elapsed_ms(&end), Ok(1.5));
        drop((start, end, stream));
        exercise::events(&device);
        drop(device);
        assert_eq!(alive(), 0);
    }

    fn kernels_are_loaded_and_launched(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        match Module::load(&device, b"other").map(drop) {
            Err(CudaError::Compile { compiler: "CUDA driver", log, .. }) => assert_eq!(log, "line 1: not a stub"),
            other => panic!("{other:?}"),
        }
        let function = Module::load(&device, b"stub").unwrap().function("copy").unwrap();
        assert_eq!((calls("cuFuncLoad"), calls("cuFuncGetAttribute")), (1, 0));
        // The function holds its module.
        assert_eq!(calls("cuModuleUnload"), 0);
        drop(function);
        assert_eq!(calls("cuModuleUnload"), 1);
        exercise::kernels(&device, b"stub");
        drop(device);
        assert_eq!(alive(), 0);
    }

    fn captures_become_graphs(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        exercise::graphs(&device, b"stub");
        drop(device);
        assert_eq!(alive(), 0);
    }

    fn forked_children_get_an_error(driver: Built(&[]), nvrtc: Absent) {
        let in_fork = |work: &dyn Fn() -> bool| {
            // SAFETY: the child waits for no other thread and leaves by `_exit`, without destructors.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::_exit(i32::from(!work()));
                }
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        };
        Driver::get().unwrap();
        // A fork before CUDA is initialised is harmless.
        assert!(in_fork(&|| Device::get(0).is_ok()));
        let device = Device::get(0).unwrap();
        let buffer = DeviceBuffer::new(&device, 8).unwrap();
        let calls_before = calls("cuMemFree_v2");
        assert!(in_fork(&|| {
            Device::get(0) == Err(CudaError::Forked)
                && device.scope().is_err()
                && pointer::classify(std::ptr::without_provenance(buffer.address() as usize))
                    .is_ok_and(|info| info.kind == MemoryKind::Pageable)
                && DeviceBuffer::new(&device, 8).is_err()
                && calls("cuMemFree_v2") == calls_before
        }));
        assert!(device.scope().is_ok());
    }
}
