//! Digests: what compiled code is found by.
//!
//! A fingerprint identifies the bytes of a type, and can be forged. A digest is the BLAKE3 hash of everything that plans of a
//! layout depend on: code that was compiled for a layout with the same digest moves the bytes of this one.

use super::{Edge, Layout, Node};

impl Layout {
    /// The hash of everything that plans of the layout depend on: its nodes, root and extent; and, where the layout is not the
    /// canonical form, the length of its description, by which plans decide how much of it they write out.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let rows = |stride: u64| {
    ///     Layout::parse(&format!("layout lb 0 extent 90 {{\n  %0 = dense 4 x byte\n  %1 = stream 9 x {stride} of %0\n  root %1\n}}"))
    /// };
    /// assert_eq!(rows(10)?.digest(), rows(10)?.digest());
    /// assert_ne!(rows(10)?.digest(), rows(9)?.digest());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn digest(&self) -> [u8; 32] {
        let mut text = Encoding::default();
        text.number(self.nodes.len() as u64);
        self.nodes.iter().for_each(|node| text.node(node));
        text.edge(self.root);
        text.number(self.extent as u64);
        text.number(if self.exact { 0 } else { self.entries });
        *blake3::hash(&text.0).as_bytes()
    }
}

/// The bytes that are hashed. They tell where each part ends, so different layouts have different ones.
#[derive(Default)]
struct Encoding(Vec<u8>);

impl Encoding {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Dense { count, kind } => {
                self.0.extend_from_slice(&[0, *kind as u8]);
                self.number(*count);
            }
            Node::Stream { count, stride, child } => {
                self.0.push(1);
                self.number(*count);
                self.number(*stride as u64);
                self.edge(*child);
            }
            Node::Indexed { offsets, child } => {
                self.0.push(2);
                self.list(offsets.iter().copied());
                self.edge(*child);
            }
            Node::Runs { runs, kind } => {
                self.0.extend_from_slice(&[3, *kind as u8]);
                self.list(runs.iter().map(|run| run.offset));
                self.list(runs.iter().map(|run| run.count as i64));
            }
            Node::Record { parts } => {
                self.0.push(4);
                self.number(parts.len() as u64);
                parts.iter().for_each(|part| self.edge(*part));
            }
        }
    }

    fn edge(&mut self, edge: Edge) {
        self.number(edge.offset as u64);
        self.number(edge.node.index() as u64);
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A list: its length, the bytes of an entry, and the entries in as few bytes as all of them fit, since hashing takes longest.
    fn list(&mut self, numbers: impl ExactSizeIterator<Item = i64> + Clone) {
        self.number(numbers.len() as u64);
        // Ones in place of the leading bits that equal the sign.
        let bits = numbers.clone().fold(0, |bits, number| bits | (number ^ (number >> 63)) as u64);
        match u64::BITS - bits.leading_zeros() {
            ..8 => self.entries(numbers.map(|number| (number as i8).to_le_bytes())),
            8..16 => self.entries(numbers.map(|number| (number as i16).to_le_bytes())),
            16..32 => self.entries(numbers.map(|number| (number as i32).to_le_bytes())),
            _ => self.entries(numbers.map(i64::to_le_bytes)),
        }
    }

    fn entries<const BYTES: usize>(&mut self, numbers: impl ExactSizeIterator<Item = [u8; BYTES]>) {
        self.0.push(BYTES as u8);
        let at = self.0.len();
        self.0.resize(at + numbers.len() * BYTES, 0);
        for (entry, number) in self.0[at..].as_chunks_mut().0.iter_mut().zip(numbers) {
            *entry = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn whatever_differs_has_another_digest() {
        let texts = [
            "extent 64 {\n %0 = dense 3 x byte\n root %0\n}",
            "extent 65 {\n %0 = dense 3 x byte\n root %0\n}",
            "extent 64 {\n %0 = dense 3 x byte\n root 1: %0\n}",
            "extent 64 {\n %0 = dense 3 x i16\n root %0\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = stream 2 x 7 of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = stream 2 x -7 of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 7] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 7] of 1: %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 -121] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 127] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 128] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 -128] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 65664] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 4294967424] of %0\n root %1\n}",
            "extent 64 {\n %0 = runs [(0 3) (7 3)] x byte\n root %0\n}",
            "extent 64 {\n %0 = runs [(0 3) (7 4)] x byte\n root %0\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = record [0: %0, 7: %0]\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = record [0: %0, 7: %0, 14: %0]\n root %1\n}",
        ];
        let layouts = texts.map(|text| Layout::parse(&format!("layout lb 0 {text}")).unwrap());
        let digests: HashSet<_> = layouts.iter().map(Layout::digest).collect();
        assert_eq!(digests.len(), texts.len());
    }

    /// Plans write out as much of a kept structure as its description is long.
    #[test]
    fn lengths_of_descriptions_count_where_structure_was_kept() {
        let text = "layout lb 0 extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 7 11] of %0\n root %1\n}";
        let layout = Layout::parse(text).unwrap();
        let longer = |layout: &Layout| layout.clone().with_entries(1000).digest();
        assert_ne!(longer(&layout), layout.digest());
        let canonical = crate::canonicalise(&layout).layout;
        assert!(canonical.exact());
        assert_eq!(longer(&canonical), canonical.digest());
    }
}
