//! Types with index tables, ready to move.

use super::error::TabledError;
use super::host::{self, HostCall, HostTables};
use super::table::{IndexTable, TableSource};
use crate::cached_type::tabled::{TabledMove, TabledType};
use crate::cpu::Addresses;
use crate::device::Gpu;
use crate::engine::Engine;
use crate::error::PackError;
use crate::memory::{Memory, MemoryMut, Room};
use crate::range::Range;
use dtc_compiler::datatype::{TableKind, TabledDatatype};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::TabledVariant;
use smallvec::SmallVec;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

/// A type with index tables, ready to move. Cheap to clone.
///
/// # Example
///
/// Pages of a cache, gathered by a list of the call:
///
/// ```
/// use dtc_runtime::{Engine, IndexTable};
/// // Tables of up to 3 entries name 4 places of 2 doubles.
/// let pages = Engine::new().commit_tabled(&"table 0 4 3 16 (contiguous 2 double)".parse()?);
/// let cache = [0.0, 0.1, 1.0, 1.1, 2.0, 2.1, 3.0, 3.1];
/// let mut packed = [0.0; 4];
/// assert_eq!(pages.pack(&cache, &[IndexTable::from(&[3, 1])], .., bytemuck::cast_slice_mut(&mut packed))?, 32);
/// assert_eq!(packed, [3.0, 3.1, 1.0, 1.1]);
///
/// let mut other = [0.0; 8];
/// pages.unpack(bytemuck::cast_slice(&packed), .., &[IndexTable::from(&[0, 2])], &mut other)?;
/// assert_eq!(other, [3.0, 3.1, 0.0, 0.0, 1.0, 1.1, 0.0, 0.0]);
/// # use dtc_runtime::bytemuck;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CommittedTabled {
    pub(super) shared: Arc<TabledType>,
    pub(super) datatype: TabledDatatype,
    pub(super) engine: Engine,
}

impl fmt::Debug for CommittedTabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommittedTabled").field("layout", &self.shared.layout).finish_non_exhaustive()
    }
}

impl Engine {
    /// Makes a datatype with index tables usable. Equal types share their kernels, whatever tables their calls have.
    ///
    /// See [`CommittedTabled`] for an example.
    pub fn commit_tabled(&self, datatype: &TabledDatatype) -> CommittedTabled {
        let shared = self.shared.tabled_type_of(datatype);
        CommittedTabled { shared, datatype: datatype.clone(), engine: self.clone() }
    }
}

