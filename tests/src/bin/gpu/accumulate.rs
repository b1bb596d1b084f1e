//! Accumulating unpacks, compared with those of the CPU.

use crate::buffers::{POISON, random_bytes};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_compiler::plan::gpu::computes;
use dtc_runtime::cuda::{CaptureMode, DeviceBuffer, PinnedBuffer, Stream};
use dtc_runtime::{AccumulateError, Committed, MemoryMut, Range, TransferError};
use dtc_tests::reduce;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: accumulate: {name}", on.name), move || test(&on));
    };
    add(tests, "every reduction", every_reduction);
    add(tests, "fragments of every family", fragments);
    add(tests, "memory of all kinds", kinds);
    add(tests, "in a graph", captured);
}

/// Types of bytes that hold elements of any kind: rows, blocks at lists, and a contiguous one.
fn shapes(size: i64) -> Result<Vec<Datatype>, String> {
    let of = |make: &dyn Fn(
        &mut TypeBuilder,
    ) -> Result<dtc_compiler::datatype::TypeId, dtc_compiler::datatype::DatatypeError>| {
        let mut types = TypeBuilder::new();
        let root = make(&mut types).map_err(text)?;
        types.finish(root).map_err(|error| error.to_string())
    };
    let places: Vec<i64> = (0..300).map(|at| at * (3 * size + 40) + at * at % 5 * 8).collect();
    Ok(vec![
        of(&|types| {
            let byte = types.named(Predefined::BYTE);
            types.vector(400, 2 * size, 5 * size, byte)
        })?,
        of(&|types| {
            let byte = types.named(Predefined::BYTE);
            types.hindexed_block(size, &places, byte)
        })?,
        of(&|types| {
            let byte = types.named(Predefined::BYTE);
            types.vector(size * 100, 1, 3, byte)
        })?,
        of(&|types| {
            let byte = types.named(Predefined::BYTE);
            types.contiguous(900 * size, byte)
        })?,
    ])
}

/// Elements of a type in host memory, and packed elements.
struct Data {
    memory: Vec<u8>,
    origin: usize,
    packed: Vec<u8>,
}

/// Draws all elements such that no result is a NaN.
fn draw(committed: &Committed, reduction: Reduction, rng: &mut SmallRng) -> Result<Data, String> {
    let (low, high) = committed.span(1).ok_or("the type has no bytes")?;
    let origin = usize::try_from(-low.min(0)).map_err(text)?;
    let mut memory = random_bytes(origin + usize::try_from(high.max(0)).map_err(text)?, 5);
    let total = committed.packed_size(1).map_err(text)?;
    let (mut mine, mut packed) = (Vec::with_capacity(total), Vec::with_capacity(total));
    while mine.len() < total {
        let [one, other, _] = reduce::draw_both(reduction, rng);
        mine.extend(one);
        packed.extend(other);
    }
    committed.unpack(&mine, Range::elements(1), MemoryMut::at(&mut memory, origin)).map_err(text)?;
    Ok(Data { memory, origin, packed })
}

/// Accumulates a range of the packed bytes at an unaligned address, and compares all memory.
fn check(
    on: &OnTier,
    stream: &Stream,
    committed: &Committed,
    reduction: Reduction,
    data: &Data,
    (from, length, skew): (usize, usize, usize),
) -> Result<(), String> {
    let Data { memory, origin, packed } = data;
    let mut wanted = memory.clone();
    let part = &packed[from..from + length];
    committed
        .accumulate(
            reduction,
            part,
            Range::elements(1).fragment(from as u64, length as u64),
            MemoryMut::at(&mut wanted, *origin),
        )
        .map_err(text)?;
    let device = on.gpu.device();
    let (mut there, mut source) = (
        DeviceBuffer::new(device, memory.len()).map_err(text)?,
        DeviceBuffer::new(device, skew + length).map_err(text)?,
    );
    there.write(0, memory).map_err(text)?;
    source.fill(POISON).map_err(text)?;
    source.write(skew, part).map_err(text)?;
    let (at, to) = (source.address() + skew as u64, there.address() + *origin as u64);
    // SAFETY: both buffers hold the elements of the range.
    let read = unsafe {
        committed
            .at(to as *mut u8, Range::elements(1).fragment(from as u64, length as u64))
            .accumulate(reduction, at as *const u8)
            .enqueue(stream)
    };
    let read = read.map_err(text)?;
    expect(read == length, || format!("{read} bytes were read, expected {length}"))?;
    stream.synchronize().map_err(text)?;
    let mut found = vec![0u8; memory.len()];
    there.read(0, &mut found).map_err(text)?;
    let wrong = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
    match wrong {
        None => Ok(()),
        Some(byte) => Err(format!(
            "{reduction} of {length} bytes from {from}, skew {skew}: byte {byte} was {:02x}, is {:02x}, expected {:02x}",
            memory[byte], found[byte], wanted[byte]
        )),
    }
}

