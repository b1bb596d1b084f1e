//! Transfers: packs and unpacks between memory of all kinds.
//!
//! [`place`] says where a side lies, [`fragments`] cuts calls whose elements lie in several kinds of memory, [`choice`] says
//! which way the bytes go, by a [`model`] of the machine that [`calibrate`] measures, and [`estimate`] how long that takes.
//! [`staged`] and [`pipeline`] are the ways that need more than one kernel; [`lanes`] are the buffers that they go through.
//! [`between`] is what users call. [`movers`] and
//! [`passage`] serve calls with elements on one side and something else than their packed bytes in turn on the other: copies
//! from type to type, and unpacks with an operation.

mod between;
mod calibrate;
mod choice;
mod estimate;
mod fragments;
mod lanes;
mod model;
mod movers;
mod passage;
mod pipeline;
mod place;
mod staged;

pub use between::Between;
pub use choice::{Choice, TransferCase, Way};
pub use estimate::Estimate;
pub use model::TransferModel;

pub(super) use fragments::{Fragment, Fragments};
pub(crate) use lanes::{Lanes, Ring, Stage};
pub(super) use movers::Memory;
pub(super) use passage::{Landings, Passage};
pub(crate) use pipeline::Pipeline;
pub(super) use place::{Place, place_of};

use super::Gpu;
use super::copies::Multiprocessors;
use super::on_device::Move;
use super::request::{Part, Request, TransferError};
use crate::committed::Committed;
use crate::range::Range;
use dtc_compiler::plan::Direction;
use dtc_cuda::{MemoryKind, Stream};
use fragments::Search;
use pipeline::Packer;
use place::check;
use smallvec::smallvec;

/// What a caller says of the two sides; nothing where the driver is to be asked.
#[derive(Clone, Copy)]
pub(super) struct Sides {
    pub(super) memory: Option<MemoryKind>,
    pub(super) packed: Option<MemoryKind>,
}

impl Sides {
    pub(super) const UNKNOWN: Sides = Sides { memory: None, packed: None };
}

/// A call on addresses.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) direction: Direction,
    /// The address that the type is applied to.
    pub(super) memory: *const u8,
    pub(super) packed: *const u8,
    pub(super) range: Range,
    pub(super) multiprocessors: Multiprocessors,
}

impl Asked {
    /// A part of the call, as a device sees it.
    fn on_device(&self, fragment: &Fragment, packed: Place, gpu: &Gpu) -> Move {
        let Fragment { first, bytes, place } = *fragment;
        let pinned = [place.kind, packed.kind].contains(&MemoryKind::Pinned);
        let multiprocessors = match self.multiprocessors {
            // An eighth fills the link to the host, and kernels of the application need not wait for the others.
            Multiprocessors::All if pinned => Multiprocessors::AtMost(gpu.device().info().multiprocessors / 8),
            // Between two ranges of one device the driver's copies of rows are kernels, and slower ones.
            Multiprocessors::None if place.kind == packed.kind => Multiprocessors::All,
            asked => asked,
        };
        Move {
            direction: self.direction,
            memory: place.on_device(self.memory),
            packed: packed.on_device(self.packed).wrapping_add(first - self.range.offset()),
            count: self.range.count(),
            first,
            bytes,
            multiprocessors,
        }
    }

    /// A part of the call, as the processor sees it.
    fn on_host(&self, fragment: &Fragment) -> (*mut u8, *mut u8) {
        (self.memory.cast_mut(), self.packed.wrapping_add((fragment.first - self.range.offset()) as usize).cast_mut())
    }
}

impl Committed {
    /// The mean length of the runs of this type, in bytes.
    fn run_bytes(&self) -> u64 {
        let layout = self.layout();
        layout.size() / layout.measure(layout.root().node).runs.max(1)
    }

