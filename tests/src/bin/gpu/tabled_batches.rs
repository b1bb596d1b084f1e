//! Batches in which types with index tables are: one launch moves what the reference walker says, for packs, unpacks and copies, beside types without tables.

use crate::harness::{Outcome, Tests, expect, text};
use crate::tabled::{POISON, Shifted, Subject, random};
use crate::tier::OnTier;
use dtc_runtime::cuda::{CaptureMode, DeviceBuffer, Stream};
use dtc_runtime::{BatchTransfer, Committed, Direction, IndexTable, Range, TabledError, Tier};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Batches that are drawn. A kernel is compiled for each.
const BATCHES: u64 = 3;

/// Packs and unpacks of a small batch, and copies. Types without tables are as many again.
const FEW: usize = 5;

/// More than the parameters of a launch hold.
const MANY: usize = 30;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let mut test = |name: &str, run: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: tabled batches: {name}", on.name), move || run(&on));
    };
    test("drawn types and others", |on| drawn(on, FEW, BATCHES));
    test("more than a launch has in its parameters", |on| drawn(on, MANY, 1));
    test("a graph reads what tables hold then, in one kernel", replays);
    test("what is wrong is named", wrong);
}

/// A transfer of a batch: its memory, what is to be in it afterwards, and what it needs until then.
enum Item {
    Packed {
        subject: Box<Subject>,
        direction: Direction,
        range: (u64, u64),
        memory: Shifted,
        packed: Shifted,
        expected: Vec<u8>,
    },
    Copied {
        pair: Box<[Subject; 2]>,
        first: u64,
        bytes: u64,
        from: Shifted,
        to: Shifted,
        expected: Vec<u8>,
    },
    Fixed {
        committed: Committed,
        memory: Shifted,
        packed: Shifted,
        expected: Vec<u8>,
    },
}

impl Item {
    fn packed(on: &OnTier, seed: u64, rng: &mut SmallRng) -> Result<Item, String> {
        let subject = Box::new(Subject::new(on, seed)?);
        let first = if seed.is_multiple_of(3) { 0 } else { rng.random_range(0..=subject.total) };
        let end = rng.random_range(first..=subject.total);
        let direction = if seed.is_multiple_of(2) { Direction::Pack } else { Direction::Unpack };
        let contents = random(rng, subject.memory_bytes());
        let bytes = (end - first) as usize;
        let source = if direction == Direction::Pack { vec![POISON; bytes] } else { random(rng, bytes) };
        let mut expected = if direction == Direction::Pack { source.clone() } else { contents.clone() };
        subject.within(first, end).for_each(|(at, place, bytes)| match direction {
            Direction::Pack => expected[at..][..bytes].copy_from_slice(&contents[place..][..bytes]),
            Direction::Unpack => expected[place..][..bytes].copy_from_slice(&source[at..][..bytes]),
        });
        let memory = Shifted::new(on, &contents, [0, 8, 3][rng.random_range(0..3)])?;
        let packed = Shifted::new(on, &source, [0, first as usize % 16][rng.random_range(0..2)])?;
        Ok(Item::Packed { subject, direction, range: (first, end), memory, packed, expected })
    }

    fn copied(on: &OnTier, seed: u64, rng: &mut SmallRng) -> Result<Item, String> {
        let pair = Box::new([Subject::new(on, seed)?, Subject::new(on, seed + 50)?]);
        let [source, target] = &*pair;
        let bytes = source.total.min(target.total);
        let first = rng.random_range(0..=source.total - bytes);
        let (read, mut expected) = (random(rng, source.memory_bytes()), random(rng, target.memory_bytes()));
        let (from, to) = (Shifted::new(on, &read, 0)?, Shifted::new(on, &expected, 0)?);
        let mut place_of = vec![None; bytes as usize];
        source.within(first, first + bytes).for_each(|(at, place, bytes)| {
            (0..bytes).for_each(|byte| place_of[at + byte] = Some(place + byte));
        });
        target.within(0, bytes).for_each(|(at, place, bytes)| {
            for (byte, from) in place_of[at..at + bytes].iter().enumerate() {
                expected[place + byte] = from.map_or(expected[place + byte], |from: usize| read[from]);
            }
        });
        Ok(Item::Copied { pair, first, bytes, from, to, expected })
    }

