//! Types with index tables: what a kernel moves is what the reference walker says, whatever the tables hold and wherever they are.

use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::tier::OnTier;
use dtc_compiler::tabled::{Entries, TabledLayout, TabledPiece};
use dtc_runtime::cuda::{CaptureMode, Device, DeviceBuffer, Nvrtc, PinnedBuffer, Stream};
use dtc_runtime::datatype::{TableKind, TabledDatatype};
use dtc_runtime::operation::{Element, Operation, Reduction};
use dtc_runtime::store::Config;
use dtc_runtime::{BundleWriter, CommittedTabled, Endpoint, Engine, IndexTable, Multiprocessors, TabledError};
use dtc_tests::generate::tabled::{Tabled, tabled};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fs;

/// Types that are drawn. A kernel is compiled for each direction and word.
const TYPES: u64 = 12;

/// The byte of memory that nothing writes.
pub const POISON: u8 = 0xa5;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let mut test = |name: &str, run: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: tabled: {name}", on.name), move || run(&on));
    };
    test("packs and unpacks of drawn types", drawn);
    test("copies between drawn types", copies);
    test("copies in parts through kept memory", long_copy);
    test("blocks by copies of the driver", driver_copies);
    test("accumulations", accumulations);
    test("a graph reads what its table holds then", replays);
    test("entries beyond the places are noted, and not followed", beyond);
    test("tables of addresses", addresses);
    test("kernels from a bundle", bundled);
    test("two GPUs: packs, unpacks and copies over the link", over_the_link);
}

pub fn random(rng: &mut SmallRng, bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    rng.fill(&mut all[..]);
    all
}

/// A buffer that begins `shift` bytes behind an allocation.
pub struct Shifted {
    buffer: DeviceBuffer,
    shift: usize,
    bytes: usize,
}

impl Shifted {
    pub fn new(on: &OnTier, contents: &[u8], shift: usize) -> Result<Shifted, String> {
        let mut buffer = DeviceBuffer::new(on.gpu.device(), contents.len() + shift + 1).map_err(text)?;
        buffer.fill(POISON).map_err(text)?;
        if !contents.is_empty() {
            buffer.write(shift, contents).map_err(text)?;
        }
        Ok(Shifted { buffer, shift, bytes: contents.len() })
    }

    pub fn address(&self) -> Endpoint {
        let address = std::ptr::with_exposed_provenance::<u8>(self.buffer.address() as usize + self.shift);
        Endpoint::of_kind(self.buffer.kind(), address)
    }

    pub fn read(&self) -> Result<Vec<u8>, String> {
        let mut contents = vec![0; self.bytes];
        if self.bytes > 0 {
            self.buffer.read(self.shift, &mut contents).map_err(text)?;
        }
        Ok(contents)
    }
}

/// A drawn type, its tables in a form that a kernel reads, and the pieces of a range.
pub struct Subject {
    pub name: String,
    pub committed: CommittedTabled,
    datatype: TabledDatatype,
    tables: Vec<Vec<i64>>,
    on_device: Vec<DeviceBuffer>,
    wide: bool,
    pieces: Vec<TabledPiece>,
    pub total: u64,
}

impl Subject {
    pub fn new(on: &OnTier, seed: u64) -> Result<Subject, String> {
        let Tabled { datatype, tables } = tabled(&mut SmallRng::seed_from_u64(seed), true);
        let layout = TabledLayout::new(&datatype);
        let entries: Vec<Entries<'_>> = tables.iter().map(|table| Entries::Wide(table)).collect();
        let pieces = layout.walk(&entries);
        let committed = on.engine.commit_tabled(&datatype);
        let lengths: Vec<u64> = tables.iter().map(|table| table.len() as u64).collect();
        let total = committed.packed_size(&lengths).map_err(text)?;
        let wide = seed.is_multiple_of(2);
        let upload = |table: &Vec<i64>| {
            let mut bytes: Vec<u8> = Vec::new();
            for &entry in table {
                if wide {
                    bytes.extend(entry.to_ne_bytes());
                } else {
                    bytes.extend((entry as i32).to_ne_bytes());
                }
            }
            // A buffer has a byte at least.
            bytes.push(0);
            DeviceBuffer::copy_of(&Stream::new(on.gpu.device())?, &bytes)
        };
        let on_device = tables.iter().map(upload).collect::<Result<_, _>>().map_err(text)?;
        let name = format!("seed {seed}: {datatype} with {tables:?}");
        Ok(Subject { name, committed, datatype, tables, on_device, wide, pieces, total })
    }

