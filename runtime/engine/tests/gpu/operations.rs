//! Unpacks with an operation and copies from type to type: what is compiled when, and what is refused.

use crate::child::{calls, let_launches_return};
use crate::{Buffers, builder, listed, rows};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::in_child;
use dtc_runtime::cuda::{MemoryKind, PinnedBuffer};
use dtc_runtime::{AccumulateError, Committed, Endpoint, Engine, Policy, Range, Request, TransferError};
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
) -> Result<usize, TransferError> {
    // SAFETY: both buffers are long enough.
    unsafe {
        committed
            .at(&buffers.memory, Range::elements(1).bytes(..bytes))
            .accumulate(reduction, &buffers.packed)
            .enqueue(&buffers.stream)
    }
}

/// Enqueues a copy of one element.
fn copy(buffers: &Buffers, from: &Committed, to: &Committed) -> Result<usize, TransferError> {
    let (source, target) = (from.at(&buffers.memory, Range::elements(1)), to.at(&buffers.packed, Range::elements(1)));
    // SAFETY: both buffers are long enough.
    unsafe { source.copy_to(target).enqueue(&buffers.stream) }
}

/// Loads of code that something causes.
fn loads(cause: impl FnOnce()) -> std::ffi::c_long {
    let before = calls("cuModuleLoadDataEx");
    cause();
    calls("cuModuleLoadDataEx") - before
}

