//! Types whose displacements come with the call.

use super::constructor::MOST_TABLES;
use super::{Constructor, Datatype, DatatypeError, Facts, Nodes};
use std::fmt;

/// Axes by table of a type, at most: what walks such a type may recurse.
const MOST_AXES: usize = 256;

/// Parts of all records of the normal form, at most: records in records are flat, so that a short description may have 2^60. Plain sources take
/// a quarter of them.
const MOST_PARTS: u64 = 1 << 16;

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

/// Parts that the records of the normal form have, or more. The root is the last node.
fn parts_of(nodes: &Nodes<'_>) -> u64 {
    // Of each node, the parts of its record, and whether one that is no record has it.
    let (mut parts, mut whole) = (vec![1u64; nodes.len()], vec![false; nodes.len()]);
    for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.is_tabled()) {
        let mut all = 0u64;
        let mut add = |child: &Datatype, copies: i64| {
            let child = nodes.place(child);
            whole[child] |= copies > 1;
            all = all.saturating_add(if copies == 1 { parts[child] } else { u64::from(copies > 0) });
        };
        let only = node.children().first();
        match (node.constructor(), only) {
            (Constructor::Struct { blocklengths, .. }, _) => {
                node.children().iter().zip(blocklengths.iter()).for_each(|(child, &copies)| add(child, copies));
            }
            (Constructor::Indexed { blocklengths, .. } | Constructor::Hindexed { blocklengths, .. }, Some(child)) => {
                blocklengths.iter().for_each(|&copies| add(child, copies));
            }
            (Constructor::Darray { gsizes, .. }, Some(child)) => {
                // Each axis may have whole blocks and a shorter one.
                add(child, 1);
                add(child, 2);
                all = all.saturating_mul(1u64.checked_shl(gsizes.len() as u32).unwrap_or(u64::MAX));
            }
            (constructor, Some(child)) => add(child, copies_of(constructor)),
            (_, None) => {}
        }
        parts[place] = all;
    }
    if let Some(last) = whole.last_mut() {
        *last = true;
    }
    let records = parts.iter().zip(whole).filter(|&(_, whole)| whole);
    records.fold(0, |sum, (&parts, _)| sum.saturating_add(parts))
}

/// Copies that a constructor with one child makes of it, each like the others: 1 if it is the child, at most at another offset.
fn copies_of(constructor: &Constructor) -> i64 {
    match constructor {
        Constructor::Contiguous { count } => *count,
        Constructor::Vector { count, blocklength, .. } | Constructor::Hvector { count, blocklength, .. } => {
            count.saturating_mul(*blocklength)
        }
        Constructor::IndexedBlock { blocklength, displacements: list }
        | Constructor::HindexedBlock { blocklength, displacements_bytes: list } => {
            blocklength.saturating_mul(list.len() as i64)
        }
        Constructor::Subarray { subsizes, .. } => subsizes.iter().fold(1, |all, &size| all.saturating_mul(size)),
        Constructor::Table { .. } | Constructor::Addresses { .. } => i64::MAX,
        _ => 1,
    }
}

impl TabledDatatype {
    /// A type whose constructors may be those of index tables.
    ///
    /// # Errors
    ///
    /// The numbers of its tables are not 0, 1 and so on without a gap, one is used for indices and for addresses, or there are too many axes by table or
    /// parts around them.
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
        let parts = parts_of(&nodes);
        if parts > MOST_PARTS {
            return Err(DatatypeError::new("table", format!("at most {MOST_PARTS} parts around axes by table"), parts));
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

    /// At most how many nodes and list entries the description writes down.
    pub fn most_entries(&self) -> u64 {
        self.root.most_entries()
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
