//! Unpacks with an operation and copies from type to type: what is compiled when, and what is refused.

use crate::child::Stub::{Absent, Built};
use crate::child::{calls, in_child, let_launches_return};
use crate::{Buffers, builder, listed, rows};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_runtime::cuda::{CudaError, MemoryKind, PinnedBuffer};
use dtc_runtime::{AccumulateError, Committed, Elements, Engine, Policy, Range, Request, TransferError};
use std::time::Duration;

fn sum(element: Element) -> Reduction {
    Reduction::new(Operation::Sum, element).unwrap()
}

/// Enqueues an unpack of one element with an operation.
fn accumulate(
    buffers: &Buffers,
    committed: &Committed,
    reduction: Reduction,
    bytes: u64,
) -> Result<u64, TransferError> {
    let (packed, memory) = (buffers.packed.address() as *const u8, buffers.memory.address() as *mut u8);
    // SAFETY: both buffers are long enough.
    unsafe {
        committed.accumulate_enqueue(&buffers.stream, reduction, packed, Range::elements(1).bytes(..bytes), memory)
    }
}

/// Enqueues a copy of one element.
fn copy(buffers: &Buffers, from: &Committed, to: &Committed) -> Result<u64, CudaError> {
    let source = Elements { memory: buffers.memory.address() as *const u8, origin: 0, count: 1, offset: 0 };
    let target = Elements { memory: buffers.packed.address() as *mut u8, origin: 0, count: 1, offset: 0 };
    // SAFETY: both buffers are long enough.
    unsafe { from.copy_enqueue(&buffers.stream, source, to, target, u64::MAX) }
}

/// Loads of code that something causes.
fn loads(cause: impl FnOnce()) -> std::ffi::c_long {
    let before = calls("cuModuleLoadDataEx");
    cause();
    calls("cuModuleLoadDataEx") - before
}

fn of(engine: &Engine) -> (Committed, Committed, u64) {
    let (listed, rows) = (engine.commit(&listed(0)), engine.commit(&rows()));
    let bytes = listed.packed_size(1).unwrap().min(rows.packed_size(1).unwrap());
    (listed, rows, bytes)
}

