//! The blocks of such a call, and how they are moved between elements and staging memory.

use crate::abi::Abi;
use crate::memory::{Moved, Place, offset, transfer_of};
use crate::moves::{Move, Packing};
use crate::receive_type::ReceiveType;
use crate::staging::BlockRef;
use dtc::{DTC_MEMORY_DEVICE, DTC_MEMORY_PINNED};
use std::ffi::c_void;

/// Elements for one process, or from it.
pub enum Elements {
    /// Without bytes.
    Nothing,
    /// Of a predefined datatype, on the host: so many bytes, which are copied.
    Copied(*mut c_void, usize),
    /// Of a datatype that dtc moves.
    Moved(Moved),
}

/// A block.
pub struct Block<A: Abi> {
    /// Its elements.
    pub elements: Elements,
    /// Where its bytes lie in staging memory.
    pub place: i64,
    /// Where its elements lie.
    pub lies: Place,
    /// Whether its last byte is received one place further on.
    pub gap: bool,
    /// Until the MPI has the datatype; none if that is the same as for the block before.
    pub receive_type: Option<ReceiveType<A>>,
}

impl<A: Abi> Block<A> {
    /// A block at a place in staging memory.
    pub fn new(elements: Elements, place: i64, lies: Place) -> Block<A> {
        Block { elements, place, lies, gap: false, receive_type: None }
    }

    /// Its packed bytes.
    pub fn bytes(&self) -> i64 {
        match &self.elements {
            Elements::Nothing => 0,
            Elements::Copied(_, bytes) => *bytes as i64,
            Elements::Moved(moved) => moved.bytes,
        }
    }

    /// What dtc moves.
    pub fn moved(&self) -> Option<&Moved> {
        match &self.elements {
            Elements::Moved(moved) if moved.bytes > 0 => Some(moved),
            _ => None,
        }
    }

    /// Where its packed bytes are.
    pub fn packed(&self, staging: &BlockRef) -> *mut c_void {
        offset(staging.memory(), self.place)
    }

    /// Moves it; false if that fails.
    pub fn run(&self, staging: &BlockRef, packing: Packing) -> bool {
        let packed = self.packed(staging);
        match &self.elements {
            Elements::Nothing => true,
            Elements::Copied(memory, bytes) => {
                let (from, into) = if packing == Packing::Pack { (*memory, packed) } else { (packed, *memory) };
                // SAFETY: the program's elements, and staging memory for as many bytes.
                unsafe { into.cast::<u8>().copy_from_nonoverlapping(from.cast(), *bytes) };
                true
            }
            Elements::Moved(moved) => {
                let Moved { plan, memory, elements, bytes } = moved;
                let (memory, elements, bytes) = (*memory, *elements, *bytes);
                let Some(r#type) = &plan.r#type else { return false };
                let transfer = transfer_of(memory, self.lies, staging);
                let transfer = Some(&transfer);
                // SAFETY: the program's elements, and staging memory for their bytes.
                bytes == 0 || unsafe { Move { packing, r#type, memory, elements, packed, bytes, transfer }.run() }
            }
        }
    }

    /// Whether a GPU moves it in one launch with others: it reaches both ends.
    pub fn is_launched(&self, staging: &BlockRef, device: i32) -> bool {
        let kind = staging.kind();
        let reached = kind == DTC_MEMORY_PINNED || (kind == DTC_MEMORY_DEVICE && staging.device() == device);
        reached && self.moved().is_some() && self.lies.is_device() && self.lies.device == device
    }
}
