//! Number of launches of a call, and calls of many threads.

use crate::buffers::{Buffers, expect_equal, poisoned_buffer, read};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::Range;
use dtc_runtime::cuda::{CaptureMode, Stream};
use dtc_tests::corpus;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let (one, other) = (on.clone(), on.clone());
    tests.add(format!("{}: at most one launch", on.name), move || one_launch(&one));
    tests.add(format!("{}: threads and streams", on.name), move || threads(&other));
}

/// Every fragment of every type of the corpus is one kernel or one copy.
fn one_launch(on: &OnTier) -> Outcome {
    let gpu = &on.gpu;
    let memory = poisoned_buffer(gpu, 64 << 20)?;
    let packed = poisoned_buffer(gpu, 16 << 20)?;
    let middle = memory.address() + (32 << 20);
    for case in corpus::all() {
        let committed = on.engine.commit(&case.datatype);
        let Some((low, high)) = committed.span(2) else { continue };
        let total = committed.packed_size(2).map_err(text)? as u64;
        if low < -(32 << 20) || high > 32 << 20 || total > 16 << 20 {
            continue;
        }
        committed.prepare(gpu).map_err(text)?;
        for (from, length) in [(0, total), (total / 3, total / 2), (total - 1, 1)] {
            if length == 0 {
                continue;
            }
            let stream = Stream::new(gpu.device()).map_err(text)?;
            stream.begin_capture(CaptureMode::Relaxed).map_err(text)?;
            // SAFETY: both buffers are on the device and large enough; the graph is never launched.
            unsafe {
                let target = packed.address() as *mut u8;
                committed
                    .at(middle as *const u8, Range::elements(2).fragment(from, length))
                    .pack(target)
                    .enqueue(&stream)
                    .map_err(text)?;
            }
            let nodes = stream.end_capture().map_err(text)?.nodes().map_err(text)?;
            expect(nodes.all == 1, || format!("{}: {} launches, expected 1", case.name, nodes.all))?;
        }
    }
    Ok(())
}

/// Threads that pack one type, each on its own CUDA stream.
fn threads(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(9, 5000)?);
    let work = |seed: u64| -> Result<(), String> {
        let Buffers { memory, packed, expected, .. } = Buffers::new(&on.gpu, &committed, 1, seed)?;
        let stream = Stream::new(on.gpu.device()).map_err(text)?;
        for round in 0..50 {
            let from = (round * 37) % expected.len();
            let length = expected.len() - from;
            // SAFETY: both buffers hold all elements.
            unsafe {
                let (source, target) = (memory.address() as *const u8, packed.address() as *mut u8);
                committed
                    .at(source, Range::elements(1).fragment(from as u64, length as u64))
                    .pack(target)
                    .enqueue(&stream)
                    .map_err(text)?;
            }
            stream.synchronize().map_err(text)?;
            expect_equal(&format!("thread {seed}, from {from}"), &read(&packed, 0, length)?, &expected[from..])?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..8).map(|seed| scope.spawn(move || work(seed))).collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    Ok(())
}
