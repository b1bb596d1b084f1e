//! Transfers between memory of all kinds: every pair, packs and unpacks, several layouts, whole and in fragments,
//! waited for, tested and dropped.

use crate::buffers::{POISON, expect_equal, random_bytes};
use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::memory::{KINDS, Memory};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::cuda::{CaptureMode, Device, MemoryKind, Stream};
use dtc_runtime::{Committed, Endpoint, MemoryMut, Range, TransferError};

pub fn add(tests: &mut Tests, on: &OnTier) {
    for memory in KINDS {
        for packed in KINDS {
            let on = on.clone();
            let needs_two = [memory, packed].contains(&MemoryKind::Device(1));
            tests.add(format!("{}: transfers: {memory}, packed bytes in {packed}", on.name), move || {
                if needs_two && Device::count().map_err(text)? < 2 {
                    return Err(Fault::Skipped("there is one GPU".to_owned()));
                }
                pair(&on, memory, packed)
            });
        }
    }
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: transfers: {name}", on.name), move || test(&on));
    };
    add(tests, "from many threads", from_threads);
    add(tests, "many requests at once", many_requests);
    add(tests, "behind a blocking stream's work", ordered);
    add(tests, "captured", captured);
}

/// Small layouts of every family.
fn layouts() -> Result<Vec<(&'static str, Datatype)>, String> {
    let mut layouts = types::families(40_000)?;
    layouts.retain(|(name, _)| !["rows of 1,000 bytes", "complex numbers"].contains(name));
    Ok(layouts)
}

