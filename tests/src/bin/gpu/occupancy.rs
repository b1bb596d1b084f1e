//! Calls that leave multiprocessors to other work.

use crate::buffers::{Buffers, POISON, expect_equal};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::cuda::{CaptureMode, PinnedBuffer, Stream};
use dtc_runtime::{Direction, Multiprocessors};

pub fn add(tests: &mut Tests, on: &OnTier) {
    for (name, datatype) in types::families(1 << 20).unwrap_or_default() {
        let on = on.clone();
        tests.add(format!("{}: on few multiprocessors: {name}", on.name), move || capped(&on, &datatype));
    }
    let on = on.clone();
    tests.add(format!("{}: on no multiprocessor", on.name), move || copied(&on));
}

fn both_ways(buffers: &mut Buffers, on: &OnTier, datatype: &Datatype, most: Multiprocessors) -> Result<(), String> {
    let committed = on.engine.commit(datatype);
    let total = buffers.expected.len();
    for (from, length) in [(0, total), (total / 3, total / 2)] {
        buffers.poison()?;
        buffers.call_on(&committed, Direction::Pack, from, length, most)?;
        buffers.check_range(from, length)?;
        buffers.offer()?;
        buffers.call_on(&committed, Direction::Unpack, from, length, most)?;
        buffers.check_restored(&committed, from, length)?;
        // The next pack needs the elements again.
        buffers.refill()?;
    }
    Ok(())
}

fn capped(on: &OnTier, datatype: &Datatype) -> Outcome {
    let committed = on.engine.commit(datatype);
    let mut buffers = Buffers::new(&on.gpu, &committed, 1, 3)?;
    for most in [1, 7, 1 << 20] {
        both_ways(&mut buffers, on, datatype, Multiprocessors::AtMost(most))
            .map_err(|fault| format!("on {most}: {fault}"))?;
    }
    Ok(())
}

/// Copies of the driver serve nests of every rank; kernels serve other types.
fn copied(on: &OnTier) -> Outcome {
    let nest = |counts: &[i64], strides: &[i64]| -> Result<Datatype, String> {
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let mut nest = types.contiguous(24, byte).map_err(text)?;
        for (&count, &stride) in counts.iter().zip(strides) {
            nest = types.hvector(count, 1, stride, nest).map_err(text)?;
        }
        types.finish(nest).map_err(|error| error.to_string())
    };
    let cases = [
        ("rows", nest(&[100], &[64])?, true),
        ("planes", nest(&[100, 20], &[64, 6464])?, true),
        ("volumes", nest(&[10, 20, 7], &[64, 1280, 26_000])?, true),
        ("backwards", nest(&[50], &[-64])?, true),
        ("a list", types::listed(5, 100)?, false),
    ];
    for (name, datatype, is_copied) in cases {
        let committed = on.engine.commit(&datatype);
        let mut buffers = Buffers::new(&on.gpu, &committed, 1, 4)?;
        both_ways(&mut buffers, on, &datatype, Multiprocessors::None).map_err(|fault| format!("{name}: {fault}"))?;
        let stream = Stream::new(on.gpu.device()).map_err(text)?;
        committed.prepare(&on.gpu).map_err(text)?;
        let mut pinned = PinnedBuffer::new(on.gpu.device(), buffers.expected.len()).map_err(text)?;
        pinned.as_mut_slice().fill(POISON);
        buffers.enqueue_to(&committed, &stream, &pinned, Multiprocessors::None)?;
        stream.synchronize().map_err(text)?;
        expect_equal(name, pinned.as_slice(), &buffers.expected)?;
        stream.begin_capture(CaptureMode::Relaxed).map_err(text)?;
        buffers.enqueue_to(&committed, &stream, &pinned, Multiprocessors::None)?;
        let nodes = stream.end_capture().map_err(text)?.nodes().map_err(text)?;
        expect((nodes.kernels == 0) == is_copied, || format!("{name}: {nodes:?}"))?;
    }
    Ok(())
}
