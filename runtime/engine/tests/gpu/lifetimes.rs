//! What is freed, when, and what is not touched for it.

use crate::child::{alive, calls};
use crate::{Buffers, builder, list_of, listed, packs_on_the_host, rows};
use dtc_emulator::Stub::Built;
use dtc_emulator::in_child;
use dtc_runtime::cuda::{CaptureMode, CudaError, StagingAllocator};
use dtc_runtime::{Policy, Tier};
use std::sync::Arc;
use std::time::Duration;

/// An allocator that nothing is asked of.
#[derive(Debug)]
struct NoAllocator;

// SAFETY: it hands out nothing.
unsafe impl StagingAllocator for NoAllocator {
    fn allocate(&self, _device: u32, _bytes: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    unsafe fn free(&self, _device: u32, _memory: *mut u8, _bytes: usize) {}
}

in_child! {
    fn nothing_outlives_an_engine(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        for policy in [Policy::Off, Policy::Always] {
            let engine = builder(policy).build();
            let gpu = engine.gpu(0).unwrap();
            for number in 0..20 {
                let committed = engine.commit(&listed(number));
                committed.prepare(&gpu).unwrap();
                Buffers::new(&gpu).enqueue(&committed).unwrap();
            }
            assert!(alive() > 0);
            drop((gpu, engine));
            assert_eq!(alive(), 0, "{policy:?}");
        }
    }

    fn the_background_keeps_no_engine(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let pool = Arc::new(NoAllocator);
        let engine = builder(Policy::Off).background_thread(true).staging(pool.clone()).build();
        let gpu = engine.gpu(0).unwrap();
        let committed = engine.commit(&list_of(1 << 19));
        let buffers = Buffers::new(&gpu);
        for _ in 0..2 {
            buffers.enqueue(&committed).unwrap();
        }
        // The canonical form takes longer.
        std::thread::sleep(Duration::from_millis(20));
        drop((buffers, committed, gpu, engine));
        assert_eq!((alive(), Arc::strong_count(&pool)), (0, 1));
    }

    fn types_that_nobody_holds_are_freed(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Off).cache_caps(4, 1 << 20).build();
        let gpu = engine.gpu(0).unwrap();
        let buffers = Buffers::new(&gpu);
        let mut most = 0;
        for number in 0..1000 {
            buffers.enqueue(&engine.commit(&listed(number))).unwrap();
            engine.compile_pending(Duration::MAX);
            most = most.max(alive());
        }
        assert!(most < 200, "{most} things were alive at once");
        // Waiting for a context or for the legacy default stream would spoil captures, and wait for kernels that wait for us.
        for call in ["cuCtxSynchronize", "cuMemcpyHtoD_v2"] {
            assert_eq!(calls(call), 0, "{call}");
        }
    }

    fn freeing_waits_once_in_the_queue(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Off).cache_caps(4, 1 << 20).build();
        let gpu = engine.gpu(0).unwrap();
        let buffers = Buffers::new(&gpu);
        for number in 0..1000 {
            buffers.enqueue(&engine.commit(&listed(number))).unwrap();
        }
        let kept = alive();
        // A budget of nothing is one job.
        assert_eq!(engine.compile_pending(Duration::ZERO), 0);
        assert!(alive() < kept - 500, "{kept} things were alive, now {}", alive());
    }

    fn graphs_keep_what_they_run(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        for policy in [Policy::Off, Policy::Always] {
            for (datatype, has_lists) in [(listed(0), 1), (rows(), 0)] {
                let engine = builder(policy).build();
                let gpu = engine.gpu(0).unwrap();
                let committed = engine.commit(&datatype);
                committed.prepare(&gpu).unwrap();
                let buffers = Buffers::new(&gpu);
                buffers.stream.begin_capture(CaptureMode::Global).unwrap();
                buffers.enqueue(&committed).unwrap();
                let graph = buffers.stream.end_capture().unwrap();
                assert_eq!(graph.nodes().unwrap().kernels, 1);
                let (modules, lists) = (calls("cuModuleUnload"), calls("cuMemFree_v2"));
                let compiled = i64::from(policy == Policy::Always);
                drop((committed, gpu, engine));
                // One module and one of the lists are the graph's. Two other modules are what the runtime waits with.
                assert_eq!(calls("cuModuleUnload") - modules, compiled + 2);
                assert_eq!(calls("cuMemFree_v2") - lists, compiled * has_lists);
                drop(graph);
                // What graphs let go is dropped when code is loaded again.
                drop(builder(Policy::Off).build().gpu(0).unwrap());
                assert_eq!(calls("cuModuleUnload") - modules, compiled + 2 + 4);
            }
        }
    }

    fn the_first_use_may_be_captured(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        for policy in [Policy::Off, Policy::Background, Policy::Always] {
            let engine = builder(policy).build();
            let gpu = engine.gpu(0).unwrap();
            let committed = engine.commit(&listed(0));
            let buffers = Buffers::new(&gpu);
            buffers.stream.begin_capture(CaptureMode::Global).unwrap();
            buffers.enqueue(&committed).unwrap();
            let nodes = buffers.stream.end_capture().unwrap().nodes().unwrap();
            assert_eq!((nodes.all, nodes.kernels), (1, 1), "{policy:?}");
        }
    }

    fn forked_children_get_errors(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).build();
        let gpu = engine.gpu(0).unwrap();
        let committed = engine.commit(&listed(0));
        let buffers = Buffers::new(&gpu);
        buffers.enqueue(&committed).unwrap();
        // SAFETY: the child calls only what this test is about, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let work = || {
                packs_on_the_host(&engine);
                assert_eq!(buffers.enqueue(&committed), Err(CudaError::Forked));
                assert_eq!(committed.prepare(&gpu), Err(CudaError::Forked));
                assert_eq!(gpu.load(), Err(CudaError::Forked));
                assert_eq!(engine.gpu(0).err(), Some(CudaError::Forked));
                let new = engine.commit(&listed(1));
                assert_eq!(new.gpu_tier(&gpu), Tier::Generic);
                assert_eq!(new.prepare(&gpu), Err(CudaError::Forked));
                let frees = calls("cuMemFree_v2");
                drop((new, committed, gpu, engine));
                assert_eq!(calls("cuMemFree_v2"), frees);
            };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends the child at once, with no destructors of the parent's state.
            unsafe { libc::_exit(i32::from(result.is_err())) };
        }
        let mut status = 0;
        // SAFETY: waits for the child that was just made.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        buffers.enqueue(&committed).unwrap();
    }
}