fn every_reduction(on: &OnTier) -> Outcome {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let mut rng = SmallRng::seed_from_u64(61);
    for (number, reduction) in Reduction::all().enumerate() {
        let size = reduction.element().size() as usize;
        let shapes = shapes(size as i64)?;
        // Compiling a kernel is slow, so compiled kernels run each reduction on one shape, and the generic kernel on
        // all.
        let chosen = if on.is_compiled() { vec![&shapes[number % shapes.len()]] } else { shapes.iter().collect() };
        for datatype in chosen {
            let committed = on.engine.commit(datatype);
            if !computes(reduction) && reduction.operation() != Operation::Replace {
                // SAFETY: the call is refused before it reads or writes anything.
                let refused = unsafe {
                    committed
                        .at(4096 as *mut u8, Range::elements(1).bytes(..size as u64))
                        .accumulate(reduction, 4096 as *const u8)
                        .enqueue(&stream)
                };
                let expected = matches!(refused, Err(TransferError::Accumulate(AccumulateError::Unsupported(_))));
                expect(expected, || format!("{reduction}: {refused:?}"))?;
                continue;
            }
            let data = draw(&committed, reduction, &mut rng)?;
            let elements = data.packed.len() / size;
            let from = rng.random_range(0..elements / 2) * size;
            check(on, &stream, &committed, reduction, &data, (0, data.packed.len(), 0))?;
            check(on, &stream, &committed, reduction, &data, (from, (elements / 3) * size, 0))?;
            check(on, &stream, &committed, reduction, &data, (from, (elements / 2) * size, 3))?;
        }
    }
    Ok(())
}

/// Types of every family whose bytes make whole elements, in fragments.
fn fragments(on: &OnTier) -> Outcome {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let mut rng = SmallRng::seed_from_u64(62);
    let reductions = [
        Reduction::new(Operation::Sum, Element::I32).map_err(text)?,
        Reduction::new(Operation::Max, Element::F64).map_err(text)?,
        Reduction::new(Operation::Sum, Element::F32).map_err(text)?,
        Reduction::new(Operation::BitwiseXor, Element::Byte).map_err(text)?,
    ];
    for (name, datatype) in types::families(1 << 19)? {
        let committed = on.engine.commit(&datatype);
        for reduction in reductions {
            let size = reduction.element().size() as usize;
            let total = committed.packed_size(1).map_err(text)?;
            if !total.is_multiple_of(size) || reduction.element().contradicts(&committed.signature()) {
                continue;
            }
            let data = draw(&committed, reduction, &mut rng)?;
            for _ in 0..if on.is_compiled() { 5 } else { 12 } {
                let elements = total / size;
                let from = rng.random_range(0..elements);
                let length = rng.random_range(1..=elements - from);
                let skew = if rng.random() { 0 } else { rng.random_range(0..20) };
                check(on, &stream, &committed, reduction, &data, (from * size, length * size, skew))
                    .map_err(|fault| format!("{name}: {fault}"))?;
            }
        }
    }
    Ok(())
}