in_child! {
    fn kernels_for_operations_come_in_the_background(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).build();
        let gpu = engine.gpu(0).unwrap();
        let (listed, rows, bytes) = of(&engine);
        listed.prepare(&gpu).unwrap();
        rows.prepare(&gpu).unwrap();
        engine.compile_pending(Duration::MAX);
        let buffers = Buffers::new(&gpu);
        accumulate(&buffers, &rows, sum(Element::I32), 400).unwrap();
        assert_eq!(copy(&buffers, &listed, &rows), Ok(bytes));
        // The second time asks for nothing more.
        accumulate(&buffers, &rows, sum(Element::I32), 400).unwrap();
        copy(&buffers, &listed, &rows).unwrap();
        assert!(engine.compile_pending(Duration::ZERO) > 0);
        assert_eq!(engine.compile_pending(Duration::MAX), 0);
        let again = loads(|| {
            accumulate(&buffers, &rows, sum(Element::I32), 400).unwrap();
            copy(&buffers, &listed, &rows).unwrap();
            assert_eq!(engine.compile_pending(Duration::MAX), 0);
        });
        assert_eq!((again, gpu.problem()), (0, None));
        // Another operation is another kernel, and so is the way back.
        accumulate(&buffers, &rows, Reduction::new(Operation::Max, Element::I32).unwrap(), 400).unwrap();
        copy(&buffers, &rows, &listed).unwrap();
        assert_eq!(engine.compile_pending(Duration::ZERO), 1);
    }

    fn without_nvrtc_operations_stay_generic(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        for policy in [Policy::Off, Policy::Always, Policy::Lazy(1)] {
            let engine = builder(policy).build();
            let gpu = engine.gpu(0).unwrap();
            let (listed, rows, bytes) = of(&engine);
            let buffers = Buffers::new(&gpu);
            for _ in 0..3 {
                assert_eq!(accumulate(&buffers, &listed, sum(Element::I32), 40), Ok(40));
                assert_eq!(copy(&buffers, &listed, &rows), Ok(bytes));
                engine.compile_pending(Duration::MAX);
            }
            assert_eq!(gpu.problem().is_some(), policy != Policy::Off);
        }
    }

    fn reductions_that_do_not_fit_are_refused(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let (_, rows, _) = of(&engine);
        let buffers = Buffers::new(&gpu);
        let refused = |reduction, bytes| match accumulate(&buffers, &rows, reduction, bytes).unwrap_err() {
            TransferError::Accumulate(error) => error,
            error => panic!("{error}"),
        };
        assert!(matches!(refused(sum(Element::I32), 7), AccumulateError::Multiple { field: "length", found: 7, .. }));
        assert_eq!(refused(sum(Element::F32), 8), AccumulateError::Elements(Element::F32));
        let mut types = dtc_compiler::datatype::TypeBuilder::new();
        let long = types.named(dtc_compiler::datatype::Predefined::LONG_DOUBLE);
        let long = engine.commit(&types.finish(long).unwrap());
        let error = accumulate(&buffers, &long, sum(Element::F80), 16).unwrap_err();
        assert_eq!(error, AccumulateError::Unsupported(sum(Element::F80)).into());
        assert_eq!(accumulate(&buffers, &long, Reduction::new(Operation::Replace, Element::F80).unwrap(), 16), Ok(16));
    }

    fn launches_of_operations_that_fail(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        for policy in [Policy::Off, Policy::Always] {
            let engine = builder(policy).build();
            let gpu = engine.gpu(0).unwrap();
            let (listed, rows, bytes) = of(&engine);
            let buffers = Buffers::new(&gpu);
            let (memory, packed) = (buffers.memory.address(), buffers.packed.address());
            let elements = |address: u64| Elements { memory: address as *mut u8, origin: 0, count: 1, offset: 0 };
            let source = |address: u64| Elements { memory: address as *const u8, origin: 0, count: 1, offset: 0 };
            let mut host = vec![0u8; 1 << 14];
            // SAFETY: all buffers are long enough, in all of these.
            let mut any = || unsafe {
                let host = host.as_mut_ptr();
                [
                    listed.copy_any(source(memory), &rows, elements(packed), u64::MAX),
                    listed.copy_any(source(memory), &rows, elements(host as u64), u64::MAX),
                    listed.copy_any(source(host as u64), &rows, elements(packed), u64::MAX),
                    rows.accumulate_any(sum(Element::I32), host, Range::elements(1).bytes(..40), memory as *mut u8).map(|read| read + bytes - 40),
                    rows.accumulate_any(sum(Element::I32), packed as *const u8, Range::elements(1).bytes(..40), memory as *mut u8).map(|read| read + bytes - 40),
                ]
            };
            assert!(any().iter().all(|moved| *moved == Ok(bytes)));
            let_launches_return(719);
            for moved in any() {
                assert!(matches!(&moved, Err(TransferError::Cuda(error)) if error.code() == Some(719)), "{moved:?}");
            }
            let_launches_return(0);
            assert!(any().iter().all(|moved| *moved == Ok(bytes)));
        }
    }

    fn sides_that_lie_nowhere(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let (_, rows, _) = of(&engine);
        let buffers = Buffers::new(&gpu);
        let (there, null) = (buffers.memory.address() as *mut u8, std::ptr::null_mut::<u8>());
        let elements = |memory: *mut u8| Elements { memory, origin: 0, count: 1, offset: 0 };
        let source = |memory: *mut u8| Elements { memory: memory.cast_const(), origin: 0, count: 1, offset: 0 };
        // SAFETY: nothing is read or written.
        let errors = unsafe {
            [
                rows.copy_any(source(null), &rows, elements(there), 8).unwrap_err(),
                rows.copy_any(source(there), &rows, elements(null), 8).unwrap_err(),
                rows.accumulate_any(sum(Element::I32), there, Range::elements(1).bytes(..8), null).unwrap_err(),
                rows.accumulate_any(sum(Element::I32), null, Range::elements(1).bytes(..8), there).unwrap_err(),
            ]
        };
        for (error, side) in errors.into_iter().zip(["source", "destination", "memory", "packed bytes"]) {
            assert_eq!(error, TransferError::Address { side, address: 0 });
        }
    }

    fn calls_between_kinds_that_the_caller_knows(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let (listed, rows, bytes) = of(&engine);
        let int = {
            let mut types = dtc_compiler::datatype::TypeBuilder::new();
            let int = types.named(dtc_compiler::datatype::Predefined::INT);
            engine.commit(&types.finish(int).unwrap())
        };
        let buffers = Buffers::new(&gpu);
        let (memory, packed) = (buffers.memory.address() as *mut u8, buffers.packed.address() as *mut u8);
        let mut host = vec![0u8; 1 << 14];
        let pinned = PinnedBuffer::new(gpu.device(), 1 << 14).unwrap();
        let source = Elements { memory: memory.cast_const(), origin: 0, count: 1, offset: 0 };
        let target = Elements { memory: packed, origin: 0, count: 1, offset: 0 };
        let on_device = Some(MemoryKind::Device(0));
        let sum = sum(Element::I32);
        // What the driver was asked, and what it was given to run.
        let counted = |call: &dyn Fn() -> Request, under_way: bool| {
            let before = (calls("cuPointerGetAttributes"), calls("cuLaunchKernel"));
            let request = call();
            assert_eq!(request.is_done(), !under_way);
            request.wait().unwrap();
            (calls("cuPointerGetAttributes") - before.0, calls("cuLaunchKernel") - before.1)
        };
        // SAFETY: all buffers are long enough, in all of these.
        unsafe {
            let between = |committed: &'static Committed, packed| committed.between(on_device, packed);
            let [listed, rows, int]: [&'static Committed; 3] = [listed, rows, int].map(|each| &*Box::leak(Box::new(each)));
            let add = |packed: *const u8, kind| {
                counted(&|| between(rows, kind).start_accumulate(sum, packed, Range::elements(1).bytes(..400), memory).unwrap(), true)
            };
            assert_eq!(add(packed, on_device), (0, 1));
            assert_eq!(add(packed, None), (1, 1));
            // A device reads pinned memory itself.
            assert_eq!(add(pinned.as_ptr(), Some(MemoryKind::Pinned)), (0, 1));
            let copied = counted(&|| between(listed, on_device).start_copy(source, rows, target, bytes).unwrap(), true);
            assert_eq!(copied, (0, 1));
            // Elements with gaps go through a buffer, those without are packed already.
            let ints = Elements { count: 100, ..target };
            let combined = || between(listed, on_device).start_combine(sum, source, int, ints, 400).unwrap();
            assert_eq!(counted(&combined, false), (0, 2));
            let direct = || between(int, on_device).start_combine(sum, Elements { count: 100, ..source }, int, ints, 400);
            assert_eq!(counted(&|| direct().unwrap(), true), (0, 1));
            // On a stream the device has to reach both sides.
            let (stream, unknown) = (&buffers.stream, rows.between(None, None));
            assert_eq!(unknown.enqueue_accumulate(stream, sum, pinned.as_ptr(), Range::elements(1).bytes(..400), memory), Ok(400));
            let far = host.as_mut_ptr();
            let refused = [
                ("packed bytes", unknown.enqueue_accumulate(stream, sum, far, Range::elements(1).bytes(..400), memory)),
                ("memory", unknown.enqueue_accumulate(stream, sum, packed, Range::elements(1).bytes(..400), far)),
                ("source", unknown.enqueue_copy(stream, Elements { memory: far.cast_const(), ..source }, rows, target, 8)),
                ("destination", unknown.enqueue_copy(stream, source, rows, Elements { memory: far, ..target }, 8)),
            ];
            for (side, refused) in refused {
                let error = TransferError::OutOfReach { side, kind: MemoryKind::Pageable, device: 0 };
                assert_eq!(refused, Err(error));
            }
            // Elements of another type, and a source that is cut, are refused.
            let floats = Reduction::new(Operation::Sum, Element::F32).unwrap();
            let refused = |source, reduction| {
                between(listed, on_device).start_combine(reduction, source, int, ints, 40).err().unwrap()
            };
            assert_eq!(refused(source, floats), AccumulateError::Elements(Element::F32).into());
            let cut = AccumulateError::Multiple { field: "offset", element: Element::I32, found: 2 };
            assert_eq!(refused(Elements { offset: 2, ..source }, sum), cut.into());
        }
    }

    fn copies_between_devices(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let (one, other) = (engine.gpu(0).unwrap(), engine.gpu(1).unwrap());
        let (listed, rows, bytes) = of(&engine);
        let (from, to) = (Buffers::new(&one), Buffers::new(&other));
        let source = Elements { memory: from.memory.address() as *const u8, origin: 0, count: 1, offset: 0 };
        let target = Elements { memory: to.memory.address() as *mut u8, origin: 0, count: 1, offset: 0 };
        // SAFETY: both buffers are long enough.
        let copy = || unsafe { listed.copy_any(source, &rows, target, u64::MAX) };
        let launches = |copy: &dyn Fn() -> Result<u64, TransferError>| {
            let before = calls("cuLaunchKernel");
            assert_eq!(copy(), Ok(bytes));
            calls("cuLaunchKernel") - before
        };
        // Short runs are packed into a buffer of the other device and unpacked there.
        assert_eq!(launches(&copy), 2);
        let allocated = calls("cuMemAlloc_v2");
        assert_eq!(launches(&copy), 2);
        assert_eq!(calls("cuMemAlloc_v2"), allocated);
        // Long ones are written where they belong.
        let mut types = dtc_compiler::datatype::TypeBuilder::new();
        let byte = types.named(dtc_compiler::datatype::Predefined::BYTE);
        let long = types.vector(3, 200, 300, byte).unwrap();
        let long = engine.commit(&types.finish(long).unwrap());
        // SAFETY: both buffers are long enough.
        let direct = || unsafe { listed.copy_any(source, &long, target, bytes) };
        assert_eq!(launches(&direct), 1);
    }
}