    pub fn passed(&self, in_host_memory: bool) -> Vec<IndexTable<'_>> {
        let each = self.tables.iter().zip(&self.on_device);
        each.map(|(table, buffer)| {
            if in_host_memory { IndexTable::from(table) } else { IndexTable::at(buffer, self.wide, table.len() as u64) }
        })
        .collect()
    }

    pub fn memory_bytes(&self) -> usize {
        self.datatype.facts().true_ub as usize
    }

    /// Where the packed bytes of a range lie: position, place, bytes.
    pub fn within(&self, first: u64, end: u64) -> impl Iterator<Item = (usize, usize, usize)> {
        self.pieces.iter().filter_map(move |piece| {
            let (from, to) = (piece.position.max(first), (piece.position + piece.bytes).min(end));
            let place = piece.place + from.saturating_sub(piece.position);
            (from < to).then(|| ((from - first) as usize, place as usize, (to - from) as usize))
        })
    }
}

fn drawn(on: &OnTier) -> Outcome {
    for seed in 0..TYPES {
        let subject = Subject::new(on, seed)?;
        let mut rng = SmallRng::seed_from_u64(seed);
        let contents = random(&mut rng, subject.memory_bytes());
        let pinned = PinnedBuffer::new(on.gpu.device(), subject.total as usize + 1).map_err(text)?;
        for round in 0..6 {
            let shift = [0, 0, 8, 3][round % 4];
            let first = if round == 0 { 0 } else { rng.random_range(0..=subject.total) };
            let end = if round == 0 { subject.total } else { rng.random_range(first..=subject.total) };
            let bytes = (end - first) as usize;
            let tables = subject.passed(round % 2 == 1);
            let memory = Shifted::new(on, &contents, shift)?;
            let packed = Shifted::new(on, &vec![POISON; bytes], [0, first as usize % 16, 5][round % 3])?;
            let elements = subject.committed.at(memory.address(), &tables).bytes(first..end).skipping();
            let some = match round {
                3 => Multiprocessors::None,
                4 => Multiprocessors::AtMost(2),
                _ => Multiprocessors::All,
            };
            // SAFETY: the memory has all places, and the packed bytes are as many as the range.
            unsafe { elements.pack(packed.address()).on(some).run().map_err(text)? };
            let mut expected = vec![POISON; bytes];
            subject.within(first, end).for_each(|(at, place, bytes)| {
                expected[at..][..bytes].copy_from_slice(&contents[place..][..bytes]);
            });
            let what = || format!("round {round}, {first}..{end} of {}", subject.name);
            expect(packed.read()? == expected, || format!("a pack, {}", what()))?;

            let source = random(&mut rng, bytes);
            let source_on = Shifted::new(on, &source, packed.shift)?;
            // SAFETY: as for the pack.
            unsafe { elements.unpack(source_on.address()).on(some).run().map_err(text)? };
            let mut expected = contents.clone();
            subject.within(first, end).for_each(|(at, place, bytes)| {
                expected[place..][..bytes].copy_from_slice(&source[at..][..bytes]);
            });
            expect(memory.read()? == expected, || format!("an unpack, {}", what()))?;
            if round == 0 {
                // SAFETY: the pinned buffer has a byte more than all packed bytes.
                unsafe { elements.pack(&pinned).run().map_err(text)? };
                let after = memory.read()?;
                for (at, place, bytes) in subject.within(first, end) {
                    expect(pinned.as_slice()[at..][..bytes] == after[place..][..bytes], || {
                        format!("pinned, {}", what())
                    })?;
                }
            }
        }
    }
    Ok(())
}

