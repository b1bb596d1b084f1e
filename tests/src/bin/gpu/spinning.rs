//! Calls while a kernel runs on another CUDA stream and ends only after them: a call that waits for the kernel never
//! returns.

use crate::buffers::{Buffers, expect_equal, random_buffer, wait_within};
use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::raw::{Spinner, StreamKind};
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::{Committed, Engine, Gpu, Policy, Tier};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Time limit of all steps; some compile.
const LIMIT: Duration = Duration::from_secs(20);

/// Launch of the spinning kernel.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Blocks for each multiprocessor; `None` is a single block.
    blocks: u32,
    kind: StreamKind,
    /// Whether the engine opened the GPU just before and has done nothing there yet.
    fresh: bool,
}

const CASES: [Case; 5] = [
    Case { name: "one block", blocks: 0, kind: StreamKind::NonBlocking, fresh: false },
    Case { name: "a full grid", blocks: 4, kind: StreamKind::NonBlocking, fresh: false },
    Case { name: "one block, in a new engine", blocks: 0, kind: StreamKind::NonBlocking, fresh: true },
    Case { name: "a full grid, in a new engine", blocks: 4, kind: StreamKind::NonBlocking, fresh: true },
    Case { name: "a blocking stream, in a new engine", blocks: 0, kind: StreamKind::Blocking, fresh: true },
];

pub fn add(tests: &mut Tests, on: &OnTier) {
    for (index, case) in CASES.into_iter().enumerate() {
        let on = on.clone();
        tests.add(format!("{}: while a kernel spins: {}", on.name, case.name), move || {
            commits_and_packs(&on, case, 100 + index as u64)
        });
    }
    // Preparing kernels waits for the compiler, and loading them waits for the spinning kernel.
    if !on.is_compiled() {
        let one = on.clone();
        tests.add(format!("{}: while a kernel spins: types are dropped", on.name), move || drops(&one));
    }
    let one = on.clone();
    tests.add(format!("{}: an engine is dropped behind its own pack", on.name), move || engine_dropped(&one));
}

/// The current step, for the message if it never ends.
struct Step(Mutex<&'static str>);

impl Step {
    fn now(&self, step: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }
}

/// Runs steps in another thread while a kernel spins, and reports the step that got stuck. Their result is dropped
/// after the kernel has ended.
fn while_spinning<T: Send>(
    gpu: &Gpu,
    case: Case,
    steps: impl FnOnce(&Step) -> Result<T, String> + Send,
) -> Result<T, Fault> {
    let spinner = Spinner::start(gpu, case.blocks.max(1) * blocks_of(gpu, case), case.kind)?;
    let step = Step(Mutex::new("its begin"));
    let (result, stuck) = std::thread::scope(|scope| {
        let (done, receiver) = mpsc::channel();
        let worker = scope.spawn(|| {
            let result = steps(&step);
            let _ = done.send(());
            drop(done);
            result
        });
        // A thread that panics never reports its end, and must be told from one that is stuck.
        let start = Instant::now();
        while receiver.try_recv().is_err() && !worker.is_finished() && start.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_micros(200));
        }
        let stuck = (start.elapsed() >= LIMIT).then(|| *step.0.lock().unwrap_or_else(PoisonError::into_inner));
        spinner.release();
        (worker.join(), stuck)
    });
    spinner.finish()?;
    if let Some(step) = stuck {
        return Err(Fault::from(format!("deadlock: stuck for {LIMIT:?} in {step}, until the kernel was told to end")));
    }
    Ok(result.map_err(|_| "the steps panicked")??)
}

fn blocks_of(gpu: &Gpu, case: Case) -> u32 {
    if case.blocks == 0 { 1 } else { gpu.device().info().multiprocessors }
}

