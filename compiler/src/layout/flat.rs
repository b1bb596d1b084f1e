//! The flat form of layouts: bytes that digests are taken of, and that bundles hold.
//!
//! It has neither header nor checksum, which bundles have, and lists of equal width, which are read several times as fast as those
//! of [`wire`](super::wire).

use super::wire::WireLayout;
use super::{Edge, Kind, Layout, Node, NodeId, Run};
use std::sync::Arc;

impl Layout {
    /// Nodes, root and extent as bytes. They tell where each part ends, so different layouts have different ones.
    pub(crate) fn to_flat(&self) -> Vec<u8> {
        let mut flat = Writer::default();
        flat.number(self.nodes.len() as u64);
        self.nodes.iter().for_each(|node| flat.node(node));
        flat.edge(self.root);
        flat.number(self.extent as u64);
        flat.0
    }

    /// The layout of these bytes, with this lower bound. `None` if they are none.
    pub(crate) fn from_flat(bytes: &[u8], lb: i64) -> Option<Layout> {
        let mut flat = Reader(bytes);
        let mut nodes = Vec::new();
        for _ in 0..flat.number()? {
            nodes.push(flat.node()?);
        }
        let (root, extent) = (flat.edge()?, flat.number()? as i64);
        if !flat.0.is_empty() {
            return None;
        }
        WireLayout { lb, extent, nodes, root }.check().ok()
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
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

/// The bytes that are still to be read. Every method returns `None` at the first wrong one.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn node(&mut self) -> Option<Node> {
        Some(match self.take::<1>()? {
            [0] => {
                let kind = self.kind()?;
                Node::Dense { count: self.number()?, kind }
            }
            [1] => {
                let (count, stride) = (self.number()?, self.number()? as i64);
                Node::Stream { count, stride, child: self.edge()? }
            }
            [2] => {
                let offsets = self.list()?.numbers();
                Node::Indexed { offsets, child: self.edge()? }
            }
            [3] => {
                let (kind, offsets, counts) = (self.kind()?, self.list()?, self.list()?);
                Node::Runs { runs: offsets.runs(&counts)?, kind }
            }
            [4] => {
                let mut parts = Vec::new();
                for _ in 0..self.number()? {
                    parts.push(self.edge()?);
                }
                Node::Record { parts: parts.into() }
            }
            _ => return None,
        })
    }

    fn take<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn kind(&mut self) -> Option<Kind> {
        let [kind] = self.take()?;
        Kind::ALL.get(usize::from(kind)).copied()
    }

    fn edge(&mut self) -> Option<Edge> {
        let offset = self.number()? as i64;
        Some(Edge { offset, node: NodeId(u32::try_from(self.number()?).ok()?) })
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn list(&mut self) -> Option<IndexList<'a>> {
        let (length, [bytes]) = (usize::try_from(self.number()?).ok()?, self.take()?);
        let (entries, rest) = self.0.split_at_checked(length.checked_mul(bytes.into())?)?;
        self.0 = rest;
        Some(match bytes {
            1 => IndexList::Bytes1(entries.as_chunks().0),
            2 => IndexList::Bytes2(entries.as_chunks().0),
            4 => IndexList::Bytes4(entries.as_chunks().0),
            8 => IndexList::Bytes8(entries.as_chunks().0),
            _ => return None,
        })
    }
}

/// The entries of a list, by their width.
enum IndexList<'a> {
    Bytes1(&'a [[u8; 1]]),
    Bytes2(&'a [[u8; 2]]),
    Bytes4(&'a [[u8; 4]]),
    Bytes8(&'a [[u8; 8]]),
}

/// An expression in the numbers of a list, compiled for each width.
macro_rules! with_numbers {
    ($list:expr, $numbers:ident => $result:expr) => {
        with_numbers!($list, $numbers => $result, Bytes1 i8, Bytes2 i16, Bytes4 i32, Bytes8 i64)
    };
    ($list:expr, $numbers:ident => $result:expr, $($width:ident $integer:ident),*) => {
        match $list {
            $(IndexList::$width(entries) => {
                let $numbers = entries.iter().map(|&entry| i64::from($integer::from_le_bytes(entry)));
                $result
            })*
        }
    };
}

impl IndexList<'_> {
    fn len(&self) -> usize {
        with_numbers!(self, numbers => numbers.len())
    }

    fn numbers(&self) -> Arc<[i64]> {
        with_numbers!(self, numbers => numbers.collect())
    }

    /// Runs at these offsets.
    fn runs(&self, counts: &IndexList<'_>) -> Option<Arc<[Run]>> {
        if self.len() != counts.len() {
            return None;
        }
        let run = |(offset, count)| Run { offset, count: count as u64 };
        Some(with_numbers!(self, offsets => with_numbers!(counts, counts => offsets.zip(counts).map(run).collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Layout {
        let text = "layout lb -4 extent 64 {
            %0 = dense 3 x i16
            %1 = stream 4 x -16 of 2: %0
            %2 = runs [(0 3) (40 1)] x i32
            %3 = runs [(-700 3) (70000 300)] x byte
            %4 = indexed [0 -121 70000 4294967424] of 8: %0
            %5 = record [9: %1, -20: %2, 0: %0, 4: %3, 4: %4]
            root -33: %5
        }";
        Layout::parse(text).unwrap()
    }

    #[test]
    fn layouts_return_from_their_bytes() {
        let layout = sample();
        let again = Layout::from_flat(&layout.to_flat(), -4).unwrap();
        assert_eq!(again.to_string(), layout.to_string());
        let empty = Layout::parse("layout lb 0 extent 8 {\n %0 = record []\n root %0\n}").unwrap();
        assert_eq!(Layout::from_flat(&empty.to_flat(), 0).unwrap().to_string(), empty.to_string());
    }

    #[test]
    fn hostile_bytes_are_refused_or_valid() {
        let bytes = sample().to_flat();
        for length in 0..bytes.len() {
            assert!(Layout::from_flat(&bytes[..length], 0).is_none());
        }
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut hostile = bytes.clone();
                hostile[at] = value;
                if let Some(other) = Layout::from_flat(&hostile, i64::MAX) {
                    assert_eq!(other.verify(), Ok(()));
                }
            }
        }
    }
}
