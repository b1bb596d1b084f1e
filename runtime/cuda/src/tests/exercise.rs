//! Checks that hold on a stub and on a device.

use crate::copy::{self, Rows, Slices};
use crate::graph::{keep_in_graph, release_dropped};
use crate::module::{Function, Module};
use crate::pointer::{self, PointerInfo};
use crate::{
    CaptureMode, CaptureStatus, CudaError, Device, DeviceBuffer, Event, MemoryKind, NodeCounts, PinnedBuffer, Stream,
};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Enqueues a kernel with the parameters (to, from, bytes).
pub(super) fn launch(function: &Function, stream: &Stream, to: u64, from: u64, bytes: u64) -> Result<(), CudaError> {
    let (mut to, mut from, mut bytes) = (to, from, bytes);
    let mut parameters: [*mut c_void; 3] = [(&raw mut to).cast(), (&raw mut from).cast(), (&raw mut bytes).cast()];
    // SAFETY: the kernels of the tests have these three parameters, and their buffers outlive the launch.
    unsafe { function.launch(stream, [1; 3], [32, 1, 1], 0, &mut parameters) }
}

pub(super) fn buffers(device: &Device) {
    for mut buffer in [DeviceBuffer::new(device, 6).unwrap(), DeviceBuffer::managed(device, 6).unwrap()] {
        buffer.fill(b'.').unwrap();
        buffer.write(2, b"abc").unwrap();
        let mut read = [0; 6];
        buffer.read(0, &mut read).unwrap();
        assert_eq!(&read, b"..abc.");
        assert_eq!(buffer.write(4, b"abc"), Err(CudaError::Bounds { offset: 4, bytes: 3, length: 6 }));
        assert!(buffer.read(usize::MAX, &mut read).is_err());
    }
    let mut none = DeviceBuffer::new(device, 0).unwrap();
    none.fill(1).unwrap();
    none.write(0, &[]).unwrap();
    none.read(0, &mut []).unwrap();
    assert!(none.is_empty() && none.address() == 0);
    assert_eq!(PinnedBuffer::new(device, 0).unwrap().as_slice(), [0; 0]);
    let mut pinned = PinnedBuffer::new(device, 3).unwrap();
    pinned.as_mut_slice()[2] = 7;
    assert_eq!(pinned.as_slice(), [0, 0, 7]);
}

pub(super) fn pointers(device: &Device) {
    let memory = DeviceBuffer::new(device, 100).unwrap();
    let managed = DeviceBuffer::managed(device, 100).unwrap();
    let pinned = PinnedBuffer::new(device, 100).unwrap();
    // The device address of a byte holds for the current context alone.
    let _scope = device.scope().unwrap();
    let at = |address: u64| pointer::classify(std::ptr::without_provenance(address as usize)).unwrap();
    let info = at(memory.address() + 99);
    assert_eq!(info.kind, MemoryKind::Device(device.info().ordinal));
    // The driver may round the length of an allocation up.
    assert!(info.range_start == memory.address() && info.range_bytes >= 100, "{info:?}");
    assert_eq!(info.device_address, memory.address() + 99);
    let info = at(managed.address());
    assert!(info.kind == MemoryKind::Managed && info.range_start == managed.address(), "{info:?}");
    let info = at(pinned.as_ptr().addr() as u64 + 1);
    assert_eq!((info.kind, info.device_address), (MemoryKind::Pinned, pinned.address() + 1));
    assert!(info.range_bytes >= 100);
    let boxed = Box::new(0_u8);
    for pageable in [&raw const *boxed, std::ptr::null()] {
        let PointerInfo { kind, buffer_id, range_bytes, .. } = pointer::classify(pageable).unwrap();
        assert_eq!((kind, buffer_id, range_bytes), (MemoryKind::Pageable, 0, 0));
    }
    let id = at(memory.address()).buffer_id;
    drop(memory);
    let again = DeviceBuffer::new(device, 100).unwrap();
    assert_ne!(at(again.address()).buffer_id, id);
}

