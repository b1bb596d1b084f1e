//! Many packs and unpacks in one launch.

use crate::buffers::{Buffers, expect_equal, poisoned_buffer, random_buffer, read};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::{Datatype, text as notation};
use dtc_runtime::cuda::{CaptureMode, Stream};
use dtc_runtime::{Committed, Direction, Range, Tier, Transfer};
use dtc_tests::conformance::Expectation;
use dtc_tests::corpus;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: batches: {name}", on.name), move || test(&on));
    };
    add(tests, "the corpus, packed", |on| the_corpus(on, Direction::Pack));
    add(tests, "the corpus, unpacked", |on| the_corpus(on, Direction::Unpack));
    add(tests, "both directions at once", both_directions);
    add(tests, "transposes of many shapes", transposes);
    add(tests, "more items than a launch has room for", many);
    add(tests, "captured before its first use", captured);
    add(tests, "enqueued again at other addresses", |on| persistent(on, false));
    add(tests, "enqueued again and captured in between", |on| persistent(on, true));
    add(tests, "of nothing", nothing);
    add(tests, "from threads", threads);
}

/// Types that fit the memory of a test, and whose unpack is defined.
fn subjects() -> Vec<Datatype> {
    let fits = |committed: &Datatype| {
        let facts = committed.facts();
        facts.size > 0 && facts.true_extent().unsigned_abs() < 8 << 20 && facts.extent().unsigned_abs() < 8 << 20
    };
    let disjoint = |datatype: &Datatype| !Expectation::new(datatype, 3).overlaps;
    corpus::all()
        .into_iter()
        .map(|case| case.datatype)
        .filter(|datatype| fits(datatype) && disjoint(datatype))
        .collect()
}

/// One item with its own buffers.
struct Piece {
    committed: Committed,
    buffers: Buffers,
    from: usize,
    length: usize,
}

impl Piece {
    fn new(on: &OnTier, datatype: &Datatype, rng: &mut SmallRng) -> Result<Piece, String> {
        let committed = on.engine.commit(datatype);
        let buffers = Buffers::new(&on.gpu, &committed, rng.random_range(1..=3), rng.random())?;
        let total = buffers.expected.len();
        let (from, length) = if rng.random_bool(0.6) {
            (0, total)
        } else {
            let from = rng.random_range(0..total);
            (from, rng.random_range(1..=total - from))
        };
        Ok(Piece { committed, buffers, from, length })
    }

    /// The item as a transfer; its packed bytes are at their position in the packed bytes of all elements.
    fn transfer(&self, direction: Direction) -> Transfer<'_> {
        self.buffers.transfer(&self.committed, direction, self.from, self.length)
    }

    fn prepare(&mut self, direction: Direction) -> Result<(), String> {
        match direction {
            Direction::Pack => self.buffers.poison(),
            Direction::Unpack => self.buffers.offer(),
        }
    }

    fn check(&self, direction: Direction) -> Result<(), String> {
        match direction {
            Direction::Pack => self.buffers.check_range(self.from, self.length),
            Direction::Unpack => self.buffers.check_restored(&self.committed, self.from, self.length),
        }
    }
}

/// Enqueues a batch, waits, and checks that every byte was moved.
fn run(on: &OnTier, transfers: &[Transfer]) -> Result<(), String> {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    // SAFETY: the buffers hold all elements, and live until the stream is synchronised.
    let moved = unsafe { on.engine.enqueue_batch(&stream, transfers) }.map_err(text)?;
    stream.synchronize().map_err(text)?;
    let wanted: usize = transfers.iter().map(|transfer| transfer.bytes().unwrap_or(0)).sum();
    expect(moved == wanted, || format!("{moved} bytes were moved, expected {wanted}"))
}

fn the_corpus(on: &OnTier, direction: Direction) -> Outcome {
    let mut rng = SmallRng::seed_from_u64(3);
    for some in subjects().chunks(40) {
        let pieces: Result<Vec<Piece>, String> =
            some.iter().map(|datatype| Piece::new(on, datatype, &mut rng)).collect();
        let mut pieces = pieces?;
        pieces.iter_mut().try_for_each(|piece| piece.prepare(direction))?;
        run(on, &pieces.iter().map(|piece| piece.transfer(direction)).collect::<Vec<_>>())?;
        for (number, piece) in pieces.iter().enumerate() {
            piece.check(direction).map_err(|fault| format!("item {number}: {fault}"))?;
        }
    }
    Ok(())
}