fn copies(on: &OnTier) -> Outcome {
    let mut made = 0;
    for seed in 0..TYPES {
        let (source, target) = (Subject::new(on, 100 + seed)?, Subject::new(on, 200 + seed)?);
        let bytes = source.total.min(target.total);
        let mut rng = SmallRng::seed_from_u64(seed);
        let first = rng.random_range(0..=source.total - bytes) / 8 * 8;
        let (read, written) = (random(&mut rng, source.memory_bytes()), random(&mut rng, target.memory_bytes()));
        let (from, to) = (Shifted::new(on, &read, 0)?, Shifted::new(on, &written, 0)?);
        let (tables, target_tables) = (source.passed(false), target.passed(seed % 2 == 0));
        let elements = source.committed.at(from.address(), &tables).bytes(first..first + bytes);
        let destination = target.committed.at(to.address(), &target_tables).bytes(..bytes).skipping();
        // SAFETY: both memories have all places.
        unsafe { elements.copy_to(destination).run().map_err(text)? };
        // What an entry of either side skips is not written.
        let mut place_of = vec![None; bytes as usize];
        source.within(first, first + bytes).for_each(|(at, place, bytes)| {
            (0..bytes).for_each(|byte| place_of[at + byte] = Some(place + byte));
        });
        let mut expected = written.clone();
        target.within(0, bytes).for_each(|(at, place, bytes)| {
            for byte in 0..bytes {
                if let Some(from) = place_of[at + byte] {
                    expected[place + byte] = read[from];
                    made += 1;
                }
            }
        });
        expect(to.read()? == expected, || format!("{bytes} bytes from {first} of {} to {}", source.name, target.name))?;
    }
    expect(made > 0, || "no copy moved a byte".to_owned())?;
    Ok(())
}

/// More bytes than pass through the kept memory at a time, from the middle of a page on, with an entry skipped on either side.
fn long_copy(on: &OnTier) -> Outcome {
    const PAGE: usize = 1 << 20;
    let commit = |pitch: usize| {
        let notation = format!("table 0 12 10 {pitch} (contiguous {PAGE} byte)");
        notation.parse().map(|datatype| on.engine.commit_tabled(&datatype)).map_err(text)
    };
    let (source, target) = (commit(PAGE)?, commit(PAGE + 64)?);
    let mut rng = SmallRng::seed_from_u64(9);
    let (read, written) = (random(&mut rng, 12 * PAGE), random(&mut rng, 12 * (PAGE + 64)));
    let (from, to) = (Shifted::new(on, &read, 0)?, Shifted::new(on, &written, 0)?);
    let (entries, places) = ([7i32, 3, 0, -1, 11, 2, 5, 1, 10, 4], [0i32, 1, 2, 3, -1, 5, 6, 7, 8, 11]);
    let (tables, others) = ([IndexTable::from(&entries)], [IndexTable::from(&places)]);
    let (first, bytes) = (PAGE / 2, 9 * PAGE);
    let range = first as u64..(first + bytes) as u64;
    let elements = source.at(from.address(), &tables).bytes(range.clone()).skipping();
    let destination = target.at(to.address(), &others).bytes(range).skipping();
    // SAFETY: both memories have all places.
    unsafe { elements.copy_to(destination).run().map_err(text)? };
    let mut expected = written;
    for page in 0..10 {
        let (begin, end) = ((page * PAGE).max(first), ((page + 1) * PAGE).min(first + bytes));
        if entries[page] >= 0 && places[page] >= 0 && begin < end {
            let (from, to) = (entries[page] as usize * PAGE, places[page] as usize * (PAGE + 64));
            let within = begin - page * PAGE;
            expected[to + within..][..end - begin].copy_from_slice(&read[from + within..][..end - begin]);
        }
    }
    expect(to.read()? == expected, || "a copy of 9 MiB".to_owned())?;
    Ok(())
}