impl CommittedTabled {
    /// Packed bytes of a call whose tables have these lengths.
    ///
    /// # Errors
    ///
    /// [`TabledError::Tables`] and [`TabledError::Length`].
    ///
    /// ```
    /// let pages = dtc_runtime::Engine::new().commit_tabled(&"table 0 4 3 16 (contiguous 2 double)".parse()?);
    /// assert_eq!(pages.packed_size(&[2])?, 32);
    /// assert_eq!(pages.packed_size(&[4]).unwrap_err().to_string(), "table 0: expected at most 3 entries, found 4");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn packed_size(&self, lengths: &[u64]) -> Result<u64, TabledError> {
        let tables = self.shared.layout.tables();
        if lengths.len() != tables.len() {
            return Err(TabledError::Tables { expected: tables.len(), found: lengths.len() });
        }
        if let Some((table, (&found, facts))) =
            lengths.iter().zip(tables).enumerate().find(|(_, (length, facts))| **length > facts.most)
        {
            return Err(TabledError::Length { table, most: facts.most, found });
        }
        Ok(self.shared.layout.size(lengths).unwrap_or(0))
    }

    /// Packs bytes of elements in host memory; returns how many. Entries below 0 are errors: see [`TabledElements::skipping`](super::TabledElements::skipping) for
    /// calls that skip them.
    ///
    /// # Errors
    ///
    /// The tables do not fit the type, which then has no addresses; the elements reach outside of the memory, whatever the tables hold; the range
    /// begins behind the packed bytes, or `packed` is too short for it.
    ///
    /// See [`CommittedTabled`] for an example.
    pub fn pack<'m>(
        &self,
        memory: impl Into<Memory<'m>>,
        tables: &[IndexTable<'_>],
        range: impl RangeBounds<u64>,
        packed: &mut [u8],
    ) -> Result<usize, TabledError> {
        let memory = memory.into();
        let call = self.safe_call(memory.room(), tables, range, packed.len())?;
        let addresses = Addresses { memory: memory.address().cast_mut(), packed: packed.as_mut_ptr() };
        // SAFETY: `safe_call` checked that all places lie in the memory, which is only read, that the range fits the packed bytes, and that
        // entries are below the places. A mutable slice overlaps no other memory.
        unsafe { host::run::<true>(&self.shared, &call, addresses) };
        self.shared.count_use(Direction::Pack, call.bytes());
        Ok(call.bytes() as usize)
    }

    /// Unpacks bytes into elements in host memory; the counterpart of [`CommittedTabled::pack`]. Where a place occurs twice in the tables, one of both wins.
    ///
    /// # Errors
    ///
    /// As for [`CommittedTabled::pack`].
    ///
    /// See [`CommittedTabled`] for an example.
    pub fn unpack<'m>(
        &self,
        packed: &[u8],
        range: impl RangeBounds<u64>,
        tables: &[IndexTable<'_>],
        memory: impl Into<MemoryMut<'m>>,
    ) -> Result<usize, TabledError> {
        let mut memory = memory.into();
        let call = self.safe_call(memory.room(), tables, range, packed.len())?;
        let addresses = Addresses { memory: memory.address(), packed: packed.as_ptr().cast_mut() };
        // SAFETY: as for `pack`; the packed bytes are only read.
        unsafe { host::run::<false>(&self.shared, &call, addresses) };
        self.shared.count_use(Direction::Unpack, call.bytes());
        Ok(call.bytes() as usize)
    }

    /// Has the kernels on a device that whole packs and unpacks between allocations need, compiled now if they are in no store: for callers who will
    /// capture their first call. Under every policy; without it, generic kernels serve the first calls.
    ///
    /// # Errors
    ///
    /// A kernel cannot be compiled, or CUDA refuses.
    ///
    /// ```
    /// let engine = dtc_runtime::Engine::new();
    /// let pages = engine.commit_tabled(&"table 0 4 3 16 (contiguous 2 double)".parse()?);
    /// if let Ok(gpu) = engine.gpu(0) {
    ///     pages.prepare(&gpu)?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(&self, gpu: &Gpu) -> Result<(), TabledError> {
        let variant = TabledVariant::new(self.shared.granularity, self.shared.most_bytes, false);
        for moved in [TabledMove::Pack, TabledMove::Unpack] {
            self.shared.kernel(&gpu.state, moved, variant)?;
        }
        Ok(())
    }

    /// The same for copies to another type.
    ///
    /// # Errors
    ///
    /// As for [`CommittedTabled::prepare`].
    ///
    /// ```
    /// # fn ready(gpu: &dtc_runtime::Gpu, from: &dtc_runtime::CommittedTabled, to: &dtc_runtime::CommittedTabled) -> Result<(), dtc_runtime::TabledError> {
    /// from.prepare_copy(to, gpu)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_copy(&self, target: &CommittedTabled, gpu: &Gpu) -> Result<(), TabledError> {
        let (one, other) = (&self.shared, &target.shared);
        let (word, most) = (one.granularity.min(other.granularity), one.most_bytes.max(other.most_bytes));
        one.kernel(&gpu.state, TabledMove::CopyTo(other), TabledVariant::new(word, most, false))?;
        Ok(())
    }

    /// A call in host memory, which lies within the memory whatever the tables hold.
    pub(super) fn safe_call<'t>(
        &self,
        room: Room,
        tables: &[IndexTable<'t>],
        range: impl RangeBounds<u64>,
        packed: usize,
    ) -> Result<HostCall<'t>, TabledError> {
        let facts = self.shared.layout.tables();
        if let Some(table) = facts.iter().position(|facts| matches!(facts.kind, TableKind::Addresses(_))) {
            let expected = "indices: addresses are for calls that are unsafe";
            return Err(TabledError::Kind { table, expected, found: "addresses" });
        }
        let range = self.checked_range(tables, Range::elements(1).bytes(range), false)?;
        let tables = self.host_tables(tables)?;
        let Room { length, origin } = room;
        if origin > length {
            return Err(PackError::Origin { origin, length }.into());
        }
        let (low, high) = (i128::from(self.shared.layout.true_lb()), i128::from(self.shared.layout.true_ub()));
        let (before, after) = (origin, length - origin);
        if -low > before as i128 || high > after as i128 {
            return Err(PackError::Bounds { low, high, before, after }.into());
        }
        if range.length() > packed as u64 {
            return Err(PackError::Packed { expected: range.length(), found: packed }.into());
        }
        Ok(HostCall { tables, first: range.offset(), end: range.offset() + range.length() })
    }

    /// The range of a call, cut to its packed bytes; every table that the processor may read is checked.
    pub(super) fn checked_range(
        &self,
        tables: &[IndexTable<'_>],
        range: Range,
        skips: bool,
    ) -> Result<Range, TabledError> {
        let lengths: SmallVec<[u64; 8]> = tables.iter().map(IndexTable::len).collect();
        let total = self.packed_size(&lengths)?;
        for (number, (table, facts)) in tables.iter().zip(self.shared.layout.tables()).enumerate() {
            table.check(number, facts, skips)?;
        }
        if range.offset() > total {
            return Err(PackError::Offset { offset: range.offset(), total }.into());
        }
        Ok(range.within(total))
    }

    /// The entries of all tables, which lie in host memory.
    pub(super) fn host_tables<'t>(&self, tables: &[IndexTable<'t>]) -> Result<HostTables<'t>, TabledError> {
        let host = |(table, each): (usize, &IndexTable<'t>)| match each.source() {
            TableSource::Host(entries) => Ok(entries),
            TableSource::Anywhere { .. } => {
                Err(TabledError::Kind { table, expected: "a slice, for a call in host memory", found: "an address" })
            }
        };
        tables.iter().enumerate().map(host).collect()
    }
}
