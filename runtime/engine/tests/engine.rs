//! Engines over time: policies, caches, threads, forks.

use dtc_compiler::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder, TypeId, text};
use dtc_runtime::{Engine, Memory, MemoryMut, PackError, Policy, Range, Tier};
use std::time::{Duration, Instant};

/// A record with holes, repeated: a type that gains by a kernel. `variant` makes it another type.
fn records(variant: i64) -> Datatype {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let int = types.named(Predefined::INT);
    let character = types.named(Predefined::CHAR);
    let record = types.structure(&[1, 1, 1], &[0, 12, 20 + variant], &[double, int, character]).unwrap();
    let record = types.resized(0, 64 + variant, record).unwrap();
    let records = types.contiguous(20, record).unwrap();
    types.finish(records).unwrap()
}

fn memory(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Packs with a committed type and compares every byte with the walk of its layout.
fn check(committed: &dtc_runtime::Committed, count: u64) {
    let (_, high) = committed.span(count).unwrap();
    let source = memory(high as usize);
    let mut packed = vec![0u8; committed.packed_size(count).unwrap()];
    committed.pack(&source, Range::elements(count), &mut packed).unwrap();
    let extent = committed.facts().extent();
    let layout = committed.layout();
    let map = (0..count as i64).flat_map(|element| layout.displacements().map(move |at| at + element * extent));
    assert!(map.map(|at| source[at as usize]).eq(packed.iter().copied()));
}

/// Columns whose neighbours are elements of a call: a few are moved by the kernel, many as one nest that is transposed.
#[test]
fn neighbouring_columns_are_moved_for_any_count() {
    let engine = Engine::builder().policy(Policy::Eager).background_thread(false).build();
    for (element, bytes) in [(Predefined::SHORT, 2), (Predefined::FLOAT, 4), (Predefined::DOUBLE, 8)] {
        for rows in [2, 3, 8, 16] {
            let mut types = TypeBuilder::new();
            let element = types.named(element);
            let column = types.hvector(rows, 1, 150 * bytes, element).unwrap();
            let column = types.resized(0, bytes, column).unwrap();
            let committed = engine.commit(&types.finish(column).unwrap());
            assert_eq!(committed.tier(), Tier::Specialised);
            for count in [1, 2, 15, 16, 17, 31, 32, 33, 64, 85, 86, 128, 129, 150] {
                check(&committed, count);
                let packed = memory(committed.packed_size(count).unwrap());
                let mut unpacked = vec![0; committed.span(count).unwrap().1 as usize];
                committed.unpack(&packed, Range::elements(count), &mut unpacked).unwrap();
                let mut again = vec![0; packed.len()];
                committed.pack(&unpacked, Range::elements(count), &mut again).unwrap();
                assert_eq!(packed, again, "{count} columns of {rows} x {bytes} bytes");
            }
        }
    }
}

#[test]
fn the_background_delivers_a_kernel() {
    let committed = Engine::new().commit(&records(0));
    let start = Instant::now();
    while committed.tier() == Tier::Generic {
        check(&committed, 2);
        assert!(start.elapsed() < Duration::from_secs(30), "no kernel came");
    }
    check(&committed, 3);
}

#[test]
fn a_type_that_is_used_a_few_times_is_not_brought_into_its_canonical_form() {
    let engine = Engine::builder().background_thread(false).build();
    let committed = engine.commit(&records(0));
    let other = committed.clone();
    let (_, high) = committed.span(2).unwrap();
    let source = memory(high as usize);
    let size = committed.packed_size(2).unwrap();
    let (mut first, mut later) = (vec![0u8; size], vec![0u8; size]);
    for offset in [0, 1, 300] {
        committed.pack(&source, Range::elements(2).bytes(offset..), &mut first[offset as usize..]).unwrap();
    }
    assert_eq!(engine.cached_types(), 0);
    // Used on, by another handle of the same type, it is committed, and moves the same bytes.
    for _ in 0..100 {
        later.fill(0);
        other.pack(&source, Range::elements(2), &mut later).unwrap();
        assert_eq!(first, later);
    }
    assert_eq!(engine.cached_types(), 1);
    assert_eq!(committed.type_hash(), other.type_hash());
    // A type that takes long as described is committed by its first pack.
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let long = types.vector(100_000, 1, 2, double).unwrap();
    let long = engine.commit(&types.finish(long).unwrap());
    long.pack(&memory(1_600_000), Range::elements(1), &mut [0u8; 800_000]).unwrap();
    assert_eq!(engine.cached_types(), 2);
}

#[test]
fn policies_decide_when_types_are_made_canonical() {
    let policies = [(Policy::Eager, 1, 1), (Policy::Always, 1, 1), (Policy::Lazy(3), 0, 1), (Policy::Off, 0, 0)];
    for (policy, committed, packed) in policies.into_iter().chain([(Policy::Background, 0, 0)]) {
        let engine = Engine::builder().policy(policy).background_thread(false).build();
        let records = engine.commit(&records(0));
        assert_eq!(engine.cached_types(), committed, "{policy:?}");
        let (_, end) = records.span(1).unwrap();
        let mut bytes = vec![0u8; records.facts().size as usize];
        records.pack(&memory(end as usize), Range::elements(1), &mut bytes).unwrap();
        assert_eq!(engine.cached_types(), packed, "{policy:?}");
    }
}

#[test]
fn a_lazy_kernel_comes_after_its_uses() {
    let engine = Engine::builder().policy(Policy::Lazy(3)).background_thread(false).build();
    let committed = engine.commit(&records(1));
    for _ in 0..3 {
        check(&committed, 1);
        engine.compile_pending(Duration::MAX);
        assert_eq!(committed.tier(), Tier::Generic);
    }
    check(&committed, 1);
    engine.compile_pending(Duration::MAX);
    assert_eq!(committed.tier(), Tier::Specialised);
    check(&committed, 1);
}

#[test]
fn hosts_without_threads_compile_when_they_like() {
    let engine = Engine::builder().background_thread(false).build();
    let types: Vec<_> = (0..5).map(|variant| engine.commit(&records(variant))).collect();
    assert_eq!(engine.compile_pending(Duration::ZERO), 0);
    types.iter().for_each(|committed| {
        committed.plan();
    });
    assert!(types.iter().all(|committed| committed.tier() == Tier::Generic));
    assert_eq!(engine.compile_pending(Duration::ZERO), 4);
    assert_eq!(engine.compile_pending(Duration::MAX), 0);
    assert!(types.iter().all(|committed| committed.tier() == Tier::Specialised));
}

#[test]
fn policies_off_and_eager_keep_their_word() {
    let tier = |policy| Engine::builder().policy(policy).build().commit(&records(2)).tier();
    assert_eq!(tier(Policy::Off), Tier::Generic);
    assert_eq!(tier(Policy::Eager), Tier::Specialised);
}

#[test]
fn equal_types_share_one_kernel() {
    let engine = Engine::builder().policy(Policy::Off).build();
    let (first, second) = (engine.commit(&records(3)), engine.commit(&records(3)));
    assert_eq!((first.plan().size(), engine.cached_types()), (second.plan().size(), 1));
    assert_eq!(first.specialise(), Tier::Specialised);
    assert_eq!(second.tier(), Tier::Specialised);
}

#[test]
fn equal_types_have_reports_of_their_own() {
    let engine = Engine::new();
    let commit = |notation: &str| engine.commit(&text::parse(notation).unwrap());
    let (vector, list) = (commit("vector 3 1 2 int"), commit("indexed_block 1 [0, 2, 4] int"));
    assert_eq!((vector.type_hash(), engine.cached_types()), (list.type_hash(), 1));
    let (vector_stages, list_stages) = (vector.pipeline(), list.pipeline());
    assert_ne!(vector_stages.report(), list_stages.report());
    assert!(list_stages.report().fired().iter().any(|&(pass, _)| pass == "detect-period"), "{}", list_stages.report());
    for stages in [vector_stages, list_stages] {
        assert_eq!((stages.hash(), stages.layout().to_string()), (list.type_hash(), list.layout().to_string()));
    }
}

#[test]
fn short_calls_stay_right_while_thunks_are_made() {
    type Build = fn(&mut TypeBuilder, TypeId) -> Result<TypeId, DatatypeError>;
    let builds: [Build; 7] = [
        |types, double| types.contiguous(7, double),
        |types, double| types.vector(6, 5, 9, double),
        |types, double| types.hvector(40, 2, -200, double),
        |types, double| types.vector(6, 5, 9, double).and_then(|rows| types.hvector(4, 1, 800, rows)),
        |types, double| types.vector(4, 1, -1, double).and_then(|row| types.hvector(37, 1, 200, row)),
        |types, double| types.indexed_block(2, &(0..90).map(|at| at * (200 - at)).collect::<Vec<_>>(), double),
        |types, double| {
            let lengths: Vec<i64> = (0..90).map(|at| 1 + at * at % 7).collect();
            types.indexed(&lengths, &(0..90).map(|at| at * 9 + at % 2).collect::<Vec<_>>(), double)
        },
    ];
    let engine = Engine::builder().background_thread(false).build();
    for build in builds {
        let mut types = TypeBuilder::new();
        let double = types.named(Predefined::DOUBLE);
        let built = build(&mut types, double).unwrap();
        let committed = engine.commit(&types.finish(built).unwrap());
        let (low, high) = committed.span(1).unwrap();
        let (origin, length) = (-low.min(0) as usize, (high - low.min(0)) as usize);
        let source = memory(length);
        let displacements: Vec<usize> =
            committed.layout().displacements().map(|at| (at + origin as i64) as usize).collect();
        let wanted: Vec<u8> = displacements.iter().map(|&at| source[at]).collect();
        let mut unpacked = vec![0x5a_u8; length];
        displacements.iter().for_each(|&at| unpacked[at] = source[at]);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let (mut packed, mut image) = (vec![0u8; wanted.len()], vec![0x5a_u8; length]);
                        committed.pack(Memory::at(&source, origin), Range::elements(1), &mut packed).unwrap();
                        assert_eq!(packed, wanted);
                        committed.unpack(&packed, Range::elements(1), MemoryMut::at(&mut image, origin)).unwrap();
                        assert_eq!(image, unpacked);
                    }
                });
            }
        });
    }
}

