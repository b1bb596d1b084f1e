//! The memory of a [`Service`](crate::Service), as its kernels and those that post see it: `dtc_matching_port` and what is behind it, in
//! the header [`HEADER`].
//!
//! The memory begins with a control. Rings follow, two for each queue, of messages and of receives; then their slots, the outcomes of
//! messages and of receives by handle, and the pairs of the queues. A ring's ticket counts the entries that were posted to it, modulo 2^32.

pub use crate::kernels::HEADER;
use crate::matcher::Queues;

/// Bytes of the control, and of a ring.
pub const LINE_BYTES: usize = 128;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 32;
/// The bit of a ring's state that is set when it is closed; its upper half is the next ticket.
pub const CLOSED: u64 = 1;
/// The bits of an outcome: matched, with the handle of the other side; or refused, with the reason.
pub(crate) const MATCHED: u32 = 1 << 31;
pub(crate) const REFUSED: u32 = 1 << 30;
/// Why an entry was refused: no free slot. Numbered as in the header.
pub(crate) const FULL: u32 = 1;
/// Where the words of the control are.
pub(crate) const STOP_AT: usize = 0;
pub(crate) const BEAT_AT: usize = 4;
pub(crate) const RUNNING_AT: usize = 8;
pub(crate) const ABANDONED_AT: usize = 12;

/// Messages or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Messages.
    Messages,
    /// Receives.
    Receives,
}

/// `dtc_matching_port`: kernels take it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The device address of the memory.
    pub memory: u64,
    /// Communicators.
    pub communicators: u32,
    /// Queues of a communicator.
    pub partitions: u32,
    /// Slots of a ring, a power of two.
    pub slots: u32,
    /// Handles of messages, and of receives.
    pub handles: u32,
    /// Wildcards that are refused: 1 for sources, 2 for tags.
    pub refused: u32,
    /// 1 if others than kernels of its GPU post or wait.
    pub system: u32,
}

impl Port {
    /// Its bytes, as a kernel's parameter.
    ///
    /// ```
    /// use dtc_matching::port::Port;
    /// let port = Port { memory: 1, communicators: 2, partitions: 1, slots: 8, handles: 16, refused: 0, system: 0 };
    /// assert_eq!(port.to_bytes()[8..12], [2, 0, 0, 0]);
    /// ```
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.memory.to_ne_bytes());
        let numbers = [self.communicators, self.partitions, self.slots, self.handles, self.refused, self.system];
        for (place, number) in bytes[8..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    fn rings(self) -> usize {
        2 * self.communicators as usize * self.partitions as usize
    }

    /// The ring of a queue.
    pub(crate) fn ring(kind: Kind, queue: u32) -> u32 {
        2 * queue + u32::from(kind == Kind::Receives)
    }

    /// Where the state of a ring is: 8 bytes, and behind them 4 each with the free slots, the tickets that were taken, and those that
    /// there were when the ring was closed.
    ///
    /// ```
    /// use dtc_matching::port::{Kind, Port};
    /// let port = Port { memory: 0, communicators: 1, partitions: 1, slots: 8, handles: 16, refused: 0, system: 0 };
    /// assert_eq!(port.ring_at(Kind::Receives, 0), 256);
    /// ```
    pub fn ring_at(self, kind: Kind, queue: u32) -> usize {
        LINE_BYTES * (1 + Port::ring(kind, queue) as usize)
    }

    /// Where the slot of a ticket is: source, tag and handle with 8 bytes each, in the upper half the ticket plus 1.
    ///
    /// ```
    /// use dtc_matching::port::{Kind, Port};
    /// let port = Port { memory: 0, communicators: 1, partitions: 1, slots: 8, handles: 16, refused: 0, system: 0 };
    /// assert_eq!(port.slot_at(Kind::Messages, 0, 9), 3 * 128 + 32);
    /// ```
    pub fn slot_at(self, kind: Kind, queue: u32, ticket: u32) -> usize {
        let slots = self.slots as usize;
        let slot = Port::ring(kind, queue) as usize * slots + ticket as usize % slots;
        LINE_BYTES * (1 + self.rings()) + SLOT_BYTES * slot
    }

    /// Where the outcome of a handle is: 4 bytes, 0 while it is open.
    ///
    /// ```
    /// use dtc_matching::port::{Kind, Port};
    /// let port = Port { memory: 0, communicators: 1, partitions: 1, slots: 8, handles: 16, refused: 0, system: 0 };
    /// assert_eq!(port.outcome_at(Kind::Receives, 1), 3 * 128 + 16 * 32 + 17 * 4);
    /// ```
    pub fn outcome_at(self, kind: Kind, handle: u32) -> usize {
        let handles = self.handles as usize;
        let before = if kind == Kind::Receives { handles } else { 0 };
        LINE_BYTES * (1 + self.rings())
            + SLOT_BYTES * self.rings() * self.slots as usize
            + 4 * (before + handle as usize)
    }

    /// Where the pairs of the queues begin.
    ///
    /// ```
    /// use dtc_matching::port::Port;
    /// let port = Port { memory: 0, communicators: 1, partitions: 1, slots: 8, handles: 16, refused: 0, system: 0 };
    /// assert_eq!(port.pairs_at() % 128, 0);
    /// ```
    pub fn pairs_at(self) -> usize {
        self.outcome_at(Kind::Receives, self.handles).next_multiple_of(LINE_BYTES)
    }

    /// Bytes of the memory.
    ///
    /// ```
    /// use dtc_matching::{Queues, port::Port};
    /// let port = Port { memory: 0, communicators: 1, partitions: 1, slots: 8, handles: 16, refused: 0, system: 0 };
    /// let queues = Queues { communicators: 1, partitions: 1, capacity: 10 };
    /// assert_eq!(port.bytes(queues), port.pairs_at() + 80);
    /// ```
    pub fn bytes(self, queues: Queues) -> usize {
        self.pairs_at() + 8 * queues.count() as usize * queues.capacity as usize
    }
}