/// Sums of doubles at any address, of a part of the packed bytes, and with an entry that is skipped; alone and twice in a batch.
fn accumulations(on: &OnTier) -> Outcome {
    let rows =
        on.engine.commit_tabled(&"hvector 2 1 4096 (table 0 16 8 256 (vector 4 3 5 double))".parse().map_err(text)?);
    let sum = Reduction::new(Operation::Sum, Element::F64).map_err(text)?;
    let odd = Reduction::new(Operation::MinLoc, Element::DoubleInt).map_err(text)?;
    let numbers = |begin: usize, count: usize| (begin..begin + count).map(|at| at as f64).collect::<Vec<f64>>();
    let bytes_of = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
    let entries = [9i32, -1, 15, 0];
    let tables = [IndexTable::from(&entries)];
    let (all, first, count) = (2 * 4 * 12, 5, 2 * 4 * 12 - 9);
    for (shift, batched) in [(0, false), (3, false), (0, true)] {
        let mut expected = numbers(1, 1024);
        let memory = Shifted::new(on, &bytes_of(&expected), shift)?;
        let packed = Shifted::new(on, &bytes_of(&numbers(5000, count)), shift + 5)?;
        let elements = rows.at(memory.address(), &tables).skipping();
        let part = elements.bytes(8 * first as u64..8 * (first + count) as u64);
        let other = Shifted::new(on, &bytes_of(&numbers(1, 1024)), 0)?;
        let transfer = part.accumulate(sum, packed.address());
        // SAFETY: both memories have all places, and the packed bytes are as many as the range.
        unsafe {
            if batched {
                let beside = rows.at(other.address(), &tables).skipping().bytes(..96).accumulate(sum, packed.address());
                on.engine.run_tabled_batch(&[transfer.into(), beside.into()]).map_err(text)?;
            } else {
                transfer.run().map_err(text)?;
            }
        }
        let mut beside = numbers(1, 1024);
        for at in 0..all {
            let (plane, copy, within) = (at / 48, at / 12 % 4, at % 12);
            let place = 512 * plane + 32 * entries[copy].max(0) as usize + 5 * (within / 3) + within % 3;
            if entries[copy] >= 0 && (first..first + count).contains(&at) {
                expected[place] += (5000 + at - first) as f64;
            }
            if at < 12 {
                beside[place] += (5000 + at) as f64;
            }
        }
        expect(memory.read()? == bytes_of(&expected), || format!("shift {shift}, batched: {batched}"))?;
        expect(!batched || other.read()? == bytes_of(&beside), || "the other of a batch".to_owned())?;
        // SAFETY: nothing is moved.
        let refused = unsafe { elements.bytes(..96).accumulate(odd, packed.address()).run() };
        expect(matches!(refused, Err(TabledError::Apart { .. })), || format!("{refused:?}"))?;
    }
    Ok(())
}

/// In one call of the driver on a stream, and one by one on the legacy default stream: packs, unpacks and copies, of whole blocks and of parts.
fn driver_copies(on: &OnTier) -> Outcome {
    let (committed, contents, memory) = pages(on)?;
    let wider = on.engine.commit_tabled(&"table 0 16 16 1024 (contiguous 256 byte)".parse().map_err(text)?);
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let (entries, places) = ([5i32, 6, -1, 60, 0], [3i32, 4, 9, -1, 15, 0, 8, 7]);
    let (tables, others) = ([IndexTable::from(&entries)], [IndexTable::from(&places)]);
    let (first, bytes) = (200, 3 * 512 + 300);
    let range = first as u64..(first + bytes) as u64;
    let of_page = |at: usize| entries[at / 512] * 512 + (at % 512) as i32;
    for enqueued in [true, false] {
        let packed = Shifted::new(on, &vec![POISON; bytes], 3)?;
        let target = Shifted::new(on, &vec![POISON; 16 * 1024], 0)?;
        let back = Shifted::new(on, &vec![POISON; 64 * 512], 1)?;
        let elements = committed.at(&memory, &tables).bytes(range.clone()).skipping();
        let destination = wider.at(target.address(), &others).bytes(..bytes as u64).skipping();
        let transfers = [
            elements.pack(packed.address()),
            committed.at(back.address(), &tables).bytes(range.clone()).skipping().unpack(packed.address()),
            elements.copy_to(destination),
        ];
        for transfer in transfers.map(|transfer| transfer.on(Multiprocessors::None)) {
            // SAFETY: the memories have all places, and the packed bytes are as many as the range.
            unsafe { if enqueued { transfer.enqueue(&stream) } else { transfer.run() }.map_err(text)? };
        }
        stream.synchronize().map_err(text)?;
        let (mut in_packed, mut in_back, mut in_target) =
            (vec![POISON; bytes], vec![POISON; 64 * 512], vec![POISON; 16 * 1024]);
        for at in 0..bytes {
            if entries[(first + at) / 512] < 0 {
                continue;
            }
            let place = of_page(first + at) as usize;
            in_packed[at] = contents[place];
            in_back[place] = contents[place];
            if places[at / 256] >= 0 {
                in_target[places[at / 256] as usize * 1024 + at % 256] = contents[place];
            }
        }
        expect(packed.read()? == in_packed, || format!("a pack, enqueued: {enqueued}"))?;
        expect(back.read()? == in_back, || format!("an unpack, enqueued: {enqueued}"))?;
        expect(target.read()? == in_target, || format!("a copy, enqueued: {enqueued}"))?;
    }
    Ok(())
}