#[test]
fn types_in_use_outlive_the_cache() {
    let engine = Engine::builder().policy(Policy::Eager).cache_caps(4, 1 << 16).build();
    let held: Vec<_> = (0..20).map(|variant| engine.commit(&records(variant))).collect();
    (100..200).for_each(|variant| drop(engine.commit(&records(variant))));
    drop(engine);
    held.iter().for_each(|committed| check(committed, 2));
}

#[test]
fn several_threads_share_a_pack_when_asked() {
    let engine = Engine::new();
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let vector = types.vector(30_000, 3, 4, double).unwrap();
    let committed = engine.commit(&types.finish(vector).unwrap());
    let source = memory(committed.span(2).unwrap().1 as usize);
    let total = committed.packed_size(2).unwrap();
    let mut expected = vec![0u8; total];
    committed.pack(&source, Range::elements(2), &mut expected).unwrap();
    for threads in [0, 1, 2, 3, 7, 64] {
        let mut packed = vec![0xa5_u8; total + 3];
        assert_eq!(committed.pack_parallel(&source, Range::elements(2), &mut packed, threads), Ok(total));
        assert_eq!(packed[..total], expected);
        assert_eq!(packed[total..], [0xa5; 3]);
        let (mut restored, mut alone) = (vec![0x5a_u8; source.len()], vec![0x5a_u8; source.len()]);
        assert_eq!(committed.unpack_parallel(&packed, Range::elements(2), &mut restored, threads), Ok(total));
        committed.unpack(&packed, Range::elements(2), &mut alone).unwrap();
        assert_eq!(restored, alone);
    }
}

