//! Copies from type to type, on devices.

use super::compile::without_source;
use super::copies::Multiprocessors;
use super::joint::Recipe;
use super::kernel::Kernel;
use super::on_device::{GpuType, Grid, Move, launch};
use super::request::{Part, Request, TransferError};
use super::transfer::{Memory, Passage, Place, Sides};
use super::{Gpu, Shared};
use crate::committed::Committed;
use crate::copy::Elements;
use crate::range::Range;
use dtc_compiler::codegen::cuda::{self, COPY_ENTRY, GENERIC_COPY, Target};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, CopyCall, CopyVariant};
use dtc_cuda::{CudaError, Stream, graph};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// Runs of a peer's memory from this length on, in bytes, are written over the link one by one. Shorter ones come packed, and
/// are unpacked there.
const LONG_RUN: u64 = 128;

/// Which copies a kernel serves.
pub(super) struct Pair {
    /// The types of source and target on this device.
    types: [u64; 2],
    variant: CopyVariant,
    plans: [Weak<GpuType>; 2],
}

/// A copy between elements that begin where their memory does.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) source: Elements<*const u8>,
    pub(super) target: Elements<*mut u8>,
    pub(super) bytes: u64,
}

impl Asked {
    pub(super) fn new(source: Elements<*const u8>, target: Elements<*mut u8>, bytes: u64) -> Asked {
        let source = Elements { memory: source.memory.wrapping_add(source.origin), origin: 0, ..source };
        let target = Elements { memory: target.memory.wrapping_add(target.origin), origin: 0, ..target };
        Asked { source, target, bytes }
    }

    /// So many bytes of it, from one on.
    fn part(&self, at: u64, bytes: u64) -> Asked {
        let source = Elements { offset: self.source.offset + at, ..self.source };
        let target = Elements { offset: self.target.offset + at, ..self.target };
        Asked { source, target, bytes }
    }

    /// As plans see it.
    fn call(&self) -> CopyCall {
        CopyCall {
            source: self.source.memory as u64,
            source_first: self.source.offset,
            target: self.target.memory as u64,
            target_first: self.target.offset,
            bytes: self.bytes,
        }
    }

    /// Packs a part of the source to an address.
    pub(super) fn pack(&self, at: u64, bytes: u64, packed: u64) -> Move {
        let Elements { memory, count, offset, .. } = self.source;
        Move {
            direction: Direction::Pack,
            memory: memory as u64,
            packed,
            count,
            first: offset + at,
            bytes,
            multiprocessors: Multiprocessors::All,
        }
    }

    /// Unpacks a part of the target from an address.
    pub(super) fn unpack(&self, at: u64, bytes: u64, packed: u64) -> Move {
        let Elements { memory, count, offset, .. } = self.target;
        Move {
            direction: Direction::Unpack,
            memory: memory as u64,
            packed,
            count,
            first: offset + at,
            bytes,
            multiprocessors: Multiprocessors::All,
        }
    }
}

/// A copy with memory of one kind on each side.
pub(super) struct PlacedCopy {
    pub(super) asked: Asked,
    pub(super) read: Place,
    pub(super) written: Place,
}

type Parts = SmallVec<[PlacedCopy; 1]>;

impl PlacedCopy {
    /// As a device sees it.
    fn on_device(&self) -> Asked {
        let mut asked = self.asked;
        asked.source.memory = self.read.on_device(asked.source.memory) as *const u8;
        asked.target.memory = self.written.on_device(asked.target.memory) as *mut u8;
        asked
    }
}

impl Committed {
    /// Enqueues a copy from elements of this type to elements of another one on a CUDA stream, as one launch and without a
    /// buffer between, and returns at once: [`Committed::copy_raw`] on a device. Returns how many bytes will be moved. May be
    /// captured into a graph, which then keeps what the kernel needs.
    ///
    /// # Errors
    ///
    /// CUDA refuses.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`], for the device of the stream and until the work is done.
    ///
    /// ```
    /// # use dtc_runtime::{Committed, Elements, cuda::{CudaError, DeviceBuffer, Stream}};
    /// # fn transpose(rows: &Committed, columns: &Committed, from: &DeviceBuffer, to: &DeviceBuffer, stream: &Stream) -> Result<u64, CudaError> {
    /// let source = Elements { memory: from.address() as *const u8, origin: 0, count: 1, offset: 0 };
    /// let target = Elements { memory: to.address() as *mut u8, origin: 0, count: 1, offset: 0 };
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// unsafe { rows.copy_enqueue(stream, source, columns, target, u64::MAX) }
    /// # }
    /// ```
    pub unsafe fn copy_enqueue(
        &self,
        stream: &Stream,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
    ) -> Result<u64, CudaError> {
        let bytes = self.length_of_copy(&source, to, &destination, bytes);
        if bytes > 0 {
            let gpu = self.engine().gpu(stream.device().info().ordinal)?;
            // SAFETY: the caller's promise.
            unsafe { self.copy_on(&gpu, stream, to, &Asked::new(source, destination, bytes))? };
        }
        Ok(bytes)
    }

