//! Slices and streams of cudarc: order of streams, views, captures, contexts.

use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use ::cudarc::driver::{CudaContext, CudaStream, result, sys};
use dtc_cudarc::{Error, pack, unpack};
use dtc_runtime::{Committed, Range};
use std::sync::Arc;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let cases: [(&str, Test); 5] = [
        ("one stream", one_stream),
        ("two streams", two_streams),
        ("views", views),
        ("captured", captured),
        ("other contexts", other_contexts),
    ];
    for (name, run) in cases {
        let on = on.clone();
        tests.add(format!("{}: cudarc: {name}", on.name), move || run(&on));
    }
}

/// A test on one tier.
type Test = fn(&OnTier) -> Outcome;

/// Ints that differ from each other and from those of another seed.
fn ints(number: usize, seed: i32) -> Vec<i32> {
    (0..number as i32).map(|index| index.wrapping_mul(2_654_435_761_u32 as i32) ^ seed).collect()
}

fn committed(on: &OnTier) -> Result<(Committed, usize), String> {
    let committed = on.engine.commit(&types::listed(9, 5000)?);
    committed.prepare(&on.gpu).map_err(text)?;
    let (_, high) = committed.span(1).unwrap_or_default();
    Ok((committed, high as usize / 4))
}

/// What the CPU packs.
fn expected(committed: &Committed, memory: &[i32]) -> Result<Vec<i32>, String> {
    let mut packed = vec![0; committed.facts().size as usize / 4];
    committed.pack(memory, Range::elements(1), &mut packed).map_err(text)?;
    Ok(packed)
}

fn stream() -> Result<Arc<CudaStream>, String> {
    CudaContext::new(0).and_then(|context| context.new_stream()).map_err(text)
}

/// A copy, a pack, an unpack and a copy on one stream, which nothing waits for in between.
fn one_stream(on: &OnTier) -> Outcome {
    let (committed, number) = committed(on)?;
    let (stream, host) = (stream()?, ints(number, 1));
    let right = expected(&committed, &host)?;
    let memory = stream.clone_htod(&host).map_err(text)?;
    let mut packed = stream.alloc_zeros::<i32>(right.len()).map_err(text)?;
    let mut other = stream.alloc_zeros::<i32>(number).map_err(text)?;
    let moved = pack(&committed, &stream, &memory, 0, Range::elements(1), &mut packed).map_err(text)?;
    expect(moved == 4 * right.len(), || format!("packed {moved} bytes"))?;
    unpack(&committed, &stream, &packed, Range::elements(1), &mut other, 0).map_err(text)?;
    expect(stream.clone_dtoh(&packed).map_err(text)? == right, || "other packed bytes".to_owned())?;
    let mut unpacked = vec![0; number];
    committed.unpack(&right, Range::elements(1), &mut unpacked).map_err(text)?;
    Ok(expect(stream.clone_dtoh(&other).map_err(text)? == unpacked, || "other unpacked bytes".to_owned())?)
}

/// Slices that one stream writes, another packs and a third reads, again and again: cudarc's events order them.
fn two_streams(on: &OnTier) -> Outcome {
    let (committed, number) = committed(on)?;
    let (writer, packer) = (stream()?, stream()?);
    let mut memory = writer.alloc_zeros::<i32>(number).map_err(text)?;
    let mut packed = packer.alloc_zeros::<i32>(committed.facts().size as usize / 4).map_err(text)?;
    for seed in 0..20 {
        let host = ints(number, seed);
        writer.memcpy_htod(&host, &mut memory).map_err(text)?;
        pack(&committed, &packer, &memory, 0, Range::elements(1), &mut packed).map_err(text)?;
        let found = writer.clone_dtoh(&packed).map_err(text)?;
        expect(found == expected(&committed, &host)?, || format!("round {seed}: other packed bytes"))?;
    }
    Ok(())
}

/// Parts of slices, fragments, and what does not fit.
fn views(on: &OnTier) -> Outcome {
    let (committed, number) = committed(on)?;
    let (stream, host) = (stream()?, ints(number + 100, 2));
    let right = expected(&committed, &host[100..])?;
    let memory = stream.clone_htod(&host).map_err(text)?;
    let mut packed = stream.clone_htod(&vec![-1; right.len() + 8]).map_err(text)?;
    let fragment = Range::elements(1).fragment(4 * 11, 4 * 500);
    pack(&committed, &stream, &memory.slice(60..), 40, fragment, &mut packed.slice_mut(7..507)).map_err(text)?;
    let mut image = vec![-1; right.len() + 8];
    image[7..507].copy_from_slice(&right[11..511]);
    expect(stream.clone_dtoh(&packed).map_err(text)? == image, || "other bytes, or bytes around them".to_owned())?;
    for (start, origin, length, what) in
        [(101, 0, right.len(), "memory"), (0, 101, right.len(), "memory"), (0, 0, right.len() - 1, "packed")]
    {
        let mut packed = packed.slice_mut(..length);
        let error = pack(&committed, &stream, &memory.slice(start..), origin, Range::elements(1), &mut packed);
        let refused = matches!(&error, Err(Error::Bounds { what: found, .. }) if *found == what);
        expect(refused, || format!("expected {what} to be refused, found {error:?}"))?;
    }
    Ok(())
}

/// A graph packs what is there at each launch. Events of other streams have no place in a capture, so cudarc tracks none.
fn captured(on: &OnTier) -> Outcome {
    let (committed, number) = committed(on)?;
    let stream = stream()?;
    // SAFETY: all work of this test is on one stream.
    unsafe { stream.context().disable_event_tracking() };
    let mut memory = stream.alloc_zeros::<i32>(number).map_err(text)?;
    let mut packed = stream.alloc_zeros::<i32>(committed.facts().size as usize / 4).map_err(text)?;
    stream.synchronize().map_err(text)?;
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).map_err(text)?;
    let enqueued = pack(&committed, &stream, &memory, 0, Range::elements(1), &mut packed);
    let graph = stream.end_capture(sys::CUgraphInstantiate_flags(0)).map_err(text)?.ok_or("no graph")?;
    enqueued.map_err(text)?;
    for seed in 0..3 {
        let host = ints(number, seed);
        stream.memcpy_htod(&host, &mut memory).map_err(text)?;
        graph.launch().map_err(text)?;
        let found = stream.clone_dtoh(&packed).map_err(text)?;
        expect(found == expected(&committed, &host)?, || format!("launch {seed}: other packed bytes"))?;
    }
    Ok(())
}

/// A context that is not the primary one is refused.
fn other_contexts(on: &OnTier) -> Outcome {
    let (committed, number) = committed(on)?;
    let primary = stream()?;
    let memory = primary.alloc_zeros::<i32>(number).map_err(text)?;
    let mut packed = primary.alloc_zeros::<i32>(committed.facts().size as usize / 4).map_err(text)?;
    let device = result::device::get(0).map_err(text)?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: the pointer is to a live handle, and cudarc owns the context from here on.
    let context = unsafe {
        sys::cuCtxCreate_v2(&mut raw, 0, device).result().map_err(text)?;
        CudaContext::from_raw_context(0, device, raw).map_err(text)?
    };
    let other = context.new_stream().map_err(text)?;
    let error = pack(&committed, &other, &memory, 0, Range::elements(1), &mut packed);
    Ok(expect(error == Err(Error::Context { what: "stream", device: 0 }), || format!("{error:?}"))?)
}
