//! What is known of a type with index tables before a call.

use super::committed::CommittedTabled;
use super::error::TabledError;
use super::table::IndexTable;
use crate::cpu::Program;
use crate::range::Range;
use dtc_compiler::codegen::cuda::TabledSides;
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::plan::Plan;
use dtc_compiler::plan::gpu::TabledVariant;
use dtc_compiler::tabled::{TabledLayout, TabledRoofline};

impl CommittedTabled {
    /// The type as described.
    pub fn datatype(&self) -> &TabledDatatype {
        &self.datatype
    }

    /// The normal form, which equal types share.
    ///
    /// ```
    /// let pages = dtc_runtime::Engine::new().commit_tabled(&"table 0 4 3 16 (contiguous 2 double)".parse()?);
    /// assert!(pages.layout().to_string().contains("table 0 below 4 x 16"));
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    pub fn layout(&self) -> &TabledLayout {
        &self.shared.layout
    }

    /// How the layouts below the tables are moved in host memory, in the order of [`TabledLayout::fixed_layouts`]: each for every entry that leads
    /// to it.
    ///
    /// ```
    /// let pages = dtc_runtime::Engine::new().commit_tabled(&"table 0 4 3 64 (vector 2 1 2 double)".parse()?);
    /// assert!(pages.plans().next().unwrap().to_string().contains("rows 2 x 16 of 8 bytes"));
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.shared.programs().iter().map(Program::plan)
    }

    /// The kernel of packs and unpacks on a GPU between memory that is aligned as allocations are; nothing for types with too many parts by table,
    /// which generic kernels serve.
    ///
    /// ```
    /// let pages = dtc_runtime::Engine::new().commit_tabled(&"table 0 4 3 16 (contiguous 2 double)".parse()?);
    /// assert_eq!(pages.kernel().unwrap().word, 16);
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    pub fn kernel(&self) -> Option<TabledVariant> {
        let shared = &self.shared;
        let variant = TabledVariant::new(shared.granularity, shared.most_bytes, false);
        TabledSides::Pack(&shared.layout).has_kernel().then_some(variant)
    }

    /// What a call with these tables moves, and the least traffic of it on a GPU. `address`: of the memory; entries below 0 are skipped. Nothing
    /// for calls of more than 4,194,304 runs.
    ///
    /// # Errors
    ///
    /// The tables do not fit the type, or lie at addresses instead of in slices.
    ///
    /// ```
    /// use dtc_runtime::IndexTable;
    /// let rows = dtc_runtime::Engine::new().commit_tabled(&"table 0 64 8 32 (contiguous 4 double)".parse()?);
    /// let found = rows.roofline(&[IndexTable::from(&[7, 3, 4, -1])], 0)?.unwrap();
    /// assert_eq!((found.bytes, found.pieces), (96, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn roofline(&self, tables: &[IndexTable<'_>], address: u64) -> Result<Option<TabledRoofline>, TabledError> {
        self.checked_range(tables, Range::elements(1), true)?;
        Ok(TabledRoofline::of(&self.shared.layout, &self.host_tables(tables)?, address))
    }
}