    /// Copies elements between memory of any kind, asking CUDA what it is, and returns when the bytes are there:
    /// [`Committed::copy_raw`] anywhere. On a device it is ordered after what was enqueued on the legacy default stream.
    ///
    /// Between devices that reach each other, runs of the destination of 128 bytes and more are written where they belong by the
    /// device of the source; shorter ones are packed into a small buffer on the other device and unpacked there. Everything
    /// else goes through pinned memory, chunk by chunk.
    ///
    /// # Errors
    ///
    /// [`TransferError::Address`] when a side is null; CUDA refuses.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Elements;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let (one, mut other) = (7i32, 0i32);
    /// let source = Elements { memory: (&raw const one).cast::<u8>(), origin: 0, count: 1, offset: 0 };
    /// let destination = Elements { memory: (&raw mut other).cast::<u8>(), origin: 0, count: 1, offset: 0 };
    /// // SAFETY: both sides are as long as the type.
    /// let moved = unsafe { int.copy_any(source, &int, destination, 4)? };
    /// assert_eq!((moved, other), (4, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn copy_any(
        &self,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
    ) -> Result<u64, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.copy_between(source, to, destination, bytes, Sides::UNKNOWN, true)?.wait() }
    }

    /// Starts a copy, and ends it if the caller waits for it anyway. The destination is the second side.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`], until the request is done, and both sides lie where the caller said.
    pub(super) unsafe fn copy_between(
        &self,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
        sides: Sides,
        wait: bool,
    ) -> Result<Request, TransferError> {
        let bytes = self.length_of_copy(&source, to, &destination, bytes);
        if bytes == 0 {
            return Ok(Request::done(0));
        }
        let parts = self.parts_of_copy(to, &Asked::new(source, destination, bytes), sides)?;
        let wait = wait && parts.len() == 1;
        // SAFETY: the caller's promise, for a part of the call.
        let start = |part| unsafe { self.start_copy_part(to, part, wait) };
        Request::start(bytes, parts.iter().map(start))
    }

    /// Starts a copy between memory of one kind on each side. Nothing is left under way if it is done.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_between`].
    unsafe fn start_copy_part(
        &self,
        to: &Committed,
        part: &PlacedCopy,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        let PlacedCopy { asked, read, written } = part;
        match Memory::movers(read.kind.into(), written.kind.into()) {
            (None, None) => {
                // SAFETY: the caller's promise; both sides are the processor's to use.
                unsafe { self.copy_raw(asked.source, to, asked.target, asked.bytes) };
                Ok(None)
            }
            (Some(one), Some(other)) if one == other => {
                let gpu = self.engine().gpu(one)?;
                // SAFETY: the caller's promise; the device reaches both sides.
                unsafe { self.copy_on(&gpu, &gpu.shared.stream, to, asked)? };
                Part::enqueued(&gpu, wait)
            }
            (from, into) => {
                let gpu = |ordinal: Option<u32>| ordinal.map(|ordinal| self.engine().gpu(ordinal)).transpose();
                let (from, into) = (gpu(from)?, gpu(into)?);
                let peers = from.as_ref().zip(into.as_ref());
                if let Some((from, into)) = peers.filter(|(from, into)| from.shared.reaches(into.device())) {
                    // SAFETY: the caller's promise; the device of the source reaches that of the destination.
                    return unsafe { self.copy_to_peer(from, into, to, asked, wait) };
                }
                // SAFETY: the caller's promise.
                unsafe { self.copy_through(from.as_ref(), into.as_ref(), to, asked, false)? };
                Ok(None)
            }
        }
    }

    /// Enqueues a copy on a CUDA stream, if its device reaches both sides. The destination is the second side.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`], until the work is done, and both sides lie where the caller said.
    pub(super) unsafe fn enqueue_copy(
        &self,
        stream: &Stream,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
        sides: Sides,
    ) -> Result<u64, TransferError> {
        let bytes = self.length_of_copy(&source, to, &destination, bytes);
        if bytes > 0 {
            let gpu = self.engine().gpu(stream.device().info().ordinal)?;
            let parts = self.parts_of_copy(to, &Asked::new(source, destination, bytes), sides)?;
            for PlacedCopy { read, written, .. } in &parts {
                self.check_reach(&gpu, "source", read.kind)?;
                self.check_reach(&gpu, "destination", written.kind)?;
            }
            for part in &parts {
                // SAFETY: the caller's promise; the device reaches both sides.
                unsafe { self.copy_on(&gpu, stream, to, &part.on_device())? };
            }
        }
        Ok(bytes)
    }

    /// The parts of a copy with memory of one kind on each side: one, for most copies.
    pub(super) fn parts_of_copy(&self, to: &Committed, asked: &Asked, sides: Sides) -> Result<Parts, TransferError> {
        let Asked { source, target, bytes } = asked;
        let range = |count, offset| Range::elements(count).bytes(offset..);
        let read = self.fragments("source", source.memory, range(source.count, source.offset), *bytes, sides.memory)?;
        let written =
            to.fragments("destination", target.memory, range(target.count, target.offset), *bytes, sides.packed)?;
        let (mut parts, mut at) = (Parts::new(), 0);
        let (mut reads, mut writes) = (read.iter().peekable(), written.iter().peekable());
        while let (Some(from), Some(into)) = (reads.peek(), writes.peek()) {
            let ends = [from.first + from.bytes - source.offset, into.first + into.bytes - target.offset];
            let end = ends[0].min(ends[1]);
            parts.push(PlacedCopy { asked: asked.part(at, end - at), read: from.place, written: into.place });
            at = end;
            reads.next_if(|_| ends[0] == end);
            writes.next_if(|_| ends[1] == end);
        }
        Ok(parts)
    }

    pub(super) fn length_of_copy(
        &self,
        source: &Elements<*const u8>,
        to: &Committed,
        destination: &Elements<*mut u8>,
        bytes: u64,
    ) -> u64 {
        let readable = self.take(Range::elements(source.count).fragment(source.offset, bytes));
        to.take(Range::elements(destination.count).fragment(destination.offset, readable))
    }

    /// # Safety
    ///
    /// As for [`Committed::copy_enqueue`].
    unsafe fn copy_on(&self, gpu: &Gpu, stream: &Stream, to: &Committed, asked: &Asked) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        unsafe { self.on_device(gpu).copy(stream, to.on_device(gpu), asked) }
    }

    /// Copies to memory of another device; short runs go through a buffer, which is waited for.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_between`]; the first device has the source and reaches the destination, on the second.
    unsafe fn copy_to_peer(
        &self,
        from: &Gpu,
        into: &Gpu,
        to: &Committed,
        asked: &Asked,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        // After what the other device was given, too.
        let event = into.shared.event()?;
        event.record(&into.shared.stream)?;
        from.shared.stream.wait_event(&event)?;
        into.shared.give_back(event);
        let layout = to.layout();
        let run = layout.size() / layout.measure(layout.root().node).runs.max(1);
        if run >= LONG_RUN || to.on_device(into).plan.is_contiguous() {
            // SAFETY: the caller's promise.
            unsafe { self.copy_on(from, &from.shared.stream, to, asked)? };
            return Part::enqueued(from, wait);
        }
        // SAFETY: the caller's promise.
        unsafe { self.copy_through(Some(from), Some(into), to, asked, true)? };
        Ok(None)
    }

    /// Copies through packed bytes, chunk by chunk, and waits. The processor moves what no device is given for.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_between`]; each mover reaches its side and the buffers.
    unsafe fn copy_through(
        &self,
        from: Option<&Gpu>,
        into: Option<&Gpu>,
        to: &Committed,
        asked: &Asked,
        on_device: bool,
    ) -> Result<(), CudaError> {
        let passage = Passage { from, to: into, bytes: asked.bytes, granule: 16 };
        passage.run(
            on_device,
            |at, bytes, slot| {
                let Some(gpu) = from else {
                    let Elements { memory, count, offset, .. } = asked.source;
                    // SAFETY: the caller's promise; the buffer is as long as a chunk, and free.
                    unsafe { self.pack_raw(memory, Range::elements(count).fragment(offset + at, bytes), slot.host) };
                    return Ok(());
                };
                // SAFETY: as above.
                unsafe { self.on_device(gpu).launch(&gpu.shared.stream, &asked.pack(at, bytes, slot.address)) }
            },
            |at, bytes, slot| {
                let Some(gpu) = into else {
                    let Elements { memory, count, offset, .. } = asked.target;
                    // SAFETY: the caller's promise; the buffer holds the chunk.
                    unsafe { to.unpack_raw(slot.host, Range::elements(count).fragment(offset + at, bytes), memory) };
                    return Ok(());
                };
                // SAFETY: as above.
                unsafe { to.on_device(gpu).launch(&gpu.shared.stream, &asked.unpack(at, bytes, slot.address)) }
            },
        )
    }
}