#[test]
fn a_forked_child_packs_without_the_engine() {
    let engine = Engine::new();
    let before = engine.commit(&records(4));
    check(&before, 1);
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let rows = types.vector(12, 5, 14, double).unwrap();
    let rows = engine.commit(&types.finish(rows).unwrap());
    // SAFETY: the child calls only what this test is about, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            check(&before, 2);
            // So often that thunks are made.
            (0..2000).for_each(|_| check(&rows, 1));
            check(&engine.commit(&records(4)), 2);
            let new = engine.commit(&records(5));
            check(&new, 2);
            assert_eq!(new.tier(), Tier::Generic);
        }));
        // SAFETY: ends the child at once, with no destructors of the parent's state.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: waits for the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}

/// Whoever holds the lock of the loader's list at a fork holds it for ever in the child: the C library does not release it.
#[test]
#[cfg(target_os = "linux")]
fn a_forked_child_packs_while_the_loader_is_locked() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn stay(_: *mut libc::dl_phdr_info, _: usize, _: *mut std::ffi::c_void) -> std::ffi::c_int {
        INSIDE.store(true, Ordering::SeqCst);
        while !DONE.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        1
    }
    let committed = Engine::new().commit(&records(7));
    let (source, mut packed) = (memory(71 * 20), [0; 13 * 20]);
    // SAFETY: both sides are as long as the type, and the child leaves by `_exit` or a signal.
    let pack = |packed: &mut [u8]| unsafe {
        committed.at(source.as_ptr(), Range::elements(1).bytes(..260)).pack(packed.as_mut_ptr()).run()
    };
    // SAFETY: the callback touches two atomics.
    let holder = std::thread::spawn(|| unsafe { libc::dl_iterate_phdr(Some(stay), std::ptr::null_mut()) });
    while !INSIDE.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    // SAFETY: the child calls `alarm`, packs and leaves by `_exit`. If a pack waited for the loader's lock, the alarm would end it.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child if it waits for ever.
        unsafe { libc::alarm(20) };
        let moved = pack(&mut packed);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!matches!(moved, Ok(260)) || pack(&mut packed).is_err())) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    DONE.store(true, Ordering::SeqCst);
    holder.join().unwrap();
    assert_eq!(status, 0, "the child waited for the loader");
    assert_eq!(pack(&mut packed).unwrap(), 260);
}

