//! Calls of types with index tables on data in any memory.

use super::committed::CommittedTabled;
use super::device_end::{DeviceEnd, Packed};
use super::error::TabledError;
use super::host::{self, HostCall};
use super::launch::TabledLaunch;
use super::table::{IndexTable, TableSource};
use crate::cached_type::tabled::TabledMove;
use crate::cpu::Addresses;
use crate::device::Gpu;
use crate::endpoint::Endpoint;
use crate::multiprocessors::Multiprocessors;
use crate::range::Range;
use crate::transfers::Located;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::TabledVariant;
use dtc_cuda::{MemoryKind, Stream};
use std::ops::RangeBounds;

/// Elements of a type with index tables: where they lie, the tables of the call, and which of the packed bytes are moved.
#[derive(Clone, Copy, Debug)]
pub struct TabledElements<'a> {
    of: &'a CommittedTabled,
    memory: Endpoint,
    tables: &'a [IndexTable<'a>],
    range: Range,
    skips: bool,
}

/// A pack, an unpack, or a copy to another type, as one launch if a device takes part.
///
/// # Safety
///
/// What calls ask for:
///
/// 1. Every byte that the entries of the tables lead to is readable on one side and writable on the other, in memory of the kind that the
///    endpoint names, if it names one. The sides do not overlap.
/// 2. A table at an address has as many entries as it says. They do not change while the work runs; between replays of a graph they may.
/// 3. A table of addresses that only a device reads has multiples of the type's alignment, or 0.
/// 4. The memory of an accumulation is readable, too, and so is the destination of a copy.
///
/// # Example
///
/// ```
/// use dtc_runtime::{Endpoint, Engine, IndexTable, TabledError, cuda::{DeviceBuffer, Stream}};
/// /// Enqueues a gather of the pages that a table on the device lists.
/// fn gather(engine: &Engine, cache: &DeviceBuffer, pages: &DeviceBuffer, packed: &DeviceBuffer, stream: &Stream) -> Result<u64, TabledError> {
///     let pages_of = engine.commit_tabled(&"table 0 1024 64 65536 (contiguous 8192 double)".parse().unwrap());
///     let tables = [IndexTable::at(pages, false, 64)];
///     // SAFETY: `cache` has 1,024 pages, `packed` room for 64, `pages` 64 entries of 32 bits; all live until the stream was waited for.
///     unsafe { pages_of.at(cache, &tables).pack(packed).enqueue(stream) }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TabledTransfer<'a> {
    elements: TabledElements<'a>,
    action: TabledAction<'a>,
    multiprocessors: Multiprocessors,
    report: Option<Endpoint>,
}

#[derive(Clone, Copy, Debug)]
enum TabledAction<'a> {
    Pack(Endpoint),
    Unpack(Endpoint),
    Accumulate(Reduction, Endpoint),
    Copy(TabledElements<'a>),
}

impl CommittedTabled {
    /// Elements in memory of any kind, with the tables of a call. For a type all of whose bytes lie at addresses, `memory` is any address
    /// in memory of that kind.
    ///
    /// See [`TabledTransfer`](super::TabledTransfer) for an example.
    pub fn at<'a>(&'a self, memory: impl Into<Endpoint>, tables: &'a [IndexTable<'a>]) -> TabledElements<'a> {
        TabledElements { of: self, memory: memory.into(), tables, range: Range::elements(1), skips: false }
    }
}

