//! Calls on the buffers of a case.
#![expect(unsafe_code, reason = "moves memory of a device")]

use super::Subject;
use dtc_compiler::plan::Direction;
use dtc_measure::failure::Failure;
use dtc_runtime::cuda::{Stream, copy};
use dtc_runtime::{CommittedTabled, Endpoint, IndexTable, Range};

/// A call for all packed bytes, in buffers that have all of them.
#[derive(Clone, Copy)]
pub struct Call {
    /// Which way.
    pub direction: Direction,
    /// Where the elements are.
    pub memory: Endpoint,
    /// Where the packed bytes are.
    pub packed: Endpoint,
    /// How many.
    pub bytes: u64,
}

impl Call {
    /// The driver's copy of as many bytes.
    pub fn copy(&self, stream: &Stream) -> Result<(), Failure> {
        let (memory, packed) = (self.memory.address().addr() as u64, self.packed.address().addr() as u64);
        let (to, from) = match self.direction {
            Direction::Pack => (packed, memory),
            Direction::Unpack => (memory, packed),
        };
        // SAFETY: both buffers have at least the packed bytes, and live until the stream was waited for.
        unsafe { copy::between(stream, to, from, self.bytes as usize)? };
        Ok(())
    }

    /// By the type that has the entries.
    pub fn listed(&self, subject: &Subject, stream: &Stream) -> Result<(), Failure> {
        let elements = subject.listed.at(self.memory, Range::elements(1));
        let transfer = match self.direction {
            Direction::Pack => elements.pack(self.packed),
            Direction::Unpack => elements.unpack(self.packed),
        };
        // SAFETY: `Buffers::new` made both sides for this case, and they live until the stream was waited for.
        unsafe { transfer.enqueue(stream)? };
        Ok(())
    }

    /// By the type to which the call brings the entries.
    pub fn tabled(&self, subject: &Subject, stream: &Stream) -> Result<(), Failure> {
        self.by(&subject.tabled, subject, stream)
    }

    /// The same by the generic kernels.
    pub fn generic(&self, subject: &Subject, stream: &Stream) -> Result<(), Failure> {
        self.by(&subject.generic, subject, stream)
    }

    fn by(&self, committed: &CommittedTabled, subject: &Subject, stream: &Stream) -> Result<(), Failure> {
        let tables = [IndexTable::at(&subject.table, false, subject.entries.len() as u64)];
        let elements = committed.at(self.memory, &tables);
        let transfer = match self.direction {
            Direction::Pack => elements.pack(self.packed),
            Direction::Unpack => elements.unpack(self.packed),
        };
        // SAFETY: as for `listed`; the entries are below the places, on the device.
        unsafe { transfer.enqueue(stream).map(drop) }.map_err(|error| subject.failed(&error))
    }
}

/// A copy from one type to another, each with its table on the device.
pub fn copied([from, to]: [&Subject; 2], [source, target]: [Endpoint; 2], stream: &Stream) -> Result<(), Failure> {
    let [one, other] = [from, to].map(|subject| [IndexTable::at(&subject.table, false, subject.entries.len() as u64)]);
    let copy = from.tabled.at(source, &one).copy_to(to.tabled.at(target, &other));
    // SAFETY: both buffers were made for these types, do not overlap, and live until the stream was waited for.
    unsafe { copy.enqueue(stream).map(drop) }.map_err(|error| from.failed(&error))
}
