//! Transfers between memory of all kinds. The stub's kernels do nothing, but its copies copy: contiguous types move by copies,
//! and what the processor packs is packed.

use crate::builder;
use crate::child::{alive, calls, let_allocate, let_copies_return, let_launches_return, let_peers_be};
use crate::memory::{BYTES, KINDS, Memory, contiguous, noise};
use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::in_child;
use dtc_runtime::cuda::{CaptureMode, CudaError, Device, MemoryKind, Stream};
use dtc_runtime::{Committed, Endpoint, Engine, Policy, Range, Request, TransferError};
use std::time::Duration;

/// Three of every four ints.
fn strided() -> Datatype {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let vector = types.vector(1000, 3, 4, int).unwrap();
    let vector = types.resized(0, 16_000, vector).unwrap();
    types.finish(vector).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Blocking,
    Waited,
    Tested,
    Dropped,
}

fn end(form: Form, started: Result<Request, TransferError>) -> usize {
    let mut request = started.unwrap();
    match form {
        Form::Dropped => return 0,
        Form::Tested => while !request.test().unwrap() {},
        Form::Blocking | Form::Waited => {}
    }
    request.wait().unwrap()
}

/// Every byte between memory of two kinds, there and back.
fn there_and_back(engine: &Engine, memory_kind: MemoryKind, packed_kind: MemoryKind, form: Form, known: bool) {
    let committed = engine.commit(&contiguous());
    let (from, to) = (5, BYTES - 7);
    let host = noise(BYTES);
    let mut memory = Memory::new(memory_kind, &host);
    let mut packed = Memory::new(packed_kind, &vec![0xa5_u8; BYTES]);
    let range = Range::elements(BYTES as u64).bytes(from as u64..to as u64);
    let length = to - from;
    // SAFETY: the range lies in the buffer.
    let target = Endpoint::from(unsafe { packed.at().add(from) }).with_kind(known.then_some(packed_kind));
    let elements = |base| committed.at(Endpoint::from(base).with_kind(known.then_some(memory_kind)), range);
    let pack = elements(memory.at()).pack(target);
    // SAFETY: the range lies in both buffers, which are of these kinds and outlive the call.
    let moved = unsafe {
        match form {
            Form::Blocking => pack.run().unwrap(),
            _ => end(form, pack.start()),
        }
    };
    assert!(moved == length || matches!(form, Form::Dropped));
    let mut expected = vec![0xa5_u8; BYTES];
    expected[from..to].copy_from_slice(&host[from..to]);
    assert!(packed.read(BYTES) == expected, "pack {memory_kind}, {packed_kind}, {form:?}");
    let mut back = Memory::new(memory_kind, &vec![0x5a_u8; BYTES]);
    let unpack = elements(back.at()).unpack(target);
    // SAFETY: the range lies in `back` and in `packed`, which are of these kinds and outlive the call.
    let moved = unsafe {
        match form {
            Form::Blocking => unpack.run().unwrap(),
            _ => end(form, unpack.start()),
        }
    };
    assert!(moved == length || matches!(form, Form::Dropped));
    let mut expected = vec![0x5a_u8; BYTES];
    expected[from..to].copy_from_slice(&host[from..to]);
    assert!(back.read(BYTES) == expected, "unpack {memory_kind}, {packed_kind}, {form:?}");
}

fn engine() -> Engine {
    builder(Policy::Off).build()
}

