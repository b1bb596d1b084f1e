//! Calls on memory of a GPU: every range is held against its buffer, as the calls on slices do.
#![expect(unsafe_code, reason = "the runtime takes addresses for data on a device")]

use dtc_compiler::operation::Reduction;
use dtc_compiler::plan::Direction;
use dtc_runtime::cuda::{CudaError, DeviceBuffer, Function, Stream, copy};
use dtc_runtime::{Committed, Elements, Endpoint, Engine, Gpu, PersistentBatch, Range, Tier, Transfer, TransferError};

/// Elements in one buffer and their packed bytes in another, both on one device.
#[derive(Clone, Copy)]
pub struct OnDevice<'a> {
    /// The type.
    pub committed: &'a Committed,
    /// How many elements.
    pub count: u64,
    /// Where the elements are.
    pub memory: &'a DeviceBuffer,
    /// Where address 0 of the type is, in bytes from its beginning. Outside of it, if the bytes of the type are inside.
    pub origin: i64,
    /// Where the packed bytes are.
    pub packed: &'a DeviceBuffer,
    /// Where in it the first of them is.
    pub at: u64,
}

impl<'a> OnDevice<'a> {
    /// Enqueues a call for packed bytes `offset .. offset + max`; returns how many there are.
    pub fn enqueue(
        &self,
        direction: Direction,
        stream: &Stream,
        offset: u64,
        max: u64,
    ) -> Result<usize, TransferError> {
        let transfer = self.transfer(direction, Range::elements(self.count).fragment(offset, max))?;
        // SAFETY: `transfer` found both ends inside their buffers, which are freed only when the device has done its work.
        unsafe { transfer.enqueue(stream) }
    }

    /// Enqueues an accumulation of at most `max` packed bytes, from the first on; returns how many there are.
    pub fn accumulate(&self, reduction: Reduction, stream: &Stream, max: u64) -> Result<usize, TransferError> {
        let (elements, packed) = self.ends(Range::elements(self.count).bytes(..max))?;
        // SAFETY: `ends` found the elements and the packed bytes inside their buffers, which are freed only when the device
        // has done its work.
        unsafe { elements.accumulate(reduction, packed).enqueue(stream) }
    }

    /// Makes a call for packed bytes `offset .. offset + max` and waits for it. The driver is asked where they are.
    pub fn call(&self, direction: Direction, offset: u64, max: u64) -> Result<usize, TransferError> {
        let (elements, packed) = self.ends(Range::elements(self.count).fragment(offset, max))?;
        let elements = elements.datatype().at(elements.memory().with_kind(None), elements.range());
        // SAFETY: `ends` found the elements and the packed bytes inside their buffers, which outlive the call; `run` waits.
        unsafe { transfer(direction, elements, packed.with_kind(None)).run() }
    }

    fn transfer(&self, direction: Direction, range: Range) -> Result<Transfer<'a>, CudaError> {
        let (elements, packed) = self.ends(range)?;
        Ok(transfer(direction, elements, packed))
    }

    /// All packed bytes.
    fn everything(&self) -> Range {
        Range::elements(self.count).bytes(..self.committed.layout().size().saturating_mul(self.count))
    }

    /// The elements and the first packed byte, if all elements and the bytes of the range are in bounds.
    fn ends(&self, range: Range) -> Result<(Elements<'a>, Endpoint), CudaError> {
        let (memory, packed) = self.addresses(range.length())?;
        let [memory, packed] =
            [(self.memory, memory), (self.packed, packed)].map(|(buffer, at)| Endpoint::of_kind(buffer.kind(), at));
        Ok((self.committed.at(memory, range), packed))
    }

    /// The addresses of element 0 and of the first packed byte, if all elements and `max` packed bytes are in bounds.
    fn addresses(&self, max: u64) -> Result<(*mut u8, *mut u8), CudaError> {
        within(self.packed, self.at, max)?;
        if let Some((low, high)) = self.committed.span(self.count) {
            let bytes = u64::try_from(high - low).unwrap_or(u64::MAX);
            let first = u64::try_from(i128::from(self.origin) + low);
            within(self.memory, first.map_err(|_| bounds(u64::MAX, bytes, self.memory))?, bytes)?;
        }
        let memory = self.memory.address().wrapping_add_signed(self.origin);
        Ok((memory as *mut u8, (self.packed.address() + self.at) as *mut u8))
    }
}

