//! The tests that need a GPU: `dtc-gpu-tests [PART OF A NAME]` runs them and prints their count.
//!
//! It is a program of its own and no test of cargo, because machines with a GPU often have no Rust.
#![expect(unsafe_code, reason = "the calls on device memory are on raw addresses")]

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder, json};
use dtc_runtime::cuda::{CaptureMode, DeviceBuffer, Stream};
use dtc_runtime::{Committed, Engine, Gpu, Policy, Tier};
use dtc_tests::conformance::{GpuSubject, run_on_copies};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::process::ExitCode;
use std::time::Instant;

type Outcome = Result<(), String>;

/// Random types on each tier.
const RANDOM_TYPES: u64 = 150;

fn main() -> ExitCode {
    let part = std::env::args().nth(1).unwrap_or_default();
    let generic = Engine::builder().policy(Policy::Off).build();
    let compiled = Engine::builder().policy(Policy::Always).build();
    let (generic_gpu, compiled_gpu) = match (generic.gpu(0), compiled.gpu(0)) {
        (Ok(generic), Ok(compiled)) => (generic, compiled),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(4);
        }
    };
    let tiers = [("generic", &generic, &generic_gpu), ("compiled", &compiled, &compiled_gpu)];

    let mut tests: Vec<(String, Box<dyn Fn() -> Outcome + '_>)> = Vec::new();
    for (tier, engine, gpu) in tiers {
        for case in corpus::all() {
            let name = format!("{tier}: corpus: {}", case.name);
            tests.push((name.clone(), Box::new(move || conforms(engine, gpu, &name, &case.datatype, 1))));
        }
        for (example, datatype) in examples() {
            let name = format!("{tier}: example: {example}");
            tests.push((name.clone(), Box::new(move || conforms(engine, gpu, &name, &datatype, 2))));
        }
        for seed in 0..RANDOM_TYPES {
            let name = format!("{tier}: random: {seed}");
            let test = move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                let datatype = random::datatype(&mut rng, &Limits::SMALL);
                conforms(engine, gpu, &format!("random {seed}"), &datatype, seed)
            };
            tests.push((name, Box::new(test)));
        }
        tests.push((format!("{tier}: tiles in fragments"), Box::new(move || tiles(engine, gpu))));
        tests.push((format!("{tier}: more than 2^32 bytes apart"), Box::new(move || far_apart(engine, gpu))));
        tests.push((format!("{tier}: more than 2^31 words"), Box::new(move || many_words(engine, gpu))));
        tests.push((format!("{tier}: captured into a graph"), Box::new(move || captured(engine, gpu))));
        tests.push((format!("{tier}: at most one launch"), Box::new(move || one_launch(engine, gpu))));
        tests.push((format!("{tier}: threads and streams"), Box::new(move || threads(engine, gpu))));
        tests.push((format!("{tier}: requests"), Box::new(move || requests(engine, gpu))));
    }
    tests.push(("compiled: is compiled".to_owned(), Box::new(|| is_compiled(&compiled, &compiled_gpu))));

    let (mut passed, mut failed) = (0, 0);
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&part)) {
        let start = Instant::now();
        let outcome = test();
        let milliseconds = start.elapsed().as_millis();
        match outcome {
            Ok(()) => {
                passed += 1;
                println!("test {name} ... ok ({milliseconds} ms)");
            }
            Err(fault) => {
                failed += 1;
                println!("test {name} ... FAILED: {fault}");
            }
        }
    }
    if let Some(problem) = compiled_gpu.problem() {
        println!("a kernel was not compiled: {problem}");
        failed += 1;
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every example that is small enough for a check of every byte many times over.
fn examples() -> Vec<(String, Datatype)> {
    let mut found = Vec::new();
    for file in std::fs::read_dir("ir-examples").into_iter().flatten().flatten() {
        let path = file.path();
        let Some(text) = std::fs::read_to_string(&path).ok().filter(|_| path.extension().is_some_and(|e| e == "json"))
        else {
            continue;
        };
        if let Ok(description) = json::read(&text)
            && description.datatype.facts().true_extent() < 1 << 21
        {
            found.push((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), description.datatype));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn conforms(engine: &Engine, gpu: &Gpu, name: &str, datatype: &Datatype, seed: u64) -> Outcome {
    run_on_copies(&GpuSubject::new(engine, gpu, name, datatype), datatype, seed)
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

fn random_buffer(gpu: &Gpu, bytes: usize, seed: u64) -> Result<(DeviceBuffer, Vec<u8>), String> {
    let mut host = vec![0; bytes];
    SmallRng::seed_from_u64(seed).fill(&mut host[..]);
    let mut buffer = DeviceBuffer::new(gpu.device(), bytes).map_err(text)?;
    buffer.write(0, &host).map_err(text)?;
    Ok((buffer, host))
}

fn poisoned_buffer(gpu: &Gpu, bytes: usize) -> Result<DeviceBuffer, String> {
    let mut buffer = DeviceBuffer::new(gpu.device(), bytes).map_err(text)?;
    buffer.fill(0x5a).map_err(text)?;
    Ok(buffer)
}

fn read(buffer: &DeviceBuffer, at: usize, bytes: usize) -> Result<Vec<u8>, String> {
    let mut host = vec![0; bytes];
    buffer.read(at, &mut host).map_err(text)?;
    Ok(host)
}

fn expect_equal(what: &str, found: &[u8], expected: &[u8]) -> Outcome {
    match (0..expected.len()).find(|&at| found.get(at) != Some(&expected[at])) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: byte {at} is {:02x?}, expected {:02x}", found.get(at), expected[at])),
    }
}

/// A matrix sent by columns, whole and in fragments that begin and end inside tiles, columns and words.
fn tiles(engine: &Engine, gpu: &Gpu) -> Outcome {
    let (rows, columns) = (150i64, 70i64);
    for (kind, size) in [(Predefined::DOUBLE, 8usize), (Predefined::FLOAT, 4), (Predefined::SHORT, 2)] {
        let mut types = TypeBuilder::new();
        let element = types.named(kind);
        let column = types.vector(rows, 1, columns, element).map_err(text)?;
        let column = types.resized(0, size as i64, column).map_err(text)?;
        let matrix = types.contiguous(columns, column).map_err(text)?;
        let matrix = types.resized(0, rows * columns * size as i64, matrix).map_err(text)?;
        let committed = engine.commit(&types.finish(matrix));
        let count = 3;
        let total = committed.packed_size(count).map_err(text)? as usize;
        let (memory, host) = random_buffer(gpu, total, 3)?;
        let mut expected = vec![0; total];
        committed.pack(&host, 0, count, 0, &mut expected).map_err(text)?;
        let mut rng = SmallRng::seed_from_u64(4);
        for round in 0..60 {
            let granule = if round % 2 == 0 { size } else { 1 };
            let from = if round == 0 { 0 } else { rng.random_range(0..total / granule) * granule };
            let length = if round == 0 { total } else { rng.random_range(1..=(total - from) / granule) * granule };
            let packed = poisoned_buffer(gpu, length)?;
            // SAFETY: both buffers are on the device and large enough.
            unsafe {
                committed
                    .pack_any(
                        memory.address() as *const u8,
                        count,
                        from as u64,
                        packed.address() as *mut u8,
                        length as u64,
                    )
                    .map_err(text)?;
            }
            expect_equal("packed", &read(&packed, 0, length)?, &expected[from..from + length])?;
            let restored = poisoned_buffer(gpu, total)?;
            let mut wanted = vec![0x5a; total];
            committed.unpack(&expected[from..from + length], from as u64, &mut wanted, 0, count).map_err(text)?;
            // SAFETY: as above.
            unsafe {
                let (source, target) = (packed.address() as *const u8, restored.address() as *mut u8);
                committed.unpack_any(source, length as u64, target, count, from as u64).map_err(text)?;
            }
            expect_equal("unpacked", &read(&restored, 0, total)?, &wanted)?;
        }
    }
    Ok(())
}

/// Elements that span more than 4 GiB.
fn far_apart(engine: &Engine, gpu: &Gpu) -> Outcome {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let vector = types.vector(1 << 12, 3, 1 << 18, double).map_err(text)?;
    let committed = engine.commit(&types.finish(vector));
    let span = committed.span(1).map_or(0, |(_, high)| high) as usize;
    let memory = poisoned_buffer(gpu, span)?;
    let total = committed.packed_size(1).map_err(text)? as usize;
    let (packed, host) = random_buffer(gpu, total, 5)?;
    let back = poisoned_buffer(gpu, total)?;
    // SAFETY: all buffers are on the device and large enough.
    unsafe {
        committed
            .unpack_any(packed.address() as *const u8, total as u64, memory.address() as *mut u8, 1, 0)
            .map_err(text)?;
        committed
            .pack_any(memory.address() as *const u8, 1, 0, back.address() as *mut u8, total as u64)
            .map_err(text)?;
    }
    expect_equal("there and back", &read(&back, 0, total)?, &host)?;
    for row in [0usize, 1, 2047, 2048, 2049, 4095] {
        let at = row << 21;
        expect_equal("a row", &read(&memory, at, 24)?, &host[row * 24..row * 24 + 24])?;
        if row > 0 {
            expect_equal("a gap", &read(&memory, at - 8, 8)?, &[0x5a; 8])?;
        }
    }
    Ok(())
}

/// More words than 32 bits count.
fn many_words(engine: &Engine, gpu: &Gpu) -> Outcome {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    // Three ints of every four.
    let vector = types.vector(1 << 20, 3, 4, int).map_err(text)?;
    let vector = types.resized(0, 16 << 20, vector).map_err(text)?;
    let committed = engine.commit(&types.finish(vector));
    let count = 820; // 9.6 GiB packed: 2.4 * 2^30 words
    let total = committed.packed_size(count).map_err(text)? as usize;
    let memory = poisoned_buffer(gpu, (16 << 20) * count as usize)?;
    let mut packed = poisoned_buffer(gpu, total)?;
    // Marks at the ends and where 32 bits end, for words and for bytes.
    let places = [0, 1 << 31, (1usize << 32) - 24, 1 << 32, (1 << 33) - 24, 1 << 33, total - 24];
    let marks: Vec<Vec<u8>> =
        (0..places.len()).map(|at| (0..24).map(|byte| (at * 24 + byte) as u8).collect()).collect();
    for (place, mark) in places.iter().zip(&marks) {
        packed.write(*place, mark).map_err(text)?;
    }
    let back = poisoned_buffer(gpu, total)?;
    // SAFETY: all buffers are on the device and large enough.
    unsafe {
        let (source, target) = (packed.address() as *const u8, memory.address() as *mut u8);
        committed.unpack_any(source, total as u64, target, count, 0).map_err(text)?;
        let (source, target) = (memory.address() as *const u8, back.address() as *mut u8);
        committed.pack_any(source, count, 0, target, total as u64).map_err(text)?;
    }
    for (place, mark) in places.iter().zip(&marks) {
        expect_equal("there and back", &read(&back, *place, 24)?, mark)?;
        let row = place / 12;
        let column = place % 12;
        expect_equal("in memory", &read(&memory, row * 16 + column, 12 - column)?, &mark[..12 - column])?;
    }
    Ok(())
}

/// A type with a list, so that kernels and the interpreter need tables.
fn listed(engine: &Engine) -> Result<Committed, String> {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let mut rng = SmallRng::seed_from_u64(9);
    let (mut lengths, mut places, mut at) = (Vec::new(), Vec::new(), 0);
    for _ in 0..5000 {
        let length = rng.random_range(1..=32);
        lengths.push(length);
        places.push(at);
        at += length + rng.random_range(1..=32);
    }
    let list = types.indexed(&lengths, &places, int).map_err(text)?;
    Ok(engine.commit(&types.finish(list)))
}

/// A graph replays a pack, and keeps kernel and tables when the type is gone.
fn captured(engine: &Engine, gpu: &Gpu) -> Outcome {
    let committed = listed(engine)?;
    committed.prepare(gpu).map_err(text)?;
    let span = committed.span(1).map_or(0, |(_, high)| high) as usize;
    let total = committed.packed_size(1).map_err(text)? as usize;
    let (mut memory, _) = random_buffer(gpu, span, 1)?;
    let packed = poisoned_buffer(gpu, total)?;
    let stream = Stream::new(gpu.device()).map_err(text)?;
    stream.begin_capture(CaptureMode::Global).map_err(text)?;
    // SAFETY: both buffers are on the device, large enough, and outlive the graph's last launch.
    unsafe {
        let (source, target) = (memory.address() as *const u8, packed.address() as *mut u8);
        committed.pack_enqueue(&stream, source, 1, 0, target, total as u64).map_err(text)?;
    }
    let graph = stream.end_capture().map_err(text)?;
    let executable = graph.instantiate().map_err(text)?;
    for seed in 10..13 {
        let mut host = vec![0; span];
        SmallRng::seed_from_u64(seed).fill(&mut host[..]);
        memory.write(0, &host).map_err(text)?;
        executable.launch(&stream).map_err(text)?;
        stream.synchronize().map_err(text)?;
        let mut expected = vec![0; total];
        committed.pack(&host, 0, 1, 0, &mut expected).map_err(text)?;
        expect_equal("replayed", &read(&packed, 0, total)?, &expected)?;
    }
    Ok(())
}

/// Every type of the corpus is one kernel or one copy, whatever the fragment.
fn one_launch(engine: &Engine, gpu: &Gpu) -> Outcome {
    let memory = poisoned_buffer(gpu, 64 << 20)?;
    let packed = poisoned_buffer(gpu, 16 << 20)?;
    let middle = memory.address() + (32 << 20);
    for case in corpus::all() {
        let committed = engine.commit(&case.datatype);
        let Some((low, high)) = committed.span(2) else { continue };
        let total = committed.packed_size(2).map_err(text)?;
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
                committed.pack_enqueue(&stream, middle as *const u8, 2, from, target, length).map_err(text)?;
            }
            let nodes = stream.end_capture().map_err(text)?.nodes().map_err(text)?;
            if nodes.all != 1 {
                return Err(format!("{}: {} launches, expected 1", case.name, nodes.all));
            }
        }
    }
    Ok(())
}

/// Threads that pack one type, each on a CUDA stream of its own.
fn threads(engine: &Engine, gpu: &Gpu) -> Outcome {
    let committed = listed(engine)?;
    let span = committed.span(1).map_or(0, |(_, high)| high) as usize;
    let total = committed.packed_size(1).map_err(text)? as usize;
    let work = |seed: u64| -> Outcome {
        let (memory, host) = random_buffer(gpu, span, seed)?;
        let packed = poisoned_buffer(gpu, total)?;
        let mut expected = vec![0; total];
        committed.pack(&host, 0, 1, 0, &mut expected).map_err(text)?;
        let stream = Stream::new(gpu.device()).map_err(text)?;
        for round in 0..50 {
            let from = (round * 37) % total;
            // SAFETY: both buffers are on the device and large enough.
            unsafe {
                let (source, target) = (memory.address() as *const u8, packed.address() as *mut u8);
                let length = (total - from) as u64;
                committed.pack_enqueue(&stream, source, 1, from as u64, target, length).map_err(text)?;
            }
            stream.synchronize().map_err(text)?;
            expect_equal("packed", &read(&packed, 0, total - from)?, &expected[from..])?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..8).map(|seed| scope.spawn(move || work(seed))).collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })
}