in_child! {
    fn every_pair_of_kinds(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(0).unwrap();
        for memory in KINDS {
            for packed in KINDS {
                for (form, known) in [(Form::Blocking, false), (Form::Waited, true), (Form::Tested, false), (Form::Dropped, true)] {
                    there_and_back(&engine, memory, packed, form, known);
                }
            }
        }
        drop(engine);
        assert_eq!(alive(), 0);
    }

    fn devices_without_a_link(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        for peers in [0, 2] {
            let engine = engine();
            // Until the driver is loaded, the stub remembers nothing.
            engine.gpu(0).unwrap();
            let_peers_be(peers);
            for form in [Form::Blocking, Form::Tested, Form::Dropped] {
                there_and_back(&engine, MemoryKind::Device(0), MemoryKind::Device(1), form, false);
                there_and_back(&engine, MemoryKind::Device(1), MemoryKind::Device(0), form, true);
            }
            let committed = engine.commit(&contiguous());
            let mut memory = Memory::new(MemoryKind::Device(0), &[1; 64]);
            let mut packed = Memory::new(MemoryKind::Device(1), &[0; 64]);
            let stream = Stream::new(&Device::get(0).unwrap()).unwrap();
            // SAFETY: both buffers are long enough.
            let enqueued = unsafe { committed.at(memory.at(), Range::elements(64)).pack(packed.at()).enqueue(&stream) };
            let kind = MemoryKind::Device(1);
            assert_eq!(enqueued, Err(TransferError::OutOfReach { side: "packed bytes", kind, device: 0 }));
        }
    }

    fn links_are_made_once(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        for _ in 0..3 {
            there_and_back(&engine, MemoryKind::Device(0), MemoryKind::Device(1), Form::Blocking, false);
        }
        assert_eq!((calls("cuDeviceCanAccessPeer"), calls("cuCtxEnablePeerAccess")), (1, 1));
    }

    fn what_the_processor_packs_is_packed(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        let committed = engine.commit(&strided());
        let count = 600;
        let host = noise(16_000 * count);
        let total = committed.packed_size(count as u64).unwrap();
        let mut expected = vec![0u8; total];
        committed.pack(&host, Range::elements(count as u64), &mut expected).unwrap();
        let mut packed = Memory::new(MemoryKind::Device(0), &vec![0u8; total]);
        // SAFETY: both buffers are long enough.
        let moved = unsafe { committed.at(host.as_ptr(), Range::elements(count as u64).bytes(..total as u64)).pack(packed.at()).run() };
        assert_eq!(moved, Ok(total));
        assert!(packed.read(total) == expected);
        let mut back = vec![0x5a_u8; host.len()];
        let (from, length) = (1_234_567, 3_456_789);
        // SAFETY: `back` has every element, and `packed` has `length` bytes from `from` on.
        let moved = unsafe {
            committed.at(back.as_mut_ptr(), Range::elements(count as u64).fragment(from as u64, length as u64)).unpack(packed.at().add(from)).run()
        };
        assert_eq!(moved, Ok(length));
        let mut wanted = vec![0x5a_u8; host.len()];
        committed.unpack(&expected[from..from + length], Range::elements(count as u64).fragment(from as u64, length as u64), &mut wanted).unwrap();
        assert!(back == wanted);
        // No kernel took part.
        assert_eq!(calls("cuLaunchKernel"), 0);
    }

    fn one_kernel_where_the_device_reaches(driver: Built(&["STUB_ANY_CODE", "STUB_PAGE_TABLES"]), nvrtc: Absent) {
        let engine = engine();
        let committed = engine.commit(&strided());
        engine.gpu(1).unwrap();
        for kind in KINDS {
            let mut memory = Memory::new(MemoryKind::Device(0), &vec![0u8; 16_000]);
            let mut packed = Memory::new(kind, &vec![0u8; 12_000]);
            let before = calls("cuLaunchKernel");
            // SAFETY: both buffers are long enough.
            unsafe { committed.at(memory.at(), Range::elements(1).bytes(..12_000)).pack(packed.at()).run() }.unwrap();
            // SAFETY: `memory` has one element, `packed` its 12,000 bytes, and both outlive the request.
            unsafe { committed.at(memory.at(), Range::elements(1).bytes(..12_000)).unpack(packed.at()).start() }.unwrap().wait().unwrap();
            let stream = Stream::new(&Device::get(0).unwrap()).unwrap();
            // SAFETY: `memory` has one element and `packed` its 12,000 bytes; the stub has done the work when the call returns.
            unsafe { committed.at(memory.at(), Range::elements(1).bytes(..12_000)).pack(packed.at()).enqueue(&stream) }.unwrap();
            assert_eq!(calls("cuLaunchKernel") - before, 3, "{kind}");
        }
    }

    fn kinds_that_are_given_are_not_asked_for(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(0).unwrap();
        let asked = calls("cuPointerGetAttributes");
        there_and_back(&engine, MemoryKind::Device(0), MemoryKind::Pageable, Form::Waited, true);
        assert_eq!(calls("cuPointerGetAttributes"), asked);
        there_and_back(&engine, MemoryKind::Device(0), MemoryKind::Pageable, Form::Waited, false);
        // Once for each side of the two calls.
        assert_eq!(calls("cuPointerGetAttributes"), asked + 4);
    }

    fn buffers_are_made_once(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        let pairs = [(MemoryKind::Device(0), MemoryKind::Pageable), (MemoryKind::Pageable, MemoryKind::Device(0))];
        for (memory, packed) in pairs {
            there_and_back(&engine, memory, packed, Form::Blocking, true);
        }
        let committed = engine.commit(&contiguous());
        let mut memory = Memory::new(MemoryKind::Device(0), &[1; 4096]);
        let mut packed = [0u8; 4096];
        let counts = || (calls("cuMemHostAlloc"), calls("cuStreamCreateWithPriority"), calls("cuEventCreate"));
        let before = counts();
        for _ in 0..10 {
            // SAFETY: both buffers are long enough.
            unsafe { committed.at(memory.at(), Range::elements(4096).bytes(..4096)).pack(packed.as_mut_ptr()).run() }.unwrap();
        }
        assert_eq!(counts(), before);
        assert_eq!(packed, [1; 4096]);
    }

    fn many_requests_share_few_buffers(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        let committed = engine.commit(&contiguous());
        let mut memory = Memory::new(MemoryKind::Device(0), &noise(100_000));
        let base = memory.at();
        let pinned = calls("cuMemHostAlloc");
        for backwards in [false, true] {
            let mut packed = vec![vec![0u8; 1000]; 100];
            let start = |(index, target): (usize, &mut Vec<u8>)| {
                // SAFETY: both buffers are long enough, and live until the request is done.
                unsafe { committed.at(base, Range::elements(100_000).fragment(index as u64 * 1000, 1000)).pack(target.as_mut_ptr()).start() }.unwrap()
            };
            let mut requests: Vec<Request> = packed.iter_mut().enumerate().map(start).collect();
            if backwards {
                requests.reverse();
            }
            for request in requests {
                assert_eq!(request.wait(), Ok(1000));
            }
            assert!(packed.concat() == noise(100_000));
        }
        assert!(calls("cuMemHostAlloc") - pinned < 12, "{} pinned buffers", calls("cuMemHostAlloc") - pinned);
        engine.compile_pending(Duration::MAX);
        drop((memory, committed, engine));
        assert_eq!(alive(), 0);
    }

    fn threads_share_buffers(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for form in [Form::Tested, Form::Waited, Form::Blocking] {
                        there_and_back(&engine, MemoryKind::Device(0), MemoryKind::Pageable, form, true);
                    }
                });
            }
        });
    }

    fn one_type_in_many_kinds_of_memory(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(0).unwrap();
        // Blocks at absolute addresses, so that each is contiguous in one kind, in an order that goes back and forth.
        let host = noise(40_000);
        let order = [0, 3, 1, 0, 4, 2, 3, 3, 1];
        let mut memories: Vec<Memory> = KINDS.iter().map(|kind| Memory::new(*kind, &host)).collect();
        let (mut places, mut lengths, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for (index, &which) in order.iter().enumerate() {
            let (at, length) = (index * 4001, 3000 + index * 7);
            places.push(memories[which].at() as i64 + at as i64);
            lengths.push(length as i64);
            expected.extend_from_slice(&host[at..at + length]);
        }
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let absolute = types.hindexed(&lengths, &places, byte).unwrap();
        let committed = engine.commit(&types.finish(absolute).unwrap());
        let total = expected.len();
        let null = std::ptr::null_mut::<u8>();
        for kind in [MemoryKind::Pageable, MemoryKind::Pinned] {
            let mut packed = Memory::new(kind, &vec![0u8; total]);
            // Blocks on a device move by kernels, which do nothing here: only how many there are is seen.
            let before = calls("cuLaunchKernel");
            // SAFETY: every displacement is an address in a live buffer, and the packed buffer is long enough.
            let moved = unsafe { committed.at(null, Range::elements(1).bytes(..total as u64)).pack(packed.at()).run() };
            assert_eq!(moved, Ok(total));
            // Blocks 1, 4, and 6 with 7: on device 0 and on device 1.
            assert_eq!(calls("cuLaunchKernel") - before, 3);
            let found = packed.read(total);
            let mut at = 0;
            for (&which, &length) in order.iter().zip(&lengths) {
                let block = at..at + length as usize;
                at = block.end;
                if which < 3 {
                    assert!(found[block.clone()] == expected[block], "{which}");
                }
            }
            // SAFETY: every displacement is an address in a live buffer, and the packed buffer has `total` bytes.
            let request = unsafe { committed.at(null, Range::elements(1).bytes(..total as u64)).unpack(packed.at()).start() };
            assert_eq!(request.unwrap().wait(), Ok(total));
        }
        for memory in &memories[..3] {
            assert!(memory.read(40_000) == host);
        }
    }

    fn fragments_of_one_type_in_two_allocations(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(0).unwrap();
        let mut on_device = Memory::new(MemoryKind::Device(0), &[7; 1000]);
        let mut pageable = Memory::new(MemoryKind::Pageable, &[9; 1000]);
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let places = [on_device.at() as i64 + 100, pageable.at() as i64 + 200];
        let absolute = types.hindexed(&[300, 400], &places, byte).unwrap();
        let committed = engine.commit(&types.finish(absolute).unwrap());
        let mut packed = [0u8; 400];
        // Only the part on the host is asked for, so no kernel runs.
        // SAFETY: the bytes lie in live buffers.
        let moved = unsafe { committed.at(std::ptr::null::<u8>(), Range::elements(1).fragment(300, 1000)).pack(packed.as_mut_ptr()).run() };
        assert_eq!((moved, packed, calls("cuLaunchKernel")), (Ok(400), [9; 400], 0));
    }

    fn a_run_that_lies_nowhere_is_refused_by_name(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(0).unwrap();
        let mut on_device = Memory::new(MemoryKind::Device(0), &[7; 1000]);
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let absolute = types.hindexed(&[10, 10], &[on_device.at() as i64, 16], byte).unwrap();
        let committed = engine.commit(&types.finish(absolute).unwrap());
        let mut packed = [0u8; 20];
        // SAFETY: nothing is touched, since a run lies nowhere.
        let moved = unsafe { committed.at(std::ptr::null::<u8>(), Range::elements(1).bytes(..20)).pack(packed.as_mut_ptr()).run() };
        assert_eq!(moved, Err(TransferError::Address { side: "a run of the memory", address: 16 }));
        assert_eq!(packed, [0; 20]);
    }

    fn pageable_memory_is_not_enqueued(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        let committed = engine.commit(&strided());
        let mut memory = Memory::new(MemoryKind::Device(0), &vec![0u8; 16_000]);
        let mut host = vec![0u8; 16_000];
        let stream = Stream::new(&Device::get(0).unwrap()).unwrap();
        let kind = MemoryKind::Pageable;
        // SAFETY: all buffers are long enough.
        unsafe {
            let error = committed.at(memory.at(), Range::elements(1)).pack(host.as_mut_ptr()).enqueue(&stream).unwrap_err();
            assert_eq!(error, TransferError::OutOfReach { side: "packed bytes", kind, device: 0 });
            assert!(error.to_string().contains("pinned") && error.to_string().contains("request"), "{error}");
            let error = committed.at(host.as_mut_ptr(), Range::elements(1)).unpack(memory.at()).enqueue(&stream).unwrap_err();
            assert_eq!(error, TransferError::OutOfReach { side: "memory", kind, device: 0 });
        }
        assert_eq!(calls("cuLaunchKernel"), 0);
    }

    fn enqueued_transfers_are_captured(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        let committed = engine.commit(&strided());
        committed.prepare(&engine.gpu(0).unwrap()).unwrap();
        engine.gpu(1).unwrap();
        let mut memory = Memory::new(MemoryKind::Device(0), &vec![0u8; 16_000]);
        let mut packed = [MemoryKind::Pinned, MemoryKind::Managed, MemoryKind::Device(1)].map(|kind| Memory::new(kind, &[0; 12_000]));
        let stream = Stream::new(&Device::get(0).unwrap()).unwrap();
        stream.begin_capture(CaptureMode::Global).unwrap();
        let allocations = (calls("cuMemAlloc_v2"), calls("cuMemHostAlloc"));
        for packed in &mut packed {
            let elements = committed.at(memory.at(), Range::elements(1));
            // SAFETY: all buffers are long enough, and the graph is not launched.
            unsafe {
                elements.pack(packed.at()).enqueue(&stream).unwrap();
                elements.unpack(packed.at()).enqueue(&stream).unwrap();
            }
        }
        assert_eq!((calls("cuMemAlloc_v2"), calls("cuMemHostAlloc")), allocations);
        let nodes = stream.end_capture().unwrap().nodes().unwrap();
        assert_eq!((nodes.all, nodes.kernels), (6, 6));
    }

    fn failures_give_buffers_back(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(1).unwrap();
        let_peers_be(0);
        let committed = engine.commit(&strided());
        let failed = |result: Result<usize, TransferError>, code: i32| match result {
            Err(TransferError::Cuda(error)) => assert_eq!(error.code(), Some(code), "{error}"),
            other => panic!("{other:?}"),
        };
        // The pair that needs pinned memory comes first: with buffers on the device it does without.
        let pairs = [
            (MemoryKind::Device(0), MemoryKind::Pageable),
            (MemoryKind::Device(0), MemoryKind::Device(1)),
            (MemoryKind::Pageable, MemoryKind::Device(0)),
        ];
        for (memory_kind, packed_kind) in pairs {
            let mut memory = Memory::new(memory_kind, &vec![0u8; 16_000]);
            let mut packed = Memory::new(packed_kind, &vec![0u8; 12_000]);
            let elements = committed.at(Endpoint::of_kind(memory_kind, memory.at()), Range::elements(1));
            let target = Endpoint::of_kind(packed_kind, packed.at());
            // SAFETY: both buffers are long enough.
            let pack = || unsafe { elements.pack(target).run() };
            // SAFETY: `memory` has one element, and `packed` its 12,000 bytes.
            let unpack = || unsafe { elements.unpack(target).run() };
            // SAFETY: `memory` has one element, `packed` its 12,000 bytes, and both outlive the request.
            let start = || unsafe { elements.pack(target).start() }.and_then(Request::wait);
            let all = |code: i32| {
                failed(pack(), code);
                failed(unpack(), code);
                failed(start(), code);
            };
            if memory_kind != MemoryKind::Pageable {
                // There is nothing for the first transfer of its sort to go through.
                let_allocate(0);
                all(2);
                let_allocate(-1);
            }
            pack().unwrap();
            unpack().unwrap();
            let buffers = alive();
            if memory_kind != MemoryKind::Pageable {
                let_launches_return(719);
                all(719);
                let_launches_return(0);
            }
            if packed_kind != MemoryKind::Pageable {
                let_copies_return(700);
                all(700);
                let_copies_return(0);
            }
            pack().unwrap();
            unpack().unwrap();
            start().unwrap();
            assert!(alive() <= buffers + 2, "{memory_kind}, {packed_kind}: {} things, {buffers} before", alive());
        }
    }

    fn calls_that_block_need_no_pinned_memory(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(1).unwrap();
        let_peers_be(0);
        let committed = engine.commit(&strided());
        let mut memory = Memory::new(MemoryKind::Device(0), &[0; 16_000]);
        let mut other = Memory::new(MemoryKind::Device(1), &[0; 12_000]);
        let mut packed = vec![0u8; 12_000];
        let elements = committed.at(memory.at(), Range::elements(1));
        // Makes the buffers on the device.
        // SAFETY: `memory` has one element, and the other its 12,000 bytes.
        unsafe { elements.pack(Endpoint::of_kind(MemoryKind::Device(1), other.at())).run() }.unwrap();
        let_allocate(0);
        // SAFETY: `memory` has one element, and `packed` its 12,000 bytes.
        assert_eq!(unsafe { elements.pack(packed.as_mut_ptr()).run() }.unwrap(), 12_000);
        // SAFETY: as above.
        assert_eq!(unsafe { elements.unpack(packed.as_mut_ptr()).run() }.unwrap(), 12_000);
        // The driver's copies would block a request.
        // SAFETY: as above, and both live until the request is done.
        assert!(unsafe { elements.pack(packed.as_mut_ptr()).start() }.and_then(Request::wait).is_err());
    }

    fn a_part_that_fails_ends_the_call(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        engine.gpu(0).unwrap();
        let mut on_device = Memory::new(MemoryKind::Device(0), &[7; 1000]);
        // So large that the two share no page, as memory of a device and of the host never does.
        let mut pageable = Memory::new(MemoryKind::Pageable, &vec![9; 1 << 20]);
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let places = [pageable.at() as i64, on_device.at() as i64];
        let absolute = types.hindexed(&[300, 400], &places, byte).unwrap();
        let committed: Committed = engine.commit(&types.finish(absolute).unwrap());
        let mut packed = [0u8; 700];
        let_launches_return(719);
        // SAFETY: the bytes lie in live buffers.
        let moved = unsafe { committed.at(std::ptr::null::<u8>(), Range::elements(1).bytes(..700)).pack(packed.as_mut_ptr()).run() };
        assert!(matches!(&moved, Err(TransferError::Cuda(error)) if error.code() == Some(719)), "{moved:?}");
    }

    fn a_device_that_is_not_there(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let engine = engine();
        let committed = engine.commit(&contiguous());
        let (memory, mut packed) = ([1u8; 8], [0u8; 8]);
        let absent = Endpoint::of_kind(MemoryKind::Device(2), memory.as_ptr());
        // SAFETY: nothing is touched.
        let moved = unsafe { committed.at(absent, Range::elements(8)).pack(packed.as_mut_ptr()).run() };
        assert_eq!(moved, Err(TransferError::Cuda(CudaError::Ordinal { ordinal: 2, count: 2 })));
    }

    fn a_machine_is_measured_and_remembered(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        use dtc_runtime::TransferModel;
        use dtc_runtime::store::{Config, Store};
        let folder = tempfile::tempdir().unwrap();
        let config = || Config::none().directory(folder.path().join("kernels"));
        let build = || Engine::builder().background_thread(false).store(config()).build();
        let engine = build();
        let gpu = engine.gpu(0).unwrap();
        assert_eq!(gpu.model(), &TransferModel::default());
        let measured = gpu.calibrate().unwrap();
        assert_ne!(measured, TransferModel::default());
        let store = Store::open(config());
        assert!(measured.store(&store, gpu.device().info()));
        let again = build();
        assert_eq!(again.gpu(0).unwrap().model().to_string(), measured.to_string());
        // The other device was not measured.
        assert_eq!(again.gpu(1).unwrap().model(), &TransferModel::default());
        // A file that is damaged is a warning and the default.
        for entry in store.list() {
            std::fs::write(&entry.path, b"damaged").unwrap();
        }
        assert_eq!(build().gpu(0).unwrap().model(), &TransferModel::default());
    }
}
