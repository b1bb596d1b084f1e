//! A case on the device, and calls that move it.
#![expect(unsafe_code, reason = "moves memory of a device")]

use super::by_hand::ByHand;
use super::call::Call;
use super::cases::TableCase;
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::datatype::text::parse;
use dtc_compiler::plan::Direction;
use dtc_compiler::tabled::TabledLayout;
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::failure::Failure;
use dtc_measure::samples::SEED;
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::{Committed, CommittedTabled, Endpoint, IndexTable, Multiprocessors, Range};
use std::fmt::Display;

/// A case, committed with and without its table, which lies on the device.
pub struct Subject {
    /// The case.
    pub case: TableCase,
    /// What it is called.
    pub name: String,
    /// The table.
    pub entries: Vec<i32>,
    /// The same on the device.
    pub table: DeviceBuffer,
    /// The layout for any table.
    pub layout: TabledLayout,
    /// The type with a table of the call.
    pub tabled: CommittedTabled,
    generic: CommittedTabled,
    listed: Committed,
    /// A kernel by hand, if one was written.
    pub by_hand: Option<ByHand>,
}

impl Subject {
    /// Makes it ready.
    pub fn new(arena: &Arena, case: TableCase, run: u64) -> Result<Subject, Failure> {
        let entries = case.entries(run, SEED);
        let name = if run == 1 { case.name.to_owned() } else { format!("{}, in runs of {run}", case.name) };
        let described = |error: &dyn Display| Failure::Description(format!("{name}: {error}"));
        let datatype: TabledDatatype = case.tabled().parse().map_err(|error| described(&error))?;
        let listed = parse(&case.listed(&entries)).map_err(|error| described(&error))?;
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        let mut table = DeviceBuffer::new(arena.gpu.device(), bytes.len())?;
        table.write(0, &bytes)?;
        let (tabled, listed) = (arena.specialised.commit_tabled(&datatype), arena.specialised.commit(&listed));
        tabled.prepare(&arena.gpu).map_err(|error| described(&error))?;
        listed.prepare(&arena.gpu)?;
        let generic = arena.generic.commit_tabled(&datatype);
        let by_hand = case.by_hand().map(|text| ByHand::new(&arena.gpu, &text)).transpose()?;
        let layout = TabledLayout::new(&datatype);
        Ok(Subject { case, name, entries, table, layout, tabled, generic, listed, by_hand })
    }

    /// A failure of the case.
    pub fn failed(&self, error: &dyn Display) -> Failure {
        Failure::Data(format!("{}: {error}", self.name))
    }

    /// By the type that has the entries.
    pub fn listed(&self, call: &Call, stream: &Stream) -> Result<(), Failure> {
        let elements = self.listed.at(call.memory, Range::elements(1));
        let transfer = match call.direction {
            Direction::Pack => elements.pack(call.packed),
            Direction::Unpack => elements.unpack(call.packed),
        };
        // SAFETY: both sides of the call were made for this case, and they live until the stream was waited for.
        unsafe { transfer.enqueue(stream)? };
        Ok(())
    }

    /// By the type to which the call brings the entries.
    pub fn tabled(&self, call: &Call, stream: &Stream) -> Result<(), Failure> {
        self.by(&self.tabled, call, Multiprocessors::All, self.on_device(), stream)
    }

    /// The same with the entries in host memory; without multiprocessors, by copies of the driver where the blocks have no gaps.
    pub fn hosted(&self, call: &Call, some: Multiprocessors, stream: &Stream) -> Result<(), Failure> {
        self.by(&self.tabled, call, some, IndexTable::from(&self.entries), stream)
    }

    /// The same by the generic kernels.
    pub fn generic(&self, call: &Call, stream: &Stream) -> Result<(), Failure> {
        self.by(&self.generic, call, Multiprocessors::All, self.on_device(), stream)
    }

    fn on_device(&self) -> IndexTable<'_> {
        IndexTable::at(&self.table, false, self.entries.len() as u64)
    }

    fn by(
        &self,
        committed: &CommittedTabled,
        call: &Call,
        some: Multiprocessors,
        table: IndexTable<'_>,
        stream: &Stream,
    ) -> Result<(), Failure> {
        let tables = [table];
        let elements = committed.at(call.memory, &tables);
        let transfer = match call.direction {
            Direction::Pack => elements.pack(call.packed),
            Direction::Unpack => elements.unpack(call.packed),
        };
        // SAFETY: as for `listed`; the entries are below the places.
        unsafe { transfer.on(some).enqueue(stream).map(drop) }.map_err(|error| self.failed(&error))
    }
}

/// A copy from one type to another, each with its table on the device.
pub fn copied([from, to]: [&Subject; 2], [source, target]: [Endpoint; 2], stream: &Stream) -> Result<(), Failure> {
    let [one, other] = [from, to].map(|subject| [IndexTable::at(&subject.table, false, subject.entries.len() as u64)]);
    let copy = from.tabled.at(source, &one).copy_to(to.tabled.at(target, &other));
    // SAFETY: both buffers were made for these types, do not overlap, and live until the stream was waited for.
    unsafe { copy.enqueue(stream).map(drop) }.map_err(|error| from.failed(&error))
}