fn pages(on: &OnTier) -> Result<(CommittedTabled, Vec<u8>, DeviceBuffer), String> {
    let pages = "table 0 64 16 512 (contiguous 64 double)".parse::<TabledDatatype>().map_err(text)?;
    let contents = random(&mut SmallRng::seed_from_u64(7), 64 * 512);
    let memory = DeviceBuffer::copy_of(&Stream::new(on.gpu.device()).map_err(text)?, &contents).map_err(text)?;
    Ok((on.engine.commit_tabled(&pages), contents, memory))
}

fn table_bytes(entries: &[i32]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect()
}

fn replays(on: &OnTier) -> Outcome {
    let (committed, contents, memory) = pages(on)?;
    committed.prepare(&on.gpu).map_err(text)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let packed = DeviceBuffer::new(on.gpu.device(), 4 * 512).map_err(text)?;
    let mut table = DeviceBuffer::copy_of(&stream, &table_bytes(&[0, 1, 2, 3])).map_err(text)?;
    let tables = [IndexTable::at(&table, false, 4)];
    stream.begin_capture(CaptureMode::Global).map_err(text)?;
    // SAFETY: the buffers have the bytes of four entries, and outlive the graph.
    unsafe { committed.at(&memory, &tables).pack(&packed).enqueue(&stream).map_err(text)? };
    let graph = stream.end_capture().map_err(text)?.instantiate().map_err(text)?;
    drop(committed);
    for entries in [[5, 60, 3, 11], [63, 0, 1, 2]] {
        table.write(0, &table_bytes(&entries)).map_err(text)?;
        graph.launch(&stream).map_err(text)?;
        stream.synchronize().map_err(text)?;
        let mut found = vec![0; 4 * 512];
        packed.read(0, &mut found).map_err(text)?;
        let expected: Vec<u8> =
            entries.iter().flat_map(|&entry| &contents[entry as usize * 512..][..512]).copied().collect();
        expect(found == expected, || format!("a replay with {entries:?}"))?;
    }
    Ok(())
}

