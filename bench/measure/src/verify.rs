//! Verifies packs and unpacks: the reference walker over the layout as lowered, before any pass has touched it.

use crate::failure::Failure;
use dtc_compiler::layout::Layout;
use dtc_runtime::Committed;

/// A transfer between a buffer and packed bytes.
pub struct Verifier<'a> {
    lowered: &'a Layout,
    origin: usize,
    count: u64,
}

/// Where the elements of a transfer are.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// How many elements there are: fewer than asked for where those would take too large a buffer.
    pub count: u64,
    /// Length of the buffer.
    pub buffer: usize,
    /// Where in it address 0 of the type is.
    pub origin: usize,
}

/// The largest buffer that commands fill with data of their own, in bytes. Checking takes up to five times as much memory.
const LARGEST_BUFFER: u64 = 1 << 30;

/// The largest buffer of the elements that are taken where a larger one was described, in bytes.
const LARGEST_REDUCED_BUFFER: u64 = 256 << 20;

/// Most runs of the elements that are taken where more were described: each is checked alone. 2^20 take half a second.
const MOST_REDUCED_RUNS: u64 = 1 << 20;

/// The largest buffer of which less than one byte in [`SPARSE`] belongs to the type, in bytes: filling and checking the others
/// would be all that is waited for. An edge of a box of 1 GiB has 4 KiB.
const LARGEST_SPARSE_BUFFER: u64 = 128 << 20;
const SPARSE: i128 = 1 << 18;

