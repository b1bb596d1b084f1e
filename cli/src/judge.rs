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
    /// Length of the buffer.
    pub buffer: usize,
    /// Where in it address 0 of the type lies.
    pub origin: usize,
}

/// The largest buffer that commands fill with data of their own.
const LARGEST_BUFFER: u64 = 4 << 30;

impl Placement {
    /// The description's own placement if it holds all elements, else the smallest that does, at a multiple of a line.
    pub fn of(committed: &Committed, count: u64, origin: u64, buffer: Option<u64>) -> Result<Placement, Failure> {
        let (low, high) = committed.span(count).unwrap_or((0, 0));
        let fits =
            |origin: u64, buffer: u64| low + i128::from(origin) >= 0 && high + i128::from(origin) <= i128::from(buffer);
        let (origin, buffer) = match buffer {
            Some(buffer) if fits(origin, buffer) => (origin.into(), buffer.into()),
            _ => {
                let line = |bytes: i128| (bytes + 63) / 64 * 64;
                let origin = line((-low).max(0)).max(if low + i128::from(origin) >= 0 { origin.into() } else { 0 });
                (origin, line((origin + high).max(origin)))
            }
        };
        let packed = committed.packed_size(count).unwrap_or(u64::MAX);
        if buffer.max(packed.into()) > i128::from(LARGEST_BUFFER) {
            let expected =
                format!("elements that span and pack to at most {LARGEST_BUFFER} bytes, to be filled with data");
            return Err(Failure::data("buffer", expected, format_args!("{buffer} bytes, {packed} packed")));
        }
        // Below the bound above.
        Ok(Placement { buffer: buffer as usize, origin: origin as usize })
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
