//! Types whose displacements come with the call.

use super::constructor::MOST_TABLES;
use super::{Constructor, Datatype, DatatypeError, Facts};
use std::fmt;

/// Axes by table of a type, at most: what walks such a type may recurse.
const MOST_AXES: usize = 256;

/// A datatype some of whose displacements come with the call: an axis of blocks at `table[i] * pitch`, or at addresses.
///
/// The constructors are those of MPI and two more, [`Constructor::Table`] and [`Constructor::Addresses`], which stand over any
/// child and under any parent. A type describes every call: its bounds are those of all places that a table may name, its size is that
/// of the longest tables. Several axes may follow one table.
///
/// # Example
///
/// The pages of a cache, keys and values in halves of it, 16 tokens of 8 heads of 128 halves each:
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TableKind, TypeBuilder};
/// let (places, page) = (1024, 16 * 8 * 128 * 2);
/// let mut types = TypeBuilder::new();
/// let byte = types.named(Predefined::BYTE);
/// let tokens = types.contiguous(page, byte)?;
/// let pages = types.table(0, places, 64, page, tokens)?;
/// let cache = types.hvector(2, 1, places * page, pages)?;
/// assert!(types.finish(cache).is_err());
/// let cache = types.finish_tabled(cache)?;
/// assert_eq!(cache.tables()[0].kind, TableKind::Places(1024));
/// assert_eq!(cache.facts().extent(), 2 * places * page);
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Clone)]
pub struct TabledDatatype {
    root: Datatype,
    tables: Vec<TableFacts>,
}

/// What a table of a call holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// Indices of places: entries are below this number.
    Places(u64),
    /// Addresses of bytes, each a multiple of this power of two.
    Addresses(u64),
}

/// A table as all axes that follow it need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableFacts {
    /// What it holds.
    pub kind: TableKind,
    /// How many entries it has, at most.
    pub most: u64,
}

impl fmt::Display for TableFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TableKind::Places(places) => write!(f, "at most {} indices below {places}", self.most),
            TableKind::Addresses(alignment) => write!(f, "at most {} addresses, multiples of {alignment}", self.most),
        }
    }
}

impl TabledDatatype {
    /// A type whose constructors may be those of index tables.
    ///
    /// # Errors
    ///
    /// The numbers of its tables are not 0, 1 and so on without a gap, one is used for indices and for addresses, or there are too many axes by table.
    pub(super) fn of(root: Datatype) -> Result<TabledDatatype, DatatypeError> {
        let mut found: [Option<TableFacts>; MOST_TABLES] = [None; MOST_TABLES];
        let nodes = root.nodes();
        let axes = nodes.iter().filter(|node| node.constructor().is_table()).count();
        if axes > MOST_AXES {
            return Err(DatatypeError::new("table", format!("at most {MOST_AXES} axes by table"), axes));
        }
        for node in nodes.iter() {
            let (table, facts) = match *node.constructor() {
                Constructor::Table { table, places, most, .. } => {
                    (table, TableFacts { kind: TableKind::Places(places as u64), most: most as u64 })
                }
                Constructor::Addresses { table, most, alignment } => {
                    (table, TableFacts { kind: TableKind::Addresses(alignment as u64), most: most as u64 })
                }
                _ => continue,
            };
            let known = found[table as usize].get_or_insert(facts);
            let kind = match (known.kind, facts.kind) {
                (TableKind::Places(places), TableKind::Places(others)) => TableKind::Places(places.min(others)),
                (TableKind::Addresses(alignment), TableKind::Addresses(other)) => {
                    TableKind::Addresses(alignment.max(other))
                }
                _ => {
                    let expected = format!("table {table} to list either indices or addresses");
                    return Err(DatatypeError::new(node.constructor().name(), expected, "both"));
                }
            };
            *known = TableFacts { kind, most: known.most.min(facts.most) };
        }
        let last = found.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        if let Some(gap) = found[..last].iter().position(Option::is_none) {
            let expected = format!("tables 0 to {}, each used", last - 1);
            return Err(DatatypeError::new("table.table", expected, format!("none of number {gap}")));
        }
        let tables = found.into_iter().flatten().collect();
        drop(nodes);
        Ok(TabledDatatype { root, tables })
    }

    /// The tables of a call, in their order.
    pub fn tables(&self) -> &[TableFacts] {
        &self.tables
    }

    /// The type, if it has no tables.
    ///
    /// ```
    /// use dtc_compiler::datatype::TabledDatatype;
    /// assert!("vector 3 1 2 int".parse::<TabledDatatype>()?.without_tables().is_some());
    /// assert!("table 0 8 4 64 double".parse::<TabledDatatype>()?.without_tables().is_none());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn without_tables(&self) -> Option<Datatype> {
        self.tables.is_empty().then(|| self.root.clone())
    }

    /// Bounds for all tables that a call may have, and the size for the longest.
    pub fn facts(&self) -> &Facts {
        self.root.facts()
    }

    /// The graph, whose nodes have the constructors of index tables.
    pub(crate) fn root(&self) -> &Datatype {
        &self.root
    }
}

impl From<Datatype> for TabledDatatype {
    /// A type without tables.
    fn from(root: Datatype) -> TabledDatatype {
        TabledDatatype { root, tables: Vec::new() }
    }
}

impl fmt::Display for TabledDatatype {
    /// The notation of [`text`](super::text).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl fmt::Debug for TabledDatatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TabledDatatype({self})")
    }
}
