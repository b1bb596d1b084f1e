//! The wrappers, on a stub whose devices are host memory.

use super::child::Stub::{Absent, Built};
use super::child::in_child;
use crate::cuda::abi::ContextHandle;
use crate::cuda::copy::{self, Place, Rows, Slices};
use crate::cuda::graph::{keep_in_graph, release_dropped};
use crate::cuda::module::{Function, Module};
use crate::cuda::pointer::{self, PointerKind};
use crate::cuda::{
    CaptureMode, CaptureStatus, CudaError, Device, DeviceBuffer, Driver, Event, NodeCounts, PinnedBuffer, Stream,
};
use libloading::os::unix::Library;
use std::ffi::{CString, c_char, c_long, c_void};
use std::sync::Arc;

/// The stub itself, to ask what was called.
fn stub() -> Library {
    // SAFETY: the stub has no constructors.
    unsafe { Library::new(std::env::var_os("DTC_CUDA_DRIVER").unwrap()).unwrap() }
}

fn calls(function: &str) -> c_long {
    let name = CString::new(function).unwrap();
    // SAFETY: the type is that of the declaration in the stub.
    unsafe { stub().get::<unsafe extern "C" fn(*const c_char) -> c_long>("stub_calls").unwrap()(name.as_ptr()) }
}

fn alive() -> c_long {
    // SAFETY: the type is that of the declaration in the stub, which only this thread uses.
    unsafe { **stub().get::<*const c_long>("stub_alive").unwrap() }
}

/// Launches one of the stub's kernels.
fn launch(function: &Function, stream: &Stream, to: u64, from: u64, bytes: usize) -> Result<(), CudaError> {
    let (mut to, mut from, mut bytes) = (to, from, bytes);
    let mut parameters: [*mut c_void; 3] = [(&raw mut to).cast(), (&raw mut from).cast(), (&raw mut bytes).cast()];
    // SAFETY: these are the parameters of the stub's kernels.
    unsafe { function.launch(stream, [1; 3], [32, 1, 1], 0, &mut parameters) }
}

