//! Buffers in memory of all kinds.

use crate::harness::text;
use dtc_runtime::cuda::{Device, DeviceBuffer, MemoryKind, PinnedBuffer};

/// All kinds of memory, with two devices.
pub const KINDS: [MemoryKind; 5] =
    [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::Managed, MemoryKind::Device(0), MemoryKind::Device(1)];

/// Memory of any kind.
pub enum Memory {
    Pageable(Vec<u8>),
    Pinned(PinnedBuffer),
    Driver(DeviceBuffer),
}

impl Memory {
    /// Memory that holds these bytes.
    pub fn holding(kind: MemoryKind, bytes: &[u8]) -> Result<Memory, String> {
        let filled = |buffer: Result<DeviceBuffer, _>| {
            let mut buffer = buffer.map_err(text)?;
            buffer.write(0, bytes).map_err(text)?;
            Ok(Memory::Driver(buffer))
        };
        let device = |ordinal| Device::get(ordinal).map_err(text);
        match kind {
            MemoryKind::Pageable => Ok(Memory::Pageable(bytes.to_vec())),
            MemoryKind::Pinned => {
                let mut buffer = PinnedBuffer::new(&device(0)?, bytes.len()).map_err(text)?;
                buffer.as_mut_slice().copy_from_slice(bytes);
                Ok(Memory::Pinned(buffer))
            }
            MemoryKind::Managed => filled(DeviceBuffer::managed(&device(0)?, bytes.len())),
            MemoryKind::Device(ordinal) => filled(DeviceBuffer::new(&device(ordinal)?, bytes.len())),
        }
    }

    /// The address of a byte.
    pub fn at(&mut self, offset: usize) -> *mut u8 {
        let base = match self {
            Memory::Pageable(bytes) => bytes.as_mut_ptr(),
            Memory::Pinned(buffer) => buffer.as_ptr(),
            Memory::Driver(buffer) => buffer.address() as *mut u8,
        };
        base.wrapping_add(offset)
    }

    /// All bytes.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Memory::Pageable(bytes) => Ok(bytes.clone()),
            Memory::Pinned(buffer) => Ok(buffer.as_slice().to_vec()),
            Memory::Driver(buffer) => {
                let mut bytes = vec![0; buffer.len()];
                buffer.read(0, &mut bytes).map_err(text)?;
                Ok(bytes)
            }
        }
    }
}
