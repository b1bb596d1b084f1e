//! The ends of a call, each in memory of one kind, with the addresses that the processor and kernels use.

use super::error::TransferError;
use crate::committed::Committed;
use crate::cpu::Addresses;
use crate::device::Move;
use crate::endpoint::Endpoint;
use crate::multiprocessors::Multiprocessors;
use crate::range::Range;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use dtc_cuda::MemoryKind;
use dtc_cuda::pointer::{PointerInfo, classify};

/// A kind of memory, and how kernels address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: MemoryKind,
    /// What kernels add to an address of the host. Zero, except for host memory that was registered on a system whose
    /// devices have addresses of their own.
    shift: u64,
}

/// An endpoint of a kind that is known.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    pub(super) address: *mut u8,
    pub(super) place: Place,
}

/// Elements in memory of one kind, with a range that ends with the packed bytes or before.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    pub(super) of: &'a Committed,
    pub(super) memory: Located,
    pub(super) range: Range,
}

impl Place {
    /// Memory of a kind that the caller knows.
    pub(super) fn known(kind: MemoryKind) -> Place {
        Place { kind, shift: 0 }
    }

    fn of(address: *const u8, info: &PointerInfo) -> Place {
        let shift = match info.kind {
            MemoryKind::Pinned if info.device_address != 0 => info.device_address.wrapping_sub(address.addr() as u64),
            _ => 0,
        };
        Place { kind: info.kind, shift }
    }
}

impl Located {
    /// Where an endpoint lies, by what the caller or the driver says; an error if nothing can lie there.
    pub(crate) fn new(side: &'static str, endpoint: Endpoint) -> Result<Located, TransferError> {
        check(side, endpoint)?;
        let address = endpoint.address();
        let place = match endpoint.kind() {
            Some(kind) => Place::known(kind),
            None => ask(address)?.0,
        };
        Ok(Located { address, place })
    }

    /// An endpoint that the processor reaches, as `Endpoint::are_on_host` found out.
    pub(super) fn on_host(endpoint: Endpoint) -> Located {
        let kind = endpoint.kind().unwrap_or(MemoryKind::Pageable);
        Located { address: endpoint.address(), place: Place::known(kind) }
    }

    pub(crate) fn kind(self) -> MemoryKind {
        self.place.kind
    }

    /// Where the processor finds it.
    pub(crate) fn address(self) -> *mut u8 {
        self.address
    }

    /// Where kernels find it.
    pub(crate) fn device_address(self) -> u64 {
        (self.address.expose_provenance() as u64).wrapping_add(self.place.shift)
    }

    /// This many bytes further on.
    pub(super) fn advanced(self, bytes: u64) -> Located {
        Located { address: self.address.wrapping_add(bytes as usize), ..self }
    }
}

impl<'a> Placed<'a> {
    pub(super) fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// `length` packed bytes of them, from byte `at` of the range on.
    pub(super) fn part(&self, at: u64, length: u64) -> Placed<'a> {
        Placed { range: self.range.part(at, length), ..*self }
    }

    /// The call between the range and packed bytes at an address, as a device sees it.
    pub(super) fn device_move(&self, direction: Direction, packed: u64) -> Move {
        let (first, bytes) = (self.range.offset(), self.range.length());
        let call = Call { memory: self.memory.device_address(), packed, first, bytes };
        Move { direction, call, count: self.range.count(), multiprocessors: Multiprocessors::All }
    }

    /// The same on the processor.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), with memory and packed bytes that the processor reaches.
    pub(super) unsafe fn on_processor(&self, direction: Direction, packed: *mut u8) {
        let addresses = Addresses { memory: self.memory.address, packed };
        // SAFETY: clauses 1 to 4 hold for every byte of the range, and the processor reaches both ends (contract of this
        // function).
        unsafe {
            match direction {
                Direction::Pack => self.of.some::<true>(addresses, self.range),
                Direction::Unpack => self.of.some::<false>(addresses, self.range),
            }
        }
    }
}

/// Refuses, by its name, an end where nothing can lie: a null base of a type without absolute addresses, most often. CUDA would
/// call it host memory.
pub(super) fn check(side: &'static str, endpoint: Endpoint) -> Result<(), TransferError> {
    if endpoint.is_nowhere() {
        return Err(TransferError::Address { side, address: endpoint.address().addr() });
    }
    Ok(())
}

/// Asks the driver for the kind of memory at an address.
pub(super) fn ask(address: *const u8) -> Result<(Place, PointerInfo), TransferError> {
    let info = classify(address)?;
    Ok((Place::of(address, &info), info))
}