impl<'a> TabledElements<'a> {
    /// These of the packed bytes. A range that ends behind them ends with them.
    pub fn bytes(self, bytes: impl RangeBounds<u64>) -> TabledElements<'a> {
        TabledElements { range: self.range.bytes(bytes), ..self }
    }

    /// Skips entries below 0, and addresses that are 0, in tables of host memory: neither side is touched for them, and their packed bytes
    /// stay as they are. Entries that a device alone reads are skipped in any case, and so are those beyond the places.
    pub fn skipping(self) -> TabledElements<'a> {
        TabledElements { skips: true, ..self }
    }

    /// A pack to packed bytes of which the first that is asked for goes to `packed`.
    pub fn pack(self, packed: impl Into<Endpoint>) -> TabledTransfer<'a> {
        self.transfer(TabledAction::Pack(packed.into()))
    }

    /// An unpack of packed bytes of which the first that is asked for lies at `packed`. Where a place occurs twice, one of both wins.
    pub fn unpack(self, packed: impl Into<Endpoint>) -> TabledTransfer<'a> {
        self.transfer(TabledAction::Unpack(packed.into()))
    }

    /// An unpack with an operation: each element becomes itself OP the packed one. On a device, strides and lengths of the type are multiples of an
    /// element of 1, 2, 4, 8 or 16 bytes, and the kernel is compiled at the first call under every policy. Where a place occurs twice, its value is not defined.
    pub fn accumulate(self, reduction: Reduction, packed: impl Into<Endpoint>) -> TabledTransfer<'a> {
        self.transfer(TabledAction::Accumulate(reduction, packed.into()))
    }

    /// A copy to elements of another type with as many packed bytes, each to the place of its packed position there.
    pub fn copy_to(self, destination: TabledElements<'a>) -> TabledTransfer<'a> {
        self.transfer(TabledAction::Copy(destination))
    }

    fn transfer(self, action: TabledAction<'a>) -> TabledTransfer<'a> {
        TabledTransfer { elements: self, action, multiprocessors: Multiprocessors::All, report: None }
    }

    /// The range, cut to the packed bytes of the tables, which fit the type.
    fn checked_range(&self) -> Result<Range, TabledError> {
        self.of.checked_range(self.tables, self.range, self.skips)
    }

    fn host_call(&self, range: Range) -> Result<HostCall<'a>, TabledError> {
        let tables = self.of.host_tables(self.tables)?;
        Ok(HostCall { tables, first: range.offset(), end: range.offset() + range.length() })
    }

    fn device_end(&self, range: Range, memory: Located) -> DeviceEnd<'a> {
        let (shared, tables) = (&self.of.shared, self.tables);
        DeviceEnd { shared, tables, address: memory.device_address(), first: range.offset() }
    }
}

/// A transfer that fits its types, with both ends located.
pub(super) struct CheckedTabled<'a> {
    range: Range,
    memory: Located,
    other: Located,
    destination: Option<(TabledElements<'a>, Range)>,
}

impl CheckedTabled<'_> {
    /// The device that moves the bytes, if one has an end.
    pub(super) fn device(&self) -> Option<u32> {
        [self.memory.kind(), self.other.kind()].into_iter().find_map(|kind| match kind {
            MemoryKind::Device(ordinal) => Some(ordinal),
            _ => None,
        })
    }
}