fn transfer<'a>(direction: Direction, elements: Elements<'a>, packed: Endpoint) -> Transfer<'a> {
    match direction {
        Direction::Pack => elements.pack(packed),
        Direction::Unpack => elements.unpack(packed),
    }
}

/// Enqueues calls for all packed bytes of each, as one launch.
pub fn enqueue_batch(
    engine: &Engine,
    stream: &Stream,
    direction: Direction,
    calls: &[OnDevice<'_>],
) -> Result<usize, TransferError> {
    let transfers = batch(direction, calls)?;
    // SAFETY: `batch` found both sides of every call inside their buffers, which are of one device; they are freed only
    // when the device has done its work. Calls that overlap would leave bytes of either in buffers that hold nothing but
    // bytes.
    unsafe { engine.enqueue_batch(stream, &transfers) }
}

/// Makes a device ready for the same.
pub fn prepare_batch(
    engine: &Engine,
    gpu: &Gpu,
    direction: Direction,
    calls: &[OnDevice<'_>],
) -> Result<Tier, TransferError> {
    engine.prepare_batch(gpu, &batch(direction, calls)?)
}

/// A kernel that does nothing, with parameters as the kernels of types have them: its launch is what any call takes at least.
pub struct Nothing(Function);

impl Nothing {
    const TEXT: &str = "struct Bounds { long long low, high; };\n\
        extern \"C\" __global__ void __launch_bounds__(32)\n\
        nothing(char *, char *, const char *, long long, long long, int, const __grid_constant__ Bounds bounds) {}\n";

    /// Compiles it.
    pub fn new(gpu: &Gpu) -> Result<Nothing, CudaError> {
        let mut functions = gpu.compile(Self::TEXT, &["nothing"])?;
        functions.pop().map(Nothing).ok_or(CudaError::KernelMissing { kernel: "nothing" })
    }

    /// Enqueues it.
    pub fn enqueue(&self, stream: &Stream) -> Result<(), CudaError> {
        let (mut number, mut last) = (0u64, [0u64; 2]);
        let number = (&raw mut number).cast();
        let mut parameters = [number, number, number, number, number, number, (&raw mut last).cast()];
        // SAFETY: the kernel has seven parameters: five of 8 bytes and one of 4, for which `number` has enough, and one of 16, to
        // which the last pointer points. It reads and writes nothing.
        unsafe { self.0.launch(stream, [1; 3], [32, 1, 1], 0, &mut parameters) }
    }
}

/// A batch that is enqueued again and again, in buffers that live as long.
pub struct Repeated<'a> {
    batch: PersistentBatch,
    calls: Vec<OnDevice<'a>>,
}

impl<'a> Repeated<'a> {
    /// Prepares calls on a device of an engine.
    pub fn new(
        engine: &Engine,
        gpu: &Gpu,
        direction: Direction,
        calls: &[OnDevice<'a>],
    ) -> Result<Repeated<'a>, TransferError> {
        Ok(Repeated { batch: engine.persistent_batch(gpu, &batch(direction, calls)?)?, calls: calls.to_vec() })
    }

    /// Enqueues all of them.
    pub fn enqueue(&mut self, stream: &Stream) -> Result<usize, CudaError> {
        // SAFETY: `batch` found both sides of every call inside their buffers, which are of one device and live for
        // `'a`; they are freed only when the device has done its work. `touch` gives calls the addresses that they
        // have.
        unsafe { self.batch.enqueue(stream) }
    }

    /// Gives some calls, spread over all, the addresses that they have, as if these were others.
    pub fn touch(&mut self, number: usize) -> Result<(), CudaError> {
        let apart = (self.calls.len() / number.max(1)).max(1);
        for (index, call) in self.calls.iter().enumerate().step_by(apart).take(number) {
            let (elements, packed) = call.ends(call.everything())?;
            self.batch.move_to(index, elements.memory(), packed);
        }
        Ok(())
    }
}

/// Transfers of all packed bytes of each.
fn batch<'a>(direction: Direction, calls: &[OnDevice<'a>]) -> Result<Vec<Transfer<'a>>, CudaError> {
    calls.iter().map(|call| call.transfer(direction, call.everything())).collect()
}

