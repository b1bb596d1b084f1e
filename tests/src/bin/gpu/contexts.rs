//! The current context belongs to the application: no call changes it.

use crate::buffers::Buffers;
use crate::harness::{Outcome, Tests, expect, text};
use crate::raw::Raw;
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::Range;
use dtc_runtime::cuda::{CaptureMode, Device, DeviceBuffer, Event, PinnedBuffer, Stream};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let one = on.clone();
    tests.add(format!("{}: a thread without a context", on.name), move || without(&one));
    let one = on.clone();
    tests.add(format!("{}: a thread with the context of GPU 0", on.name), move || with(&one));
}

fn without(on: &OnTier) -> Outcome {
    in_new_thread(|| {
        let current = Raw::get()?.current_context()?;
        expect(current == 0, || format!("a new thread has the context {current:#x}"))?;
        all_calls(on, 121)
    })
}

fn with(on: &OnTier) -> Outcome {
    in_new_thread(|| {
        let device = Device::get(0).map_err(text)?;
        let raw = Raw::get()?;
        {
            let _scope = device.scope().map_err(text)?;
            let inside = raw.current_context()?;
            expect(inside != 0, || "a scope has made no context current".to_owned())?;
            all_calls(on, 122)?;
        }
        let after = raw.current_context()?;
        expect(after == 0, || format!("after the scope the context is {after:#x}"))
    })
}

fn in_new_thread(work: impl FnOnce() -> Result<(), String> + Send) -> Outcome {
    let result = std::thread::scope(|scope| scope.spawn(work).join());
    Ok(result.map_err(|_| "the thread panicked")??)
}

/// Makes calls of every kind, and checks the current context after each.
fn all_calls(on: &OnTier, seed: u64) -> Result<(), String> {
    let raw = Raw::get()?;
    let before = raw.current_context()?;
    let unchanged = |call: &str| {
        let after = raw.current_context()?;
        expect(before == after, || format!("{call}: the current context was {before:#x} and is {after:#x}"))
    };
    let engine = on.fresh_engine();
    let gpu = engine.gpu(0).map_err(text)?;
    unchanged("opening a GPU")?;
    let committed = engine.commit(&types::listed(seed, 1000)?);
    unchanged("commit")?;
    let buffers = Buffers::new(&gpu, &committed, 1, seed)?;
    unchanged("allocating, writing and filling buffers")?;
    buffers.pack(&committed)?;
    unchanged("the first blocking pack")?;
    committed.prepare(&gpu).map_err(text)?;
    unchanged("prepare")?;
    committed.gpu_tier(&gpu);
    unchanged("asking for the tier")?;
    buffers.pack(&committed)?;
    unchanged("a blocking pack")?;
    let stream = Stream::new(gpu.device()).map_err(text)?;
    unchanged("a new stream")?;
    buffers.enqueue(&committed, &stream)?;
    unchanged("an enqueued pack")?;
    buffers.enqueue_unpack(&committed, &stream)?;
    unchanged("an enqueued unpack")?;
    stream.query().map_err(text)?;
    unchanged("asking a stream")?;
    stream.synchronize().map_err(text)?;
    unchanged("waiting for a stream")?;
    let total = buffers.expected.len();
    let mut request = buffers.start(&committed, 0, total)?;
    unchanged("starting a request")?;
    request.test().map_err(text)?;
    unchanged("testing a request")?;
    request.wait().map_err(text)?;
    unchanged("waiting for a request")?;
    drop(buffers.start(&committed, 0, total)?);
    unchanged("dropping a request")?;
    buffers.fragment(&committed, total / 3, total / 3, 1)?;
    unchanged("a blocking unpack")?;
    let event = Event::timed(gpu.device()).map_err(text)?;
    event.record(&stream).map_err(text)?;
    event.synchronize().map_err(text)?;
    event.elapsed_ms(&event).map_err(text)?;
    stream.wait_event(&event).map_err(text)?;
    drop(event);
    unchanged("events")?;
    stream.begin_capture(CaptureMode::ThreadLocal).map_err(text)?;
    unchanged("beginning a capture")?;
    buffers.enqueue(&committed, &stream)?;
    unchanged("a captured pack")?;
    let graph = stream.end_capture().map_err(text)?;
    unchanged("ending a capture")?;
    let executable = graph.instantiate().map_err(text)?;
    executable.launch(&stream).map_err(text)?;
    unchanged("launching a graph")?;
    stream.synchronize().map_err(text)?;
    drop((executable, graph));
    unchanged("dropping a graph")?;
    gpu.device().memory().map_err(text)?;
    gpu.device().synchronize().map_err(text)?;
    unchanged("asking a device")?;
    drop(PinnedBuffer::new(gpu.device(), 100).map_err(text)?);
    drop(DeviceBuffer::managed(gpu.device(), 100).map_err(text)?);
    unchanged("pinned and managed buffers")?;
    let mut host = vec![0u8; total];
    committed.pack(&buffers.host, Range::elements(1), &mut host).map_err(text)?;
    // SAFETY: both endpoints are host memory and long enough.
    let moved = unsafe {
        committed.at(buffers.host.as_ptr(), Range::elements(1).bytes(..total as u64)).pack(host.as_mut_ptr()).run()
    };
    moved.map_err(text)?;
    unchanged("a pack of host memory")?;
    buffers.check()?;
    drop((buffers, stream));
    unchanged("freeing buffers and streams")?;
    drop((committed, gpu, engine));
    unchanged("dropping types and engines")
}
