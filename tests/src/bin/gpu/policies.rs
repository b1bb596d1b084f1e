//! Policies: when the kernels of a type are compiled, and which kernel serves before.

use crate::buffers::Buffers;
use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::cuda::{Nvrtc, Stream};
use dtc_runtime::store::Config;
use dtc_runtime::{Committed, Engine, Gpu, Policy, Tier};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub fn add(tests: &mut Tests, compiled: &OnTier) {
    let on = compiled.clone();
    tests.add("compiled: is compiled", move || is_compiled(&on));
    tests.add("policy: the background takes over", background);
    tests.add("policy: the background, when requested to prepare", prepared);
    tests.add("policy: lazy", lazy);
    tests.add("policy: off", off);
    tests.add("policy: without a thread", without_thread);
}

/// An engine with an empty store.
fn engine(policy: Policy, thread: bool) -> Result<(Engine, Gpu), Fault> {
    if let Err(error) = Nvrtc::get() {
        return Err(Fault::Skipped(error.to_string()));
    }
    let engine = Engine::builder().policy(policy).background_thread(thread).store(Config::none()).build();
    let gpu = engine.gpu(0).map_err(text)?;
    gpu.load().map_err(text)?;
    Ok((engine, gpu))
}

fn expect_tier(committed: &Committed, gpu: &Gpu, expected: Tier, when: &str) -> Result<(), String> {
    let tier = committed.gpu_tier(gpu);
    expect(tier == expected, || format!("{when}: {tier}, expected {expected}; problem: {:?}", gpu.problem()))
}

/// Waits for the compiled kernels; returns the time it took.
fn wait_for_kernels(committed: &Committed, gpu: &Gpu, limit: Duration) -> Result<Duration, String> {
    let start = Instant::now();
    while committed.gpu_tier(gpu) == Tier::Generic {
        expect(start.elapsed() < limit, || format!("still generic after {limit:?}; problem: {:?}", gpu.problem()))?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(start.elapsed())
}

/// The compiled tier serves.
fn is_compiled(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(9, 5000)?);
    let tier = committed.prepare(&on.gpu).map_err(text)?;
    Ok(expect(tier == Tier::Specialised, || format!("{tier}; problem: {:?}", on.gpu.problem()))?)
}

/// The first packs are generic; within 5 s compiled kernels serve. Four threads pack all the time, and every pack is
/// right.
fn background() -> Outcome {
    let (engine, gpu) = engine(Policy::Background, true)?;
    let committed = engine.commit(&types::listed(71, 5000)?);
    let mut first = Buffers::new(&gpu, &committed, 1, 70)?;
    first.pack(&committed)?;
    expect_tier(&committed, &gpu, Tier::Generic, "after the first pack")?;
    first.check()?;
    let (stop, packs) = (AtomicBool::new(false), AtomicU64::new(0));
    let work = |seed: u64| -> Result<(), String> {
        let mut buffers = Buffers::new(&gpu, &committed, 1, seed)?;
        let stream = Stream::new(gpu.device()).map_err(text)?;
        while !stop.load(Ordering::Relaxed) {
            buffers.poison()?;
            buffers.enqueue(&committed, &stream)?;
            stream.synchronize().map_err(text)?;
            let number = packs.fetch_add(1, Ordering::Relaxed);
            buffers.check().map_err(|fault| format!("pack {number}, {}: {fault}", committed.gpu_tier(&gpu)))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..4).map(|seed| scope.spawn(move || work(seed))).collect();
        let waited = wait_for_kernels(&committed, &gpu, Duration::from_secs(5));
        let before = packs.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)?;
        let after = packs.load(Ordering::Relaxed) - before;
        println!("  compiled kernels took over after {waited:?}, {before} packs before and {after} after");
        waited.map(drop)
    })?;
    Ok(first.pack_and_check(&committed)?)
}

/// `prepare` waits for the compiler.
fn prepared() -> Outcome {
    let (engine, gpu) = engine(Policy::Background, true)?;
    let committed = engine.commit(&types::listed(72, 1000)?);
    let start = Instant::now();
    committed.prepare(&gpu).map_err(text)?;
    println!("  prepared in {:?}, with nothing in a store", start.elapsed());
    expect_tier(&committed, &gpu, Tier::Specialised, "after prepare")?;
    Ok(Buffers::new(&gpu, &committed, 1, 73)?.pack_and_check(&committed)?)
}

/// Kernels are compiled after the requested number of uses, not before.
fn lazy() -> Outcome {
    const USES: u32 = 4;
    let (engine, gpu) = engine(Policy::Lazy(USES), true)?;
    let committed = engine.commit(&types::listed(74, 1000)?);
    let mut buffers = Buffers::new(&gpu, &committed, 1, 75)?;
    let stream = Stream::new(gpu.device()).map_err(text)?;
    let mut both = || -> Result<(), String> {
        buffers.pack_and_check(&committed)?;
        // The unpack writes the same bytes back.
        buffers.enqueue_unpack(&committed, &stream)?;
        stream.synchronize().map_err(text)
    };
    for number in 1..=USES {
        both()?;
        std::thread::sleep(Duration::from_millis(150));
        expect_tier(&committed, &gpu, Tier::Generic, &format!("after {number} of {USES} uses"))?;
    }
    both()?;
    wait_for_kernels(&committed, &gpu, Duration::from_secs(5))?;
    Ok(both()?)
}

/// Kernels are never compiled.
fn off() -> Outcome {
    let (engine, gpu) = engine(Policy::Off, true)?;
    let committed = engine.commit(&types::listed(76, 1000)?);
    committed.prepare(&gpu).map_err(text)?;
    let mut buffers = Buffers::new(&gpu, &committed, 1, 77)?;
    for _ in 0..20 {
        buffers.pack_and_check(&committed)?;
    }
    std::thread::sleep(Duration::from_millis(200));
    Ok(expect_tier(&committed, &gpu, Tier::Generic, "with the policy off")?)
}

/// An application that forbids threads decides when to compile.
fn without_thread() -> Outcome {
    let (engine, gpu) = engine(Policy::Background, false)?;
    let committed = engine.commit(&types::listed(78, 1000)?);
    let mut buffers = Buffers::new(&gpu, &committed, 1, 79)?;
    buffers.pack_and_check(&committed)?;
    std::thread::sleep(Duration::from_millis(200));
    expect_tier(&committed, &gpu, Tier::Generic, "before it was requested to compile")?;
    let left = engine.compile_pending(Duration::from_secs(20));
    expect(left == 0, || format!("{left} jobs are left"))?;
    expect_tier(&committed, &gpu, Tier::Specialised, "after it was requested to compile")?;
    Ok(buffers.pack_and_check(&committed)?)
}