/// Many requests under way at once.
fn requests(engine: &Engine, gpu: &Gpu) -> Outcome {
    let committed = listed(engine)?;
    let span = committed.span(1).map_or(0, |(_, high)| high) as usize;
    let total = committed.packed_size(1).map_err(text)? as usize;
    let (memory, host) = random_buffer(gpu, span, 21)?;
    let packed = poisoned_buffer(gpu, total)?;
    let mut expected = vec![0; total];
    committed.pack(&host, 0, 1, 0, &mut expected).map_err(text)?;
    let piece = total.div_ceil(16);
    let mut under_way = Vec::new();
    for from in (0..total).step_by(piece) {
        // SAFETY: both buffers are on the device and large enough; pieces are apart.
        let request = unsafe {
            let (source, target) = (memory.address() as *const u8, (packed.address() + from as u64) as *mut u8);
            committed.pack_start(source, 1, from as u64, target, piece as u64)
        };
        under_way.push(request.map_err(text)?);
    }
    for request in under_way {
        while !request.test().map_err(text)? {}
        request.wait().map_err(text)?;
    }
    expect_equal("packed", &read(&packed, 0, total)?, &expected)
}

/// The compiled tier really serves.
fn is_compiled(engine: &Engine, gpu: &Gpu) -> Outcome {
    let committed = listed(engine)?;
    match committed.prepare(gpu).map_err(text)? {
        Tier::Specialised => Ok(()),
        Tier::Generic => Err(format!("generic: {:?}", gpu.problem())),
    }
}
