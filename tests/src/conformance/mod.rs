//! The conformance run: one datatype on one engine, every byte compared with the oracle.

mod buffers;
mod engine;
mod gpu;
mod oracle;
mod protected;
mod subject;

pub use engine::{DescribedSubject, EngineSubject, engines};
pub use gpu::GpuSubject;
pub use oracle::{Mistake, OracleSubject};
pub use subject::{Place, Subject, pack_sparse, unpack_sparse};

use crate::type_map::TypeMap;
use dtc_compiler::datatype::Datatype;
use rand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// What a run found wrong: where, expected and found.
pub type Fault = String;

/// `count` elements of a type, as the oracle sees them.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Number of elements.
    pub count: u64,
    /// The displacement of every packed byte.
    pub bytes: Vec<i64>,
    /// Lowest displacement; 0 if there is none.
    pub low: i64,
    /// One past the highest displacement; 0 if there is none.
    pub high: i64,
    /// Whether some byte is in the map twice.
    pub overlaps: bool,
}

impl Expectation {
    /// Of `count` elements.
    pub fn new(datatype: &Datatype, count: u64) -> Expectation {
        let map = TypeMap::new(datatype);
        let (one, extent) = (map.bytes(), map.bounds().extent());
        // One element needs no extent, which may be anything.
        let shift = |element: u64| if element == 0 { 0 } else { element as i64 * extent };
        let element = |index: u64| one.iter().map(move |byte| byte + shift(index));
        let bytes: Vec<i64> = (0..count).flat_map(element).collect();
        let low = bytes.iter().copied().min().unwrap_or(0);
        let high = bytes.iter().copied().max().map_or(0, |last| last + 1);
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        let overlaps = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        Expectation { count, bytes, low, high, overlaps }
    }

    /// What an unpack of the packed bytes `from..to` must leave in a buffer that starts at a displacement. Bytes that are
    /// written more than once may get any of their values, so they are given back as indices to leave out.
    fn unpacked(&self, packed: &[u8], from: usize, to: usize, start: i64, before: &[u8]) -> (Vec<u8>, Vec<usize>) {
        let mut after = before.to_vec();
        let mut written = vec![false; if self.overlaps { before.len() } else { 0 }];
        let mut undefined = Vec::new();
        for (byte, value) in self.bytes[from..to].iter().zip(&packed[from..to]) {
            let index = (byte - start) as usize;
            after[index] = *value;
            if self.overlaps && std::mem::replace(&mut written[index], true) {
                undefined.push(index);
            }
        }
        (after, undefined)
    }
}

/// Bounds on the memory and the time of a run.
const LARGEST_SPAN: i64 = 1 << 21;
const LARGEST_PIECEWISE: usize = 1 << 13;

/// Runs every check of a subject for a datatype: counts 0, 1 and more; whole, in fragments and in shuffled pieces; at
/// several alignments; with guards around every buffer and closed pages in every gap. `Err` says what went wrong first.
pub fn run(subject: &dyn Subject, datatype: &Datatype, seed: u64) -> Result<(), Fault> {
    check(subject, datatype, seed, true)
}

/// The same without closed pages, for subjects that copy what they are given.
pub fn run_on_copies(subject: &dyn Subject, datatype: &Datatype, seed: u64) -> Result<(), Fault> {
    check(subject, datatype, seed, false)
}

fn check(subject: &dyn Subject, datatype: &Datatype, seed: u64, closes_pages: bool) -> Result<(), Fault> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let more = rng.random_range(2..6);
    for count in [1, more, 0] {
        let size = datatype.facts().size.saturating_mul(count);
        if count > 1 && size > 1 << 22 {
            continue;
        }
        let expectation = Expectation::new(datatype, count);
        let named = |fault: Fault| format!("{}, count {count}: {fault}", subject.name());
        // The slice calls need displacement 0 inside the slice.
        let span = expectation.high.max(0).checked_sub(expectation.low.min(0));
        if span.is_some_and(|span| span < LARGEST_SPAN) {
            buffers::check(subject, &expectation, &mut rng).map_err(named)?;
        }
        if closes_pages && expectation.high.checked_sub(expectation.low).is_some_and(|span| span < 1 << 36) {
            protected::check(subject, &expectation, &mut rng).map_err(named)?;
        }
    }
    Ok(())
}

/// A few byte ranges of a packed stream: whole, empty, at the ends, and anywhere.
fn fragments(rng: &mut SmallRng, size: usize, how_many: usize) -> Vec<(usize, usize)> {
    let mut fragments = vec![(0, size), (size, size), (0, size.min(1)), (size.saturating_sub(1), size)];
    for _ in 0..how_many {
        let from = rng.random_range(0..=size);
        let longest = if rng.random_bool(0.5) { 40 } else { size };
        fragments.push((from, from + rng.random_range(0..=longest.min(size - from))));
    }
    fragments
}

/// Says where two buffers differ first.
fn compare(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    let at = (0..found.len().max(expected.len())).find(|at| found.get(*at) != expected.get(*at));
    let at = at.unwrap_or_default();
    Err(format!("{what}: byte {at} is {:02x?}, expected {:02x?}", found.get(at), expected.get(at)))
}

fn random_bytes(rng: &mut SmallRng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes[..]);
    bytes
}
