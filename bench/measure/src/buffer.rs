//! Memory of any kind, and calls between two pieces of it: every range is held against its buffer.
#![expect(unsafe_code, reason = "the runtime takes addresses for data outside of slices")]

use crate::device_clock::DeviceClock;
use crate::failure::Failure;
use crate::samples::PageAligned;
use dtc_compiler::plan::Direction;
use dtc_runtime::cuda::{CudaError, Device, DeviceBuffer, MemoryKind, PinnedBuffer, Stream, copy};
use dtc_runtime::{Committed, Elements, Endpoint, Engine, Range, Transfer, TransferError};

/// A buffer in memory of a kind.
pub enum Memory {
    /// Memory of the allocator, beginning on a page.
    Pageable(PageAligned),
    /// Page-locked by the driver.
    Pinned(PinnedBuffer),
    /// Managed memory, or that of a device.
    Driver(DeviceBuffer, MemoryKind),
}

impl Memory {
    /// Allocates. Host memory that a device knows is made by the GPU 0.
    pub fn new(kind: MemoryKind, bytes: usize) -> Result<Memory, CudaError> {
        Ok(match kind {
            MemoryKind::Pageable => Memory::Pageable(PageAligned::new(bytes)),
            MemoryKind::Pinned => Memory::Pinned(PinnedBuffer::new(&Device::get(0)?, bytes)?),
            MemoryKind::Managed => Memory::Driver(DeviceBuffer::managed(&Device::get(0)?, bytes)?, kind),
            MemoryKind::Device(ordinal) => Memory::Driver(DeviceBuffer::new(&Device::get(ordinal)?, bytes)?, kind),
        })
    }

    /// The kind.
    pub fn kind(&self) -> MemoryKind {
        match self {
            Memory::Pageable(_) => MemoryKind::Pageable,
            Memory::Pinned(_) => MemoryKind::Pinned,
            Memory::Driver(_, kind) => *kind,
        }
    }

    /// How many bytes it has.
    pub fn length(&self) -> usize {
        match self {
            Memory::Pageable(buffer) => buffer.bytes().len(),
            Memory::Pinned(buffer) => buffer.as_slice().len(),
            Memory::Driver(buffer, _) => buffer.len(),
        }
    }

    /// Where it is. What is there is written through this by calls that are over before it is read.
    fn address(&mut self) -> *mut u8 {
        match self {
            Memory::Pageable(buffer) => buffer.bytes_mut().as_mut_ptr(),
            Memory::Pinned(buffer) => buffer.as_ptr(),
            Memory::Driver(buffer, _) => buffer.address() as *mut u8,
        }
    }

    /// Elements of a type whose address 0 is `origin` bytes from the beginning, if all of them are in bounds.
    fn elements<'a>(&mut self, committed: &'a Committed, range: Range, origin: i64) -> Result<Elements<'a>, CudaError> {
        if let Some((low, high)) = committed.span(range.count()) {
            let bytes = usize::try_from(high - low).unwrap_or(usize::MAX);
            let first = usize::try_from(i128::from(origin) + low).unwrap_or(usize::MAX);
            within(first, bytes, self.length())?;
        }
        let address = self.address().wrapping_offset(origin as isize);
        Ok(committed.at(Endpoint::of_kind(self.kind(), address), range))
    }

    /// Copies bytes into it.
    pub fn write(&mut self, at: usize, source: &[u8]) -> Result<(), CudaError> {
        within(at, source.len(), self.length())?;
        match self {
            Memory::Pageable(buffer) => buffer.bytes_mut()[at..at + source.len()].copy_from_slice(source),
            Memory::Pinned(buffer) => buffer.as_mut_slice()[at..at + source.len()].copy_from_slice(source),
            Memory::Driver(buffer, _) => buffer.write(at, source)?,
        }
        Ok(())
    }

    /// Copies bytes out of it.
    pub fn read(&self, at: usize, destination: &mut [u8]) -> Result<(), CudaError> {
        within(at, destination.len(), self.length())?;
        match self {
            Memory::Pageable(buffer) => destination.copy_from_slice(&buffer.bytes()[at..at + destination.len()]),
            Memory::Pinned(buffer) => destination.copy_from_slice(&buffer.as_slice()[at..at + destination.len()]),
            Memory::Driver(buffer, _) => buffer.read(at, destination)?,
        }
        Ok(())
    }
}

fn within(offset: usize, bytes: usize, length: usize) -> Result<(), CudaError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= length => Ok(()),
        _ => Err(CudaError::Bounds { offset, bytes, length }),
    }
}

/// Elements in one buffer and their packed bytes, from its beginning on, in another.
pub struct Between<'a> {
    /// The type.
    pub committed: &'a Committed,
    /// How many elements.
    pub count: u64,
    /// Where the elements are.
    pub memory: &'a mut Memory,
    /// Where address 0 of the type is, in bytes from its beginning. Outside of it, if the bytes of the type are inside.
    pub origin: i64,
    /// Where the packed bytes are.
    pub packed: &'a mut Memory,
}

