//! The judge of packs and unpacks: the reference walker over the layout as lowered, before any pass has touched it.

use crate::failure::Failure;
use dtc_compiler::layout::Layout;
use dtc_runtime::Committed;

/// A transfer between a buffer and packed bytes.
pub struct Judge<'a> {
    lowered: &'a Layout,
    origin: usize,
    count: u64,
}

/// Where the elements of a transfer lie.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// How many elements there are: fewer than asked for where those would take too large a buffer.
    pub count: u64,
    /// Length of the buffer.
    pub buffer: usize,
    /// Where in it address 0 of the type lies.
    pub origin: usize,
}

/// The largest buffer that commands fill with data of their own, in bytes.
const LARGEST_BUFFER: u64 = 4 << 30;

/// The same where less than one byte in [`SPARSE`] belongs to the type: filling and checking the others would be all that is
/// waited for.
const LARGEST_SPARSE_BUFFER: u64 = 128 << 20;
const SPARSE: i128 = 64;

impl Placement {
    /// The description's own placement if it holds all elements, else the smallest that does, at a multiple of a line. Of
    /// elements that span or pack to more bytes than commands fill, there are as many as they do fill.
    ///
    /// # Errors
    ///
    /// [`Failure::Data`] where one element is too large.
    pub fn of(committed: &Committed, count: u64, origin: u64, buffer: Option<u64>) -> Result<Placement, Failure> {
        if let Some(placement) = Placement::exactly(committed, count, origin, buffer) {
            return Ok(placement);
        }
        // `fits` elements do, `too_many` do not.
        let (mut fits, mut too_many) = (0, count);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if Placement::exactly(committed, middle, origin, None).is_some() {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        let found = || {
            let (low, high) = committed.span(1).unwrap_or((0, 0));
            format!("{} bytes spanned, {} packed", high - low, committed.packed_size(1).unwrap_or(u64::MAX))
        };
        let placement = Placement::exactly(committed, fits, origin, None).filter(|_| fits > 0);
        placement.ok_or_else(|| {
            let expected = format!(
                "an element that spans and packs to at most {LARGEST_BUFFER} bytes, to be filled with data, or \
                 {LARGEST_SPARSE_BUFFER} where less than one in {SPARSE} is the type's"
            );
            Failure::data("buffer", expected, found())
        })
    }

    /// The placement of this many elements, if commands fill such a buffer.
    fn exactly(committed: &Committed, count: u64, origin: u64, buffer: Option<u64>) -> Option<Placement> {
        let (low, high) = committed.span(count).unwrap_or((0, 0));
        let packed = i128::from(committed.packed_size(count).ok()?);
        let is_filled = |buffer: i128| {
            let sparse = buffer > i128::from(LARGEST_SPARSE_BUFFER) && packed < buffer / SPARSE;
            !sparse && buffer.max(packed) <= i128::from(LARGEST_BUFFER)
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

impl Judge<'_> {
    /// A judge of `count` elements of a lowered layout at an origin.
    pub fn new(lowered: &Layout, origin: usize, count: u64) -> Judge<'_> {
        // Any number of elements without bytes is none.
        let count = if lowered.size() == 0 { 0 } else { count };
        Judge { lowered, origin, count }
    }

    /// The pieces of all elements in packed order: where in the buffer, where in the packed bytes, how long. The
    /// elements lie inside the buffer.
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
