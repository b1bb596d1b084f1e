//! Types of absolute addresses, whose blocks are in memory of every kind.

use crate::buffers::{POISON, expect_equal, random_bytes};
use crate::harness::{Outcome, Tests, expect, text};
use crate::memory::{KINDS, Memory};
use crate::tier::OnTier;
use dtc_compiler::datatype::{Predefined, TypeBuilder};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_runtime::cuda::{Device, MemoryKind};
use dtc_runtime::{Committed, Range};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: one type in several kinds of memory: {name}", on.name), move || test(&on));
    };
    add(tests, "packs and unpacks", packs);
    add(tests, "copies", copies);
    add(tests, "sums", sums);
}

const BLOCKS: usize = 200;

/// Bytes from one block to the next.
const PITCH: usize = 5200;

/// Bytes of each memory.
const BYTES: usize = BLOCKS * PITCH;

fn kinds() -> Result<Vec<MemoryKind>, String> {
    let devices = Device::count().map_err(text)?;
    Ok(KINDS.into_iter().filter(|kind| *kind != MemoryKind::Device(1) || devices > 1).collect())
}

/// Ints in blocks that alternate between memories of all kinds.
struct Scattered {
    memories: Vec<Memory>,
    kinds: Vec<MemoryKind>,
    /// Initial contents of every memory.
    host: Vec<u8>,
    /// Of each block: the index of its memory, its first byte there, and its length.
    blocks: Vec<(usize, usize, usize)>,
    committed: Committed,
    total: usize,
}

impl Scattered {
    /// Memories with these contents, and blocks whose lengths and order depend on `salt`.
    fn new(on: &OnTier, host: Vec<u8>, salt: usize) -> Result<Scattered, String> {
        let kinds = kinds()?;
        let mut memories = kinds.iter().map(|kind| Memory::holding(*kind, &host)).collect::<Result<Vec<_>, _>>()?;
        let mut blocks = Vec::new();
        let (mut places, mut lengths) = (Vec::new(), Vec::new());
        for index in 0..BLOCKS {
            let length = (1 + (index * 11 + salt * 89) % 1200).min(PITCH / 4);
            let which = (index + salt) * 7 % 11 % memories.len();
            blocks.push((which, index * PITCH, length * 4));
            places.push(memories[which].at(index * PITCH) as i64);
            lengths.push(length as i64);
        }
        let mut types = TypeBuilder::new();
        let int = types.named(Predefined::INT);
        let absolute = types.hindexed(&lengths, &places, int).map_err(text)?;
        let committed = on.engine.commit(&types.finish(absolute).unwrap());
        let total = blocks.iter().map(|block| block.2).sum();
        Ok(Scattered { memories, kinds, host, blocks, committed, total })
    }

    /// The packed bytes of the initial contents.
    fn packed(&self) -> Vec<u8> {
        self.blocks.iter().flat_map(|&(_, at, length)| &self.host[at..at + length]).copied().collect()
    }

    /// Compares every memory with its initial contents, after `packed` was unpacked into it from byte `first` on.
    fn check(&self, packed: &[u8], first: usize) -> Result<(), String> {
        let mut expected = vec![self.host.clone(); self.memories.len()];
        let mut at = 0;
        for &(which, place, length) in &self.blocks {
            for byte in 0..length {
                if let Some(value) = (at + byte).checked_sub(first).and_then(|position| packed.get(position)) {
                    expected[which][place + byte] = *value;
                }
            }
            at += length;
        }
        for ((memory, kind), expected) in self.memories.iter().zip(&self.kinds).zip(&expected) {
            expect_equal(&kind.to_string(), &memory.read()?, expected)?;
        }
        Ok(())
    }
}

fn packs(on: &OnTier) -> Outcome {
    let scattered = Scattered::new(on, random_bytes(BYTES, 141), 0)?;
    let (committed, total, expected) = (&scattered.committed, scattered.total, scattered.packed());
    let null = std::ptr::null_mut::<u8>();
    for kind in &scattered.kinds {
        for (from, length) in [(0, total), (total / 3, total / 2)] {
            let mut packed = Memory::holding(*kind, &vec![POISON; length])?;
            let what = format!("packed bytes in {kind}");
            // SAFETY: every displacement is an address in a live buffer, and the packed buffer has `length` bytes.
            let moved = unsafe {
                committed.at(null, Range::elements(1).fragment(from as u64, length as u64)).pack(packed.at(0)).run()
            };
            expect(moved.clone() == Ok(length), || format!("{what}: {moved:?}"))?;
            expect_equal(&what, &packed.read()?, &expected[from..from + length])?;
            // SAFETY: every displacement is an address in a live buffer, and the packed buffer has `length` bytes.
            let request = unsafe {
                committed.at(null, Range::elements(1).fragment(from as u64, length as u64)).unpack(packed.at(0)).start()
            };
            let moved = request.map_err(text)?.wait();
            expect(moved.clone() == Ok(length), || format!("{what}: {moved:?}"))?;
        }
    }
    Ok(scattered.check(&[], 0)?)
}

/// Copies between blocks whose kinds change at different positions.
fn copies(on: &OnTier) -> Outcome {
    let source = Scattered::new(on, random_bytes(BYTES, 142), 1)?;
    for (from, to) in [(0, 0), (4 * 777, 4 * 1001)] {
        let target = Scattered::new(on, vec![POISON; BYTES], 2)?;
        let bytes = (source.total - from).min(target.total - to);
        let read = source.committed.at(std::ptr::null::<u8>(), Range::elements(1).bytes(from as u64..));
        let written = target.committed.at(std::ptr::null::<u8>(), Range::elements(1).bytes(to as u64..));
        // SAFETY: every displacement is an address in a live buffer.
        let moved = unsafe { read.copy_to(written).run() };
        expect(moved.clone() == Ok(bytes), || format!("{moved:?}, expected {bytes}"))?;
        target.check(&source.packed()[from..from + bytes], to)?;
    }
    Ok(source.check(&[], 0)?)
}

fn sums(on: &OnTier) -> Outcome {
    let sum = Reduction::new(Operation::Sum, Element::I32).map_err(text)?;
    for kind in kinds()? {
        let scattered = Scattered::new(on, random_bytes(BYTES, 143), 3)?;
        let (from, length) = (scattered.total / 12 * 4, scattered.total / 8 * 4);
        let addends = random_bytes(length, 144);
        let mut packed = Memory::holding(kind, &addends)?;
        // SAFETY: every displacement is an address in a live buffer, and the packed buffer is as long.
        let read = unsafe {
            let null = std::ptr::null_mut::<u8>();
            scattered
                .committed
                .at(null, Range::elements(1).fragment(from as u64, length as u64))
                .accumulate(sum, packed.at(0))
                .run()
        };
        expect(read.clone() == Ok(length), || format!("packed bytes in {kind}: {read:?}"))?;
        let int = |bytes: &[u8]| i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let before = &scattered.packed()[from..from + length];
        let both = before.chunks_exact(4).zip(addends.chunks_exact(4));
        let after: Vec<u8> = both.flat_map(|(one, other)| int(one).wrapping_add(int(other)).to_ne_bytes()).collect();
        scattered.check(&after, from).map_err(|fault| format!("packed bytes in {kind}: {fault}"))?;
    }
    Ok(())
}
