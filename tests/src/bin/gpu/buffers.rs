//! Elements and packed bytes on a device, with the CPU's results for comparison.

use crate::harness::{expect, text};
use dtc_runtime::cuda::{Device, DeviceBuffer, Stream};
use dtc_runtime::cuda::{MemoryKind, PinnedBuffer};
use dtc_runtime::{Committed, Direction, Endpoint, Gpu, Memory, MemoryMut, Multiprocessors, Range, Request, Transfer};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

/// Value of bytes that were not written.
pub const POISON: u8 = 0x5a;

pub fn random_bytes(bytes: usize, seed: u64) -> Vec<u8> {
    let mut host = vec![0u8; bytes];
    SmallRng::seed_from_u64(seed).fill(&mut host[..]);
    host
}

pub fn random_buffer(gpu: &Gpu, bytes: usize, seed: u64) -> Result<(DeviceBuffer, Vec<u8>), String> {
    let host = random_bytes(bytes, seed);
    let mut buffer = DeviceBuffer::new(gpu.device(), bytes).map_err(text)?;
    buffer.write(0, &host).map_err(text)?;
    Ok((buffer, host))
}

pub fn poisoned_buffer(gpu: &Gpu, bytes: usize) -> Result<DeviceBuffer, String> {
    let mut buffer = DeviceBuffer::new(gpu.device(), bytes).map_err(text)?;
    buffer.fill(POISON).map_err(text)?;
    Ok(buffer)
}

pub fn read(buffer: &DeviceBuffer, at: usize, bytes: usize) -> Result<Vec<u8>, String> {
    let mut host = vec![0u8; bytes];
    buffer.read(at, &mut host).map_err(text)?;
    Ok(host)
}

pub fn expect_equal(what: &str, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let length = found.len().max(expected.len());
    let wrong = || (0..length).filter(|&at| found.get(at) != expected.get(at));
    let (at, number) = (wrong().next().unwrap_or_default(), wrong().count());
    let (found, expected) = (found.get(at), expected.get(at));
    Err(format!("{what}: {number} of {length} bytes are wrong; byte {at} is {found:02x?}, expected {expected:02x?}"))
}

