//! Packs captured into CUDA graphs.

use crate::buffers::{Buffers, random_bytes};
use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::cuda::{CaptureMode, CaptureStatus, GraphExecutable, Stream};
use dtc_runtime::{Engine, Range, Tier};
use std::time::Duration;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let one = on.clone();
    tests.add(format!("{}: captured into a graph", on.name), move || captured(&one));
    for (name, mode) in MODES {
        let on = on.clone();
        tests.add(format!("{}: captured beside the background: mode {name}", on.name), move || beside(&on, mode));
    }
    let on = on.clone();
    tests.add(format!("{}: captured before its first use", on.name), move || unprepared(&on));
}

const MODES: [(&str, CaptureMode); 3] =
    [("global", CaptureMode::Global), ("thread-local", CaptureMode::ThreadLocal), ("relaxed", CaptureMode::Relaxed)];

/// Launches a graph on several sets of data.
fn replay(executable: &GraphExecutable, stream: &Stream, buffers: &mut Buffers, expected: &[Vec<u8>]) -> Outcome {
    for (seed, expected) in expected.iter().enumerate() {
        buffers.memory.write(0, &random_bytes(buffers.host.len(), seed as u64)).map_err(text)?;
        buffers.poison()?;
        executable.launch(stream).map_err(text)?;
        stream.synchronize().map_err(text)?;
        buffers.expected.clone_from(expected);
        buffers.check().map_err(|fault| format!("replay {seed}: {fault}"))?;
    }
    Ok(())
}

/// The CPU's packed bytes for the data of [`replay`].
fn expectations(committed: &dtc_runtime::Committed, buffers: &Buffers) -> Result<Vec<Vec<u8>>, String> {
    let pack = |seed| {
        let mut packed = vec![0u8; buffers.expected.len()];
        committed.pack(&random_bytes(buffers.host.len(), seed), Range::elements(1), &mut packed).map_err(text)?;
        Ok(packed)
    };
    (0..3).map(pack).collect()
}

/// A graph replays a pack, also after the type was dropped.
fn captured(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(9, 5000)?);
    committed.prepare(&on.gpu).map_err(text)?;
    let mut buffers = Buffers::new(&on.gpu, &committed, 1, 1)?;
    let expected = expectations(&committed, &buffers)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    stream.begin_capture(CaptureMode::Global).map_err(text)?;
    buffers.enqueue(&committed, &stream)?;
    let executable = stream.end_capture().map_err(text)?.instantiate().map_err(text)?;
    drop(committed);
    replay(&executable, &stream, &mut buffers, &expected)
}

/// Another thread commits, prepares, uses and drops types while a stream is captured. Then type, engine and GPU are
/// dropped, and the graph still runs.
fn beside(on: &OnTier, mode: CaptureMode) -> Outcome {
    let engine = Engine::builder().policy(on.policy).cache_caps(8, 64 << 20).build();
    let gpu = engine.gpu(0).map_err(text)?;
    // One type with lists and one without, because the graph must keep the code in both cases.
    let captured = [types::listed(41, 3000)?, types::rows(41)?].map(|datatype| engine.commit(&datatype));
    let mut buffers = Vec::new();
    for committed in &captured {
        let tier = committed.prepare(&gpu).map_err(text)?;
        expect(!on.is_compiled() || tier == Tier::Specialised, || format!("tier {tier}: {:?}", gpu.problem()))?;
        let buffer = Buffers::new(&gpu, committed, 1, 42)?;
        let expected = expectations(committed, &buffer)?;
        buffers.push((buffer, expected));
    }
    // Enough types that some are freed during the capture. Compiled types are slower and hold more to free.
    let number = if on.is_compiled() { 70 } else { 300 };
    let small = engine.commit(&types::listed(43, 50)?);
    let small_buffers = Buffers::new(&gpu, &small, 1, 44)?;
    let background = || -> Result<(), String> {
        for seed in 0..number {
            let committed = engine.commit(&types::listed(1000 + seed, 50)?);
            committed.prepare(&gpu).map_err(|error| format!("prepare of type {seed}: {error}"))?;
            small_buffers.pack(&small).map_err(|fault| format!("a pack beside a capture: {fault}"))?;
        }
        Ok(())
    };
    let stream = Stream::new(gpu.device()).map_err(text)?;
    stream.begin_capture(mode).map_err(text)?;
    let work = std::thread::scope(|scope| {
        let work = scope.spawn(background);
        std::thread::sleep(Duration::from_millis(20));
        for ((buffer, _), committed) in buffers.iter().zip(&captured) {
            buffer.enqueue(committed, &stream)?;
        }
        work.join().map_err(|_| "the other thread panicked".to_owned())?
    });
    let status = stream.capture_status().map_err(text)?;
    let graph = stream.end_capture();
    work.map_err(|fault| format!("{fault} (the capture is {status:?})"))?;
    if status != CaptureStatus::Active {
        return Err(Fault::from(format!("the capture is {status:?}, expected Active; its end: {:?}", graph.err())));
    }
    let graph = graph.map_err(text)?;
    let nodes = graph.nodes().map_err(text)?;
    expect(nodes.all == captured.len(), || format!("{nodes:?}, expected {} nodes", captured.len()))?;
    let executable = graph.instantiate().map_err(text)?;
    drop((graph, captured, small, gpu, engine));
    // Another engine reuses memory that was freed too early, if any was.
    let other = on.fresh_engine();
    for seed in 0..20 {
        let committed = other.commit(&types::listed(5000 + seed, 3000)?);
        if !on.is_compiled() {
            committed.prepare(&on.gpu).map_err(text)?;
        }
    }
    // The graph packs both types; each is compared.
    for (index, (buffer, expected)) in buffers.iter_mut().enumerate() {
        replay(&executable, &stream, buffer, expected).map_err(|fault| match fault {
            Fault::Failed(fault) => Fault::Failed(format!("node {index}: {fault}")),
            skipped => skipped,
        })?;
    }
    Ok(())
}

/// A capture may contain the first use of a type, on an engine that has loaded nothing.
fn unprepared(on: &OnTier) -> Outcome {
    for (_, mode) in MODES {
        let engine = on.fresh_engine();
        let gpu = engine.gpu(0).map_err(text)?;
        let committed = engine.commit(&types::listed(51, 3000)?);
        let mut buffers = Buffers::new(&gpu, &committed, 1, 52)?;
        let expected = expectations(&committed, &buffers)?;
        let stream = Stream::new(gpu.device()).map_err(text)?;
        stream.begin_capture(mode).map_err(text)?;
        let enqueued = buffers.enqueue(&committed, &stream);
        let graph = stream.end_capture();
        enqueued.map_err(|fault| format!("{mode:?}: {fault}"))?;
        let executable = graph.and_then(|graph| graph.instantiate()).map_err(|error| format!("{mode:?}: {error}"))?;
        replay(&executable, &stream, &mut buffers, &expected)?;
    }
    Ok(())
}
