//! Engines whose pinned buffers come from an allocator of the host.

use crate::memory::{BYTES, Memory, contiguous, noise};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::in_child;
use dtc_runtime::cuda::{Device, MemoryKind, PinnedBuffer, StagingAllocator};
use dtc_runtime::{Engine, Policy, Range};
use std::alloc::Layout;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What an allocator hands out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Give {
    #[default]
    Pinned,
    Pageable,
    Nothing,
}

/// An allocator for an engine, which counts.
#[derive(Debug, Default)]
struct Pool {
    give: Give,
    made: AtomicUsize,
    freed: AtomicUsize,
    buffers: Mutex<Vec<PinnedBuffer>>,
}

const ALIGNED: usize = 64;

// SAFETY: each buffer is handed out once, and lives until it is freed.
unsafe impl StagingAllocator for Pool {
    fn allocate(&self, device: u32, bytes: usize) -> *mut u8 {
        if self.give == Give::Nothing {
            return std::ptr::null_mut();
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        if self.give == Give::Pageable {
            // SAFETY: the size is not zero.
            return unsafe { std::alloc::alloc(Layout::from_size_align(bytes, ALIGNED).unwrap()) };
        }
        let buffer = PinnedBuffer::new(&Device::get(device).unwrap(), bytes).unwrap();
        let address = buffer.as_ptr();
        self.buffers.lock().unwrap().push(buffer);
        address
    }

    unsafe fn free(&self, _device: u32, memory: *mut u8, bytes: usize) {
        self.freed.fetch_add(1, Ordering::Relaxed);
        if self.give == Give::Pageable {
            // SAFETY: it was allocated so.
            return unsafe { std::alloc::dealloc(memory, Layout::from_size_align(bytes, ALIGNED).unwrap()) };
        }
        self.buffers.lock().unwrap().retain(|buffer| buffer.as_ptr() != memory);
    }
}

in_child! {
    fn buffers_come_from_the_allocator_of_the_engine(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let pool = Arc::new(Pool::default());
        let engine = Engine::builder().policy(Policy::Off).staging(pool.clone()).build();
        let (committed, bytes) = (engine.commit(&contiguous()), noise(BYTES));
        let mut memory = Memory::new(MemoryKind::Device(0), &bytes);
        let mut packed = vec![0u8; BYTES];
        let all = Range::elements(BYTES as u64);
        let source = committed.at(memory.at(), all);
        for _ in 0..3 {
            packed.fill(0);
            // SAFETY: both buffers are long enough, and live until the request is done.
            let request = unsafe { source.pack(packed.as_mut_ptr()).start() };
            request.unwrap().wait().unwrap();
            assert!(packed == bytes);
            packed.fill(0);
            // SAFETY: both buffers have `BYTES` bytes, and the call returns when all are moved.
            unsafe { source.copy_to(committed.at(packed.as_mut_ptr(), all)).run() }.unwrap();
            assert!(packed == bytes);
        }
        // One for requests, one for copies; both are kept.
        assert_eq!((pool.made.load(Ordering::Relaxed), pool.freed.load(Ordering::Relaxed)), (2, 0));
        drop((committed, engine));
        assert_eq!(pool.freed.load(Ordering::Relaxed), 2);
    }

    fn allocators_without_pinned_memory_fail_by_name(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        for (give, expected) in [(Give::Nothing, "found null"), (Give::Pageable, "found pageable memory")] {
            let pool = Arc::new(Pool { give, ..Pool::default() });
            let engine = Engine::builder().policy(Policy::Off).staging(pool.clone()).build();
            let committed = engine.commit(&contiguous());
            let mut memory = Memory::new(MemoryKind::Device(0), &[1; 4096]);
            let mut packed = [0; 4096];
            // SAFETY: both buffers are long enough.
            let error = unsafe { committed.at(memory.at(), Range::elements(4096).bytes(..4096)).pack(packed.as_mut_ptr()).run() }.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(packed, [0; 4096]);
            let given = usize::from(give == Give::Pageable);
            assert_eq!((pool.made.load(Ordering::Relaxed), pool.freed.load(Ordering::Relaxed)), (given, given));
        }
    }
}
