//! Requests that are waited for later, or never.

use crate::buffers::Buffers;
use crate::harness::{Outcome, Tests, expect, text};
use crate::raw::{Spinner, StreamKind};
use crate::tier::OnTier;
use crate::types;
use std::time::{Duration, Instant};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: {name}", on.name), move || test(&on));
    };
    add(tests, "requests", many);
    add(tests, "requests: dropped without waiting", dropped);
    add(tests, "requests: tested before they are done", tested_early);
    add(tests, "requests: from many threads", from_threads);
}

/// Many requests in progress at once.
fn many(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(9, 5000)?);
    let buffers = Buffers::new(&on.gpu, &committed, 1, 21)?;
    let total = buffers.expected.len();
    let piece = total.div_ceil(16);
    let mut under_way = Vec::new();
    for from in (0..total).step_by(piece) {
        under_way.push(buffers.start(&committed, from, piece.min(total - from))?);
    }
    for mut request in under_way {
        while !request.test().map_err(text)? {}
        request.wait().map_err(text)?;
    }
    Ok(buffers.check()?)
}

/// A dropped request does not end its work, and its event is not reused too early.
fn dropped(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(31, 5000)?);
    let mut buffers = Buffers::new(&on.gpu, &committed, 1, 22)?;
    let total = buffers.expected.len();
    for _ in 0..100 {
        buffers.poison()?;
        let middle = total / 2;
        drop(buffers.start(&committed, 0, middle)?);
        let request = buffers.start(&committed, middle, total - middle)?;
        let moved = request.wait().map_err(text)?;
        expect(moved == total - middle, || format!("a request moved {moved} bytes"))?;
        // Both were enqueued on one stream, so both are done.
        buffers.check()?;
    }
    Ok(())
}

/// A request is not done while its work cannot have run.
fn tested_early(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(32, 5000)?);
    committed.prepare(&on.gpu).map_err(text)?;
    let buffers = Buffers::new(&on.gpu, &committed, 1, 23)?;
    // Requests run after the work of blocking streams.
    let spinner = Spinner::start(&on.gpu, 1, StreamKind::Blocking)?;
    let mut request = buffers.start(&committed, 0, buffers.expected.len())?;
    for _ in 0..100 {
        let done = request.test().map_err(text)?;
        expect(!done, || "a request was done before the kernel that it runs behind".to_owned())?;
    }
    spinner.release();
    let start = Instant::now();
    while !request.test().map_err(text)? {
        expect(start.elapsed() < Duration::from_secs(10), || "a request was not done after 10 s".to_owned())?;
    }
    expect(request.test().map_err(text)?, || "a request that was done is not".to_owned())?;
    request.wait().map_err(text)?;
    spinner.finish()?;
    Ok(buffers.check()?)
}

/// Threads that start requests of one type and wait for them in another order.
fn from_threads(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(33, 2000)?);
    let work = |seed: u64| -> Result<(), String> {
        let mut buffers = Buffers::new(&on.gpu, &committed, 1, seed)?;
        let total = buffers.expected.len();
        let piece = total.div_ceil(40);
        for _ in 0..10 {
            buffers.poison()?;
            let pieces = (0..total).step_by(piece);
            let started = pieces.map(|from| buffers.start(&committed, from, piece.min(total - from)));
            let mut under_way = started.collect::<Result<Vec<_>, _>>()?;
            // The last request comes first.
            while let Some(request) = under_way.pop() {
                request.wait().map_err(text)?;
            }
            buffers.check().map_err(|fault| format!("thread {seed}: {fault}"))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..8).map(|seed| scope.spawn(move || work(seed))).collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    Ok(())
}