impl<'a> TabledTransfer<'a> {
    /// On so many multiprocessors. With [`Multiprocessors::None`], copies of the driver move the bytes where all tables are slices and lead to at most
    /// 16,384 blocks without gaps: in one call of the driver from 12.8 on, on other streams than the legacy default one, outside captures. Otherwise it is as `All`.
    pub fn on(self, multiprocessors: Multiprocessors) -> TabledTransfer<'a> {
        TabledTransfer { multiprocessors, ..self }
    }

    /// Has the kernel note the first entry beyond the places of its table that it meets in 24 bytes of zeros at `report`, which the device reaches:
    /// [`TabledError::reported`] reads them. No such entry is followed with or without it.
    pub fn reporting(self, report: impl Into<Endpoint>) -> TabledTransfer<'a> {
        TabledTransfer { report: Some(report.into()), ..self }
    }

    /// Moves the bytes, and returns when they are there. Returns how many. On a device the work is ordered after that of the
    /// legacy default stream.
    ///
    /// # Errors
    ///
    /// The tables do not fit the type, a range begins behind the packed bytes, an end lies nowhere, or a device takes part that does not
    /// reach the other end or a table. Nothing was moved then, unless CUDA refuses.
    ///
    /// # Safety
    ///
    /// The contract of [`TabledTransfer`].
    pub unsafe fn run(&self) -> Result<u64, TabledError> {
        let Some(checked) = self.checked()? else { return Ok(0) };
        let Some(ordinal) = checked.device() else {
            // SAFETY: the contract of this function, in memory that the processor reaches.
            return unsafe { self.run_on_host(&checked) };
        };
        let gpu = self.elements.of.engine.gpu(ordinal)?;
        let stream = &gpu.state.stream;
        // SAFETY: the contract of this function, until the stream was waited for.
        let bytes = unsafe { self.enqueue_checked(&checked, &gpu, stream)? };
        stream.synchronize()?;
        Ok(bytes)
    }

    /// Enqueues the work on a CUDA stream, whose device moves the bytes, and returns at once. Returns how many bytes will be moved. May be
    /// captured into a graph: each replay reads the entries that tables on the device hold then.
    ///
    /// Generic kernels serve until the kernel of the types is compiled, as the policy says: a copy between two types by three passes over memory that is
    /// kept for the next one.
    ///
    /// # Errors
    ///
    /// As for [`TabledTransfer::run`].
    ///
    /// # Safety
    ///
    /// The contract of [`TabledTransfer`], until the work is done.
    pub unsafe fn enqueue(&self, stream: &Stream) -> Result<u64, TabledError> {
        let Some(checked) = self.checked()? else { return Ok(0) };
        let gpu = self.elements.of.engine.gpu(stream.device().info().ordinal)?;
        // SAFETY: the contract of this function.
        unsafe { self.enqueue_checked(&checked, &gpu, stream) }
    }

    /// The transfer with both ends located; nothing if it moves no bytes, and may lie anywhere.
    pub(super) fn checked(&self) -> Result<Option<CheckedTabled<'a>>, TabledError> {
        let range = self.elements.checked_range()?;
        let (side, other, destination) = match self.action {
            TabledAction::Pack(packed) | TabledAction::Unpack(packed) => ("packed bytes", packed, None),
            TabledAction::Accumulate(reduction, packed) => {
                self.elements.of.check_reduction(reduction, range)?;
                ("packed bytes", packed, None)
            }
            TabledAction::Copy(destination) => {
                let to = destination.checked_range()?;
                if to.length() != range.length() {
                    let (source_bytes, destination_bytes) = (range.length(), to.length());
                    return Err(TabledError::Sizes { source_bytes, destination_bytes });
                }
                ("destination", destination.memory, Some((destination, to)))
            }
        };
        if range.length() == 0 {
            return Ok(None);
        }
        let (memory, other) = (Located::new("memory", self.elements.memory)?, Located::new(side, other)?);
        Ok(Some(CheckedTabled { range, memory, other, destination }))
    }

    /// # Safety
    ///
    /// The contract of [`TabledTransfer`], in memory that the processor reaches.
    pub(super) unsafe fn run_on_host(&self, checked: &CheckedTabled<'a>) -> Result<u64, TabledError> {
        self.count_use(checked);
        let shared = &self.elements.of.shared;
        let call = self.elements.host_call(checked.range)?;
        let addresses = Addresses { memory: self.elements.memory.address(), packed: checked.other.address() };
        let destination = match &checked.destination {
            Some((destination, range)) => Some((destination, destination.host_call(*range)?)),
            None => None,
        };
        let accumulate = match self.action {
            TabledAction::Accumulate(reduction, _) => {
                self.elements.of.on_processor(reduction)?.zip(Some(reduction.element().size()))
            }
            _ => None,
        };
        // SAFETY: `checked` found every entry below its places, or an aligned address, and whole elements of a reduction. The bytes that they lead to are readable on one side and
        // writable on the other, and the sides do not overlap (contract of this function).
        unsafe {
            if let Some((destination, to)) = destination {
                let target = (&*destination.of.shared, &to, destination.memory.address());
                host::copy((shared, &call, addresses.memory), target, self.elements.skips);
            } else if let Some((accumulate, unit)) = accumulate {
                host::accumulate(shared, &call, addresses, (accumulate, unit));
            } else if matches!(self.action, TabledAction::Pack(_)) {
                host::run::<true>(shared, &call, addresses);
            } else {
                host::run::<false>(shared, &call, addresses);
            }
        }
        Ok(call.bytes())
    }

    /// # Safety
    ///
    /// The contract of [`TabledTransfer`], until the work is done.
    unsafe fn enqueue_checked(
        &self,
        checked: &CheckedTabled<'a>,
        gpu: &Gpu,
        stream: &Stream,
    ) -> Result<u64, TabledError> {
        let launch = self.launch(checked, gpu)?;
        self.count_use(checked);
        // SAFETY: the contract of this function; the device reaches both ends, and `enqueue` brings tables of the host to it.
        unsafe { launch.enqueue(&self.elements.of.engine, gpu, stream)? };
        Ok(launch.bytes)
    }

    /// Counts the call, if the process records: a copy is a pack of the one type, and an unpack of the other.
    pub(super) fn count_use(&self, checked: &CheckedTabled<'_>) {
        let (shared, bytes) = (&self.elements.of.shared, checked.range.length());
        match (self.action, &checked.destination) {
            (TabledAction::Unpack(_) | TabledAction::Accumulate(..), _) => shared.count_use(Direction::Unpack, bytes),
            (_, destination) => {
                shared.count_use(Direction::Pack, bytes);
                if let Some((destination, _)) = destination {
                    destination.of.shared.count_use(Direction::Unpack, bytes);
                }
            }
        }
    }

    /// The call as a device sees it, which reaches both ends.
    pub(super) fn launch(&self, checked: &CheckedTabled<'a>, gpu: &Gpu) -> Result<TabledLaunch<'a>, TabledError> {
        let bytes = checked.range.length();
        let engine = &self.elements.of.engine;
        engine.check_reach(gpu, "memory", checked.memory.kind())?;
        let other = if checked.destination.is_some() { "destination" } else { "packed bytes" };
        engine.check_reach(gpu, other, checked.other.kind())?;
        let elements = self.elements.device_end(checked.range, checked.memory);
        let (moved, packed) = match (self.action, &checked.destination) {
            (TabledAction::Copy(_), Some((destination, range))) => {
                let end = destination.device_end(*range, checked.other);
                (TabledMove::CopyTo(end.shared), Packed::Elements(end))
            }
            (TabledAction::Unpack(_) | TabledAction::Accumulate(..), _) => {
                (TabledMove::Unpack, Packed::Bytes(checked.other.device_address()))
            }
            _ => (TabledMove::Pack, Packed::Bytes(checked.other.device_address())),
        };
        let over_link = [checked.memory.kind(), checked.other.kind()].contains(&MemoryKind::Pinned);
        let multiprocessors = gpu.device().info().multiprocessors;
        let most = match self.multiprocessors {
            Multiprocessors::AtMost(most) => most.max(1),
            _ if over_link => multiprocessors.div_ceil(LINK_PART),
            _ => u32::MAX,
        };
        let report = match self.report {
            Some(report) => {
                let report = Located::new("report", report)?;
                engine.check_reach(gpu, "report", report.kind())?;
                report.device_address()
            }
            None => 0,
        };
        let copied = self.multiprocessors == Multiprocessors::None;
        let reduction = match self.action {
            TabledAction::Accumulate(reduction, _) if reduction.operation() != Operation::Replace => Some(reduction),
            _ => None,
        };
        if let Some(reduction) = reduction {
            let granularity = elements.shared.granularity;
            let end = elements.shared.most_bytes;
            TabledVariant::accumulating(reduction, granularity, end, false)
                .ok_or(TabledError::Apart { reduction, granularity })?;
        }
        Ok(TabledLaunch { elements, packed, moved, reduction, bytes, most, copied, report })
    }
}

/// The part of a device's multiprocessors that fills the link to the host, as for other transfers.
const LINK_PART: u32 = 8;

impl IndexTable<'_> {
    /// Where a device finds the entries, if they need not be brought there. A table without entries lies nowhere.
    pub(super) fn located(&self) -> Result<Option<Located>, TabledError> {
        match self.source() {
            TableSource::Anywhere { first, length: 1.., .. } => Ok(Some(Located::new("table", first)?)),
            _ => Ok(None),
        }
    }
}