impl Placement {
    /// The description's own placement if it holds all elements, else the smallest that does, at a multiple of a line. Of
    /// elements that span or pack to more bytes than commands fill, there are as many as they do fill.
    ///
    /// # Errors
    ///
    /// [`Failure::Data`] where one element is too large.
    pub fn of(committed: &Committed, count: u64, origin: u64, buffer: Option<u64>) -> Result<Placement, Failure> {
        if let Some(placement) = Placement::exactly(committed, count, origin, buffer, LARGEST_BUFFER) {
            return Ok(placement);
        }
        let layout = committed.layout();
        let runs = layout.measure(layout.root().node).runs.max(1);
        let fewer = |count: u64| {
            let few = count == 1 || count.saturating_mul(runs) <= MOST_REDUCED_RUNS;
            Placement::exactly(committed, count, origin, None, LARGEST_REDUCED_BUFFER).filter(|_| few)
        };
        // `fits` elements do, `too_many` do not.
        let (mut fits, mut too_many) = (0, count);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if fewer(middle).is_some() {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        let found = || {
            let (low, high) = committed.span(1).unwrap_or((0, 0));
            format!("{} bytes spanned, {} packed", high - low, committed.packed_size(1).unwrap_or(usize::MAX))
        };
        let one = || Placement::exactly(committed, 1, origin, None, LARGEST_BUFFER).filter(|_| count > 0);
        fewer(fits).filter(|_| fits > 0).or_else(one).ok_or_else(|| {
            let expected = format!(
                "an element that spans and packs to at most {LARGEST_BUFFER} bytes, to be filled with data, or \
                 {LARGEST_SPARSE_BUFFER} where less than one in {SPARSE} is the type's"
            );
            Failure::data("buffer", expected, found())
        })
    }

    /// The placement of this many elements, if commands fill such a buffer and it has at most `largest` bytes.
    fn exactly(committed: &Committed, count: u64, origin: u64, buffer: Option<u64>, largest: u64) -> Option<Placement> {
        let (low, high) = committed.span(count).unwrap_or((0, 0));
        let packed = committed.packed_size(count).ok()? as i128;
        let is_filled = |buffer: i128| {
            let sparse = buffer > i128::from(LARGEST_SPARSE_BUFFER) && packed < buffer / SPARSE;
            !sparse && buffer.max(packed) <= i128::from(largest)
        };
        let holds = |buffer: u64| {
            low + i128::from(origin) >= 0 && high + i128::from(origin) <= i128::from(buffer) && is_filled(buffer.into())
        };
        let (origin, buffer) = match buffer {
            Some(buffer) if holds(buffer) => (origin.into(), buffer.into()),
            _ => {
                let line = |bytes: i128| (bytes + 63) / 64 * 64;
                let least = line((-low).max(0));
                // The description's own origin, unless it makes the buffer too large.
                let own = i128::from(origin).max(least);
                let origin = if low + i128::from(origin) >= 0 && is_filled(line(own + high)) { own } else { least };
                (origin, line((origin + high).max(origin)))
            }
        };
        // Below the bound above.
        is_filled(buffer).then_some(Placement { count, buffer: buffer as usize, origin: origin as usize })
    }

    /// What to say where there are fewer elements than asked for.
    pub fn remark(&self, asked: u64) -> Option<String> {
        (self.count < asked).then(|| {
            format!("{} elements instead of {asked}, which would span or pack to too many bytes to fill", self.count)
        })
    }
}

impl Verifier<'_> {
    /// Verifies `count` elements of a lowered layout at an origin.
    pub fn new(lowered: &Layout, origin: usize, count: u64) -> Verifier<'_> {
        // Any number of elements without bytes is none.
        let count = if lowered.size() == 0 { 0 } else { count };
        Verifier { lowered, origin, count }
    }

    /// The pieces of all elements in packed order: where in the buffer, where in the packed bytes, how long. The
    /// elements are inside the buffer.
    fn pieces(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let mut position = 0;
        (0..self.count)
            .flat_map(|index| {
                let base = self.origin as i128 + i128::from(index) * i128::from(self.lowered.extent());
                self.lowered.walk().map(move |piece| (base + i128::from(piece.offset), piece.bytes() as usize))
            })
            .map(move |(at, bytes)| {
                position += bytes;
                (at as usize, position - bytes, bytes)
            })
    }

    /// Compares packed bytes with the walker's; how many there are.
    pub fn check_packed(&self, what: &str, memory: &[u8], packed: &[u8]) -> Result<u64, Failure> {
        let mut checked = 0;
        for (at, position, bytes) in self.pieces() {
            let (expected, found) = (&memory[at..at + bytes], &packed[position..position + bytes]);
            if let Some(wrong) = (0..bytes).find(|&index| expected[index] != found[index]) {
                let place = format!("{what}, packed byte {}", position + wrong);
                return Err(Failure::data(place, expected[wrong], found[wrong]));
            }
            checked += bytes as u64;
        }
        if checked != packed.len() as u64 {
            let expected = format!("{checked} packed bytes");
            return Err(Failure::data(what, expected, format_args!("{} bytes", packed.len())));
        }
        Ok(checked)
    }

    /// Compares a buffer that was all `poison` before an unpack with what the walker says: how many bytes hold data,
    /// and how many still hold poison. Of a byte that occurs in the type more than once, no particular value is asked.
    pub fn check_memory(&self, what: &str, memory: &[u8], packed: &[u8], poison: u8) -> Result<(u64, u64), Failure> {
        let mut expected = vec![poison; memory.len()];
        let mut uses = vec![0u8; memory.len()];
        for (at, position, bytes) in self.pieces() {
            expected[at..at + bytes].copy_from_slice(&packed[position..position + bytes]);
            uses[at..at + bytes].iter_mut().for_each(|uses| *uses = uses.saturating_add(1));
        }
        let (mut restored, mut untouched) = (0, 0);
        for (at, &found) in memory.iter().enumerate() {
            if expected[at] != found && uses[at] < 2 {
                let place = format!("{what}, buffer byte {at}");
                return Err(Failure::data(place, expected[at], found));
            }
            *(if uses[at] > 0 { &mut restored } else { &mut untouched }) += 1;
        }
        Ok((restored, untouched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::{json, text};
    use dtc_runtime::Engine;

    #[test]
    fn buffers_have_bounds() {
        let engine = Engine::builder().background_thread(false).build();
        let of = |datatype: &str, count, buffer| {
            let committed = engine.commit(&text::parse(datatype).unwrap());
            Placement::of(&committed, count, 0, buffer).ok().map(|placement| (placement.count, placement.buffer))
        };
        assert_eq!(of("double", 1000, Some(9000)), Some((1000, 9000)));
        assert_eq!(of("double", 1000, Some(900)), Some((1000, 8000)));
        assert_eq!(of("double", 0, None), Some((0, 0)));
        assert_eq!(of("double", 1 << 27, None), Some((1 << 27, 1 << 30)));
        assert_eq!(of("double", 1_000_000_000, Some(8_000_000_000)), Some((1 << 20, 1 << 23)));
        assert_eq!(of("vector 2 1 2 int", i64::MAX as u64, None), Some((1 << 19, 12 << 19)));
        assert_eq!(of("contiguous 80000000 double", 9, None), Some((1, 640_000_000)));
        // More than one byte in SPARSE, and fewer.
        assert!(of("hvector 500 1 2000000 double", 1, None).is_some());
        assert_eq!(of("hvector 400 1 2500000 double", 1, None), None);
        assert_eq!(of("hvector 2 1 3000000000 int", 1, None), None);
        assert_eq!(of("vector 1000000000000 1 0 int", 1, None), None);
        // A buffer that is far larger than what is in it.
        assert_eq!(of("double", 8, Some(3_000_000_000)), Some((8, 64)));
    }

    #[test]
    fn every_example_is_filled() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-examples");
        let engine = Engine::builder().background_thread(false).build();
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
            let description = json::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
            let committed = engine.commit(&description.datatype);
            let placement =
                Placement::of(&committed, description.count, description.origin_bytes, description.buffer_bytes);
            assert_eq!(placement.unwrap().count, description.count, "{}", file.display());
        }
    }
}