/// Layouts that take several chunks of the staging buffers.
fn large_layouts() -> Result<[(&'static str, Datatype); 2], String> {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let vector = types.vector(1_000_003, 1, 2, int).map_err(text)?;
    let ints = types.finish(vector).unwrap();
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let contiguous = types.contiguous(13_000_001, byte).map_err(text)?;
    Ok([("four megabytes of ints", ints), ("contiguous", types.finish(contiguous).unwrap())])
}

const FORMS: [Form; 5] = [Form::Blocking, Form::Waited, Form::Tested, Form::Dropped, Form::Known];

fn pair(on: &OnTier, memory: MemoryKind, packed: MemoryKind) -> Outcome {
    let mut number = 0;
    for (name, datatype) in layouts()? {
        let committed = on.engine.commit(&datatype);
        let case = Case::new(&committed, number)?;
        let total = case.expected.len();
        let wholes = [(0, total, 0), (0, total, 1)];
        let pieces = [(1, 1, 0), ((total / 3) | 1, total / 2, 3), (total - 5000, 5000, 16), (8, total - 16, 8)];
        for (from, length, skew) in wholes.into_iter().chain(pieces) {
            // Every layout meets every form, with one range or another.
            let form = FORMS[number as usize % FORMS.len()];
            let moved = case.there_and_back(&committed, memory, packed, from, length, skew, form);
            moved.map_err(|fault| format!("{name}: {fault}"))?;
            number += 1;
        }
    }
    for (name, datatype) in large_layouts()? {
        let committed = on.engine.commit(&datatype);
        let case = Case::new(&committed, number)?;
        let total = case.expected.len();
        for (from, form) in [(0, Form::Tested), (12_345, Form::Blocking)] {
            let moved = case.there_and_back(&committed, memory, packed, from, total - from, 0, form);
            moved.map_err(|fault| format!("{name}: {fault}"))?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Blocking,
    Waited,
    Tested,
    Dropped,
    /// Blocking, with the kinds of memory given.
    Known,
}

/// One element in host memory, and its packed bytes.
struct Case {
    host: Vec<u8>,
    origin: usize,
    expected: Vec<u8>,
}

impl Case {
    fn new(committed: &Committed, seed: u64) -> Result<Case, String> {
        let (low, high) = committed.span(1).ok_or("the type has no bytes")?;
        let origin = usize::try_from(-low.min(0)).map_err(text)?;
        let host = random_bytes(origin + usize::try_from(high.max(0)).map_err(text)?, seed);
        let mut expected = vec![0u8; committed.packed_size(1).map_err(text)?];
        committed.pack(dtc_runtime::Memory::at(&host, origin), Range::elements(1), &mut expected).map_err(text)?;
        Ok(Case { host, origin, expected })
    }

    #[expect(clippy::too_many_arguments, reason = "all that a call can differ in")]
    fn there_and_back(
        &self,
        committed: &Committed,
        memory_kind: MemoryKind,
        packed_kind: MemoryKind,
        from: usize,
        length: usize,
        skew: usize,
        form: Form,
    ) -> Result<(), String> {
        let what = |direction| format!("{direction} of {length} bytes from {from}, skewed by {skew}, {form:?}");
        let known = form == Form::Known;
        let elements = |base| {
            let base = Endpoint::from(base).with_kind(known.then_some(memory_kind));
            committed.at(base, Range::elements(1).fragment(from as u64, length as u64))
        };
        let mut memory = Memory::holding(memory_kind, &self.host)?;
        let mut packed = Memory::holding(packed_kind, &vec![POISON; skew + length + 7])?;
        let target = Endpoint::from(packed.at(skew)).with_kind(known.then_some(packed_kind));
        let pack = elements(memory.at(self.origin)).pack(target);
        // SAFETY: both buffers have the given kinds, hold the element and `skew + length` packed bytes, and live until
        // the work is done.
        let moved = unsafe {
            match form {
                Form::Blocking | Form::Known => pack.run(),
                _ => end(form, pack.start()),
            }
        };
        let moved = moved.map_err(|error| format!("{}: {error}", what("pack")))?;
        if form == Form::Dropped {
            synchronize_all()?;
        } else {
            expect(moved == length, || format!("{}: {moved} bytes were moved", what("pack")))?;
        }
        let mut wanted = vec![POISON; skew + length + 7];
        wanted[skew..skew + length].copy_from_slice(&self.expected[from..from + length]);
        expect_equal(&what("pack"), &packed.read()?, &wanted)?;

        let mut back = Memory::holding(memory_kind, &vec![POISON; self.host.len()])?;
        let unpack = elements(back.at(self.origin)).unpack(target);
        // SAFETY: both buffers have the given kinds, hold the element and `skew + length` packed bytes, and live until
        // the work is done.
        let moved = unsafe {
            match form {
                Form::Blocking | Form::Known => unpack.run(),
                _ => end(form, unpack.start()),
            }
        };
        let moved = moved.map_err(|error| format!("{}: {error}", what("unpack")))?;
        if form == Form::Dropped {
            synchronize_all()?;
        } else {
            expect(moved == length, || format!("{}: {moved} bytes were moved", what("unpack")))?;
        }
        let mut wanted = vec![POISON; self.host.len()];
        let fragment = &self.expected[from..from + length];
        committed
            .unpack(
                fragment,
                Range::elements(1).fragment(from as u64, length as u64),
                MemoryMut::at(&mut wanted, self.origin),
            )
            .map_err(text)?;
        expect_equal(&what("unpack"), &back.read()?, &wanted)
    }
}

fn end(form: Form, request: Result<dtc_runtime::Request, TransferError>) -> Result<usize, TransferError> {
    let mut request = request?;
    match form {
        Form::Dropped => return Ok(0),
        Form::Tested => while !request.test()? {},
        _ => {}
    }
    request.wait()
}

fn synchronize_all() -> Result<(), String> {
    for ordinal in 0..Device::count().map_err(text)? {
        Device::get(ordinal).and_then(|device| device.synchronize()).map_err(text)?;
    }
    Ok(())
}

/// Threads that share the staging buffers of one GPU.
fn from_threads(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(142, 6_000)?);
    let work = |seed: u64| -> Result<(), String> {
        let case = Case::new(&committed, seed)?;
        let total = case.expected.len();
        let device = MemoryKind::Device(0);
        for round in 0..4 {
            let form = [Form::Blocking, Form::Tested][round % 2];
            for (memory, packed) in
                [(device, MemoryKind::Pageable), (MemoryKind::Pageable, device), (device, MemoryKind::Pinned)]
            {
                case.there_and_back(&committed, memory, packed, 0, total, seed as usize, form)
                    .map_err(|fault| format!("thread {seed}, {memory}, {packed}: {fault}"))?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..6).map(|seed| scope.spawn(move || work(seed))).collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    Ok(())
}

/// More requests than staging buffers, finished in another order.
fn many_requests(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(143, 6_000)?);
    let case = Case::new(&committed, 144)?;
    let total = case.expected.len();
    let mut memory = Memory::holding(MemoryKind::Device(0), &case.host)?;
    let base = memory.at(case.origin);
    let mut packed = vec![POISON; total];
    let piece = total.div_ceil(40);
    let mut requests = Vec::new();
    for (index, target) in packed.chunks_mut(piece).enumerate() {
        // SAFETY: the pieces are disjoint, and live until their requests are done.
        let request = unsafe {
            committed
                .at(base, Range::elements(1).fragment((index * piece) as u64, target.len() as u64))
                .pack(target.as_mut_ptr())
                .start()
        };
        requests.push(request.map_err(text)?);
    }
    // The last requests have no staging buffers yet.
    for request in requests.iter_mut().rev().take(5) {
        request.test().map_err(text)?;
    }
    while let Some(request) = requests.pop() {
        request.wait().map_err(text)?;
    }
    Ok(expect_equal("packed", &packed, &case.expected)?)
}

/// A transfer that needs the CPU runs after earlier work of blocking streams.
fn ordered(on: &OnTier) -> Outcome {
    use crate::raw::{Spinner, StreamKind};
    let committed = on.engine.commit(&types::rows(145)?);
    committed.prepare(&on.gpu).map_err(text)?;
    let case = Case::new(&committed, 146)?;
    let total = case.expected.len() as u64;
    // This transfer allocates the staging buffers.
    case.there_and_back(&committed, MemoryKind::Device(0), MemoryKind::Pageable, 0, total as usize, 0, Form::Blocking)?;
    let mut memory = Memory::holding(MemoryKind::Device(0), &case.host)?;
    let mut packed = Memory::holding(MemoryKind::Pageable, &vec![POISON; total as usize])?;
    let spinner = Spinner::start(&on.gpu, 1, StreamKind::Blocking)?;
    // SAFETY: both buffers are long enough, and live until the request is done.
    let request =
        unsafe { committed.at(memory.at(case.origin), Range::elements(1).bytes(..total)).pack(packed.at(0)).start() };
    let mut request = request.map_err(text)?;
    for _ in 0..100 {
        let done = request.test().map_err(text)?;
        expect(!done, || "a request was done before the kernel that it runs behind".to_owned())?;
    }
    spinner.release();
    request.wait().map_err(text)?;
    spinner.finish()?;
    Ok(expect_equal("packed", &packed.read()?, &case.expected)?)
}

/// Enqueued transfers to pinned memory become nodes of a graph. Those to pageable memory that the device cannot access
/// are refused, and do not disturb the capture.
fn captured(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::rows(147)?);
    committed.prepare(&on.gpu).map_err(text)?;
    let case = Case::new(&committed, 148)?;
    let total = case.expected.len();
    let mut memory = Memory::holding(MemoryKind::Device(0), &case.host)?;
    let mut packed = Memory::holding(MemoryKind::Pinned, &vec![POISON; total])?;
    let mut pageable = vec![POISON; total];
    let base = memory.at(case.origin);
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let elements = committed.at(base, Range::elements(1));
    stream.begin_capture(CaptureMode::Global).map_err(text)?;
    // SAFETY: the buffers are long enough, and live until the graph has run.
    let (enqueued, refused) = unsafe {
        let enqueued = elements.pack(packed.at(0)).enqueue(&stream);
        let reached = on.gpu.device().info().reads_pageable_memory;
        let refused = (!reached).then(|| elements.pack(pageable.as_mut_ptr()).enqueue(&stream));
        (enqueued, refused)
    };
    let graph = stream.end_capture().map_err(text)?;
    expect(enqueued == Ok(total), || format!("pinned memory: {enqueued:?}"))?;
    if let Some(refused) = refused {
        expect(matches!(refused, Err(TransferError::OutOfReach { .. })), || format!("pageable memory: {refused:?}"))?;
    }
    let nodes = graph.nodes().map_err(text)?;
    expect(nodes.all == 1, || format!("{nodes:?}, expected one node"))?;
    graph.instantiate().and_then(|executable| executable.launch(&stream)).map_err(text)?;
    stream.synchronize().map_err(text)?;
    Ok(expect_equal("packed", &packed.read()?, &case.expected)?)
}
