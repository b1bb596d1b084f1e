//! Types whose bytes lie in several allocations: absolute addresses lead anywhere, so one element may have parts in memory of
//! different kinds. The packed bytes are cut where the kind changes, and each part is a call like any other.

use super::error::TransferError;
use super::place::{self, Located, Place, Placed};
use super::transfer::Elements;
use crate::endpoint::Endpoint;
use dtc_compiler::layout::Layout;
use dtc_compiler::layout::positions::Positions;
use dtc_cuda::pointer::{self, PointerInfo};
use smallvec::{SmallVec, smallvec};

/// Allocations side by side that are looked at before runs are.
const NEIGHBOURS: usize = 16;

/// Host memory is pinned and allocated for devices in whole pages at least.
const PAGE: u64 = 4096;

/// The parts of a call, in packed order: one, for most calls.
pub(super) type ElementParts<'a> = SmallVec<[Placed<'a>; 1]>;

impl<'a> Elements<'a> {
    /// Where the elements lie, by what the caller or the driver says. The range ends with the packed bytes or before.
    pub(super) fn placed(self, side: &'static str) -> Result<ElementParts<'a>, TransferError> {
        let layout = self.of.any_layout();
        // The base of an absolute type lies nowhere; its first byte lies in memory.
        let begin = layout.root().offset.wrapping_add(layout.measure(layout.root().node).first);
        let first_byte = self.memory.advanced(begin);
        place::check(side, first_byte)?;
        match self.memory.kind() {
            Some(kind) => Ok(smallvec![self.in_place(Place::known(kind))]),
            None => self.search(layout, first_byte.address()),
        }
    }

    /// The elements in memory that the processor reaches, as `Endpoint::are_on_host` found out.
    pub(super) fn on_host(self) -> Placed<'a> {
        Placed { of: self.of, memory: Located::on_host(self.memory), range: self.range }
    }

    fn in_place(self, place: Place) -> Placed<'a> {
        Placed { of: self.of, memory: Located { address: self.memory.address(), place }, range: self.range }
    }

    /// Asks about the first byte. As long as its allocation holds everything, that is all.
    fn search(self, layout: &Layout, first_byte: *const u8) -> Result<ElementParts<'a>, TransferError> {
        let (place, info) = place::ask(first_byte)?;
        let base = self.memory.address().addr() as i128;
        let (low, high) = self.of.span(self.range.count()).unwrap_or_default();
        let (low, high) = (base + low, base + high);
        let known = Allocation::new(first_byte.addr() as u64, place, &info);
        // Elements at a base are one object of the program, and what CUDA does not know has no bounds to ask for.
        let unbounded = info.range_bytes == 0 && !(self.memory.is_nowhere() && pointer::is_in_use());
        if unbounded || known.holds(low, high) || known.grown(low, high)?.holds(low, high) {
            return Ok(smallvec![self.in_place(place)]);
        }
        self.walk(layout, known)
    }

    /// Visits the runs, and asks the driver about each that is not in a known allocation.
    fn walk(self, layout: &Layout, first: Allocation) -> Result<ElementParts<'a>, TransferError> {
        let positions = Positions::new(layout);
        let mut parts = ElementParts::new();
        // Runs often go back and forth between a few allocations.
        let mut known = vec![first];
        let (mut at, length) = (0, self.range.length());
        for segment in positions.segments_within(self.range.offset(), length) {
            let mut address = (self.memory.address().addr() as u64).wrapping_add_signed(segment.offset);
            let mut left = segment.bytes;
            while left > 0 {
                let here = match known.iter().rev().find(|known| known.start <= address && address < known.end) {
                    Some(here) => *here,
                    None => {
                        let here = Allocation::at(address)?;
                        known.push(here);
                        here
                    }
                };
                let bytes = left.min(here.end - address);
                match parts.last_mut() {
                    Some(last) if last.memory.place == here.place => {
                        last.range = last.range.part(0, last.range.length() + bytes);
                    }
                    _ => parts.push(self.part(at, bytes).in_place(here.place)),
                }
                (at, left, address) = (at + bytes, left - bytes, address.wrapping_add(bytes));
            }
            if at == length {
                return Ok(parts);
            }
        }
        Ok(parts)
    }
}

/// A range of addresses, and what lies there.
#[derive(Clone, Copy)]
struct Allocation {
    start: u64,
    end: u64,
    place: Place,
}

impl Allocation {
    fn new(address: u64, place: Place, info: &PointerInfo) -> Allocation {
        let (start, end) = match info.range_bytes {
            // CUDA does not know the memory, nor the rest of its page.
            0 => (address & !(PAGE - 1), (address | (PAGE - 1)).saturating_add(1)),
            bytes => (info.range_start, info.range_start.saturating_add(bytes)),
        };
        Allocation { start, end, place }
    }

    fn at(address: u64) -> Result<Allocation, TransferError> {
        let pointer: *const u8 = std::ptr::without_provenance(address as usize);
        place::check("a run of the memory", Endpoint::from(pointer))?;
        let (place, info) = place::ask(pointer)?;
        Ok(Allocation::new(address, place, &info))
    }

    fn holds(&self, low: i128, high: i128) -> bool {
        i128::from(self.start) <= low && high <= i128::from(self.end)
    }

    /// Takes the allocations beside this one in, as long as they are of its kind and the span reaches into them.
    fn grown(mut self, low: i128, high: i128) -> Result<Allocation, TransferError> {
        for _ in 0..NEIGHBOURS {
            if self.holds(low, high) {
                break;
            }
            let next = if i128::from(self.end) < high { self.end } else { self.start - 1 };
            let next = Allocation::at(next)?;
            if next.place != self.place {
                break;
            }
            (self.start, self.end) = (self.start.min(next.start), self.end.max(next.end));
        }
        Ok(self)
    }
}