fn beyond(on: &OnTier) -> Outcome {
    let (committed, contents, memory) = pages(on)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let mut packed = DeviceBuffer::new(on.gpu.device(), 4 * 512).map_err(text)?;
    packed.fill(POISON).map_err(text)?;
    let mut report = DeviceBuffer::new(on.gpu.device(), 24).map_err(text)?;
    report.fill(0).map_err(text)?;
    let table = DeviceBuffer::copy_of(&stream, &table_bytes(&[5, 64, -1, 63])).map_err(text)?;
    let tables = [IndexTable::at(&table, false, 4)];
    // SAFETY: the buffers have the bytes of four entries; what lies beyond the places is not followed.
    unsafe { committed.at(&memory, &tables).pack(&packed).reporting(&report).run().map_err(text)? };
    let mut found = vec![0; 4 * 512];
    packed.read(0, &mut found).map_err(text)?;
    let mut expected = vec![POISON; 4 * 512];
    expected[..512].copy_from_slice(&contents[5 * 512..][..512]);
    expected[3 * 512..].copy_from_slice(&contents[63 * 512..][..512]);
    expect(found == expected, || "packed bytes of entries that are skipped changed".to_owned())?;
    let mut noted = [0u8; 24];
    report.read(0, &mut noted).map_err(text)?;
    let numbers = [0, 8, 16].map(|at| u64::from_ne_bytes(noted[at..at + 8].try_into().unwrap_or_default()));
    let reported = TabledError::reported(numbers, &[64]);
    let expected = Some(TabledError::Entry { table: 0, index: 1, places: 64, found: 64 });
    expect(reported == expected, || format!("{reported:?}"))?;
    // Entries lie at multiples of their size; a table without entries lies nowhere.
    let between = std::ptr::with_exposed_provenance::<u8>(table.address() as usize + 2);
    let between = [IndexTable::at(Endpoint::of_kind(table.kind(), between), false, 2)];
    let nowhere = [IndexTable::at(std::ptr::null::<u8>(), false, 0)];
    // SAFETY: the first is refused, and the second moves nothing.
    let found = unsafe {
        (committed.at(&memory, &between).pack(&packed).run(), committed.at(&memory, &nowhere).pack(&packed).run())
    };
    expect(matches!(found, (Err(TabledError::Kind { table: 0, .. }), Ok(0))), || format!("{found:?}"))?;
    Ok(())
}

/// A pointer for each of three layers, and pages in each.
fn addresses(on: &OnTier) -> Outcome {
    let layers =
        "addresses 0 4 256 (table 1 16 8 512 (contiguous 64 double))".parse::<TabledDatatype>().map_err(text)?;
    expect(matches!(TabledLayout::new(&layers).tables()[0].kind, TableKind::Addresses(256)), || "kind".to_owned())?;
    let committed = on.engine.commit_tabled(&layers);
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let contents: Vec<Vec<u8>> = (0..3).map(|layer| random(&mut SmallRng::seed_from_u64(layer), 16 * 512)).collect();
    let buffers = contents
        .iter()
        .map(|layer| DeviceBuffer::copy_of(&stream, layer))
        .collect::<Result<Vec<_>, _>>()
        .map_err(text)?;
    let pointers: Vec<i64> = buffers.iter().map(|buffer| buffer.address() as i64).collect();
    let pages = [3i32, 15, 0];
    let tables = [IndexTable::from(&pointers), IndexTable::from(&pages)];
    let packed = DeviceBuffer::new(on.gpu.device(), 9 * 512).map_err(text)?;
    // SAFETY: each pointer leads to 16 pages, and the packed bytes are those of nine.
    unsafe { committed.at(&buffers[0], &tables).pack(&packed).run().map_err(text)? };
    let mut found = vec![0; 9 * 512];
    packed.read(0, &mut found).map_err(text)?;
    let page = |layer: &Vec<u8>, page: i32| layer[page as usize * 512..][..512].to_vec();
    let expected: Vec<u8> = contents.iter().flat_map(|layer| pages.map(|each| page(layer, each)).concat()).collect();
    expect(found == expected, || "pages by pointer and table".to_owned())?;
    Ok(())
}