in_child! {
    fn nothing_initialises_cuda_but_asking_for_a_device(driver: Built(&[]), nvrtc: Absent) {
        let byte = 0;
        assert_eq!(pointer::classify(&byte).unwrap().kind, PointerKind::Pageable);
        assert_eq!(calls("cuPointerGetAttributes"), 0);
        Driver::get().unwrap();
        assert_eq!(pointer::classify(&byte).unwrap().kind, PointerKind::Pageable);
        assert_eq!(calls("cuInit"), 0);
        Device::count().unwrap();
        Device::get(0).unwrap();
        assert_eq!(calls("cuInit"), 1);
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
            // SAFETY: the pointer is to a live handle.
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
        let device = Device::get(0).unwrap();
        for mut buffer in [DeviceBuffer::new(&device, 6).unwrap(), DeviceBuffer::managed(&device, 6).unwrap()] {
            buffer.fill(b'.').unwrap();
            buffer.write(2, b"abc").unwrap();
            let mut read = [0; 6];
            buffer.read(0, &mut read).unwrap();
            assert_eq!(&read, b"..abc.");
            assert_eq!(buffer.write(4, b"abc"), Err(CudaError::Bounds { offset: 4, bytes: 3, length: 6 }));
            assert!(buffer.read(usize::MAX, &mut read).is_err());
        }
        let mut none = DeviceBuffer::new(&device, 0).unwrap();
        none.fill(1).unwrap();
        none.write(0, &[]).unwrap();
        none.read(0, &mut []).unwrap();
        assert!(none.is_empty() && none.address() == 0);
        assert_eq!(PinnedBuffer::new(&device, 0).unwrap().as_slice(), [0; 0]);
        let mut pinned = PinnedBuffer::new(&device, 3).unwrap();
        pinned.as_mut_slice()[2] = 7;
        assert_eq!(pinned.as_slice(), [0, 0, 7]);
        drop((none, pinned, device));
        assert_eq!(alive(), 0);
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
        let memory = DeviceBuffer::new(&second, 100).unwrap();
        let managed = DeviceBuffer::managed(&second, 100).unwrap();
        let pinned = PinnedBuffer::new(&second, 100).unwrap();
        let at = |address: u64| {
            let before = calls("cuPointerGetAttributes");
            let info = pointer::classify(std::ptr::without_provenance(address as usize)).unwrap();
            assert_eq!(calls("cuPointerGetAttributes"), before + 1);
            info
        };
        let info = at(memory.address() + 99);
        assert_eq!(info.kind, PointerKind::Device(1));
        assert_eq!((info.range_start, info.range_bytes), (memory.address(), 100));
        assert_eq!(info.device_address, memory.address() + 99);
        assert_eq!(at(managed.address()).kind, PointerKind::Managed);
        assert_eq!(at(pinned.address()).kind, PointerKind::Pinned);
        assert_eq!(at(memory.address() + 100).kind, PointerKind::Pageable);
        assert_eq!(at(0).kind, PointerKind::Pageable);
        let id = info.buffer_id;
        drop(memory);
        let again = DeviceBuffer::new(&second, 100).unwrap();
        assert_ne!(at(again.address()).buffer_id, id);
    }

    fn streams_copy(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let (first, second) = (DeviceBuffer::new(&device, 24).unwrap(), DeviceBuffer::new(&device, 24).unwrap());
        let source: Vec<u8> = (0..24).collect();
        let mut read = [0; 24];
        let (one, two) = (first.address(), second.address());
        // SAFETY: all ranges lie within live buffers, and the stub is done when a call returns.
        unsafe {
            copy::to_device(&stream, one, source.as_ptr(), 24).unwrap();
            copy::on_device(&stream, two, one + 12, 12).unwrap();
            copy::between(&stream, two + 12, one, 12).unwrap();
            copy::to_host(&stream, read.as_mut_ptr(), two, 24).unwrap();
            assert_eq!(&read[..12], &source[12..]);
            assert_eq!(&read[12..], &source[..12]);

            // The left half of 4 rows of 6, packed.
            copy::fill(&stream, two, 99, 24).unwrap();
            let rows = Rows { place: Place::Device(one), pitch: 6 };
            copy::rows(&stream, Rows { place: Place::Device(two), pitch: 3 }, rows, 3, 4).unwrap();
            second.read(0, &mut read).unwrap();
            assert_eq!(read[..13], [0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20, 99]);

            // The first 2 of 3 columns in 2 of 3 rows of 2 slices, to the host.
            let slices = Slices { place: Place::Device(one), pitch: 3, rows_per_slice: 3 };
            let packed = Slices { place: Place::Host(read.as_mut_ptr()), pitch: 2, rows_per_slice: 2 };
            copy::slices(&stream, packed, slices, 2, 2, 2).unwrap();
            assert_eq!(read[..8], [0, 1, 3, 4, 9, 10, 12, 13]);

            let done = copy::batch(&stream, &mut [two, two + 1], &mut [one + 5, one + 9], &mut [1, 1]);
            assert_eq!(done, Ok(true));
            second.read(0, &mut read[..2]).unwrap();
            assert_eq!(read[..2], [5, 9]);
        }
        assert!(!stream.query().unwrap());
        assert!(stream.query().unwrap());
        stream.synchronize().unwrap();
        // SAFETY: the stream lives on.
        let borrowed = unsafe { Stream::borrow(&device, stream.raw()) };
        drop((borrowed, first, second));
        stream.synchronize().unwrap();
        drop((stream, device));
        assert_eq!(alive(), 0);
    }

    fn old_drivers_have_no_batches(driver: Built(&["STUB_VERSION=11040"]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        // SAFETY: nothing is copied.
        assert_eq!(unsafe { copy::batch(&stream, &mut [1], &mut [1], &mut [1]) }, Ok(false));
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
        assert!(!start.query().unwrap() && end.query().unwrap());
        stream.wait_event(&end).unwrap();
        end.synchronize().unwrap();
        assert_eq!(start.elapsed_ms(&end), Ok(1.5));
        drop((start, end, stream, device));
        assert_eq!(alive(), 0);
    }

    fn kernels_are_loaded_and_launched(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        let module = Module::load(&device, b"stub").unwrap();
        match Module::load(&device, b"other").map(drop) {
            Err(CudaError::Compile { compiler: "CUDA driver", log, .. }) => assert_eq!(log, "line 1: not a stub"),
            other => panic!("{other:?}"),
        }
        assert_eq!(module.function("missing").map(drop).unwrap_err().code(), Some(500));
        assert_eq!(module.function("\0").map(drop), Err(CudaError::Nul { place: "kernel name" }));
        let function = module.function("reverse").unwrap();
        assert_eq!((calls("cuFuncLoad"), calls("cuFuncGetAttribute")), (1, 0));
        let attributes = function.attributes().unwrap();
        assert_eq!((attributes.registers, attributes.shared_bytes, attributes.local_bytes), (40, 10, 30));
        function.allow_dynamic_shared(100 << 10).unwrap();
        assert_eq!(function.blocks_per_multiprocessor(256, 0), Ok(8));
        // The function holds the module.
        drop(module);
        assert_eq!(calls("cuModuleUnload"), 0);
        let mut buffer = DeviceBuffer::new(&device, 8).unwrap();
        buffer.write(0, b"abcd").unwrap();
        let stream = Stream::new(&device).unwrap();
        launch(&function, &stream, buffer.address() + 4, buffer.address(), 4).unwrap();
        let mut read = [0; 8];
        buffer.read(0, &mut read).unwrap();
        assert_eq!(&read, b"abcddcba");
        drop((function, buffer, stream, device));
        assert_eq!((alive(), calls("cuModuleUnload")), (0, 1));
    }

    fn captures_become_graphs(driver: Built(&[]), nvrtc: Absent) {
        let device = Device::get(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let function = Module::load(&device, b"stub").unwrap().function("copy").unwrap();
        let mut buffer = DeviceBuffer::new(&device, 8).unwrap();
        buffer.write(0, b"abcdefgh").unwrap();
        let table = Arc::new(7);
        assert_eq!(keep_in_graph(&stream, &table), Ok(false));
        stream.begin_capture(CaptureMode::Global).unwrap();
        assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active));
        launch(&function, &stream, buffer.address() + 4, buffer.address(), 4).unwrap();
        // SAFETY: the range lies within the buffer, which outlives the graph.
        unsafe { copy::fill(&stream, buffer.address(), b'.', 2).unwrap() };
        assert_eq!(keep_in_graph(&stream, &table), Ok(true));
        // What a capture forbids goes on beside it.
        drop(DeviceBuffer::new(&device, 8).unwrap());
        drop(Module::load(&device, b"stub").unwrap());
        Event::new(&device).unwrap().synchronize().unwrap();
        let graph = stream.end_capture().unwrap();
        assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
        assert_eq!(graph.nodes().unwrap(), NodeCounts { all: 2, kernels: 1, copies: 0, fills: 1 });
        let mut read = [0; 8];
        buffer.read(0, &mut read).unwrap();
        assert_eq!(&read, b"abcdefgh");
        let executable = graph.instantiate().unwrap();
        executable.launch(&stream).unwrap();
        buffer.read(0, &mut read).unwrap();
        assert_eq!(&read, b"..cdabcd");
        assert_eq!(Arc::strong_count(&table), 2);
        drop((executable, graph));
        // Destructors of the driver must not call it, so the value waits to be dropped.
        assert_eq!(Arc::strong_count(&table), 2);
        release_dropped();
        assert_eq!(Arc::strong_count(&table), 1);
        drop((function, buffer, stream, device));
        assert_eq!(alive(), 0);
    }

    fn forked_children_get_an_error(driver: Built(&[]), nvrtc: Absent) {
        let in_fork = |work: &dyn Fn() -> bool| {
            // SAFETY: the child calls nothing that waits for another thread, and leaves without destructors.
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
        // Before CUDA is initialised a fork does no harm.
        assert!(in_fork(&|| Device::get(0).is_ok()));
        let device = Device::get(0).unwrap();
        let buffer = DeviceBuffer::new(&device, 8).unwrap();
        let calls_before = calls("cuMemFree_v2");
        assert!(in_fork(&|| {
            Device::get(0) == Err(CudaError::Forked)
                && device.scope().is_err()
                && pointer::classify(std::ptr::without_provenance(buffer.address() as usize))
                    .is_ok_and(|info| info.kind == PointerKind::Pageable)
                && DeviceBuffer::new(&device, 8).is_err()
                && calls("cuMemFree_v2") == calls_before
        }));
        assert!(device.scope().is_ok());
    }
}