fn both_directions(on: &OnTier) -> Outcome {
    let mut rng = SmallRng::seed_from_u64(4);
    let datatypes: Vec<Datatype> = types::families(1 << 20)?.into_iter().map(|(_, datatype)| datatype).collect();
    let mut pieces = Vec::new();
    for (number, datatype) in datatypes.iter().chain(&datatypes).enumerate() {
        let direction = if number < datatypes.len() { Direction::Pack } else { Direction::Unpack };
        pieces.push((Piece::new(on, datatype, &mut rng)?, direction));
    }
    for round in 0..3 {
        pieces.iter_mut().try_for_each(|(piece, direction)| piece.prepare(*direction))?;
        let calls: Vec<_> = pieces.iter().map(|(piece, direction)| piece.transfer(*direction)).collect();
        if round == 1 {
            let tier = on.engine.prepare_batch(&on.gpu, &calls).map_err(text)?;
            let wanted = if on.is_compiled() { Tier::Specialised } else { Tier::Generic };
            expect(tier == wanted, || format!("served by {tier}, expected {wanted}: {:?}", on.gpu.problem()))?;
        }
        run(on, &calls)?;
        for (number, (piece, direction)) in pieces.iter().enumerate() {
            piece.check(*direction).map_err(|fault| format!("round {round}, item {number}: {fault}"))?;
        }
    }
    Ok(())
}

/// Tiles whose shared memory does not fit beside each other.
fn transposes(on: &OnTier) -> Outcome {
    const COLUMNS: usize = 72;
    let mut pieces = Vec::new();
    for (number, (element, bytes)) in [("float", 4), ("double", 8)].into_iter().cycle().take(12).enumerate() {
        let rows = 64 + number;
        let notation = format!("contiguous {COLUMNS} (resized 0 {bytes} (vector {rows} 1 {COLUMNS} {element}))");
        let committed = on.engine.commit(&notation::parse(&notation).map_err(text)?);
        let buffers = Buffers::new(&on.gpu, &committed, 1, number as u64)?;
        let length = buffers.expected.len();
        pieces.push(Piece { committed, buffers, from: 0, length });
    }
    for direction in [Direction::Pack, Direction::Unpack] {
        pieces.iter_mut().try_for_each(|piece| piece.prepare(direction))?;
        let calls: Vec<_> = pieces.iter().map(|piece| piece.transfer(direction)).collect();
        let tier = on.engine.prepare_batch(&on.gpu, &calls).map_err(text)?;
        let wanted = if on.is_compiled() { Tier::Specialised } else { Tier::Generic };
        expect(tier == wanted, || format!("served by {tier}, expected {wanted}: {:?}", on.gpu.problem()))?;
        run(on, &calls)?;
        pieces.iter().try_for_each(|piece| piece.check(direction))?;
    }
    Ok(())
}

/// Items of one byte to 300 KiB: the same batch several times, then a batch that differs in one item.
fn many(on: &OnTier) -> Outcome {
    const ITEMS: usize = 1500;
    let (runs, rows) = (on.engine.commit(&types::listed(21, 4000)?), on.engine.commit(&types::rows(21)?));
    let span = [&runs, &rows].map(|committed| committed.span(1).map_or(0, |(_, high)| high as usize));
    let stride = span[0].max(span[1]).next_multiple_of(16);
    let (memory, host) = random_buffer(&on.gpu, stride, 5)?;
    let mut rng = SmallRng::seed_from_u64(6);
    let mut wanted = Vec::new();
    let mut requested = Vec::new();
    for number in 0..ITEMS {
        let committed = if number % 2 == 0 { &runs } else { &rows };
        let total = committed.packed_size(1).map_err(text)? as u64;
        let from = rng.random_range(0..total);
        let length = if number % 100 == 0 { total - from } else { rng.random_range(1..=(total - from).min(40)) };
        let mut packed = vec![0u8; length as usize];
        committed.pack(&host, Range::elements(1).fragment(from, length), &mut packed).map_err(text)?;
        requested.push((committed, from, wanted.len(), length));
        wanted.extend_from_slice(&packed);
    }
    let mut packed = poisoned_buffer(&on.gpu, wanted.len())?;
    for round in 0..4 {
        if round == 3 {
            // The first item gets one byte less.
            let first = &mut requested[0];
            first.3 -= 1;
            wanted[first.3 as usize] = crate::buffers::POISON;
        }
        let calls: Vec<Transfer> = requested
            .iter()
            .map(|&(datatype, offset, at, max)| {
                let packed = (packed.address() + at as u64) as *mut u8;
                datatype.at(&memory, Range::elements(1).fragment(offset, max)).pack(packed)
            })
            .collect();
        run(on, &calls)?;
        expect_equal(&format!("round {round}"), &read(&packed, 0, wanted.len())?, &wanted)?;
        packed.fill(crate::buffers::POISON).map_err(text)?;
    }
    Ok(())
}

