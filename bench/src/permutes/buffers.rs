//! One permute: checks, then rounds in which dtc, its peer and memcpy take turns.

use super::permute::Permute;
use super::strided_perm::{self, Call};
use crate::drawn::draws::Draws;
use dtc_compiler::datatype::Datatype;
use dtc_compiler::plan::Direction;
use dtc_measure::samples::{PageAligned, SEED, fill};
use dtc_measure::timing::{median, repetitions, sample};
use dtc_runtime::{Committed, Engine, Memory, MemoryMut, Range};
use std::hint::black_box;

const POISON: u8 = 0xa5;

/// One who moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PermutePeer {
    /// The kernel of dtc for the type.
    Dtc,
    /// The crate strided-perm.
    StridedPerm,
    /// A copy of as many bytes, in their order.
    Memcpy,
}

impl PermutePeer {
    /// All, in the order of [`PermuteBuffers::medians`].
    pub const ALL: [PermutePeer; 3] = [PermutePeer::Dtc, PermutePeer::StridedPerm, PermutePeer::Memcpy];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            PermutePeer::Dtc => "dtc",
            PermutePeer::StridedPerm => "strided-perm",
            PermutePeer::Memcpy => "memcpy",
        }
    }
}

/// A permute with the buffers of all: each moves its bytes between the same pages.
pub struct PermuteBuffers<'a> {
    permute: &'a Permute,
    committed: Committed,
    memory: PageAligned,
    packed: PageAligned,
    contiguous: PageAligned,
}

impl PermuteBuffers<'_> {
    /// Compiles the kernel and fills the buffers.
    pub fn new<'a>(permute: &'a Permute, datatype: &Datatype) -> PermuteBuffers<'a> {
        let committed = Engine::new().commit(datatype);
        committed.specialise();
        let filled = || {
            let mut buffer = PageAligned::new(permute.bytes() as usize);
            fill(buffer.bytes_mut(), SEED);
            buffer
        };
        PermuteBuffers { permute, committed, memory: filled(), packed: filled(), contiguous: filled() }
    }

    /// What moves the bytes of a peer once.
    fn call(&mut self, peer: PermutePeer, direction: Direction) -> Result<Call<'_>, String> {
        let PermuteBuffers { permute, committed, memory, packed, contiguous } = self;
        let (memory, packed, contiguous) = (memory.bytes_mut(), packed.bytes_mut(), contiguous.bytes_mut());
        Ok(match (peer, direction) {
            (PermutePeer::Dtc, Direction::Pack) => Box::new(move || {
                let moved = committed.pack(Memory::at(memory, 0), Range::elements(1), packed);
                moved.map(drop).map_err(|error| error.to_string())
            }),
            (PermutePeer::Dtc, Direction::Unpack) => Box::new(move || {
                let moved = committed.unpack(packed, Range::elements(1), MemoryMut::at(memory, 0));
                moved.map(drop).map_err(|error| error.to_string())
            }),
            (PermutePeer::StridedPerm, _) => strided_perm::call(permute, memory, packed, direction)?,
            (PermutePeer::Memcpy, Direction::Pack) => Box::new(move || {
                packed.copy_from_slice(contiguous);
                black_box(packed.as_mut_ptr());
                Ok(())
            }),
            (PermutePeer::Memcpy, Direction::Unpack) => Box::new(move || {
                contiguous.copy_from_slice(packed);
                black_box(contiguous.as_mut_ptr());
                Ok(())
            }),
        })
    }

    /// Has dtc and its peer pack and unpack into poison, and compares every byte with the element-by-element copy.
    pub fn check(&mut self) -> Result<(), String> {
        let original = self.memory.bytes().to_vec();
        let right = self.permute.packed(&original);
        for peer in [PermutePeer::Dtc, PermutePeer::StridedPerm] {
            self.packed.bytes_mut().fill(POISON);
            self.call(peer, Direction::Pack)?()?;
            equal(self.packed.bytes(), &right).map_err(|wrong| format!("{} pack, packed {wrong}", peer.name()))?;
            equal(self.memory.bytes(), &original).map_err(|wrong| format!("{} pack, array {wrong}", peer.name()))?;
            self.memory.bytes_mut().fill(POISON);
            self.call(peer, Direction::Unpack)?()?;
            equal(self.memory.bytes(), &original).map_err(|wrong| format!("{} unpack, array {wrong}", peer.name()))?;
        }
        Ok(())
    }

    /// The median nanoseconds of all peers, in the order of [`PermutePeer::ALL`], over rounds with samples of at least `least` nanoseconds.
    pub fn medians(&mut self, direction: Direction, rounds: usize, least: f64) -> Result<[f64; 3], String> {
        let mut refused = Ok(());
        let mut calls = [0; 3];
        for (calls, peer) in calls.iter_mut().zip(PermutePeer::ALL) {
            let mut call = self.call(peer, direction)?;
            *calls = repetitions(least, || refused = call());
        }
        let mut samples = [const { Vec::new() }; 3];
        let mut draws = Draws::new(SEED);
        for _ in 0..rounds {
            // Each finds the caches as another has left them: another one in each round.
            for place in draws.order(3).into_iter().map(|place| place as usize) {
                let mut call = self.call(PermutePeer::ALL[place], direction)?;
                samples[place].push(sample(calls[place], || refused = call()));
            }
        }
        refused?;
        Ok(samples.map(|samples| median(&samples)))
    }
}

/// Names the first byte that is wrong.
fn equal(found: &[u8], right: &[u8]) -> Result<(), String> {
    if found == right {
        return Ok(());
    }
    let wrong = found.iter().zip(right).position(|(found, right)| found != right).unwrap_or(0);
    Err(format!("byte {wrong}: expected {}, found {}", right[wrong], found[wrong]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::text::parse;

    #[test]
    fn wrong_bytes_are_found() {
        let permute = Permute::draw(5, 0);
        assert_eq!(PermuteBuffers::new(&permute, &permute.datatype().unwrap()).check(), Ok(()));
        let unpermuted = parse(&format!("contiguous {} byte", permute.bytes())).unwrap();
        let wrong = PermuteBuffers::new(&permute, &unpermuted).check().unwrap_err();
        assert!(wrong.starts_with("dtc pack, packed byte") && wrong.contains("expected"), "{wrong}");
    }
}
