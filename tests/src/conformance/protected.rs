//! Checks with closed pages at every address that must not be touched.

use super::draws::{fragments, random_bytes};
use super::expectation::Expectation;
use super::fault::{Fault, compare};
use super::subject::{Place, Subject, pack_sparse, unpack_sparse};
use crate::memory::{Access, PAGE, SparseMemory};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeSet, HashMap};

/// Number of fragments; more on closed pages would only cost time.
const FRAGMENTS: usize = 6;

pub(super) fn check(subject: &dyn Subject, expectation: &Expectation, rng: &mut SmallRng) -> Result<(), Fault> {
    let size = expectation.bytes.len();
    for (round, (from, to)) in fragments(rng, size, FRAGMENTS).into_iter().enumerate() {
        let bytes = &expectation.bytes[from..to];
        let low = bytes.iter().copied().min().unwrap_or(0);
        let high = bytes.iter().copied().max().map_or(0, |last| last + 1);
        // The first byte of the call is at the begin of a page, the last one at the end of a page, or neither; the
        // pages before and after are always closed.
        let page = PAGE as i64;
        let skew = match round % 3 {
            0 => (page - low.rem_euclid(page)) % page,
            1 => (page - high.rem_euclid(page)) % page,
            _ => rng.random_range(0..page),
        };
        let base = page * 2 + skew - low.div_euclid(page) * page;
        let memory = SparseMemory::reserve((high + base) as usize + 2 * PAGE);
        let call = Call { subject, expectation, from, to, base };
        crate::memory::announce(&format!(
            "{}, count {}, packed bytes {from}..{to}, displacement 0 at {} past a page",
            subject.name(),
            expectation.count,
            base.rem_euclid(page)
        ));
        call.pack_and_unpack(memory, rng)?;
    }
    Ok(())
}

struct Call<'a> {
    subject: &'a dyn Subject,
    expectation: &'a Expectation,
    from: usize,
    to: usize,
    /// Index of displacement 0 in the memory, perhaps outside.
    base: i64,
}

impl Call<'_> {
    fn pack_and_unpack(&self, mut memory: SparseMemory, rng: &mut SmallRng) -> Result<(), Fault> {
        let Call { from, to, base, .. } = *self;
        let length = to - from;
        let index = |byte: &i64| (byte + base) as usize;
        let bytes = &self.expectation.bytes[from..to];
        let pages: BTreeSet<usize> = bytes.iter().map(|byte| index(byte) / PAGE).collect();
        memory.open_only(&pages, Access::ReadWrite);
        let before = fill(&mut memory, &pages, rng);
        let ranks: HashMap<usize, usize> = pages.iter().enumerate().map(|(rank, page)| (*page, rank)).collect();
        // Index in the contents of the open pages.
        let held = |byte: &i64| ranks[&(index(byte) / PAGE)] * PAGE + index(byte) % PAGE;
        let packed: Vec<u8> = bytes.iter().map(|byte| before[held(byte)]).collect();

        memory.open_only(&pages, Access::Read);
        // The packed bytes end at the end of a page, or begin at the begin of one; the neighbouring page is closed.
        let mut stream = SparseMemory::reserve(length + 3 * PAGE);
        let start = if rng.random_bool(0.5) { PAGE } else { PAGE + length.next_multiple_of(PAGE) - length };
        let stream_pages: BTreeSet<usize> = (1..1 + length.div_ceil(PAGE)).collect();
        stream.open_only(&stream_pages, Access::ReadWrite);
        let stream_before = fill(&mut stream, &stream_pages, rng);
        let (source, target) = (Place { memory: &memory, at: base }, Place { memory: &stream, at: start as i64 });
        let written = pack_sparse(self.subject, source, self.expectation.count, from as u64, target, length);
        let what = format!("on closed pages, packed bytes {from}..{to}");
        if written != length {
            return Err(format!("{what}: {written} bytes written, expected {length}"));
        }
        let mut expected = stream_before;
        expected[start - PAGE..][..length].copy_from_slice(&packed);
        compare(&format!("{what}, pack"), &contents(&stream, &stream_pages), &expected)?;

        // The unpack of other bytes, into pages with other contents.
        let packed = random_bytes(rng, length);
        stream.write(start, &packed);
        stream.open_only(&stream_pages, Access::Read);
        memory.open_only(&pages, Access::ReadWrite);
        let mut expected = fill(&mut memory, &pages, rng);
        let (source, target) = (Place { memory: &stream, at: start as i64 }, Place { memory: &memory, at: base });
        let read = unpack_sparse(self.subject, source, length, from as u64, target, self.expectation.count);
        if read != length {
            return Err(format!("{what}: {read} bytes read, expected {length}"));
        }
        let mut found = contents(&memory, &pages);
        let mut written = BTreeSet::new();
        let mut undefined = Vec::new();
        for (byte, value) in bytes.iter().zip(packed) {
            let place = held(byte);
            expected[place] = value;
            if self.expectation.overlaps && !written.insert(place) {
                undefined.push(place);
            }
        }
        for place in undefined {
            (found[place], expected[place]) = (0, 0);
        }
        compare(&format!("{what}, unpack"), &found, &expected)
    }
}

/// Fills some open pages with random contents; returns these, page after page.
fn fill(memory: &mut SparseMemory, pages: &BTreeSet<usize>, rng: &mut SmallRng) -> Vec<u8> {
    let data = random_bytes(rng, pages.len() * PAGE);
    for (page, contents) in pages.iter().zip(data.chunks(PAGE)) {
        memory.write(page * PAGE, contents);
    }
    data
}

fn contents(memory: &SparseMemory, pages: &BTreeSet<usize>) -> Vec<u8> {
    let mut data = vec![0; pages.len() * PAGE];
    for (page, contents) in pages.iter().zip(data.chunks_mut(PAGE)) {
        memory.read(page * PAGE, contents);
    }
    data
}
