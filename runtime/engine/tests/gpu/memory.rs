//! Memory of all kinds, and what it is filled with.

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::cuda::{Device, DeviceBuffer, MemoryKind, PinnedBuffer};

/// Enough for several rounds of the buffers that transfers go through.
pub const BYTES: usize = (13 << 20) + 12345;

pub const KINDS: [MemoryKind; 5] =
    [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::Managed, MemoryKind::Device(0), MemoryKind::Device(1)];

/// Memory of any kind, filled with one value or another.
pub enum Memory {
    Pageable(Vec<u8>),
    Pinned(PinnedBuffer),
    Driver(DeviceBuffer),
}

impl Memory {
    pub fn new(kind: MemoryKind, bytes: &[u8]) -> Memory {
        let device = |ordinal| Device::get(ordinal).unwrap();
        let filled = |mut buffer: DeviceBuffer| {
            buffer.write(0, bytes).unwrap();
            Memory::Driver(buffer)
        };
        match kind {
            MemoryKind::Pageable => Memory::Pageable(bytes.to_vec()),
            MemoryKind::Pinned => {
                let mut buffer = PinnedBuffer::new(&device(0), bytes.len()).unwrap();
                buffer.as_mut_slice().copy_from_slice(bytes);
                Memory::Pinned(buffer)
            }
            MemoryKind::Managed => filled(DeviceBuffer::managed(&device(0), bytes.len()).unwrap()),
            MemoryKind::Device(ordinal) => filled(DeviceBuffer::new(&device(ordinal), bytes.len()).unwrap()),
        }
    }

    pub fn at(&mut self) -> *mut u8 {
        match self {
            Memory::Pageable(bytes) => bytes.as_mut_ptr(),
            Memory::Pinned(buffer) => buffer.as_ptr(),
            Memory::Driver(buffer) => buffer.address() as *mut u8,
        }
    }

    pub fn read(&self, length: usize) -> Vec<u8> {
        match self {
            Memory::Pageable(bytes) => bytes.clone(),
            Memory::Pinned(buffer) => buffer.as_slice().to_vec(),
            Memory::Driver(buffer) => {
                let mut bytes = vec![0; length];
                buffer.read(0, &mut bytes).unwrap();
                bytes
            }
        }
    }
}

pub fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at * 7 / 3) ^ (at >> 11)) as u8).collect()
}

pub fn contiguous() -> Datatype {
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    types.finish(byte).unwrap()
}