/// Commits, prepares and packs a type, on a stream and by a request.
fn commits_and_packs(on: &OnTier, case: Case, seed: u64) -> Outcome {
    // Allocations of the test may wait for the device, so they are done before.
    let datatype = types::listed(seed, 5000)?;
    let model = Engine::builder().policy(Policy::Off).build().commit(&datatype);
    let mut buffers = Buffers::new(&on.gpu, &model, 1, seed)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    buffers.poison()?;
    // Code is loaded only while nothing runs, so the background installs compiled kernels after the spinning kernel.
    let policy = if on.is_compiled() { Policy::Background } else { Policy::Off };
    let engine =
        if case.fresh || on.is_compiled() { Engine::builder().policy(policy).build() } else { on.engine.clone() };
    let gpu = engine.gpu(0).map_err(text)?;
    let steps = |step: &Step| -> Result<Committed, String> {
        step.now("commit");
        let committed = engine.commit(&datatype);
        step.now("the first enqueued pack");
        buffers.enqueue(&committed, &stream)?;
        step.now("waiting for the first enqueued pack");
        wait_within(&stream, LIMIT)?;
        // By now the background waits to load the compiled code.
        std::thread::sleep(Duration::from_millis(300));
        step.now("the second enqueued pack");
        buffers.enqueue(&committed, &stream)?;
        step.now("waiting for the second enqueued pack");
        wait_within(&stream, LIMIT)?;
        if case.kind == StreamKind::NonBlocking {
            step.now("starting a request");
            let mut request = buffers.start(&committed, 0, buffers.expected.len())?;
            step.now("testing a request");
            let start = Instant::now();
            while !request.test().map_err(text)? {
                expect(start.elapsed() < LIMIT, || "a request was not done in time".to_owned())?;
            }
            step.now("waiting for a request that is done");
            request.wait().map_err(text)?;
            step.now("a blocking pack");
            buffers.pack(&committed)?;
        }
        Ok(committed)
    };
    let committed = while_spinning(&on.gpu, case, steps)?;
    buffers.check()?;
    if on.is_compiled() {
        let start = Instant::now();
        while committed.gpu_tier(&gpu) == Tier::Generic {
            expect(start.elapsed() < LIMIT, || format!("no kernel came afterwards: {:?}", gpu.problem()))?;
            std::thread::sleep(Duration::from_millis(1));
        }
        buffers.pack(&committed)?;
        buffers.check()?;
    }
    Ok(())
}

/// Types that are used once and dropped, enough that some are freed, do not delay later packs.
fn drops(on: &OnTier) -> Outcome {
    let case = CASES[0];
    let engine = Engine::builder().policy(on.policy).cache_caps(8, 64 << 20).build();
    let gpu = engine.gpu(0).map_err(text)?;
    let last = engine.commit(&types::rows(400)?);
    last.prepare(&gpu).map_err(text)?;
    let first = engine.commit(&types::listed(3000, 40)?);
    let buffers = Buffers::new(&gpu, &first, 1, 1)?;
    let last_buffers = Buffers::new(&gpu, &last, 1, 2)?;
    let stream = Stream::new(gpu.device()).map_err(text)?;
    let datatypes = (0..400).map(|seed| types::listed(3000 + seed, 40)).collect::<Result<Vec<_>, _>>()?;
    let steps = |step: &Step| -> Result<(), String> {
        step.now("preparing and dropping types");
        for datatype in &datatypes {
            engine.commit(datatype).prepare(&gpu).map_err(text)?;
        }
        // The background needs time to begin its waiting.
        std::thread::sleep(Duration::from_millis(100));
        step.now("a pack of the type that is left");
        last_buffers.enqueue(&last, &stream)?;
        step.now("waiting for the pack of the type that is left");
        wait_within(&stream, LIMIT)?;
        step.now("committing one of the types again");
        let again = engine.commit(&datatypes[0]);
        step.now("a pack of one of the types again");
        buffers.enqueue(&again, &stream)?;
        step.now("waiting for the pack of one of the types again");
        wait_within(&stream, LIMIT)
    };
    while_spinning(&gpu, case, steps)?;
    last_buffers.check()?;
    Ok(buffers.check()?)
}

/// A pack waits for a kernel; meanwhile type, GPU and engine are dropped, and others allocate the free memory.
fn engine_dropped(on: &OnTier) -> Outcome {
    for datatype in [types::listed(61, 3000)?, types::rows(61)?] {
        let engine = on.fresh_engine();
        let gpu = engine.gpu(0).map_err(text)?;
        let committed = engine.commit(&datatype);
        committed.prepare(&gpu).map_err(text)?;
        let buffers = Buffers::new(&gpu, &committed, 1, 62)?;
        let spinner = Spinner::start(&on.gpu, 1, StreamKind::NonBlocking)?;
        let stream = spinner.stream();
        buffers.enqueue(&committed, &stream)?;
        let others = std::thread::scope(|scope| {
            scope.spawn(move || drop((committed, gpu, engine)));
            // It reuses freed memory, if there is any. If the allocation waits for the kernel, the kernel does not wait
            // for it.
            let others = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                (0..8).map(|seed| random_buffer(&on.gpu, 64 << 10, seed)).collect::<Result<Vec<_>, _>>()
            });
            std::thread::sleep(Duration::from_millis(200));
            spinner.release();
            others.join().map_err(|_| "a thread panicked".to_owned())?
        })?;
        wait_within(&stream, LIMIT)?;
        drop(stream);
        spinner.finish()?;
        buffers.check()?;
        for (buffer, host) in &others {
            let mut now = vec![0u8; DeviceBuffer::len(buffer)];
            buffer.read(0, &mut now).map_err(text)?;
            expect_equal("memory of others", &now, host)?;
        }
    }
    Ok(())
}
