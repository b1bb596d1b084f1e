//! Unpacks with an operation.

use super::committed::CommittedTabled;
use super::error::TabledError;
use super::host;
use super::table::IndexTable;
use crate::cpu::{self, Addresses};
use crate::error::AccumulateError;
use crate::memory::MemoryMut;
use crate::range::Range;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_compiler::plan::Direction;
use dtc_microkernels::accumulate::{AccumulateFn, select_accumulate};
use std::ops::RangeBounds;

impl CommittedTabled {
    /// Combines packed bytes with elements in host memory: each becomes itself OP the packed one. Returns how many bytes were read. Where a place
    /// occurs twice in the tables, its value is not defined.
    ///
    /// # Errors
    ///
    /// As for [`CommittedTabled::unpack`], and [`TabledError::Accumulate`] for a range, or a part of the type, that does not consist of whole elements.
    ///
    /// ```
    /// use dtc_runtime::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::{Engine, IndexTable, bytemuck};
    /// let rows = Engine::new().commit_tabled(&"table 0 4 3 16 (contiguous 2 double)".parse()?);
    /// let sum = Reduction::new(Operation::Sum, Element::F64)?;
    /// let mut forces = [1.0; 8];
    /// rows.accumulate(sum, bytemuck::cast_slice(&[0.5, 0.25]), .., &[IndexTable::from(&[2])], &mut forces)?;
    /// assert_eq!(forces, [1.0, 1.0, 1.0, 1.0, 1.5, 1.25, 1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accumulate<'m>(
        &self,
        reduction: Reduction,
        packed: &[u8],
        range: impl RangeBounds<u64>,
        tables: &[IndexTable<'_>],
        memory: impl Into<MemoryMut<'m>>,
    ) -> Result<usize, TabledError> {
        let mut memory = memory.into();
        let call = self.safe_call(memory.room(), tables, range, packed.len())?;
        self.check_reduction(reduction, Range::elements(1).bytes(call.first..call.end))?;
        let addresses = Addresses { memory: memory.address(), packed: packed.as_ptr().cast_mut() };
        let accumulate = self.on_processor(reduction)?;
        // SAFETY: `safe_call` checked that all places lie in the memory, that the range fits the packed bytes, and that entries are below the places;
        // `check_reduction` that both are whole elements. The packed bytes are only read, and a mutable slice overlaps no other memory.
        unsafe {
            match accumulate {
                Some(accumulate) => {
                    host::accumulate(&self.shared, &call, addresses, (accumulate, reduction.element().size()));
                }
                None => host::run::<false>(&self.shared, &call, addresses),
            }
        }
        self.shared.count_use(Direction::Unpack, call.bytes());
        Ok(call.bytes() as usize)
    }

    /// What the processor computes a reduction by; nothing for one that is a plain unpack.
    pub(super) fn on_processor(&self, reduction: Reduction) -> Result<Option<AccumulateFn>, TabledError> {
        match select_accumulate(cpu::host().level, reduction) {
            None if reduction.operation() != Operation::Replace => Err(AccumulateError::Unsupported(reduction).into()),
            accumulate => Ok(accumulate),
        }
    }

    /// Refuses what does not consist of whole elements.
    pub(super) fn check_reduction(&self, reduction: Reduction, range: Range) -> Result<(), TabledError> {
        let element = reduction.element();
        let parts = self.shared.layout.fixed_layouts().iter().map(|fixed| ("size of the type", fixed.size()));
        let multiples = [("offset", range.offset()), ("length", range.length())];
        match parts.chain(multiples).find(|(_, found)| !found.is_multiple_of(element.size())) {
            Some((field, found)) => Err(AccumulateError::Multiple { field, element, found }.into()),
            None => Ok(()),
        }
    }
}
