//! When kernels are compiled, without a thread that does it.

use crate::child::{calls, compiling, let_compilations_end};
use crate::{Buffers, builder, listed, long_list, rows};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::in_child;
use dtc_runtime::{Policy, Range, Tier};
use std::sync::mpsc;
use std::time::{Duration, Instant};

in_child! {
    fn hosts_without_threads_compile_when_they_like(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).build();
        let gpu = engine.gpu(0).unwrap();
        let types = [engine.commit(&listed(0)), engine.commit(&listed(1)), engine.commit(&rows())];
        let buffers = Buffers::new(&gpu);
        for committed in &types {
            buffers.enqueue(committed).unwrap();
            assert_eq!(committed.gpu_tier(&gpu), Tier::Generic);
        }
        assert!(engine.compile_pending(Duration::ZERO) > 0);
        assert_eq!(engine.compile_pending(Duration::MAX), 0);
        for committed in &types {
            assert_eq!(committed.gpu_tier(&gpu), Tier::Specialised);
            buffers.enqueue(committed).unwrap();
        }
        assert_eq!(gpu.problem(), None);
    }

    fn long_lists_are_moved_as_described_at_first(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).build();
        let gpu = engine.gpu(0).unwrap();
        let (committed, buffers) = (engine.commit(&long_list()), Buffers::new(&gpu));
        for _ in 0..8 {
            buffers.enqueue(&committed).unwrap();
            assert_eq!(engine.cached_types(), 0);
            assert_eq!(engine.compile_pending(Duration::MAX), 0);
        }
        // No thread makes the canonical form, so this call does.
        buffers.enqueue(&committed).unwrap();
        assert_eq!(engine.cached_types(), 1);
        engine.compile_pending(Duration::MAX);
        assert_eq!(committed.gpu_tier(&gpu), Tier::Specialised);
    }

    fn the_background_makes_the_canonical_form(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).background_thread(true).build();
        let gpu = engine.gpu(0).unwrap();
        let (committed, buffers) = (engine.commit(&long_list()), Buffers::new(&gpu));
        buffers.enqueue(&committed).unwrap();
        engine.compile_pending(Duration::MAX);
        assert_eq!(engine.cached_types(), 0);
        buffers.enqueue(&committed).unwrap();
        let start = Instant::now();
        while engine.cached_types() == 0 && start.elapsed() < Duration::from_secs(20) {
            engine.compile_pending(Duration::MAX);
            // The call that finds it made keeps it.
            buffers.enqueue(&committed).unwrap();
        }
        assert_eq!(engine.cached_types(), 1);
    }

    fn lazy_kernels_come_after_their_uses(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Lazy(3)).build();
        let gpu = engine.gpu(0).unwrap();
        let committed = engine.commit(&listed(0));
        let buffers = Buffers::new(&gpu);
        let both = || {
            buffers.enqueue(&committed).unwrap();
            let (packed, memory) = (buffers.packed.address() as *const u8, buffers.memory.address() as *mut u8);
            // SAFETY: both buffers are long enough.
            unsafe { committed.at(memory, Range::elements(1).bytes(..4096)).unpack(packed).enqueue(&buffers.stream) }.unwrap();
            engine.compile_pending(Duration::MAX);
        };
        for _ in 0..3 {
            both();
            assert_eq!(committed.gpu_tier(&gpu), Tier::Generic);
        }
        both();
        assert_eq!(committed.gpu_tier(&gpu), Tier::Specialised);
    }

    fn policies_off_and_always_keep_their_word(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        for (policy, tier) in [(Policy::Off, Tier::Generic), (Policy::Always, Tier::Specialised)] {
            let engine = builder(policy).build();
            let gpu = engine.gpu(0).unwrap();
            let committed = engine.commit(&listed(0));
            assert_eq!(committed.prepare(&gpu), Ok(tier));
            let buffers = Buffers::new(&gpu);
            for _ in 0..200 {
                buffers.enqueue(&committed).unwrap();
            }
            assert_eq!(engine.compile_pending(Duration::MAX), 0);
            assert_eq!(committed.gpu_tier(&gpu), tier);
        }
    }

    fn others_need_not_wait_for_an_eager_compilation(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&["STUB_WAITS"])) {
        let engine = builder(Policy::Eager).build();
        let gpu = engine.gpu(0).unwrap();
        let pack = || {
            Buffers::new(&gpu).enqueue(&engine.commit(&listed(0))).unwrap();
            engine.commit(&listed(0)).gpu_tier(&gpu)
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(pack);
            while compiling() == 0 {
                std::thread::yield_now();
            }
            let (done, second) = mpsc::channel();
            scope.spawn(move || done.send(pack()).unwrap());
            let second = second.recv_timeout(Duration::from_secs(20));
            let_compilations_end();
            assert_eq!(second, Ok(Tier::Generic));
            assert_eq!(first.join().unwrap(), Tier::Specialised);
        });
        assert_eq!(compiling(), 1);
    }

    fn a_process_ends_when_the_background_is_out_of_the_compiler(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&["STUB_SLOW"])) {
        let engine = builder(Policy::Background).background_thread(true).build();
        let gpu = engine.gpu(0).unwrap();
        Buffers::new(&gpu).enqueue(&engine.commit(&listed(0))).unwrap();
        while compiling() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The process ends now, and the stub ends it by a signal if a compilation has not ended.
    }

    fn equal_types_share_their_kernels(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).build();
        let gpu = engine.gpu(0).unwrap();
        let first = engine.commit(&listed(0));
        first.prepare(&gpu).unwrap();
        let loads = calls("cuModuleLoadDataEx");
        let second = engine.commit(&listed(0));
        assert_eq!(second.prepare(&gpu), Ok(Tier::Specialised));
        assert_eq!(calls("cuModuleLoadDataEx"), loads);
    }

    fn two_devices_have_kernels_of_their_own(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Built(&[])) {
        let engine = builder(Policy::Background).build();
        let (first, second) = (engine.gpu(0).unwrap(), engine.gpu(1).unwrap());
        let committed = engine.commit(&listed(0));
        assert_eq!(committed.prepare(&second), Ok(Tier::Specialised));
        assert_eq!(committed.gpu_tier(&first), Tier::Generic);
        Buffers::new(&first).enqueue(&committed).unwrap();
        assert_eq!(committed.prepare(&first), Ok(Tier::Specialised));
    }

    fn an_empty_store_is_no_help(driver: Built(&["STUB_ANY_CODE"]), nvrtc: Absent) {
        let folder = tempfile::tempdir().unwrap();
        let config = dtc_runtime::store::Config::none().directory(folder.path().join("kernels"));
        let engine = builder(Policy::Background).store(config).build();
        let gpu = engine.gpu(0).unwrap();
        assert_eq!(engine.commit(&listed(0)).prepare(&gpu), Ok(Tier::Generic));
        assert!(gpu.problem().unwrap().is_absence());
    }
}