/// A batch is one node of a graph, which runs also after its types were dropped.
fn captured(on: &OnTier) -> Outcome {
    for items in [7, 60] {
        let engine = on.fresh_engine();
        let gpu = engine.gpu(0).map_err(text)?;
        let committed: Result<Vec<_>, String> =
            (0..items).map(|number| Ok(engine.commit(&types::rows(300 + number % 5)?))).collect();
        let committed = committed?;
        let mut buffers = Vec::new();
        for committed in &committed {
            buffers.push(Buffers::new(&gpu, committed, 1, 8)?);
        }
        let calls: Vec<_> = committed
            .iter()
            .zip(&buffers)
            .map(|(committed, buffers)| buffers.transfer(committed, Direction::Pack, 0, buffers.expected.len()))
            .collect();
        let stream = Stream::new(gpu.device()).map_err(text)?;
        stream.begin_capture(CaptureMode::Global).map_err(text)?;
        // SAFETY: the buffers hold all elements, and live until the last replay.
        unsafe { engine.enqueue_batch(&stream, &calls) }.map_err(text)?;
        let graph = stream.end_capture().map_err(text)?;
        let nodes = graph.nodes().map_err(text)?;
        expect(nodes.all == 1 && nodes.kernels == 1, || format!("{nodes:?}, expected one kernel"))?;
        let executable = graph.instantiate().map_err(text)?;
        drop((committed, engine));
        for replay in 0..3 {
            for buffers in &mut buffers {
                buffers.poison()?;
            }
            executable.launch(&stream).map_err(text)?;
            stream.synchronize().map_err(text)?;
            for (number, buffers) in buffers.iter().enumerate() {
                buffers.check().map_err(|fault| format!("replay {replay}, item {number}: {fault}"))?;
            }
        }
    }
    Ok(())
}