    /// Where elements lie, of a kind that the caller knows or the driver tells.
    pub(super) fn fragments(
        &self,
        side: &'static str,
        base: *const u8,
        range: Range,
        bytes: u64,
        known: Option<MemoryKind>,
    ) -> Result<Fragments, TransferError> {
        let (layout, first) = (self.any_layout(), range.offset());
        // The base of an absolute type lies nowhere; its first byte lies in memory.
        let begin = layout.root().offset.wrapping_add(layout.measure(layout.root().node).first);
        let first_byte = base.wrapping_offset(begin as isize);
        check(side, first_byte)?;
        if let Some(kind) = known {
            return Ok(smallvec![Fragment { first, bytes, place: Place::known(kind) }]);
        }
        Search { layout, base, first_byte, span: self.span(range.count()).unwrap_or_default(), first, bytes }
            .fragments()
    }

    /// Where the sides of a call lie.
    fn places(&self, asked: &Asked, sides: Sides, bytes: u64) -> Result<(Fragments, Place), TransferError> {
        let elements = self.fragments("memory", asked.memory, asked.range, bytes, sides.memory)?;
        Ok((elements, place_of("packed bytes", asked.packed, sides.packed)?))
    }

    /// Starts a call, and ends it if the caller waits for it anyway and that is cheaper so.
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_start`] or [`Committed::unpack_start`].
    pub(super) unsafe fn between_kinds(
        &self,
        asked: &Asked,
        sides: Sides,
        wait: bool,
    ) -> Result<Request, TransferError> {
        let bytes = self.take(asked.range);
        if bytes == 0 {
            return Ok(Request::done(0));
        }
        let (fragments, packed) = self.places(asked, sides, bytes)?;
        let wait = wait && fragments.len() == 1;
        // SAFETY: the caller's promise, for a part of the call.
        let start = |fragment| unsafe { self.start_part(asked, fragment, packed, wait) };
        Request::start(bytes, fragments.iter().map(start))
    }

    /// Starts a call on elements in memory of one kind. Nothing is left under way if it is done.
    ///
    /// # Safety
    ///
    /// As for [`Committed::between_kinds`].
    unsafe fn start_part(
        &self,
        asked: &Asked,
        fragment: &Fragment,
        packed: Place,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        let (gpu, other) = self.devices(fragment.place.kind, packed.kind)?;
        let Some(gpu) = gpu else {
            // SAFETY: the caller's promise; both sides are the processor's to use.
            unsafe { self.on_processor(asked, fragment) };
            return Ok(None);
        };
        let case = TransferCase {
            direction: asked.direction,
            memory: fragment.place.kind,
            packed: packed.kind,
            peers: other.as_ref().is_some_and(|other| gpu.shared.reaches(other.device())),
            shares_page_tables: gpu.device().info().shares_page_tables,
            waits: wait,
            run_bytes: self.run_bytes(),
            bytes: fragment.bytes,
        };
        let choice = case.choose(gpu.model());
        // SAFETY: the caller's promise; the way fits the kinds.
        unsafe { self.start_on(&gpu, other.as_ref(), asked, fragment, packed, choice.way, wait) }
    }

    /// Starts a call that a device takes part in, in a given way.
    ///
    /// # Safety
    ///
    /// As for [`Committed::between_kinds`], and the way fits the kinds of memory.
    #[expect(clippy::too_many_arguments, reason = "a call, its devices and its way")]
    unsafe fn start_on(
        &self,
        gpu: &Gpu,
        other: Option<&Gpu>,
        asked: &Asked,
        fragment: &Fragment,
        packed: Place,
        way: Way,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        let shared = &gpu.shared;
        let on_device = self.on_device(gpu);
        let mut moved = asked.on_device(fragment, packed, gpu);
        if let Some(other) = other {
            // After what the default stream of the other device was given, too.
            let event = other.shared.event()?;
            event.record(&other.shared.stream)?;
            shared.stream.wait_event(&event)?;
            other.shared.give_back(event);
        }
        let (memory, host_packed) = asked.on_host(fragment);
        let packer = match way {
            Way::Processor => {
                // SAFETY: the caller's promise.
                unsafe { self.on_processor(asked, fragment) };
                return Ok(None);
            }
            Way::Kernel => {
                // SAFETY: the caller's promise; the device reaches both sides.
                unsafe { on_device.launch(&shared.stream, &moved)? };
                return Part::enqueued(gpu, wait);
            }
            Way::Staged => {
                let event = shared.event()?;
                // SAFETY: the caller's promise; the device reaches the elements.
                unsafe { staged::enqueue(on_device, &shared.stream, &moved, &event)? };
                return Ok(Some(Part::Device(event, shared.clone())));
            }
            Way::Ring => {
                moved.packed = host_packed.expose_provenance() as u64;
                Packer::Device
            }
            Way::HostPacked => {
                moved.memory = memory.expose_provenance() as u64;
                Packer::Processor
            }
        };
        // SAFETY: the caller's promise; each side has the address that its mover uses.
        let mut pipeline = Box::new(unsafe { Pipeline::new(self, on_device, packer, moved) });
        if !wait {
            pipeline.start()?;
        }
        Ok(Some(Part::Pipeline(pipeline)))
    }

    /// The device that takes part in a transfer, if one does, and a second one where the packed bytes lie on another.
    fn devices(&self, memory: MemoryKind, packed: MemoryKind) -> Result<(Option<Gpu>, Option<Gpu>), TransferError> {
        use MemoryKind::Device;
        let gpu = |ordinal| self.engine().gpu(ordinal);
        Ok(match (memory, packed) {
            (Device(one), Device(other)) if one != other => (Some(gpu(one)?), Some(gpu(other)?)),
            (Device(one), _) | (_, Device(one)) => (Some(gpu(one)?), None),
            _ => (None, None),
        })
    }

    /// # Safety
    ///
    /// As for [`Committed::between_kinds`], and the processor may use both sides.
    unsafe fn on_processor(&self, asked: &Asked, fragment: &Fragment) {
        let (memory, packed) = asked.on_host(fragment);
        let Fragment { first, bytes, .. } = *fragment;
        // SAFETY: the caller's promise.
        unsafe {
            match asked.direction {
                Direction::Pack => self.pack_raw(memory, asked.range.fragment(first, bytes), packed),
                Direction::Unpack => self.unpack_raw(packed, asked.range.fragment(first, bytes), memory),
            };
        }
    }

    /// Enqueues a call on a CUDA stream, if its device reaches both sides.
    ///
    /// # Safety
    ///
    /// As for [`Committed::between_kinds`], until the work is done.
    pub(super) unsafe fn enqueue_transfer(
        &self,
        stream: &Stream,
        asked: &Asked,
        sides: Sides,
    ) -> Result<u64, TransferError> {
        let bytes = self.take(asked.range);
        if bytes == 0 {
            return Ok(0);
        }
        let gpu = self.engine().gpu(stream.device().info().ordinal)?;
        let (fragments, packed) = self.places(asked, sides, bytes)?;
        self.check_reach(&gpu, "packed bytes", packed.kind)?;
        fragments.iter().try_for_each(|fragment| self.check_reach(&gpu, "memory", fragment.place.kind))?;
        let on_device = self.on_device(&gpu);
        for fragment in &fragments {
            // SAFETY: the caller's promise; the device reaches both sides.
            unsafe { on_device.launch(stream, &asked.on_device(fragment, packed, &gpu))? };
        }
        Ok(bytes)
    }

    /// An error if kernels of a device cannot use memory of a kind.
    pub(super) fn check_reach(&self, gpu: &Gpu, side: &'static str, kind: MemoryKind) -> Result<(), TransferError> {
        let info = gpu.device().info();
        let reached = match kind {
            MemoryKind::Pinned | MemoryKind::Managed => true,
            MemoryKind::Pageable => info.reads_pageable_memory,
            MemoryKind::Device(ordinal) if ordinal == info.ordinal => true,
            MemoryKind::Device(ordinal) => gpu.shared.reaches(self.engine().gpu(ordinal)?.device()),
        };
        if reached { Ok(()) } else { Err(TransferError::OutOfReach { side, kind, device: info.ordinal }) }
    }
}