/// Waits for a CUDA stream, up to a time limit.
pub fn wait_within(stream: &Stream, limit: Duration) -> Result<(), String> {
    let start = Instant::now();
    while !stream.query().map_err(text)? {
        expect(start.elapsed() < limit, || format!("a CUDA stream was not done after {limit:?}"))?;
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}

/// `count` elements of a type on a device. The buffers have exactly the bytes that a call may touch.
pub struct Buffers {
    pub memory: DeviceBuffer,
    pub packed: DeviceBuffer,
    /// Contents of the memory, after the bytes between the origin and the first byte of the elements.
    pub host: Vec<u8>,
    /// Packed bytes of all elements.
    pub expected: Vec<u8>,
    /// Index of element 0 in `host`.
    origin: usize,
    /// Bytes of `host` before the first byte of the memory.
    before: usize,
    count: u64,
}

impl Buffers {
    pub fn new(gpu: &Gpu, committed: &Committed, count: u64, seed: u64) -> Result<Buffers, String> {
        Buffers::of(gpu.device(), committed, count, seed, DeviceBuffer::new)
    }

    /// Elements in memory of another kind.
    pub fn of(
        device: &Device,
        committed: &Committed,
        count: u64,
        seed: u64,
        allocate: impl Fn(&Device, usize) -> Result<DeviceBuffer, dtc_runtime::cuda::CudaError>,
    ) -> Result<Buffers, String> {
        let (low, high) = committed.span(count).ok_or("the type has no bytes")?;
        // The calls on slices need the origin inside the slice.
        let origin = usize::try_from(-low.min(0)).map_err(text)?;
        let before = usize::try_from(low.max(0)).map_err(text)?;
        let host = random_bytes(origin + usize::try_from(high.max(0)).map_err(text)?, seed);
        let mut expected = vec![0u8; committed.packed_size(count).map_err(text)?];
        committed.pack(Memory::at(&host, origin), Range::elements(count), &mut expected).map_err(text)?;
        let mut memory = allocate(device, host.len() - before).map_err(text)?;
        memory.write(0, &host[before..]).map_err(text)?;
        let packed = allocate(device, expected.len()).map_err(text)?;
        let mut buffers = Buffers { memory, packed, host, expected, origin, before, count };
        buffers.poison()?;
        Ok(buffers)
    }

    /// Poisons the packed bytes.
    pub fn poison(&mut self) -> Result<(), String> {
        self.packed.fill(POISON).map_err(text)
    }

    /// Address of element 0, for memory at this address.
    fn element(&self, memory: &DeviceBuffer) -> *mut u8 {
        (memory.address() + self.origin as u64).wrapping_sub(self.before as u64) as *mut u8
    }

    fn source(&self) -> *const u8 {
        self.element(&self.memory)
    }

    fn target(&self) -> *mut u8 {
        self.packed.address() as *mut u8
    }

    fn moved_all(&self, moved: usize) -> Result<(), String> {
        let total = self.expected.len();
        expect(moved == total, || format!("{moved} bytes were moved, expected {total}"))
    }

    /// Packs everything and waits.
    pub fn pack(&self, committed: &Committed) -> Result<(), String> {
        // SAFETY: both buffers hold all elements.
        let moved = unsafe {
            committed
                .at(self.source(), Range::elements(self.count).bytes(..self.packed.len() as u64))
                .pack(self.target())
                .run()
        };
        self.moved_all(moved.map_err(text)?)
    }

    /// Enqueues a pack of everything. The buffers must outlive it.
    pub fn enqueue(&self, committed: &Committed, stream: &Stream) -> Result<(), String> {
        let length = self.packed.len() as u64;
        // SAFETY: both buffers hold all elements.
        let moved = unsafe {
            committed.at(self.source(), Range::elements(self.count).bytes(..length)).pack(self.target()).enqueue(stream)
        };
        self.moved_all(moved.map_err(text)?)
    }

    /// Enqueues an unpack of everything, from the packed bytes into the memory.
    pub fn enqueue_unpack(&self, committed: &Committed, stream: &Stream) -> Result<(), String> {
        let (packed, memory, length) = (self.target().cast_const(), self.source().cast_mut(), self.packed.len() as u64);
        // SAFETY: both buffers hold all elements.
        let moved =
            unsafe { committed.at(memory, Range::elements(self.count).bytes(..length)).unpack(packed).enqueue(stream) };
        self.moved_all(moved.map_err(text)?)
    }

    /// A move of a range of the packed bytes, at its own position.
    pub fn transfer<'a>(
        &self,
        committed: &'a Committed,
        direction: Direction,
        from: usize,
        length: usize,
    ) -> Transfer<'a> {
        let elements = committed.at(self.source(), Range::elements(self.count).fragment(from as u64, length as u64));
        let packed = self.target().wrapping_add(from);
        match direction {
            Direction::Pack => elements.pack(packed),
            Direction::Unpack => elements.unpack(packed),
        }
    }

    /// The memory after the CPU unpacks a range into poison.
    fn restored(&self, committed: &Committed, from: usize, length: usize) -> Result<Vec<u8>, String> {
        let mut wanted = vec![POISON; self.host.len()];
        let fragment = &self.expected[from..from + length];
        committed
            .unpack(
                fragment,
                Range::elements(self.count).fragment(from as u64, length as u64),
                MemoryMut::at(&mut wanted, self.origin),
            )
            .map_err(text)?;
        Ok(wanted)
    }

    /// Poisons the memory, and copies the expected packed bytes to the device.
    pub fn offer(&mut self) -> Result<(), String> {
        self.memory.fill(POISON).map_err(text)?;
        self.packed.write(0, &self.expected).map_err(text)
    }

    /// Compares a range of the packed bytes; the rest must still be poison.
    pub fn check_range(&self, from: usize, length: usize) -> Result<(), String> {
        let mut wanted = vec![POISON; self.expected.len()];
        wanted[from..from + length].copy_from_slice(&self.expected[from..from + length]);
        expect_equal("packed", &read(&self.packed, 0, self.packed.len())?, &wanted)
    }

    /// Compares the memory after an unpack of a range into poison with the CPU's result.
    pub fn check_restored(&self, committed: &Committed, from: usize, length: usize) -> Result<(), String> {
        let wanted = self.restored(committed, from, length)?;
        expect_equal("unpacked", &read(&self.memory, 0, self.memory.len())?, &wanted[self.before..])
    }

    /// Starts a pack of a range of the packed bytes, to its own position.
    pub fn start(&self, committed: &Committed, from: usize, length: usize) -> Result<Request, String> {
        let target = (self.packed.address() + from as u64) as *mut u8;
        // SAFETY: both buffers hold all elements, and the tests wait before they free them.
        let request = unsafe {
            committed
                .at(self.source(), Range::elements(self.count).fragment(from as u64, length as u64))
                .pack(target)
                .start()
        };
        request.map_err(text)
    }

    /// Packs or unpacks a range, at its own position, on some multiprocessors, and waits.
    pub fn call_on(
        &self,
        committed: &Committed,
        direction: Direction,
        from: usize,
        length: usize,
        most: Multiprocessors,
    ) -> Result<(), String> {
        let (memory, packed) = (self.source().cast_mut(), (self.packed.address() + from as u64) as *mut u8);
        let device = Some(MemoryKind::Device(self.packed.device().info().ordinal));
        let [memory, packed] = [memory, packed].map(|address| Endpoint::from(address).with_kind(device));
        let elements = committed.at(memory, Range::elements(self.count).fragment(from as u64, length as u64));
        let transfer = match direction {
            Direction::Pack => elements.pack(packed),
            Direction::Unpack => elements.unpack(packed),
        };
        // SAFETY: both buffers hold all elements.
        let moved = unsafe { transfer.on(most).run() }.map_err(text)?;
        expect(moved == length, || format!("{moved} bytes were moved, expected {length}"))
    }

    /// Enqueues a pack of everything on some multiprocessors. The buffers must outlive it.
    pub fn enqueue_on(&self, committed: &Committed, stream: &Stream, most: Multiprocessors) -> Result<(), String> {
        let device = Some(MemoryKind::Device(self.packed.device().info().ordinal));
        let elements = committed.at(Endpoint::from(self.source()).with_kind(device), Range::elements(self.count));
        let pack = elements.pack(Endpoint::from(self.target()).with_kind(device)).on(most);
        // SAFETY: both buffers hold all elements.
        let moved = unsafe { pack.enqueue(stream) };
        self.moved_all(moved.map_err(text)?)
    }

    /// Enqueues a pack of everything into pinned memory, on some multiprocessors. The buffers must outlive it.
    pub fn enqueue_to(
        &self,
        committed: &Committed,
        stream: &Stream,
        pinned: &PinnedBuffer,
        most: Multiprocessors,
    ) -> Result<(), String> {
        let device = MemoryKind::Device(self.packed.device().info().ordinal);
        let range = Range::elements(self.count).bytes(..pinned.as_slice().len() as u64);
        let pack = committed.at(Endpoint::of_kind(device, self.source()), range).pack(pinned).on(most);
        // SAFETY: both buffers hold all elements.
        let moved = unsafe { pack.enqueue(stream) };
        self.moved_all(moved.map_err(text)?)
    }

    /// Restores the elements after unpacks into poison.
    pub fn refill(&mut self) -> Result<(), String> {
        self.memory.write(0, &self.host[self.before..]).map_err(text)
    }

    /// Compares the packed bytes with the CPU's.
    pub fn check(&self) -> Result<(), String> {
        expect_equal("packed", &read(&self.packed, 0, self.packed.len())?, &self.expected)
    }

    /// Packs everything and compares.
    pub fn pack_and_check(&mut self, committed: &Committed) -> Result<(), String> {
        self.poison()?;
        self.pack(committed)?;
        self.check()
    }

    /// Packs and unpacks a range of the packed bytes, `skew` bytes after the begin of an allocation, and compares every
    /// byte.
    pub fn fragment(&self, committed: &Committed, from: usize, length: usize, skew: usize) -> Result<(), String> {
        let packed = self.pack_fragment(committed, from, length, skew)?;
        self.unpack_fragment(committed, &packed, from, length, skew)
    }

    /// The pack of [`Buffers::fragment`], which is defined for every type. Returns the packed bytes.
    pub fn pack_fragment(
        &self,
        committed: &Committed,
        from: usize,
        length: usize,
        skew: usize,
    ) -> Result<DeviceBuffer, String> {
        let what = || format!("pack of {length} bytes from {from}, {skew} bytes behind an aligned address");
        let mut packed = DeviceBuffer::new(self.packed.device(), skew + length).map_err(text)?;
        packed.fill(POISON).map_err(text)?;
        let target = (packed.address() + skew as u64) as *mut u8;
        // SAFETY: the memory holds all elements, and the packed buffer `skew + length` bytes.
        let moved = unsafe {
            committed
                .at(self.source(), Range::elements(self.count).fragment(from as u64, length as u64))
                .pack(target)
                .run()
        };
        let moved = moved.map_err(|error| format!("{}: {error}", what()))?;
        expect(moved == length, || format!("{}: {moved} bytes were moved", what()))?;
        let wanted = [&vec![POISON; skew], &self.expected[from..from + length]].concat();
        expect_equal(&what(), &read(&packed, 0, skew + length)?, &wanted)?;
        Ok(packed)
    }

    fn unpack_fragment(
        &self,
        committed: &Committed,
        packed: &DeviceBuffer,
        from: usize,
        length: usize,
        skew: usize,
    ) -> Result<(), String> {
        let what = || format!("unpack of {length} bytes from {from}, {skew} bytes behind an aligned address");
        let mut restored = DeviceBuffer::new(packed.device(), self.memory.len()).map_err(text)?;
        restored.fill(POISON).map_err(text)?;
        let (source, memory) = ((packed.address() + skew as u64) as *const u8, self.element(&restored));
        // SAFETY: the memory holds all elements, and the packed buffer `skew + length` bytes.
        let moved = unsafe {
            committed.at(memory, Range::elements(self.count).fragment(from as u64, length as u64)).unpack(source).run()
        };
        let moved = moved.map_err(|error| format!("{}: {error}", what()))?;
        expect(moved == length, || format!("{}: {moved} bytes were moved", what()))?;
        let wanted = self.restored(committed, from, length)?;
        expect_equal(&what(), &read(&restored, 0, restored.len())?, &wanted[self.before..])
    }
}