fn of(engine: &Engine) -> (Committed, Committed, usize) {
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
            let elements = |address: u64| rows.at(address as *mut u8, Range::elements(1));
            let source = |address: u64| listed.at(address as *const u8, Range::elements(1));
            let mut host = vec![0u8; 1 << 14];
            // SAFETY: all buffers are long enough, in all of these.
            let mut any = || unsafe {
                let host = host.as_mut_ptr();
                [
                    source(memory).copy_to(elements(packed)).run(),
                    source(memory).copy_to(elements(host as u64)).run(),
                    source(host as u64).copy_to(elements(packed)).run(),
                    rows.at(memory as *mut u8, Range::elements(1).bytes(..40)).accumulate(sum(Element::I32), host).run().map(|read| read + bytes - 40),
                    rows.at(memory as *mut u8, Range::elements(1).bytes(..40)).accumulate(sum(Element::I32), packed as *const u8).run().map(|read| read + bytes - 40),
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
        let elements = |memory: *mut u8| rows.at(memory, Range::elements(1));
        // SAFETY: nothing is read or written.
        let errors = unsafe {
            [
                elements(null).copy_to(elements(there)).run().unwrap_err(),
                elements(there).copy_to(elements(null)).run().unwrap_err(),
                rows.at(null, Range::elements(1).bytes(..8)).accumulate(sum(Element::I32), there).run().unwrap_err(),
                rows.at(there, Range::elements(1).bytes(..8)).accumulate(sum(Element::I32), null).run().unwrap_err(),
            ]
        };
        for (error, side) in errors.into_iter().zip(["source", "destination", "memory", "packed bytes"]) {
            assert_eq!(error, TransferError::Address { side, address: 0 });
        }
    }

    fn calls_between_kinds_that_the_caller_knows(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let gpu = engine.gpu(0).unwrap();
        let (listed, rows, _) = of(&engine);
        let int = {
            let mut types = dtc_compiler::datatype::TypeBuilder::new();
            let int = types.named(dtc_compiler::datatype::Predefined::INT);
            engine.commit(&types.finish(int).unwrap())
        };
        let buffers = Buffers::new(&gpu);
        let (memory, packed) = (buffers.memory.address() as *mut u8, buffers.packed.address() as *mut u8);
        let mut host = vec![0u8; 1 << 14];
        let pinned = PinnedBuffer::new(gpu.device(), 1 << 14).unwrap();
        let (one, hundred) = (Range::elements(1), Range::elements(100));
        let [memory, packed] = [memory, packed].map(|address| Endpoint::of_kind(MemoryKind::Device(0), address));
        let source = listed.at(memory, one);
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
            let add = |packed: Endpoint| {
                counted(&|| rows.at(memory, one.bytes(..400)).accumulate(sum, packed).start().unwrap(), true)
            };
            assert_eq!(add(packed), (0, 1));
            assert_eq!(add(packed.with_kind(None)), (1, 1));
            // A device reads pinned memory itself.
            assert_eq!(add(Endpoint::from(&pinned)), (0, 1));
            let copied = counted(&|| source.copy_to(rows.at(packed, one)).start().unwrap(), true);
            assert_eq!(copied, (0, 1));
            // Elements with gaps go through a buffer, those without are packed already.
            let ints = int.at(packed, hundred);
            let combined = source.accumulate_to(sum, ints);
            assert_eq!(counted(&|| combined.start().unwrap(), false), (0, 2));
            let direct = int.at(memory, hundred).accumulate_to(sum, ints);
            assert_eq!(counted(&|| direct.start().unwrap(), true), (0, 1));
            // On a stream the device has to reach both sides, and there is no buffer.
            let stream = &buffers.stream;
            assert_eq!((combined.enqueue(stream), direct.enqueue(stream)), (Err(TransferError::Buffered), Ok(400)));
            let [near, peer] = [memory, packed].map(|endpoint| endpoint.with_kind(None));
            assert_eq!(rows.at(near, one.bytes(..400)).accumulate(sum, pinned.as_ptr()).enqueue(stream), Ok(400));
            let far = Endpoint::from(host.as_mut_ptr());
            let refused = [
                ("packed bytes", rows.at(near, one.bytes(..400)).accumulate(sum, far).enqueue(stream)),
                ("memory", rows.at(far, one.bytes(..400)).accumulate(sum, peer).enqueue(stream)),
                ("source", rows.at(far, one).copy_to(rows.at(peer, one)).enqueue(stream)),
                ("destination", rows.at(near, one).copy_to(rows.at(far, one)).enqueue(stream)),
            ];
            for (side, refused) in refused {
                let error = TransferError::OutOfReach { side, kind: MemoryKind::Pageable, device: 0 };
                assert_eq!(refused, Err(error));
            }
            // Elements of another type, and a source that is cut, are refused.
            let floats = Reduction::new(Operation::Sum, Element::F32).unwrap();
            let refused = |range: Range, reduction| {
                listed.at(memory, range).accumulate_to(reduction, ints).start().err().unwrap()
            };
            assert_eq!(refused(one.bytes(..40), floats), AccumulateError::Elements(Element::F32).into());
            let cut = AccumulateError::Multiple { field: "offset", element: Element::I32, found: 2 };
            assert_eq!(refused(one.bytes(2..42), sum), cut.into());
        }
    }

    fn copies_between_devices(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = builder(Policy::Off).build();
        let (one, other) = (engine.gpu(0).unwrap(), engine.gpu(1).unwrap());
        let (listed, rows, bytes) = of(&engine);
        let (from, to) = (Buffers::new(&one), Buffers::new(&other));
        let one = Range::elements(1);
        let copy_to = |to_type: &Committed| {
            // SAFETY: both buffers are long enough.
            unsafe { listed.at(&from.memory, one.bytes(..bytes as u64)).copy_to(to_type.at(&to.memory, one)).run() }
        };
        let launches = |copy: &dyn Fn() -> Result<usize, TransferError>| {
            let before = calls("cuLaunchKernel");
            assert_eq!(copy(), Ok(bytes));
            calls("cuLaunchKernel") - before
        };
        // Short runs are packed into a buffer of the other device and unpacked there.
        assert_eq!(launches(&|| copy_to(&rows)), 2);
        let allocated = calls("cuMemAlloc_v2");
        assert_eq!(launches(&|| copy_to(&rows)), 2);
        assert_eq!(calls("cuMemAlloc_v2"), allocated);
        // Long ones are written where they belong.
        let mut types = dtc_compiler::datatype::TypeBuilder::new();
        let byte = types.named(dtc_compiler::datatype::Predefined::BYTE);
        let long = types.vector(3, 200, 300, byte).unwrap();
        let long = engine.commit(&types.finish(long).unwrap());
        assert_eq!(launches(&|| copy_to(&long)), 1);
    }
}
