//! Where the two sides of a call lie, and how kernels find them.

use super::super::request::TransferError;
use dtc_cuda::MemoryKind;
use dtc_cuda::pointer::{PointerInfo, classify};

/// Nothing lies at lower addresses, whatever the system.
const NEVER_MAPPED: usize = 4096;

/// The memory that one side lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Place {
    pub(in crate::gpu) kind: MemoryKind,
    /// What kernels add to an address of the host. Zero, except for host memory that was registered on a system whose
    /// devices have addresses of their own.
    pub(super) shift: u64,
}

impl Place {
    /// Memory of a kind that the caller knows.
    pub(in crate::gpu) fn known(kind: MemoryKind) -> Place {
        Place { kind, shift: 0 }
    }

    fn of(address: *const u8, info: &PointerInfo) -> Place {
        let shift = match info.kind {
            MemoryKind::Pinned if info.device_address != 0 => info.device_address.wrapping_sub(address.addr() as u64),
            _ => 0,
        };
        Place { kind: info.kind, shift }
    }

    /// Where kernels find what the host has at an address.
    pub(in crate::gpu) fn on_device(self, address: *const u8) -> u64 {
        (address.addr() as u64).wrapping_add(self.shift)
    }
}

/// A side whose first byte lies at an address: refused by name where nothing can lie.
pub(super) fn check(side: &'static str, address: *const u8) -> Result<(), TransferError> {
    // A null base of a type without absolute addresses, most often. CUDA would call it host memory.
    if address.addr() < NEVER_MAPPED {
        return Err(TransferError::Address { side, address: address.addr() });
    }
    Ok(())
}

/// Whether a base lies nowhere, so that the type holds absolute addresses.
pub(super) fn is_nowhere(base: *const u8) -> bool {
    base.addr() < NEVER_MAPPED
}

/// Asks the driver about an address, once.
pub(super) fn ask(address: *const u8) -> Result<(Place, PointerInfo), TransferError> {
    let info = classify(address)?;
    Ok((Place::of(address, &info), info))
}

/// Where packed bytes lie, of a kind that the caller knows or the driver tells; an error if they lie nowhere.
pub(in crate::gpu) fn place_of(
    side: &'static str,
    packed: *const u8,
    known: Option<MemoryKind>,
) -> Result<Place, TransferError> {
    check(side, packed)?;
    Ok(match known {
        Some(kind) => Place::known(kind),
        None => ask(packed)?.0,
    })
}
