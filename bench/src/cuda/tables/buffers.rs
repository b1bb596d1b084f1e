//! The buffers of a case, in which all who can move it are checked and measured.

use super::by_hand::blocks;
use super::call::Call;
use super::contenders::{Contender, contenders, medians};
use super::figure::{COPY, Figure};
use super::shapes::Shaped;
use super::subject::Subject;
use dtc_compiler::plan::Direction;
use dtc_measure::bench::cuda::check::{GUARD, POISON, first_difference, host_has};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::device::fill;
use dtc_measure::failure::Failure;
use dtc_runtime::cuda::{DeviceBuffer, PinnedBuffer};
use dtc_runtime::{Endpoint, IndexTable};
use std::time::Duration;

/// Where in the pattern the packed bytes of unpacks begin.
const PHASE: usize = 12_345;

/// The longest that a kernel is waited for.
const COMPILER: Duration = Duration::from_secs(10);

/// The memory of the packed bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PackedIn {
    /// Of the device.
    Device,
    /// Of the host, page-locked.
    Pinned,
}

/// The buffers of a case.
pub struct Buffers {
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    pinned: PinnedBuffer,
    image: Vec<u8>,
    packed_image: Vec<u8>,
}

impl Buffers {
    /// Buffers for a case.
    pub fn new(arena: &Arena, subject: &Subject) -> Result<Buffers, Failure> {
        let (memory, packed) = (subject.layout.true_ub() as u64 + GUARD, subject.case.packed_bytes() + GUARD);
        host_has(memory + 2 * packed)?;
        let device = arena.gpu.device();
        Ok(Buffers {
            memory: DeviceBuffer::new(device, memory as usize)?,
            packed: DeviceBuffer::new(device, packed as usize)?,
            pinned: PinnedBuffer::new(device, packed as usize)?,
            image: vec![POISON; memory as usize],
            packed_image: vec![POISON; packed as usize],
        })
    }

    /// Prepares the source on the device, and what a call must make of it on the host.
    pub fn expect(&mut self, arena: &Arena, subject: &Subject, direction: Direction) -> Result<(), Failure> {
        let Buffers { memory, packed, pinned, image, packed_image } = self;
        let (pattern, stream, bytes) = (&arena.pattern, &arena.clock.stream, subject.case.packed_bytes());
        let (spanned, tables) = (image.len() - GUARD as usize, [IndexTable::from(&subject.entries)]);
        let moved = match direction {
            Direction::Pack => {
                pattern.fill(&mut image[..spanned], 0);
                pattern.enqueue_fill(stream, memory, spanned as u64, 0)?;
                packed_image.fill(POISON);
                subject.tabled.pack(&image[..spanned], &tables, .., &mut packed_image[..bytes as usize])
            }
            Direction::Unpack => {
                pattern.fill(&mut packed_image[..bytes as usize], PHASE);
                pattern.enqueue_fill(stream, packed, bytes, PHASE)?;
                pinned.as_mut_slice().copy_from_slice(packed_image);
                image.fill(POISON);
                subject.tabled.unpack(&packed_image[..bytes as usize], .., &tables, &mut image[..spanned])
            }
        };
        stream.synchronize()?;
        moved.map(drop).map_err(|error| subject.failed(&error))
    }

    /// Measures all who can move a case one way; every byte that they write is checked before.
    pub fn contend(
        &mut self,
        arena: &mut Arena,
        subject: &Subject,
        (direction, packed_in): (Direction, PackedIn),
        rounds: usize,
    ) -> Result<Vec<Figure>, Failure> {
        let packed = match packed_in {
            PackedIn::Device => Endpoint::from(&self.packed),
            PackedIn::Pinned => Endpoint::from(&self.pinned),
        };
        let bytes = subject.case.packed_bytes();
        let call = Call { direction, memory: Endpoint::from(&self.memory), packed, bytes };
        let shapes = if packed_in == PackedIn::Device { Shaped::all(arena, subject, &call)? } else { Vec::new() };
        let multiprocessors = arena.gpu.device().info().multiprocessors;
        let pinned = packed_in == PackedIn::Pinned;
        let all = contenders(subject, call, blocks(multiprocessors, direction, pinned), &shapes);
        for contender in all.iter().filter(|contender| contender.name != COPY) {
            // The first call may be served by the generic kernels.
            (contender.enqueue)(&arena.clock.stream)?;
            arena.specialised.compile_pending(COMPILER);
            self.poison(arena, direction)?;
            (contender.enqueue)(&arena.clock.stream)?;
            arena.clock.stream.synchronize()?;
            if let Some(at) = self.difference(arena, direction, packed_in)? {
                return Err(subject.failed(&format_args!("{direction} by {}: byte {at} is wrong", contender.name)));
            }
        }
        let times = medians(arena, &all, rounds)?;
        let what = match (direction, packed_in) {
            (Direction::Pack, PackedIn::Device) => "pack",
            (Direction::Unpack, PackedIn::Device) => "unpack",
            (Direction::Pack, PackedIn::Pinned) => "pack to pinned memory",
            (Direction::Unpack, PackedIn::Pinned) => "unpack from pinned memory",
        };
        let figure = |(contender, us): (&Contender<'_>, f64)| {
            let (case, peer) = (subject.name.clone(), contender.name.clone());
            Figure { case, peer, what, bytes, us }
        };
        Ok(all.iter().zip(times).map(figure).collect())
    }

    fn poison(&mut self, arena: &Arena, direction: Direction) -> Result<(), Failure> {
        let stream = &arena.clock.stream;
        match direction {
            Direction::Pack => {
                fill(stream, &self.packed, 0..self.packed.len() as u64, POISON)?;
                self.pinned.as_mut_slice().fill(POISON);
            }
            Direction::Unpack => fill(stream, &self.memory, 0..self.memory.len() as u64, POISON)?,
        }
        Ok(stream.synchronize()?)
    }

    /// The first byte that is not as expected.
    fn difference(
        &self,
        arena: &mut Arena,
        direction: Direction,
        packed_in: PackedIn,
    ) -> Result<Option<usize>, Failure> {
        let difference = match (direction, packed_in) {
            (Direction::Pack, PackedIn::Device) => arena.pattern.difference(&self.packed, &self.packed_image)?,
            (Direction::Unpack, _) => arena.pattern.difference(&self.memory, &self.image)?,
            (Direction::Pack, PackedIn::Pinned) => {
                return Ok(first_difference(&self.packed_image, self.pinned.as_slice()));
            }
        };
        Ok(difference.map(|(at, _, _)| at))
    }
}