#[test]
fn the_background_leaves_signals_to_the_application() {
    // SAFETY: the child leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A thread of the engine is there, and idle.
        let committed = Engine::new().commit(&records(6));
        committed.plan();
        while committed.tier() == Tier::Generic {
            std::thread::yield_now();
        }
        // SAFETY: the set is initialised before it is read, and the signal is for this process.
        unsafe {
            let (mut set, mut taken) = (std::mem::zeroed(), 0);
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGUSR1);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            libc::kill(libc::getpid(), libc::SIGUSR1);
            libc::sigwait(&set, &mut taken);
            libc::_exit(i32::from(taken != libc::SIGUSR1));
        }
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the signal was taken by a thread of the engine");
}

#[test]
fn calls_that_do_not_fit_are_refused_and_do_nothing() {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let backwards = types.vector(3, 1, -2, int).unwrap();
    let committed = Engine::new().commit(&types.finish(backwards).unwrap());
    let (source, mut packed) = (memory(20), [0xa5_u8; 12]);
    let refused = |result: Result<usize, PackError>, text: &str| assert_eq!(result.unwrap_err().to_string(), text);
    refused(
        committed.pack(Memory::at(&source, 15), Range::elements(1), &mut packed),
        "buffer: expected -16 to 4 bytes from the origin to lie inside, found 15 bytes before it and 5 bytes after it",
    );
    refused(
        committed.pack(Memory::at(&source, 21), Range::elements(1), &mut packed),
        "origin: expected at most 20, found 21",
    );
    refused(
        committed.pack(Memory::at(&source, 16), Range::elements(1).bytes(13..), &mut packed),
        "offset: expected at most 12, found 13",
    );
    let most = i64::MAX as u64 / 12;
    refused(
        committed.pack(Memory::at(&source, 16), Range::elements(u64::MAX), &mut packed),
        &format!("count: expected at most {most} elements, found {}", u64::MAX),
    );
    assert!(committed.pack(Memory::at(&source, 16), Range::elements(2), &mut packed).is_err());
    assert_eq!(packed, [0xa5; 12]);
    assert_eq!(committed.pack(Memory::at(&source, 16), Range::elements(1).bytes(12..), &mut packed), Ok(0));
    assert_eq!(committed.pack(Memory::at(&source, 16), Range::elements(1), &mut packed), Ok(12));
    assert_eq!(committed.pack(&[0u8; 0], Range::elements(0), &mut packed), Ok(0));
}

