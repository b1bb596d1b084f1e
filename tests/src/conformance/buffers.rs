//! Checks on ordinary buffers, with guard bytes around everything.

use super::draws::{fragments, random_bytes};
use super::expectation::Expectation;
use super::fault::{Fault, compare};
use super::subject::Subject;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Guard bytes on each end of a buffer; also the range of alignments.
const GUARD: usize = 64;

/// Most packed bytes of a type that is also moved in short pieces.
const LARGEST_PIECEWISE: usize = 1 << 13;

pub(super) fn check(subject: &dyn Subject, expectation: &Expectation, rng: &mut SmallRng) -> Result<(), Fault> {
    let mut bench = Bench::new(subject, expectation, rng);
    let size = expectation.bytes.len();
    for (from, to) in fragments(rng, size, 12) {
        let skew = rng.random_range(0..GUARD);
        bench.pack(from, to - from, skew, rng)?;
        bench.unpack(from, to, skew, rng)?;
    }
    // A buffer longer than the stream is filled up to the end of the stream.
    bench.pack(size / 2, size + 9, 3, rng)?;
    bench.pack(size, 5, 0, rng)?;
    for &piece in subject.piece_lengths() {
        if size <= LARGEST_PIECEWISE || piece >= 4096 {
            bench.pieces(piece, rng)?;
        }
    }
    Ok(())
}

/// The buffers of a run: memory with random contents, and its packed bytes.
struct Bench<'a> {
    subject: &'a dyn Subject,
    expectation: &'a Expectation,
    memory: Vec<u8>,
    /// Index of the memory byte with the displacement `start`.
    skew: usize,
    start: i64,
    packed: Vec<u8>,
}

impl<'a> Bench<'a> {
    fn new(subject: &'a dyn Subject, expectation: &'a Expectation, rng: &mut SmallRng) -> Bench<'a> {
        let start = expectation.low.min(0);
        let span = (expectation.high.max(0) - start) as usize;
        let memory = random_bytes(rng, span + 2 * GUARD);
        let skew = rng.random_range(0..GUARD);
        let packed = expectation.bytes.iter().map(|byte| memory[skew + (byte - start) as usize]).collect();
        Bench { subject, expectation, memory, skew, start, packed }
    }

    fn origin(&self) -> usize {
        self.skew + self.start.unsigned_abs() as usize
    }

    /// Packs from `from` into a buffer of `length` bytes.
    fn pack(&mut self, from: usize, length: usize, skew: usize, rng: &mut SmallRng) -> Result<(), Fault> {
        let mut buffer = random_bytes(rng, length + 2 * GUARD);
        let mut expected = buffer.clone();
        let to = self.packed.len().min(from + length);
        expected[skew..skew + to - from].copy_from_slice(&self.packed[from..to]);
        let target = &mut buffer[skew..skew + length];
        let written = self.subject.pack(&self.memory, self.origin(), self.expectation.count, from as u64, target)?;
        let what = format!("pack of {length} bytes from {from} to alignment {skew}");
        if written != to - from {
            return Err(format!("{what}: {written} bytes written, expected {}", to - from));
        }
        compare(&what, &buffer, &expected)
    }

    fn unpack(&mut self, from: usize, to: usize, skew: usize, rng: &mut SmallRng) -> Result<(), Fault> {
        let before = random_bytes(rng, self.memory.len());
        let what = format!("unpack of {from}..{to} from alignment {skew}");
        let mut buffer = random_bytes(rng, GUARD + to - from);
        buffer[skew..skew + to - from].copy_from_slice(&self.packed[from..to]);
        let mut after = before.clone();
        let source = &buffer[skew..skew + to - from];
        let read = self.subject.unpack(source, from as u64, &mut after, self.origin(), self.expectation.count)?;
        if read != to - from {
            return Err(format!("{what}: {read} bytes read, expected {}", to - from));
        }
        self.compare_unpacked(&what, &mut after, &before, &[(from, to)])
    }

    /// Compares a destination with the expected result of unpacking some ranges.
    fn compare_unpacked(
        &self,
        what: &str,
        after: &mut [u8],
        before: &[u8],
        ranges: &[(usize, usize)],
    ) -> Result<(), Fault> {
        let mut expected = before.to_vec();
        let mut undefined = Vec::new();
        for &(from, to) in ranges {
            // Displacements are relative to index 0 of the memory.
            let start = self.start - self.skew as i64;
            let (next, twice) = self.expectation.unpacked(&self.packed, from, to, start, &expected);
            (expected, undefined) = (next, [undefined, twice].concat());
        }
        for index in undefined {
            (after[index], expected[index]) = (0, 0);
        }
        compare(what, after, &expected)
    }

    /// Moves everything in pieces of one length, in random order.
    fn pieces(&mut self, length: usize, rng: &mut SmallRng) -> Result<(), Fault> {
        let size = self.packed.len();
        let mut firsts: Vec<usize> = (0..size).step_by(length).collect();
        firsts.shuffle(rng);
        let mut packed = random_bytes(rng, size);
        let before = random_bytes(rng, self.memory.len());
        let mut after = before.clone();
        let count = self.expectation.count;
        let origin = self.origin();
        for &from in &firsts {
            let to = size.min(from + length);
            let written = self.subject.pack(&self.memory, origin, count, from as u64, &mut packed[from..to])?;
            let read = self.subject.unpack(&self.packed[from..to], from as u64, &mut after, origin, count)?;
            if (written, read) != (to - from, to - from) {
                return Err(format!("piece {from}..{to}: {written} bytes packed and {read} unpacked"));
            }
        }
        compare(&format!("packed in pieces of {length}"), &packed, &self.packed)?;
        if self.expectation.overlaps {
            // If bytes overlap, the last piece wins, and the order is random: only the other bytes are compared.
            return self.compare_untouched(&after, &before);
        }
        self.compare_unpacked(&format!("unpacked in pieces of {length}"), &mut after, &before, &[(0, size)])
    }

    fn compare_untouched(&self, after: &[u8], before: &[u8]) -> Result<(), Fault> {
        let (mut after, mut before) = (after.to_vec(), before.to_vec());
        for byte in &self.expectation.bytes {
            let index = self.skew + (byte - self.start) as usize;
            (after[index], before[index]) = (0, 0);
        }
        compare("outside the map after unpacking in pieces", &after, &before)
    }
}
