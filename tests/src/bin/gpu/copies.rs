//! Copies from type to type, compared with those of the CPU.

use crate::buffers::{POISON, random_bytes};
use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::Datatype;
use dtc_runtime::cuda::{CaptureMode, Device, DeviceBuffer, PinnedBuffer, Stream};
use dtc_runtime::{Committed, Elements, Endpoint, Gpu, Memory, MemoryMut, Range};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: copies: {name}", on.name), move || test(&on));
    };
    add(tests, "pairs of every family", pairs);
    add(tests, "memory of all kinds", kinds);
    add(tests, "one launch", one_launch);
    add(tests, "to a peer", peers);
}

/// Elements of a type in host memory.
struct Side {
    committed: Committed,
    host: Vec<u8>,
    origin: usize,
    total: usize,
}

impl Side {
    fn new(on: &OnTier, datatype: &Datatype, seed: u64) -> Result<Side, String> {
        let committed = on.engine.commit(datatype);
        let (low, high) = committed.span(1).ok_or("the type has no bytes")?;
        let origin = usize::try_from(-low.min(0)).map_err(text)?;
        let host = random_bytes(origin + usize::try_from(high.max(0)).map_err(text)?, seed);
        let total = committed.packed_size(1).map_err(text)?;
        Ok(Side { committed, host, origin, total })
    }

    /// `bytes` packed bytes of the element in memory that begins at an address.
    fn elements(&self, memory: impl Into<Endpoint>, from: usize, bytes: usize) -> Elements<'_> {
        let memory = memory.into();
        let origin = Endpoint::from(memory.address().wrapping_add(self.origin)).with_kind(memory.kind());
        self.committed.at(origin, Range::elements(1).fragment(from as u64, bytes as u64))
    }

    fn on(&self, gpu: &Gpu) -> Result<DeviceBuffer, String> {
        let mut buffer = DeviceBuffer::new(gpu.device(), self.host.len()).map_err(text)?;
        buffer.write(0, &self.host).map_err(text)?;
        Ok(buffer)
    }
}

/// The memory of the target after the CPU copies a range into poison.
fn wanted(source: &Side, target: &Side, from: usize, to: usize, bytes: usize) -> Result<Vec<u8>, String> {
    let mut memory = vec![POISON; target.host.len()];
    let range = |from: usize| Range::elements(1).fragment(from as u64, bytes as u64);
    let (read, written) = (Memory::at(&source.host, source.origin), MemoryMut::at(&mut memory, target.origin));
    source.committed.copy(read, range(from), &target.committed, range(to), written).map_err(text)?;
    Ok(memory)
}

fn expect_same(what: &str, found: &[u8], wanted: &[u8]) -> Result<(), String> {
    match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: byte {at} is {:02x}, expected {:02x}", found[at], wanted[at])),
    }
}

fn pairs(on: &OnTier) -> Outcome {
    let families = types::families(200 << 10)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let mut rng = SmallRng::seed_from_u64(71);
    for (number, (name, datatype)) in families.iter().enumerate() {
        let source = Side::new(on, datatype, number as u64)?;
        let memory = source.on(&on.gpu)?;
        // Compiling a kernel is slow, so compiled kernels copy to fewer types.
        let others: Vec<usize> = if on.is_compiled() {
            vec![number, (number + 1) % families.len(), (number + 5) % families.len()]
        } else {
            (0..families.len()).collect()
        };
        for other in others {
            let (other_name, datatype) = &families[other];
            let target = Side::new(on, datatype, 100 + other as u64)?;
            let mut there = DeviceBuffer::new(on.gpu.device(), target.host.len()).map_err(text)?;
            for round in 0..3 {
                let most = source.total.min(target.total);
                let unit = if rng.random() { 16 } else { 1 };
                let bytes = if round == 0 { most } else { (rng.random_range(1..=most) / unit * unit).max(1) };
                let first = |total: usize, rng: &mut SmallRng| rng.random_range(0..=total - bytes) / unit * unit;
                let (from, to) = match round {
                    0 => (0, 0),
                    _ => (first(source.total, &mut rng), first(target.total, &mut rng)),
                };
                there.fill(POISON).map_err(text)?;
                let copy = source.elements(&memory, from, bytes).copy_to(target.elements(&there, to, bytes));
                // SAFETY: both buffers hold all elements.
                let moved = unsafe { copy.enqueue(&stream) };
                expect(moved.clone() == Ok(bytes), || format!("{moved:?}, expected {bytes}"))?;
                stream.synchronize().map_err(text)?;
                let mut found = vec![0; target.host.len()];
                there.read(0, &mut found).map_err(text)?;
                let what = format!("{name} from {from} to {other_name} from {to}, {bytes} bytes");
                expect_same(&what, &found, &wanted(&source, &target, from, to, bytes)?)?;
            }
        }
    }
    Ok(())
}