impl Between<'_> {
    /// Makes a call for packed bytes `offset .. offset + max` and waits for it; returns how many there are.
    pub fn call(&mut self, direction: Direction, offset: u64, max: u64) -> Result<usize, TransferError> {
        let transfer = self.transfer(direction, Range::elements(self.count).fragment(offset, max))?;
        // SAFETY: both ends are inside their buffers, which are of these kinds and borrowed alone until the call returns.
        unsafe { transfer.run() }
    }

    /// Microseconds of a call for the first packed bytes on the clock of a device that reaches both sides.
    pub fn time(
        &mut self,
        clock: &DeviceClock,
        warm: bool,
        direction: Direction,
        max: u64,
    ) -> Result<f64, TransferError> {
        let transfer = self.transfer(direction, Range::elements(self.count).bytes(..max))?;
        let time = clock.time(warm, || {
            // SAFETY: both ends are inside their buffers, which are of these kinds and borrowed alone until the clock's
            // stream was waited for, below.
            unsafe { transfer.enqueue(&clock.stream).map(drop) }
        });
        clock.stream.synchronize()?;
        time
    }

    /// The transfer of a range, if all elements and as many packed bytes are in bounds.
    fn transfer(&mut self, direction: Direction, range: Range) -> Result<Transfer<'_>, CudaError> {
        within(0, usize::try_from(range.length()).unwrap_or(usize::MAX), self.packed.length())?;
        let elements = self.memory.elements(self.committed, range, self.origin)?;
        let packed = Endpoint::of_kind(self.packed.kind(), self.packed.address());
        Ok(match direction {
            Direction::Pack => elements.pack(packed),
            Direction::Unpack => elements.unpack(packed),
        })
    }
}

/// An element of one type in one buffer and an element of another in another one, both at the beginning.
pub struct FromTo<'a> {
    /// The type that is read.
    pub from: &'a Committed,
    /// Where its element is.
    pub source: &'a mut Memory,
    /// The type that is written.
    pub to: &'a Committed,
    /// Where its element is.
    pub target: &'a mut Memory,
}

impl FromTo<'_> {
    /// Copies the first packed bytes of the element and waits; returns how many there are.
    pub fn call(&mut self, bytes: u64) -> Result<usize, TransferError> {
        // SAFETY: both elements are inside their buffers, which are borrowed alone until the call returns.
        unsafe { self.copy(bytes)?.run() }
    }

    /// Microseconds of the same as one launch, on the clock of a device that reaches both sides.
    pub fn time(&mut self, clock: &DeviceClock, warm: bool, bytes: u64) -> Result<f64, TransferError> {
        let copy = self.copy(bytes)?;
        let time = clock.time(warm, || {
            // SAFETY: both elements are inside their buffers, which are borrowed alone until the clock's stream was waited
            // for, below.
            unsafe { copy.enqueue(&clock.stream).map(drop) }
        });
        clock.stream.synchronize()?;
        time
    }

    fn copy(&mut self, bytes: u64) -> Result<Transfer<'_>, CudaError> {
        let range = Range::elements(1).bytes(..bytes);
        let source = self.source.elements(self.from, range, 0)?;
        Ok(source.copy_to(self.target.elements(self.to, range, 0)?))
    }
}

/// Copies the first bytes of one buffer into another by the driver, and waits.
pub fn copy(stream: &Stream, destination: &mut Memory, source: &mut Memory, bytes: usize) -> Result<(), CudaError> {
    let (to, from) = ends(destination, source, bytes)?;
    // SAFETY: both ranges are in their buffers, which are borrowed alone until the stream was waited for.
    unsafe { copy::between(stream, to, from, bytes)? };
    stream.synchronize()
}

/// Microseconds of such a copy on the clock of a device.
pub fn time_of_copy(
    clock: &DeviceClock,
    warm: bool,
    destination: &mut Memory,
    source: &mut Memory,
    bytes: usize,
) -> Result<f64, CudaError> {
    let (to, from) = ends(destination, source, bytes)?;
    // SAFETY: both ranges are in their buffers, which are borrowed alone until the clock's stream was waited for, below.
    let time = clock.time(warm, || unsafe { copy::between(&clock.stream, to, from, bytes) });
    clock.stream.synchronize()?;
    time
}

/// The addresses of two buffers that are both so long.
fn ends(destination: &mut Memory, source: &mut Memory, bytes: usize) -> Result<(u64, u64), CudaError> {
    within(0, bytes, destination.length())?;
    within(0, bytes, source.length())?;
    let address = |memory: &mut Memory| memory.address().expose_provenance() as u64;
    Ok((address(destination), address(source)))
}

/// Reads a kind of memory from an argument: `device`, `device:1`, `pinned`, `managed` or `pageable`.
pub fn parse_kind(text: &str) -> Result<MemoryKind, String> {
    let ordinal = |text: &str| text.parse().map_err(|_| format!("expected the number of a GPU, found \"{text}\""));
    match (text, text.strip_prefix("device:")) {
        (_, Some(number)) => Ok(MemoryKind::Device(ordinal(number)?)),
        ("device", _) => Ok(MemoryKind::Device(0)),
        ("pinned", _) => Ok(MemoryKind::Pinned),
        ("managed", _) => Ok(MemoryKind::Managed),
        ("pageable", _) => Ok(MemoryKind::Pageable),
        _ => Err("expected device:N, pinned, managed or pageable".to_owned()),
    }
}

/// Opens the GPUs that two kinds of memory name, so that their absence is told before anything is read.
pub fn open(engine: &Engine, kinds: [MemoryKind; 2]) -> Result<(), Failure> {
    for kind in kinds {
        match kind {
            MemoryKind::Device(ordinal) => drop(engine.gpu(ordinal)?),
            MemoryKind::Pinned | MemoryKind::Managed => drop(engine.gpu(0)?),
            MemoryKind::Pageable => {}
        }
    }
    Ok(())
}
