//! The movers of copies from type to type and of accumulations: the processor or a device for either end.

use dtc_cuda::MemoryKind;

/// The kind of an end's memory, as far as it decides who can move its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    Host,
    /// The processor and every device.
    Managed,
    Device(u32),
}

impl Memory {
    /// The devices that move the bytes of both ends; `None` for the processor.
    pub(super) fn movers(one: Memory, other: Memory) -> (Option<u32>, Option<u32>) {
        let device = |side: Memory, beside: Memory| match (side, beside) {
            (Memory::Device(ordinal), _) | (Memory::Managed, Memory::Device(ordinal)) => Some(ordinal),
            _ => None,
        };
        (device(one, other), device(other, one))
    }
}

impl From<MemoryKind> for Memory {
    fn from(kind: MemoryKind) -> Memory {
        match kind {
            MemoryKind::Pageable | MemoryKind::Pinned => Memory::Host,
            MemoryKind::Managed => Memory::Managed,
            MemoryKind::Device(ordinal) => Memory::Device(ordinal),
        }
    }
}