/// A bundle's code serves: nothing is compiled, so nothing is kept in the store.
fn bundled(on: &OnTier) -> Outcome {
    if let Err(error) = Nvrtc::get() {
        return Err(Fault::Skipped(error.to_string()));
    }
    let architecture = on.gpu.device().info().architecture();
    let datatype: TabledDatatype =
        "hvector 3 1 4096 (table 0 16 8 256 (contiguous 30 double))".parse().map_err(text)?;
    let mut writer = BundleWriter::default();
    writer.add_gpu_tabled(&datatype, &[architecture]).map_err(text)?;
    let scratch = tempfile::tempdir().map_err(text)?;
    let (bundle, store) = (scratch.path().join("kernels.dtc"), scratch.path().join("store"));
    fs::write(&bundle, writer.finish()).map_err(text)?;
    let kept = || fs::read_dir(&store).map_or(0, |entries| entries.flatten().count());
    for with_bundle in [true, false] {
        let config = Config::none().directory(&store);
        let config = if with_bundle { config.bundle(&bundle) } else { config };
        let engine = Engine::builder().store(config).background_thread(false).build();
        let gpu = engine.gpu(on.gpu.device().info().ordinal).map_err(text)?;
        engine.commit_tabled(&datatype).prepare(&gpu).map_err(text)?;
        expect((kept() == 0) == with_bundle, || format!("{} entries, with a bundle: {with_bundle}", kept()))?;
        let memory: Vec<u8> = random(&mut SmallRng::seed_from_u64(7), 3 * 4096);
        let (source, packed) = (Shifted::new(on, &memory, 0)?, Shifted::new(on, &[POISON; 3 * 2 * 240], 0)?);
        let places = [9i32, 2];
        let tables = [IndexTable::from(&places)];
        // SAFETY: the memory has all 16 places of three rows, and the packed bytes those of two entries; both outlive the call.
        unsafe { engine.commit_tabled(&datatype).at(source.address(), &tables).pack(packed.address()).run() }
            .map_err(text)?;
        let row = |row: usize, place: i32| &memory[row * 4096 + place as usize * 256..][..240];
        let expected: Vec<u8> = (0..3).flat_map(|at| places.map(|place| row(at, place))).flatten().copied().collect();
        expect(packed.read()? == expected, || "other bytes".to_owned())?;
    }
    Ok(())
}

/// Pages of one GPU's memory, packed into, unpacked from, and copied to memory of another.
fn over_the_link(on: &OnTier) -> Outcome {
    let other = match Device::count().map_err(text)? {
        0 | 1 => return Err(Fault::Skipped("there is one GPU".to_owned())),
        _ => Device::get(1).map_err(text)?,
    };
    if !on.gpu.device().can_access(&other).map_err(text)? {
        return Err(Fault::Skipped("the GPUs do not reach each other".to_owned()));
    }
    let (committed, contents, memory) = pages(on)?;
    let entries = [5i32, 60, 3, 11];
    let row = |entry: i32| &contents[entry as usize * 512..][..512];
    let rows: Vec<u8> = entries.iter().flat_map(|&entry| row(entry)).copied().collect();
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let on_other = |bytes: usize| -> Result<DeviceBuffer, String> {
        let mut buffer = DeviceBuffer::new(&other, bytes).map_err(text)?;
        buffer.fill(POISON).map_err(text)?;
        Ok(buffer)
    };
    let (packed, cache) = (on_other(4 * 512)?, on_other(64 * 512)?);
    let tables = [IndexTable::from(&entries)];
    // SAFETY: the buffers have the bytes of four entries, and live until the stream was waited for.
    unsafe { committed.at(&memory, &tables).pack(&packed).enqueue(&stream).map_err(text)? };
    stream.synchronize().map_err(text)?;
    let mut found = vec![0; 4 * 512];
    packed.read(0, &mut found).map_err(text)?;
    expect(found == rows, || "a pack over the link".to_owned())?;

    let places = [1i32, 0, 63, 40];
    let others = [IndexTable::from(&places)];
    // SAFETY: as above; `cache` has all 64 places.
    unsafe { committed.at(&memory, &tables).copy_to(committed.at(&cache, &others)).enqueue(&stream).map_err(text)? };
    stream.synchronize().map_err(text)?;
    let mut found = vec![0; 64 * 512];
    cache.read(0, &mut found).map_err(text)?;
    let mut expected = vec![POISON; 64 * 512];
    for (&entry, &place) in entries.iter().zip(&places) {
        expected[place as usize * 512..][..512].copy_from_slice(row(entry));
    }
    expect(found == expected, || "a copy over the link".to_owned())?;

    // SAFETY: as above.
    unsafe { committed.at(&memory, &others).unpack(&packed).enqueue(&stream).map_err(text)? };
    stream.synchronize().map_err(text)?;
    let mut found = vec![0; 64 * 512];
    memory.read(0, &mut found).map_err(text)?;
    let mut expected = contents.clone();
    for (&entry, &place) in entries.iter().zip(&places) {
        expected[place as usize * 512..][..512].copy_from_slice(row(entry));
    }
    expect(found == expected, || "an unpack over the link".to_owned())?;
    Ok(())
}
