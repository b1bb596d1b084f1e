//! The movers of copies from type to type and of accumulations: the processor or a device for either end.

use dtc_cuda::MemoryKind;

/// The kind of an end's memory, as far as it decides who can move its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryClass {
    Host,
    /// The processor and every device.
    Managed,
    Device(u32),
}

impl MemoryClass {
    /// The devices that move the bytes of both ends; `None` for the processor.
    pub(super) fn movers(one: MemoryClass, other: MemoryClass) -> (Option<u32>, Option<u32>) {
        let device = |side: MemoryClass, beside: MemoryClass| match (side, beside) {
            (MemoryClass::Device(ordinal), _) | (MemoryClass::Managed, MemoryClass::Device(ordinal)) => Some(ordinal),
            _ => None,
        };
        (device(one, other), device(other, one))
    }
}

impl From<MemoryKind> for MemoryClass {
    fn from(kind: MemoryKind) -> MemoryClass {
        match kind {
            MemoryKind::Pageable | MemoryKind::Pinned => MemoryClass::Host,
            MemoryKind::Managed => MemoryClass::Managed,
            MemoryKind::Device(ordinal) => MemoryClass::Device(ordinal),
        }
    }
}
