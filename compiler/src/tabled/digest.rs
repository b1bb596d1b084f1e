//! The identity of types with index tables.

use super::{TabledLayout, TabledNode};
use crate::datatype::{TableFacts, TableKind};

impl TabledLayout {
    /// The identity of the type: equal for constructions with one normal form, which have the same bytes for all tables.
    ///
    /// The hash is that of the normal form: offsets are at the root, streams that continue each other are one, records in records are flat, and
    /// what no table moves is known by its own hash, which every description of the same bytes has. Equalities that depend on how nodes above tables
    /// are cut are not found: a stream of two against a record of two, a list of offsets that are a stride apart, neighbours in a record without tables
    /// that were described apart.
    ///
    /// ```
    /// use dtc_compiler::datatype::TabledDatatype;
    /// use dtc_compiler::tabled::TabledLayout;
    /// let digest = |text: &str| Ok::<_, dtc_compiler::TextError>(TabledLayout::new(&text.parse::<TabledDatatype>()?).digest());
    /// assert_eq!(digest("table 0 8 4 64 (contiguous 8 double)")?, digest("table 0 8 4 64 (vector 2 32 32 byte)")?);
    /// assert_ne!(digest("table 0 8 4 64 (contiguous 8 double)")?, digest("table 0 9 4 64 (contiguous 8 double)")?);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn digest(&self) -> [u8; 32] {
        digest(self)
    }

    /// The identity in hexadecimal digits.
    ///
    /// ```
    /// use dtc_compiler::tabled::TabledLayout;
    /// let layout = TabledLayout::new(&"table 0 8 4 64 double".parse()?);
    /// assert_eq!(layout.hash().len(), 64);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn hash(&self) -> String {
        self.digest().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The BLAKE3 hash of a normal form.
fn digest(layout: &TabledLayout) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let mut put = |number: u64| {
        hasher.update(&number.to_le_bytes());
    };
    put(layout.root.offset as u64);
    put(layout.tables.len() as u64);
    for TableFacts { kind, most } in &layout.tables {
        let (tag, number) = match kind {
            TableKind::Places(places) => (0, *places),
            TableKind::Addresses(alignment) => (1, *alignment),
        };
        [tag, number, *most].into_iter().for_each(&mut put);
    }
    put(layout.nodes.len() as u64);
    for node in &layout.nodes {
        match node {
            TabledNode::Fixed { fixed } => {
                put(0);
                let digest = layout.fixed_layouts[*fixed].digest();
                digest.as_chunks::<8>().0.iter().for_each(|word| put(u64::from_le_bytes(*word)));
            }
            TabledNode::Stream { count, stride, .. } => [1, *count, *stride as u64].into_iter().for_each(&mut put),
            TabledNode::Indexed { offsets, .. } => {
                [2, offsets.len() as u64].into_iter().for_each(&mut put);
                offsets.iter().for_each(|&offset| put(offset as u64));
            }
            TabledNode::Table { table, places, pitch, .. } => {
                [3, *table as u64, *places, *pitch as u64].into_iter().for_each(&mut put);
            }
            TabledNode::Addresses { table, .. } => [4, *table as u64].into_iter().for_each(&mut put),
            TabledNode::Record { parts } => [5, parts.len() as u64].into_iter().for_each(&mut put),
        }
        for edge in node.edges() {
            put(edge.offset as u64);
            put(edge.node.index() as u64);
        }
    }
    *hasher.finalize().as_bytes()
}