/// Each endpoint on the host or on the device, more than two chunks.
fn kinds(on: &OnTier) -> Outcome {
    let families = types::families(18 << 20)?;
    let (source, target) = (Side::new(on, &families[1].1, 72)?, Side::new(on, &families[2].1, 73)?);
    let bytes = source.total.min(target.total) - 77;
    let wanted = wanted(&source, &target, 5, 70, bytes)?;
    let device = on.gpu.device();
    let memory = source.on(&on.gpu)?;
    let mut pinned = PinnedBuffer::new(device, source.host.len()).map_err(text)?;
    pinned.as_mut_slice().copy_from_slice(&source.host);
    let managed = DeviceBuffer::managed(device, target.host.len()).map_err(text)?;
    let there = DeviceBuffer::new(device, target.host.len()).map_err(text)?;
    let mut host = vec![0; target.host.len()];
    let sources =
        [("device", memory.address() as *const u8), ("pinned", pinned.as_ptr()), ("host", source.host.as_ptr())];
    let targets = [
        ("device", there.address() as *mut u8),
        ("managed", managed.address() as *mut u8),
        ("host", host.as_mut_ptr()),
    ];
    let (mut there, mut managed) = (there, managed);
    for (from, read) in sources {
        for (to, written) in targets {
            there.fill(POISON).map_err(text)?;
            managed.fill(POISON).map_err(text)?;
            host.fill(POISON);
            let copy = source.elements(read, 5, bytes).copy_to(target.elements(written, 70, bytes));
            // SAFETY: both endpoints hold all elements.
            let moved = unsafe { copy.run() };
            expect(moved.clone() == Ok(bytes), || format!("from {from} to {to}: {moved:?}, expected {bytes}"))?;
            let mut found = vec![0; host.len()];
            match to {
                "device" => there.read(0, &mut found).map_err(text)?,
                "managed" => managed.read(0, &mut found).map_err(text)?,
                _ => found.copy_from_slice(&host),
            }
            expect_same(&format!("from {from} to {to}"), &found, &wanted)?;
        }
    }
    Ok(())
}

/// A captured copy is one node, and works after its types were dropped.
fn one_launch(on: &OnTier) -> Outcome {
    let engine = on.fresh_engine();
    let (rows, listed) = (types::rows(700)?, types::listed(74, 900)?);
    let fresh = OnTier { engine: engine.clone(), ..on.clone() };
    let (source, target) = (Side::new(&fresh, &listed, 75)?, Side::new(&fresh, &rows, 76)?);
    let bytes = source.total.min(target.total);
    let wanted = wanted(&source, &target, 0, 0, bytes)?;
    let memory = source.on(&on.gpu)?;
    let mut there = DeviceBuffer::new(on.gpu.device(), target.host.len()).map_err(text)?;
    there.fill(POISON).map_err(text)?;
    engine.gpu(0).map_err(text)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    stream.begin_capture(CaptureMode::Relaxed).map_err(text)?;
    let copy = source.elements(&memory, 0, bytes).copy_to(target.elements(&there, 0, bytes));
    // SAFETY: both buffers hold all elements, and live until the stream is synchronised.
    unsafe { copy.enqueue(&stream) }.map_err(text)?;
    let graph = stream.end_capture().map_err(text)?;
    let nodes = graph.nodes().map_err(text)?;
    expect(nodes.all == 1, || format!("{} nodes, expected 1", nodes.all))?;
    let length = target.host.len();
    drop((source, target, fresh, engine));
    graph.instantiate().map_err(text)?.launch(&stream).map_err(text)?;
    stream.synchronize().map_err(text)?;
    let mut found = vec![0; length];
    there.read(0, &mut found).map_err(text)?;
    Ok(expect_same("a graph", &found, &wanted)?)
}

/// Copies of long runs, short runs and a contiguous type, to another device and back.
fn peers(on: &OnTier) -> Outcome {
    if Device::count().map_err(text)? < 2 {
        return Err(Fault::Skipped("there is one GPU".to_owned()));
    }
    let second = on.engine.gpu(1).map_err(text)?;
    let families = types::families(18 << 20)?;
    let mut pairs = Vec::new();
    for (from, to) in [(1, 3), (3, 1), (7, 2), (9, 9)] {
        pairs.push((&families[from].1, &families[to].1));
    }
    for (number, (one, other)) in pairs.into_iter().enumerate() {
        let (source, target) = (Side::new(on, one, 77)?, Side::new(on, other, 78)?);
        let bytes = source.total.min(target.total) - 16;
        let wanted = wanted(&source, &target, 8, 16, bytes)?;
        for (from, to) in [(&on.gpu, &second), (&second, &on.gpu)] {
            let memory = source.on(from)?;
            let mut there = DeviceBuffer::new(to.device(), target.host.len()).map_err(text)?;
            there.fill(POISON).map_err(text)?;
            let copy = source.elements(&memory, 8, bytes).copy_to(target.elements(&there, 16, bytes));
            // SAFETY: both endpoints hold all elements.
            let moved = unsafe { copy.run() };
            expect(moved.clone() == Ok(bytes), || format!("pair {number}: {moved:?}, expected {bytes}"))?;
            let mut found = vec![0; target.host.len()];
            there.read(0, &mut found).map_err(text)?;
            expect_same(&format!("pair {number}"), &found, &wanted)?;
        }
    }
    Ok(())
}
