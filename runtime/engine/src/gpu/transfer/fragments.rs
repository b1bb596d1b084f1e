//! Types whose bytes lie in several allocations: absolute addresses lead anywhere, so one element may have parts in memory of
//! different kinds. The packed bytes are cut where the kind changes, and each fragment is a call like any other.

use super::super::request::TransferError;
use super::place::{self, Place};
use dtc_compiler::layout::Layout;
use dtc_compiler::layout::positions::Positions;
use dtc_cuda::pointer::{self, PointerInfo};
use smallvec::{SmallVec, smallvec};

/// Allocations side by side that are looked at before runs are.
const NEIGHBOURS: usize = 16;

/// Host memory is pinned and allocated for devices in whole pages at least.
const PAGE: u64 = 4096;

/// Packed bytes whose elements lie in memory of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Fragment {
    /// The first packed byte.
    pub(in crate::gpu) first: u64,
    pub(in crate::gpu) bytes: u64,
    pub(in crate::gpu) place: Place,
}

/// The fragments of a call, in packed order: one, for most calls.
pub(in crate::gpu) type Fragments = SmallVec<[Fragment; 1]>;

/// A range of addresses, and what lies there.
#[derive(Clone, Copy)]
struct Known {
    start: u64,
    end: u64,
    place: Place,
}

impl Known {
    fn new(address: u64, place: Place, info: &PointerInfo) -> Known {
        let (start, end) = match info.range_bytes {
            // CUDA does not know the memory, nor the rest of its page.
            0 => (address & !(PAGE - 1), (address | (PAGE - 1)).saturating_add(1)),
            bytes => (info.range_start, info.range_start.saturating_add(bytes)),
        };
        Known { start, end, place }
    }

    fn at(address: u64) -> Result<Known, TransferError> {
        let pointer = std::ptr::without_provenance(address as usize);
        place::check("a run of the memory", pointer)?;
        let (place, info) = place::ask(pointer)?;
        Ok(Known::new(address, place, &info))
    }

    fn holds(&self, low: i128, high: i128) -> bool {
        i128::from(self.start) <= low && high <= i128::from(self.end)
    }

    /// Takes the allocations beside this one in, as long as they are of its kind and the span reaches into them.
    fn grown(mut self, low: i128, high: i128) -> Result<Known, TransferError> {
        for _ in 0..NEIGHBOURS {
            if self.holds(low, high) {
                break;
            }
            let next = if i128::from(self.end) < high { self.end } else { self.start - 1 };
            let next = Known::at(next)?;
            if next.place != self.place {
                break;
            }
            (self.start, self.end) = (self.start.min(next.start), self.end.max(next.end));
        }
        Ok(self)
    }
}

/// What the fragments of a call are found by.
pub(super) struct Search<'a> {
    pub(super) layout: &'a Layout,
    /// The address that the type is applied to.
    pub(super) base: *const u8,
    /// The address of the first byte of the map.
    pub(super) first_byte: *const u8,
    /// The lowest displacement of the elements, and one past the highest.
    pub(super) span: (i128, i128),
    /// The first packed byte, and how many.
    pub(super) first: u64,
    pub(super) bytes: u64,
}

impl Search<'_> {
    /// Asks about the first byte. As long as its allocation holds everything, that is all.
    pub(super) fn fragments(&self) -> Result<Fragments, TransferError> {
        let (place, info) = place::ask(self.first_byte)?;
        let base = self.base.addr() as i128;
        let (low, high) = (base + self.span.0, base + self.span.1);
        let known = Known::new(self.first_byte.addr() as u64, place, &info);
        // Elements at a base are one object of the program, and what CUDA does not know has no bounds to ask for.
        let unbounded = info.range_bytes == 0 && !(place::is_nowhere(self.base) && pointer::is_in_use());
        if unbounded || known.holds(low, high) || known.grown(low, high)?.holds(low, high) {
            return Ok(smallvec![Fragment { first: self.first, bytes: self.bytes, place }]);
        }
        self.walk(known)
    }

    /// Goes along the runs, and asks wherever one leaves what is known.
    fn walk(&self, first: Known) -> Result<Fragments, TransferError> {
        let positions = Positions::new(self.layout);
        let mut fragments = Fragments::new();
        // Runs often go back and forth between a few allocations.
        let mut known = vec![first];
        let (mut at, end) = (self.first, self.first + self.bytes);
        for segment in positions.segments(self.first) {
            let mut address = (self.base.addr() as u64).wrapping_add_signed(segment.offset);
            let mut left = segment.bytes.min(end - at);
            while left > 0 {
                let here = match known.iter().rev().find(|known| known.start <= address && address < known.end) {
                    Some(here) => *here,
                    None => {
                        let here = Known::at(address)?;
                        known.push(here);
                        here
                    }
                };
                let bytes = left.min(here.end - address);
                match fragments.last_mut() {
                    Some(last) if last.place == here.place => last.bytes += bytes,
                    _ => fragments.push(Fragment { first: at, bytes, place: here.place }),
                }
                (at, left, address) = (at + bytes, left - bytes, address.wrapping_add(bytes));
            }
            if at == end {
                return Ok(fragments);
            }
        }
        Ok(fragments)
    }
}