/// Enqueues a copy of packed bytes from an element of one type, at the beginning of its buffer, to one of another.
pub fn copy_elements(
    stream: &Stream,
    (from, source): (&Committed, &DeviceBuffer),
    (to, destination): (&Committed, &DeviceBuffer),
    bytes: u64,
) -> Result<usize, TransferError> {
    // Both sides are in bounds, wherever packed bytes would be.
    let on = |committed, memory| OnDevice { committed, count: 1, memory, origin: 0, packed: memory, at: 0 };
    let range = Range::elements(1).bytes(..bytes);
    let (on_source, on_destination) = (on(from, source), on(to, destination));
    let [(read, _), (written, _)] = [on_source.ends(range.bytes(..0))?, on_destination.ends(range.bytes(..0))?];
    let copy = from.at(read.memory(), range).copy_to(to.at(written.memory(), range));
    // SAFETY: `ends` found both elements inside their buffers, which are of one device; they are freed only when the
    // device has done its work.
    unsafe { copy.enqueue(stream) }
}

/// Enqueues a copy between buffers of one device, without overlap.
pub fn copy(
    stream: &Stream,
    destination: &DeviceBuffer,
    at: u64,
    source: &DeviceBuffer,
    from: u64,
    bytes: u64,
) -> Result<(), TransferError> {
    within(destination, at, bytes)?;
    within(source, from, bytes)?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: both ranges are in their buffers, which are freed only when the device has done its work. Two that overlap
    // would leave bytes of either in a buffer that holds nothing but bytes.
    unsafe { copy::on_device(stream, destination.address() + at, source.address() + from, bytes as usize)? };
    Ok(())
}

/// Rows in a buffer: where the first begins, and bytes from one to the next.
pub type Rows<'a> = (&'a DeviceBuffer, u64, usize);

/// Enqueues the driver's copy of rows between buffers of one device, without overlap: bytes of a row, and how many rows.
pub fn copy_rows(
    stream: &Stream,
    (to, to_first, to_pitch): Rows,
    (from, from_first, from_pitch): Rows,
    [bytes, rows]: [usize; 2],
) -> Result<(), TransferError> {
    let reach = |pitch: usize| (pitch * rows.saturating_sub(1) + bytes) as u64;
    within(to, to_first, reach(to_pitch))?;
    within(from, from_first, reach(from_pitch))?;
    let destination = copy::Rows { address: to.address() + to_first, pitch: to_pitch };
    let source = copy::Rows { address: from.address() + from_first, pitch: from_pitch };
    // SAFETY: all rows are in their buffers, which are freed only when the device has done its work. Two that overlap would leave
    // bytes of either in a buffer that holds nothing but bytes.
    unsafe { copy::rows(stream, destination, source, bytes, rows)? };
    Ok(())
}

/// Enqueues setting a range of a buffer to one value.
pub fn fill(stream: &Stream, buffer: &DeviceBuffer, range: std::ops::Range<u64>, value: u8) -> Result<(), CudaError> {
    let bytes = range.end.saturating_sub(range.start);
    within(buffer, range.start, bytes)?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the range is in the buffer, which is freed only when the device has done its work.
    unsafe { copy::fill(stream, buffer.address() + range.start, value, bytes as usize) }
}

fn within(buffer: &DeviceBuffer, offset: u64, bytes: u64) -> Result<(), CudaError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= buffer.len() as u64 => Ok(()),
        _ => Err(bounds(offset, bytes, buffer)),
    }
}

fn bounds(offset: u64, bytes: u64, buffer: &DeviceBuffer) -> CudaError {
    CudaError::Bounds { offset: offset as usize, bytes: bytes as usize, length: buffer.len() }
}