/// A persistent batch moves what it was made for, and after each change of addresses what it says then; a graph keeps to those
/// that it captured.
fn persistent(on: &OnTier, captures: bool) -> Outcome {
    const ROOM: usize = 64;
    let committed = [on.engine.commit(&types::rows(31)?), on.engine.commit(&types::listed(32, 200)?)];
    for items in [1, 7, 60, 200] {
        let of = |item: usize| &committed[item % 2];
        let sizes = committed.each_ref().map(|committed| committed.layout().size() as usize);
        let span = committed.each_ref().map(|committed| committed.span(1).map_or(0, |(_, high)| high as usize));
        let (memory, host) = random_buffer(&on.gpu, 2 * span[0].max(span[1]), 10)?;
        let stride = sizes[0].max(sizes[1]).next_multiple_of(16) + ROOM;
        let mut packed = poisoned_buffer(&on.gpu, items * stride)?;
        // How far the elements of an item, and its packed bytes, are behind where they lay at first.
        let mut places = vec![(0usize, 0usize); items];
        let (elements, bytes) = (memory.address() as usize, packed.address() as usize);
        let addresses = |item: usize, (from, to): (usize, usize)| {
            ((elements + from) as *mut u8, (bytes + item * stride + to) as *mut u8)
        };
        let call = |(item, &place): (usize, &(usize, usize))| {
            let (memory, packed) = addresses(item, place);
            of(item).at(memory, Range::elements(1)).pack(packed)
        };
        let calls: Vec<Transfer> = places.iter().enumerate().map(call).collect();
        let mut batch = on.engine.persistent_batch(&on.gpu, &calls).map_err(text)?;
        let stream = Stream::new(on.gpu.device()).map_err(text)?;
        let wanted = |places: &[(usize, usize)]| -> Result<Vec<u8>, String> {
            let mut wanted = vec![crate::buffers::POISON; items * stride];
            for (item, &(from, to)) in places.iter().enumerate() {
                let part = &mut wanted[item * stride + to..][..sizes[item % 2]];
                of(item).pack(&host[from..], Range::elements(1), part).map_err(text)?;
            }
            Ok(wanted)
        };
        let mut captured = None;
        // All items, a few, other alignments, and the first ones again; with graphs every third round is captured.
        let changes = [(1, 0, 0), (1, 16, 32), (3, 32, 16), (2, 4, 1), (5, 1, 3), (1, 16, 32), (7, 0, 48)];
        for (round, (every, from, to)) in changes.into_iter().enumerate() {
            for item in (0..items).step_by(every) {
                places[item] = (from, to);
                let (memory, packed) = addresses(item, places[item]);
                batch.move_to(item, memory, packed);
            }
            let capture = captures && round % 3 == 2;
            if capture {
                stream.begin_capture(CaptureMode::ThreadLocal).map_err(text)?;
            }
            // SAFETY: the buffers hold all elements, and live until the stream was waited for.
            let moved = unsafe { batch.enqueue(&stream) }.map_err(text)?;
            let bytes = (0..items).map(|item| sizes[item % 2]).sum::<usize>();
            expect(moved == bytes, || format!("{moved} bytes, expected {bytes}"))?;
            if capture {
                let graph = stream.end_capture().map_err(text)?.instantiate().map_err(text)?;
                graph.launch(&stream).map_err(text)?;
                captured = Some((graph, places.clone()));
            }
            stream.synchronize().map_err(text)?;
            let what = format!("round {round} of {items} items");
            expect_equal(&what, &read(&packed, 0, items * stride)?, &wanted(&places)?)?;
            packed.fill(crate::buffers::POISON).map_err(text)?;
        }
        if let Some((graph, places)) = captured {
            drop(batch);
            graph.launch(&stream).map_err(text)?;
            stream.synchronize().map_err(text)?;
            let what = format!("a graph of {items} items");
            expect_equal(&what, &read(&packed, 0, items * stride)?, &wanted(&places)?)?;
        }
    }
    Ok(())
}

fn nothing(on: &OnTier) -> Outcome {
    run(on, &[])?;
    let committed = on.engine.commit(&types::rows(3)?);
    let buffers = Buffers::new(&on.gpu, &committed, 1, 9)?;
    Ok(run(on, &[buffers.transfer(&committed, Direction::Pack, 0, 0)])?)
}

/// Threads that enqueue batches of shared types, each into its own packed bytes.
fn threads(on: &OnTier) -> Outcome {
    let committed: Result<Vec<_>, String> =
        (0..6).map(|number| Ok(on.engine.commit(&types::listed(400 + number, 700)?))).collect();
    let committed = committed?;
    let work = |seed: u64| -> Result<(), String> {
        let stream = Stream::new(on.gpu.device()).map_err(text)?;
        let mut all = Vec::new();
        for committed in committed.iter().cycle().take(4 + 16 * seed as usize) {
            all.push((committed, Buffers::new(&on.gpu, committed, 1, seed)?));
        }
        for _ in 0..10 {
            all.iter_mut().try_for_each(|(_, buffers)| buffers.poison())?;
            let calls: Vec<_> = all
                .iter()
                .map(|(committed, buffers)| buffers.transfer(committed, Direction::Pack, 0, buffers.expected.len()))
                .collect();
            // SAFETY: the buffers hold all elements, and live until the stream is synchronised.
            unsafe { on.engine.enqueue_batch(&stream, &calls) }.map_err(text)?;
            stream.synchronize().map_err(text)?;
            all.iter().try_for_each(|(_, buffers)| buffers.check())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..4).map(|seed| scope.spawn(move || work(seed))).collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    Ok(())
}