#[test]
fn memory_and_packed_bytes_are_typed_slices() {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let column = types.vector(3, 1, 4, double).unwrap();
    let column = Engine::new().commit(&types.finish(column).unwrap());
    let matrix: [[f64; 4]; 3] = std::array::from_fn(|row| std::array::from_fn(|at| (10 * row + at) as f64));

    // Origins count elements of the slice, bytes of the range count packed bytes.
    let mut packed = [0.0; 3];
    assert_eq!(column.pack(&matrix, Range::elements(1), &mut packed), Ok(24));
    assert_eq!(packed, [0.0, 10.0, 20.0]);
    let flat = matrix.as_flattened();
    assert_eq!(column.pack(Memory::at(flat, 3), Range::elements(1).bytes(8..), &mut packed), Ok(16));
    assert_eq!(packed, [13.0, 23.0, 20.0]);
    let origin = PackError::Origin { origin: 13 * 8, length: 12 * 8 };
    assert_eq!(column.pack(Memory::at(flat, 13), Range::elements(1), &mut packed), Err(origin));

    // A range ends where it says, though there were room for more.
    let mut restored = vec![-1.0; 12];
    let second = Range::elements(1).bytes(8..16);
    assert_eq!(column.unpack(&packed, second, MemoryMut::at(&mut restored, 1)), Ok(8));
    assert_eq!(restored.iter().position(|&double| double == 13.0), Some(5));
    assert_eq!(restored.iter().filter(|&&double| double == -1.0).count(), 11);
    assert_eq!(column.pack(&matrix, second.fragment(16, 0), &mut packed), Ok(0));
    let backwards = std::ops::Bound::Excluded(8);
    assert_eq!(column.pack(&matrix, second.bytes((std::ops::Bound::Included(16), backwards)), &mut packed), Ok(0));
}

#[test]
fn long_lists_that_are_made_again_share_an_entry() {
    let engine = Engine::new();
    let made = |changed: Option<usize>| {
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let mut places: Vec<i64> = (0..5000).map(|at| at * 40 + at * at % 7).collect();
        if let Some(changed) = changed {
            places[changed] += 1;
        }
        let list = types.hindexed_block(9, &places, byte).unwrap();
        engine.commit(&types.finish(list).unwrap())
    };
    let (one, again) = (made(None), made(None));
    assert!(std::ptr::eq(one.plan(), again.plan()));
    // Whether an entry is in the sample or not, another list is another type.
    for changed in (0..5000).step_by(37) {
        assert_ne!(made(Some(changed)).type_hash(), one.type_hash(), "{changed}");
    }
    // By now the first description is forgotten, and its type is found by its hash.
    assert!(std::ptr::eq(one.plan(), made(None).plan()));
}
