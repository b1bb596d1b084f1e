//! What both texts of a type with index tables have in common: names, sizes and what is said above them.

use super::outline::{Outline, TooLarge};
use super::text::wrapped;
use crate::datatype::{TableKind, TabledDatatype};
use crate::tabled::{TabledEdge, TabledLayout, TabledNode};

/// Nodes and parts of records that a text may have at most, beside those of its fixed layouts.
const MOST_STATEMENTS: u64 = 16_384;

/// Entries that the lists above fixed layouts may have at most.
const MOST_ENTRIES: u64 = 1 << 20;

/// Characters of the longest notation that is repeated.
const LONGEST: usize = 2_000;

/// Most columns of a line.
const COLUMNS: usize = 110;

/// A type with index tables whose nodes become functions, one each.
pub(super) struct TabledOutline {
    layout: TabledLayout,
    fixed: Vec<Outline>,
    /// Packed bytes of each node, unless they depend on the tables.
    sizes: Vec<Option<u64>>,
}

impl TabledOutline {
    pub(super) fn new(datatype: &TabledDatatype) -> Result<TabledOutline, TooLarge> {
        let layout = TabledLayout::new(datatype);
        let (mut statements, mut entries) = (0, 0);
        for node in layout.nodes() {
            statements += 1;
            match node {
                TabledNode::Record { parts } => statements += parts.len() as u64,
                TabledNode::Indexed { offsets, .. } => entries += offsets.len() as u64,
                TabledNode::Fixed { .. }
                | TabledNode::Stream { .. }
                | TabledNode::Table { .. }
                | TabledNode::Addresses { .. } => {}
            }
        }
        for (what, found, most) in
            [("nodes and parts of records", statements, MOST_STATEMENTS), ("entries of lists", entries, MOST_ENTRIES)]
        {
            if found > most {
                return Err(TooLarge { what, found, most });
            }
        }
        let fixed = layout.fixed_layouts().iter().map(Outline::new).collect::<Result<Vec<_>, _>>()?;
        let sizes = sizes(&layout);
        Ok(TabledOutline { layout, fixed, sizes })
    }

    pub(super) fn layout(&self) -> &TabledLayout {
        &self.layout
    }

    /// The outlines of the fixed layouts, by their places.
    pub(super) fn fixed(&self) -> &[Outline] {
        &self.fixed
    }

    /// The nodes, children first, with their numbers.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (usize, &TabledNode)> {
        self.layout.nodes().iter().enumerate()
    }

    /// Packed bytes of a node, in a text where `size[N]` holds those of a node that depend on the tables.
    pub(super) fn size(&self, child: TabledEdge) -> String {
        let node = child.node.index();
        self.sizes[node].map_or_else(|| format!("size[{node}]"), |bytes| bytes.to_string())
    }

    /// The nodes whose packed bytes depend on the tables, each with the expression that says how many they are.
    pub(super) fn sizes_by_tables(&self, length: impl Fn(usize) -> String) -> Vec<(usize, String)> {
        let product = |count: String, child: &TabledEdge| format!("{count} * {}", self.size(*child));
        let expression = |node: &TabledNode| match node {
            // Its size is a constant.
            TabledNode::Fixed { .. } => String::new(),
            TabledNode::Stream { count, child, .. } => product(count.to_string(), child),
            TabledNode::Indexed { offsets, child } => product(offsets.len().to_string(), child),
            TabledNode::Table { table, child, .. } | TabledNode::Addresses { table, child } => {
                product(length(*table), child)
            }
            TabledNode::Record { parts } => parts.iter().map(|part| self.size(*part)).collect::<Vec<_>>().join(" + "),
        };
        let by_tables = |&(number, _): &(usize, &TabledNode)| self.sizes[number].is_none();
        self.nodes().filter(by_tables).map(|(number, node)| (number, expression(node))).collect()
    }

    /// Each table with its bounds, as a member of a structure: what the entries are, and a remark.
    pub(super) fn tables(&self) -> impl Iterator<Item = (usize, TableKind, String)> {
        self.layout.tables().iter().enumerate().map(|(number, facts)| (number, facts.kind, facts.to_string()))
    }

    /// The first eight bytes of the hash, in hexadecimal digits.
    pub(super) fn mark(&self) -> String {
        self.layout.hash().chars().take(16).collect()
    }
}

/// A remark that names the datatype and its hash, with more lines behind.
pub(super) fn tabled_remark(
    first: &str,
    form: &str,
    datatype: &TabledDatatype,
    outline: &TabledOutline,
    more: &str,
) -> String {
    let layout = outline.layout();
    let mut text = format!("/*\n * {first}\n *\n");
    let notation = datatype.to_string();
    if notation.len() <= LONGEST {
        for line in notation.lines() {
            text.push_str(&wrapped(line.split(' '), " *     ", COLUMNS));
        }
    } else {
        text.push_str(" *     a datatype that is too long to repeat\n");
    }
    text.push_str(" *\n");
    for (number, _, bounds) in outline.tables() {
        text.push_str(&format!(" * Table {number}: {bounds}.\n"));
    }
    let hash = layout.hash();
    text.push_str(&format!(
        " * At most {} packed bytes, from bytes {} to {} of memory, whatever the tables hold.\n * Hash {hash}\n *\n",
        layout.most_bytes(),
        layout.true_lb(),
        layout.true_ub()
    ));
    for line in more.lines() {
        text.push_str(format!(" * {line}").trim_end());
        text.push('\n');
    }
    let version = env!("CARGO_PKG_VERSION");
    text.push_str(&format!(" *\n * Written by dtc {version}, dtc emit --as {form}; no other file is needed.\n */\n"));
    text
}

fn sizes(layout: &TabledLayout) -> Vec<Option<u64>> {
    let mut sizes: Vec<Option<u64>> = Vec::with_capacity(layout.nodes().len());
    for node in layout.nodes() {
        let of = |child: &TabledEdge| sizes[child.node.index()];
        let size = match node {
            TabledNode::Fixed { fixed } => Some(layout.fixed_layouts()[*fixed].size()),
            TabledNode::Stream { count, child, .. } => of(child).map(|bytes| count * bytes),
            TabledNode::Indexed { offsets, child } => of(child).map(|bytes| offsets.len() as u64 * bytes),
            TabledNode::Table { .. } | TabledNode::Addresses { .. } => None,
            TabledNode::Record { parts } => parts.iter().map(of).sum(),
        };
        sizes.push(size);
    }
    sizes
}