impl GpuType {
    /// Enqueues a copy to elements of another type, as one kernel or one copy.
    ///
    /// # Safety
    ///
    /// The device can read the source and write the destination, which do not overlap, until the work is done.
    unsafe fn copy(self: &Arc<GpuType>, stream: &Stream, to: &Arc<GpuType>, asked: &Asked) -> Result<(), CudaError> {
        let copy = asked.call();
        let CopyCall { source, source_first, target, target_first, bytes } = copy;
        if to.plan.is_contiguous() {
            let packed = target.wrapping_add(to.origin as u64).wrapping_add(target_first);
            // SAFETY: the caller's promise.
            return unsafe { self.launch(stream, &asked.pack(0, bytes, packed)) };
        }
        if self.plan.is_contiguous() {
            let packed = source.wrapping_add(self.origin as u64).wrapping_add(source_first);
            // SAFETY: the caller's promise.
            return unsafe { to.launch(stream, &asked.unpack(0, bytes, packed)) };
        }
        let call = Call { memory: source, packed: target, first: source_first, bytes };
        let bounds = self.bounds(asked.source.count);
        let mut last = Target { low: bounds.low, high: bounds.high, first: target_first, ..Target::default() };
        if let Some(variant) = CopyVariant::serving(&self.plan, &to.plan, &copy)
            && let Some(blocks) = variant.blocks(bytes)
        {
            let types = [self.id, to.id];
            let is = |pair: &Pair| pair.types == types && pair.variant == variant;
            let new = || Pair { types, variant, plans: [Arc::downgrade(self), Arc::downgrade(to)] };
            if let Some(kernel) = self.gpu.copies.get(&self.gpu, is, new).serving(&self.gpu) {
                graph::keep_in_graph(stream, kernel)?;
                let tables = kernel.tables.as_ref().map_or(0, |tables| tables.address());
                let last = (&raw mut last).cast();
                // SAFETY: the caller's promise; the kernel ends in a target.
                return unsafe {
                    launch(&kernel.function, stream, &call, tables, Grid::all(blocks, variant.threads()), last)
                };
            }
        }
        let blocks = GENERIC_COPY.blocks(bytes).ok_or(CudaError::GridTooLarge { bytes })?;
        let (program, other) = (self.batch_program()?, to.batch_program()?);
        let generic = self.gpu.generic()?;
        graph::keep_in_graph(stream, generic)?;
        graph::keep_in_graph(stream, program)?;
        graph::keep_in_graph(stream, other)?;
        last.tables = other.tables;
        last.programs = [program.program.address(), other.program.address()];
        let (grid, last) = (Grid::all(blocks, GENERIC_COPY.threads()), (&raw mut last).cast());
        // SAFETY: the caller's promise; the kernel ends in a target.
        unsafe { launch(generic.copy(), stream, &call, program.tables, grid, last) }
    }
}

impl Recipe for Pair {
    type Code = Kernel;

    fn load(&self, gpu: &Shared) -> Result<Option<Kernel>, CudaError> {
        let [Some(from), Some(to)] = self.plans.each_ref().map(Weak::upgrade) else { return Ok(None) };
        let program = cuda::copy(&from.plan, &to.plan, &self.variant).map_err(without_source)?;
        let mut functions = gpu.functions(&program.source, &[COPY_ENTRY])?;
        let tables = gpu.upload(&program.tables)?.map(Arc::new);
        Ok(functions.pop().map(|function| Kernel { function, tables }))
    }
}
