//! Two GPUs in one process.

use crate::buffers::Buffers;
use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::raw::Raw;
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::cuda::{Device, Stream};
use dtc_runtime::{Gpu, Tier};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier, &Gpu) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: two GPUs: {name}", on.name), move || match Device::count().map_err(text)? {
            0 | 1 => Err(Fault::Skipped("there is one GPU".to_owned())),
            _ => test(&on, &on.engine.gpu(1).map_err(text)?),
        });
    };
    add(tests, "one thread", one_thread);
    add(tests, "two threads", two_threads);
    add(tests, "whatever is current", whatever_is_current);
}

/// One type on both devices, alternately.
fn one_thread(on: &OnTier, second: &Gpu) -> Outcome {
    let committed = on.engine.commit(&types::listed(111, 2000)?);
    for gpu in [&on.gpu, second] {
        let tier = committed.prepare(gpu).map_err(text)?;
        let ordinal = gpu.device().info().ordinal;
        expect(!on.is_compiled() || tier == Tier::Specialised, || format!("GPU {ordinal}: {tier}"))?;
    }
    let mut buffers = [Buffers::new(&on.gpu, &committed, 1, 1)?, Buffers::new(second, &committed, 1, 2)?];
    let streams = [Stream::new(on.gpu.device()).map_err(text)?, Stream::new(second.device()).map_err(text)?];
    for round in 0..20 {
        buffers.iter_mut().try_for_each(Buffers::poison)?;
        for (buffers, stream) in buffers.iter().zip(&streams) {
            buffers.enqueue(&committed, stream)?;
        }
        for (ordinal, (buffers, stream)) in buffers.iter_mut().zip(&streams).enumerate() {
            stream.synchronize().map_err(text)?;
            let named = |fault| format!("GPU {ordinal}, round {round}: {fault}");
            buffers.check().map_err(named)?;
            buffers.pack_and_check(&committed).map_err(named)?;
        }
    }
    Ok(())
}

/// Two threads with one GPU each; neither has used the type before.
fn two_threads(on: &OnTier, second: &Gpu) -> Outcome {
    let committed = on.engine.commit(&types::listed(112, 2000)?);
    let work = |gpu: &Gpu, seed| -> Result<(), String> {
        let mut buffers = Buffers::new(gpu, &committed, 1, seed)?;
        for _ in 0..100 {
            buffers.pack_and_check(&committed)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running = [scope.spawn(|| work(&on.gpu, 3)), scope.spawn(|| work(second, 4))];
        running.into_iter().enumerate().try_for_each(|(ordinal, thread)| {
            let result = thread.join().map_err(|_| "a thread panicked".to_owned())?;
            result.map_err(|fault| format!("GPU {ordinal}: {fault}"))
        })
    })?;
    Ok(())
}

/// Calls work while the other GPU's context is current, and leave it current.
fn whatever_is_current(on: &OnTier, second: &Gpu) -> Outcome {
    let committed = on.engine.commit(&types::listed(113, 2000)?);
    let raw = Raw::get()?;
    for (current, used) in [(&on.gpu, second), (second, &on.gpu)] {
        let _scope = current.device().scope().map_err(text)?;
        let before = raw.current_context()?;
        let mut buffers = Buffers::new(used, &committed, 1, 5)?;
        buffers.pack_and_check(&committed)?;
        let stream = Stream::new(used.device()).map_err(text)?;
        buffers.poison()?;
        buffers.enqueue(&committed, &stream)?;
        stream.synchronize().map_err(text)?;
        buffers.check()?;
        let after = raw.current_context()?;
        expect(before == after, || format!("the current context was {before:#x} and is {after:#x}"))?;
    }
    Ok(())
}