    /// Rows of a matrix.
    fn fixed(on: &OnTier, rows: usize, rng: &mut SmallRng) -> Result<Item, String> {
        let committed = on.engine.commit(&format!("vector {rows} 3 5 int").parse().map_err(text)?);
        let contents = random(rng, rows * 20);
        let expected = contents.chunks(20).flat_map(|row| &row[..12]).copied().collect();
        let memory = Shifted::new(on, &contents, 0)?;
        let packed = Shifted::new(on, &vec![POISON; rows * 12], 0)?;
        Ok(Item::Fixed { committed, memory, packed, expected })
    }

    /// The tables of both sides.
    fn tables(&self, in_host_memory: bool) -> [Vec<IndexTable<'_>>; 2] {
        match self {
            Item::Packed { subject, .. } => [subject.passed(in_host_memory), Vec::new()],
            Item::Copied { pair, .. } => [pair[0].passed(in_host_memory), pair[1].passed(!in_host_memory)],
            Item::Fixed { .. } => Default::default(),
        }
    }

    fn transfer<'a>(&'a self, [tables, others]: &'a [Vec<IndexTable<'a>>; 2]) -> BatchTransfer<'a> {
        match self {
            Item::Packed { subject, direction, range: (first, end), memory, packed, .. } => {
                let elements = subject.committed.at(memory.address(), tables).bytes(*first..*end).skipping();
                match direction {
                    Direction::Pack => elements.pack(packed.address()).into(),
                    Direction::Unpack => elements.unpack(packed.address()).into(),
                }
            }
            Item::Copied { pair, first, bytes, from, to, .. } => {
                let [source, target] = &**pair;
                let destination = target.committed.at(to.address(), others).bytes(..*bytes).skipping();
                let elements = source.committed.at(from.address(), tables).bytes(*first..first + bytes).skipping();
                elements.copy_to(destination).into()
            }
            Item::Fixed { committed, memory, packed, .. } => {
                committed.at(memory.address(), Range::elements(1)).pack(packed.address()).into()
            }
        }
    }

    fn check(&self) -> Outcome {
        let (what, found, expected) = match self {
            Item::Packed { subject, direction, range, memory, packed, expected } => {
                let written = if *direction == Direction::Pack { packed } else { memory };
                (format!("{direction} of {range:?} of {}", subject.name), written.read()?, expected)
            }
            Item::Copied { pair, first, bytes, to, expected, .. } => {
                let [source, target] = &**pair;
                let what = format!("{bytes} bytes from {first} of {} to {}", source.name, target.name);
                (what, to.read()?, expected)
            }
            Item::Fixed { committed, packed, expected, .. } => {
                (format!("a pack of {}", committed.datatype()), packed.read()?, expected)
            }
        };
        expect(found == *expected, || what)?;
        Ok(())
    }
}

fn drawn(on: &OnTier, each: usize, batches: u64) -> Outcome {
    for batch in 0..batches {
        let mut rng = SmallRng::seed_from_u64(batch);
        let mut items = Vec::new();
        for number in 0..each {
            // Few types, so that a kernel has few kinds.
            let seed = 300 + 10 * batch + (number % FEW) as u64;
            items.push(Item::packed(on, seed, &mut rng)?);
            items.push(Item::copied(on, seed, &mut rng)?);
            items.push(Item::fixed(on, 3 + number % FEW, &mut rng)?);
        }
        let tables: Vec<_> = items.iter().enumerate().map(|(at, item)| item.tables(at % 2 == 0)).collect();
        let transfers: Vec<_> = items.iter().zip(&tables).map(|(item, tables)| item.transfer(tables)).collect();
        if batch == 0 && each == FEW {
            let tier = on.engine.prepare_tabled_batch(&on.gpu, &transfers).map_err(text)?;
            let wanted = if on.is_compiled() { Tier::Specialised } else { Tier::Generic };
            expect(tier == wanted, || format!("served by {tier}, expected {wanted}: {:?}", on.gpu.problem()))?;
        }
        // SAFETY: the memories have all places, and the packed bytes are as many as the ranges.
        unsafe { on.engine.run_tabled_batch(&transfers).map_err(text)? };
        items.iter().try_for_each(Item::check)?;
    }
    Ok(())
}