/// Each endpoint on the host or on the device, more than two chunks.
fn kinds(on: &OnTier) -> Outcome {
    let reduction = Reduction::new(Operation::Sum, Element::I32).map_err(text)?;
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let rows = types.vector(1 << 20, 3, 5, int).map_err(text)?;
    let committed = on.engine.commit(&types.finish(rows).unwrap());
    let device = on.gpu.device();
    let mut rng = SmallRng::seed_from_u64(63);
    let Data { memory, packed, .. } = draw(&committed, reduction, &mut rng)?;
    let mut wanted = memory.clone();
    committed.accumulate(reduction, &packed, Range::elements(1), &mut wanted).map_err(text)?;
    let mut on_device = DeviceBuffer::new(device, packed.len()).map_err(text)?;
    on_device.write(0, &packed).map_err(text)?;
    let mut pinned = PinnedBuffer::new(device, packed.len()).map_err(text)?;
    pinned.as_mut_slice().copy_from_slice(&packed);
    let sources =
        [("device", on_device.address() as *const u8), ("pinned", pinned.as_ptr()), ("host", packed.as_ptr())];
    for (source, from) in sources {
        for target in ["device", "host"] {
            let mut there = DeviceBuffer::new(device, memory.len()).map_err(text)?;
            there.write(0, &memory).map_err(text)?;
            let mut found = memory.clone();
            let to = if target == "host" { found.as_mut_ptr() } else { there.address() as *mut u8 };
            // SAFETY: both sides hold all elements.
            let read = unsafe {
                committed.at(to, Range::elements(1).bytes(..packed.len() as u64)).accumulate(reduction, from).run()
            };
            expect(read == Ok(packed.len()), || format!("from {source} to {target}: {read:?}"))?;
            if target == "device" {
                there.read(0, &mut found).map_err(text)?;
            }
            expect(found == wanted, || format!("from {source} to {target}: wrong bytes"))?;
        }
    }
    Ok(())
}

/// A graph accumulates at every launch, also after the type was dropped.
fn captured(on: &OnTier) -> Outcome {
    let engine = on.fresh_engine();
    let committed = engine.commit(&types::listed(64, 3000)?);
    let reduction = Reduction::new(Operation::Sum, Element::I32).map_err(text)?;
    let mut rng = SmallRng::seed_from_u64(65);
    let Data { memory, packed, .. } = draw(&committed, reduction, &mut rng)?;
    let mut wanted = memory.clone();
    for _ in 0..3 {
        committed.accumulate(reduction, &packed, Range::elements(1), &mut wanted).map_err(text)?;
    }
    let device = on.gpu.device();
    let (mut there, mut source) = (
        DeviceBuffer::new(device, memory.len()).map_err(text)?,
        DeviceBuffer::new(device, packed.len()).map_err(text)?,
    );
    there.write(0, &memory).map_err(text)?;
    source.write(0, &packed).map_err(text)?;
    let stream = Stream::new(device).map_err(text)?;
    engine.gpu(0).map_err(text)?;
    stream.begin_capture(CaptureMode::Relaxed).map_err(text)?;
    let (from, to) = (source.address() as *const u8, there.address() as *mut u8);
    // SAFETY: both buffers hold all elements, and live until the stream is synchronised.
    unsafe {
        committed.at(to, Range::elements(1).bytes(..packed.len() as u64)).accumulate(reduction, from).enqueue(&stream)
    }
    .map_err(text)?;
    let graph = stream.end_capture().map_err(text)?;
    let nodes = graph.nodes().map_err(text)?;
    expect(nodes.all == 1, || format!("{} nodes, expected 1", nodes.all))?;
    drop((committed, engine));
    let executable = graph.instantiate().map_err(text)?;
    for _ in 0..3 {
        executable.launch(&stream).map_err(text)?;
    }
    stream.synchronize().map_err(text)?;
    let mut found = vec![0u8; memory.len()];
    there.read(0, &mut found).map_err(text)?;
    Ok(expect(found == wanted, || "wrong bytes after three launches".to_owned())?)
}