/// Copies of all shapes. Returns whether the driver supports batches.
pub(super) fn copies(device: &Device) -> bool {
    let stream = Stream::new(device).unwrap();
    let (first, second) = (DeviceBuffer::new(device, 24).unwrap(), DeviceBuffer::new(device, 24).unwrap());
    let source: Vec<u8> = (0..24).collect();
    let mut read = [0; 24];
    let (one, two) = (first.address(), second.address());
    // SAFETY: all ranges are within live buffers, which nothing else uses before the stream is synchronised.
    unsafe {
        copy::between(&stream, one, source.as_ptr().addr() as u64, 24).unwrap();
        copy::on_device(&stream, two, one + 12, 12).unwrap();
        copy::between(&stream, two + 12, one, 12).unwrap();
        copy::between(&stream, read.as_mut_ptr().expose_provenance() as u64, two, 24).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(&read[..12], &source[12..]);
        assert_eq!(&read[12..], &source[..12]);

        // The left half of 4 rows of 6, packed.
        copy::fill(&stream, two, 99, 24).unwrap();
        let rows = Rows { address: one, pitch: 6 };
        copy::rows(&stream, Rows { address: two, pitch: 3 }, rows, 3, 4).unwrap();
        stream.synchronize().unwrap();
        second.read(0, &mut read).unwrap();
        assert_eq!(read[..13], [0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20, 99]);

        // The first 2 of 3 columns in 2 of 3 rows of 2 slices, to the host.
        let slices = Slices { address: one, pitch: 3, rows_per_slice: 3 };
        let packed = Slices { address: read.as_mut_ptr().expose_provenance() as u64, pitch: 2, rows_per_slice: 2 };
        copy::slices(&stream, packed, slices, 2, 2, 2).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read[..8], [0, 1, 3, 4, 9, 10, 12, 13]);

        let batched = copy::batch(&stream, &mut [two, two + 1], &mut [one + 5, one + 9], &mut [1, 1]).unwrap();
        stream.synchronize().unwrap();
        second.read(0, &mut read[..2]).unwrap();
        assert_eq!(read[..2], if batched { [5, 9] } else { [0, 1] });
        batched
    }
}

/// Events, and streams that wait for them.
pub(super) fn events(device: &Device) {
    let (first, second) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
    let (start, end) = (Event::timed(device).unwrap(), Event::timed(device).unwrap());
    start.record(&first).unwrap();
    second.wait_event(&start).unwrap();
    end.record(&second).unwrap();
    end.synchronize().unwrap();
    while !start.query().unwrap() || !end.query().unwrap() {}
    assert!(start.elapsed_ms(&end).unwrap() >= 0.0);
    // SAFETY: `first` outlives `borrowed`.
    let borrowed = unsafe { Stream::borrow(device, first.raw()) };
    drop(borrowed);
    first.synchronize().unwrap();
}

/// Kernels of an image that holds the functions "copy" and "reverse".
pub(super) fn kernels(device: &Device, image: &[u8]) {
    let module = Module::load(device, image).unwrap();
    assert!(module.function("missing").is_err());
    assert_eq!(module.function("\0").map(drop), Err(CudaError::Nul { place: "kernel name" }));
    let function = module.function("reverse").unwrap();
    // The function holds the module.
    drop(module);
    let mut buffer = DeviceBuffer::new(device, 8).unwrap();
    buffer.write(0, b"abcd").unwrap();
    let stream = Stream::new(device).unwrap();
    launch(&function, &stream, buffer.address() + 4, buffer.address(), 4).unwrap();
    stream.synchronize().unwrap();
    let mut read = [0; 8];
    buffer.read(0, &mut read).unwrap();
    assert_eq!(&read, b"abcddcba");
}

/// Captures, calls beside a capture, and values that graphs keep alive.
pub(super) fn graphs(device: &Device, image: &[u8]) {
    let stream = Stream::new(device).unwrap();
    let function = Module::load(device, image).unwrap().function("copy").unwrap();
    let mut buffer = DeviceBuffer::new(device, 8).unwrap();
    buffer.write(0, b"abcdefgh").unwrap();
    let table = Arc::new(7);
    assert_eq!(keep_in_graph(&device.scope().unwrap(), &stream, &table), Ok(false));
    stream.begin_capture(CaptureMode::Global).unwrap();
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active));
    launch(&function, &stream, buffer.address() + 4, buffer.address(), 4).unwrap();
    // SAFETY: the range is within the buffer, which outlives the graph.
    unsafe { copy::fill(&stream, buffer.address(), b'.', 2).unwrap() };
    assert_eq!(keep_in_graph(&device.scope().unwrap(), &stream, &table), Ok(true));
    // Calls that a capture forbids work beside it, in this thread and in others.
    let beside = || {
        drop(DeviceBuffer::new(device, 8).unwrap());
        drop(PinnedBuffer::new(device, 8).unwrap());
        drop(Module::load(device, image).unwrap().function("reverse").unwrap());
        let (other, event) = (Stream::new(device).unwrap(), Event::new(device).unwrap());
        event.record(&other).unwrap();
        event.synchronize().unwrap();
        other.synchronize().unwrap();
    };
    beside();
    std::thread::scope(|threads| threads.spawn(beside).join().unwrap());
    let graph = stream.end_capture().unwrap();
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
    assert_eq!(graph.nodes().unwrap(), NodeCounts { all: 2, kernels: 1, copies: 0, fills: 1 });
    let mut read = [0; 8];
    buffer.read(0, &mut read).unwrap();
    assert_eq!(&read, b"abcdefgh");
    let executable = graph.instantiate().unwrap();
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    buffer.read(0, &mut read).unwrap();
    assert_eq!(&read, b"..cdabcd");
    assert_eq!(Arc::strong_count(&table), 2);
    drop((executable, graph));
    // The driver may release the value a little later, on a thread of its own.
    let start = Instant::now();
    while Arc::strong_count(&table) > 1 && start.elapsed() < Duration::from_secs(10) {
        release_dropped();
        std::thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&table), 1);
}