fn table_bytes(entries: &[i32]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect()
}

fn replays(on: &OnTier) -> Outcome {
    let committed = on.engine.commit_tabled(&"table 0 64 16 512 (contiguous 64 double)".parse().map_err(text)?);
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let contents = random(&mut SmallRng::seed_from_u64(7), 64 * 512);
    let memory = DeviceBuffer::copy_of(&stream, &contents).map_err(text)?;
    let buffer = || DeviceBuffer::new(on.gpu.device(), 2 * 512).map_err(text);
    let (packed, other) = (buffer()?, buffer()?);
    let mut table = DeviceBuffer::copy_of(&stream, &table_bytes(&[0, 1])).map_err(text)?;
    let (tables, fixed) = ([IndexTable::at(&table, false, 2)], [IndexTable::from(&[9, 8])]);
    let transfers =
        [committed.at(&memory, &tables).pack(&packed).into(), committed.at(&memory, &fixed).pack(&other).into()];
    let tier = on.engine.prepare_tabled_batch(&on.gpu, &transfers).map_err(text)?;
    committed.prepare(&on.gpu).map_err(text)?;
    stream.begin_capture(CaptureMode::Global).map_err(text)?;
    // SAFETY: the buffers have the bytes of two entries each, and outlive the graph.
    unsafe { on.engine.enqueue_tabled_batch(&stream, &transfers).map_err(text)? };
    let graph = stream.end_capture().map_err(text)?;
    let kernels = graph.nodes().map_err(text)?.kernels;
    expect(kernels == if tier == Tier::Specialised { 1 } else { 2 }, || format!("{kernels} kernels of {tier}"))?;
    let graph = graph.instantiate().map_err(text)?;
    drop(committed);
    for entries in [[5, 60], [63, 0]] {
        table.write(0, &table_bytes(&entries)).map_err(text)?;
        graph.launch(&stream).map_err(text)?;
        stream.synchronize().map_err(text)?;
        for (buffer, entries) in [(&packed, entries), (&other, [9, 8])] {
            let mut found = vec![0; 2 * 512];
            buffer.read(0, &mut found).map_err(text)?;
            let expected: Vec<u8> =
                entries.iter().flat_map(|&entry: &i32| &contents[entry as usize * 512..][..512]).copied().collect();
            expect(found == expected, || format!("a replay with {entries:?}"))?;
        }
    }
    Ok(())
}

fn wrong(on: &OnTier) -> Outcome {
    let committed = on.engine.commit_tabled(&"table 0 4 2 8 double".parse().map_err(text)?);
    let plain = on.engine.commit(&"double".parse().map_err(text)?);
    let memory = Shifted::new(on, &[1; 32], 0)?;
    let packed = Shifted::new(on, &[POISON; 16], 0)?;
    let (good, bad) = ([IndexTable::from(&[3])], [IndexTable::from(&[1, 4])]);
    let pack = |tables| committed.at(memory.address(), tables).pack(packed.address()).into();
    let copy = plain.at(memory.address(), Range::elements(1)).copy_to(plain.at(packed.address(), Range::elements(1)));
    for (second, message) in [
        (pack(&bad), "transfer 1: table 0, entry 1: expected a place below 4, found 4"),
        (copy.into(), "transfer 1: batch: expected packs and unpacks, found a copy"),
    ] {
        // SAFETY: nothing is moved.
        let found = unsafe { on.engine.run_tabled_batch(&[pack(&good), second]) };
        expect(
            matches!(&found, Err(error @ TabledError::Item { item: 1, .. }) if error.to_string() == message),
            || format!("{found:?}"),
        )?;
    }
    expect(packed.read()? == [POISON; 16], || "a batch that is refused moved bytes".to_owned())?;
    // SAFETY: the memory has all places, and the packed bytes those of one.
    let found = unsafe { on.engine.run_tabled_batch(&[pack(&good), pack(&[])]) };
    expect(found.is_err(), || format!("{found:?}"))?;
    // SAFETY: as above.
    expect(unsafe { on.engine.run_tabled_batch(&[]) } == Ok(0), || "an empty batch".to_owned())?;
    Ok(())
}
