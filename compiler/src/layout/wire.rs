//! The binary encoding of layouts that processes exchange and keep: flattened types.
//!
//! ```text
//! offset  bytes  content
//! 0       8      "dtclayou"
//! 8       4      version, little endian: 1
//! 12      8      length of the body in bytes, little endian
//! 20      16     the first half of the BLAKE3 hash of the body
//! 36      ...    body: the postcard encoding of lb, extent, nodes and root
//! ```
//!
//! A body of more than [`MAX_BYTES`], or of more than [`MAX_NODES`], is refused before memory is allocated for it.
//!
//! The reader refuses everything that [`Layout::verify`] refuses, also in hostile bytes, so it is safe to pack with a
//! decoded layout. The mark of the canonical form is not encoded; the application canonicalises again.

use super::{Edge, Layout, LayoutBuilder, Node, NodeId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"dtclayou";
const VERSION: u32 = 1;
const HEADER: usize = 36;

/// Bytes of the longest accepted body: 256 MiB. A list entry has at least one byte there, and at most 16 in memory.
pub const MAX_BYTES: u64 = 256 << 20;

/// Nodes of the largest accepted layout.
pub const MAX_NODES: u64 = 1 << 22;

/// Reason why bytes are not an encoded layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes do not begin like an encoded layout.
    #[error("expected an encoded layout, found other data")]
    Foreign,
    /// The version is unknown to this reader.
    #[error("expected version {VERSION}, found version {0}")]
    Version(u32),
    /// The length differs from the header.
    #[error("expected {expected} bytes, found {found}")]
    Length {
        /// Length in the header.
        expected: u64,
        /// Actual length.
        found: u64,
    },
    /// More bytes than [`MAX_BYTES`], or more nodes than [`MAX_NODES`].
    #[error("expected at most {limit} {what}, found {found}")]
    TooLarge {
        /// The unit: bytes or nodes.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The actual number.
        found: u64,
    },
    /// The checksum of the body is wrong.
    #[error("expected a body with the recorded checksum, found a damaged one")]
    Checksum,
    /// The body does not encode a layout.
    #[error("expected the encoding of a layout, found {0}")]
    Malformed(String),
}

#[derive(Serialize)]
struct BodyRef<'a> {
    lb: i64,
    extent: i64,
    nodes: &'a [Node],
    root: Edge,
}

/// What a layout is decoded from, unchecked.
#[derive(Deserialize)]
pub(super) struct WireLayout {
    pub(super) lb: i64,
    pub(super) extent: i64,
    pub(super) nodes: Vec<Node>,
    pub(super) root: Edge,
}

/// Refuses a number above a limit.
fn within(what: &'static str, limit: u64, found: u64) -> Result<(), WireError> {
    if found > limit { Err(WireError::TooLarge { what, limit, found }) } else { Ok(()) }
}

fn checksum(body: &[u8]) -> [u8; 16] {
    let mut checksum = [0; 16];
    checksum.copy_from_slice(&blake3::hash(body).as_bytes()[..16]);
    checksum
}

impl Layout {
    /// The layout as bytes that any machine can decode.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let layout = Layout::parse("layout lb 0 extent 9 {\n  %0 = dense 1 x byte\n  root 3: %0\n}")?;
    /// let bytes = layout.to_bytes();
    /// assert_eq!(Layout::from_bytes(&bytes).unwrap().to_string(), layout.to_string());
    /// assert!(Layout::from_bytes(&bytes[..20]).is_err());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = BodyRef { lb: self.lb, extent: self.extent, nodes: &self.nodes, root: self.root };
        // Encoding plain data into memory cannot fail.
        let body = postcard::to_stdvec(&body).unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&checksum(&body));
        bytes.extend_from_slice(&body);
        bytes
    }

    /// [`Layout::to_bytes`], within the limits of the reader.
    ///
    /// # Errors
    ///
    /// [`WireError::TooLarge`]: every reader would refuse the bytes.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let layout = Layout::parse("layout lb 0 extent 9 {\n  %0 = dense 1 x byte\n  root 3: %0\n}")?;
    /// assert_eq!(layout.to_readable_bytes(), Ok(layout.to_bytes()));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn to_readable_bytes(&self) -> Result<Vec<u8>, WireError> {
        within("nodes", MAX_NODES, self.nodes.len() as u64)?;
        let bytes = self.to_bytes();
        within("bytes", MAX_BYTES, (bytes.len() - HEADER) as u64)?;
        Ok(bytes)
    }

    /// Decodes the bytes of [`Layout::to_bytes`], also hostile ones.
    ///
    /// # Errors
    ///
    /// A [`WireError`] with the reason. Memory stays linear in the input.
    pub fn from_bytes(bytes: &[u8]) -> Result<Layout, WireError> {
        let header = bytes.get(..HEADER).ok_or(WireError::Foreign)?;
        if &header[..8] != MAGIC {
            return Err(WireError::Foreign);
        }
        let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let mut length = [0; 8];
        length.copy_from_slice(&header[12..20]);
        let (expected, body) = (u64::from_le_bytes(length), &bytes[HEADER..]);
        if expected != body.len() as u64 {
            return Err(WireError::Length { expected, found: body.len() as u64 });
        }
        within("bytes", MAX_BYTES, expected)?;
        if header[20..] != checksum(body) {
            return Err(WireError::Checksum);
        }
        Layout::from_body(body)
    }

    /// Decodes a body without its header, for fuzzers, which cannot guess checksums.
    ///
    /// # Errors
    ///
    /// [`WireError::Malformed`] and [`WireError::TooLarge`].
    #[doc(hidden)]
    pub fn from_body(body: &[u8]) -> Result<Layout, WireError> {
        // The number of nodes precedes the nodes.
        if let Ok(((_, _, nodes), _)) = postcard::take_from_bytes::<(i64, i64, u64)>(body) {
            within("nodes", MAX_NODES, nodes)?;
        }
        let (body, rest) =
            postcard::take_from_bytes::<WireLayout>(body).map_err(|error| WireError::Malformed(error.to_string()))?;
        if !rest.is_empty() {
            return Err(WireError::Malformed(format!("{} bytes after its end", rest.len())));
        }
        WireLayout::check(body)
    }
}

impl WireLayout {
    /// The layout, if it is one that [`Layout::verify`] accepts.
    pub(super) fn check(self) -> Result<Layout, WireError> {
        let malformed = |what: &str| WireError::Malformed(what.to_owned());
        let mut builder = LayoutBuilder::new();
        for (index, node) in self.nodes.into_iter().enumerate() {
            let id = builder.intern(node).ok_or_else(|| malformed("a node that breaks the rules of layouts"))?;
            if id != NodeId(index as u32) {
                return Err(malformed("a node that exists twice"));
            }
        }
        let Edge { offset, node } = self.root;
        if node.index() >= builder.len() {
            return Err(malformed("a root that does not exist"));
        }
        let measure = *builder.measure(node);
        if measure.low.checked_add(offset).is_none() || measure.high.checked_add(offset).is_none() {
            return Err(malformed("a root whose bounds leave 64 bits"));
        }
        if self.lb.checked_add(self.extent).is_none() {
            return Err(malformed("an upper bound that leaves 64 bits"));
        }
        Ok(builder.finish(self.root, self.lb, self.extent))
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
            %3 = record [9: %1, -20: %2, 0: %0]
            root -33: %3
        }";
        Layout::parse(text).unwrap()
    }

    /// A body with a valid header.
    fn sealed(body: &[u8]) -> Vec<u8> {
        let mut bytes = sample().to_bytes()[..12].to_vec();
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&checksum(body));
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn truncation_and_damage_are_noticed() {
        let bytes = sample().to_bytes();
        for length in 0..bytes.len() {
            assert!(Layout::from_bytes(&bytes[..length]).is_err());
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Layout::from_bytes(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn bodies_beyond_the_limit_are_refused_unread() {
        let mut bytes = sample().to_bytes();
        bytes.resize(HEADER + MAX_BYTES as usize + 1, 0);
        bytes[12..20].copy_from_slice(&(MAX_BYTES + 1).to_le_bytes());
        let error = Layout::from_bytes(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "expected at most 268435456 bytes, found 268435457");
    }

    #[test]
    fn hostile_bodies_with_right_checksums_are_refused_or_valid() {
        let body = sample().to_bytes()[HEADER..].to_vec();
        for at in 0..body.len() {
            for value in 0..=255 {
                let mut hostile = body.clone();
                hostile[at] = value;
                if let Ok(layout) = Layout::from_bytes(&sealed(&hostile)) {
                    assert_eq!(layout.verify(), Ok(()));
                }
            }
        }
        // A record without children, 46 times and twice in a list.
        for repeated in [&[0, 0, 2, 4, 0, 1, 46, 0, 4, 0, 0, 0][..], &[0, 0, 2, 4, 0, 2, 2, 0, 0, 0, 0, 0, 0][..]] {
            let error = Layout::from_bytes(&sealed(repeated)).unwrap_err();
            assert!(error.to_string().contains("breaks the rules"), "{error}");
        }
        // The reader refuses more than [`MAX_NODES`] nodes before it decodes one.
        let error = Layout::from_bytes(&sealed(&[0, 0, 0x81, 0x80, 0x80, 2, 0])).unwrap_err();
        assert_eq!(error, WireError::TooLarge { what: "nodes", limit: MAX_NODES, found: MAX_NODES + 1 });
        // The reader does not allocate for a list that claims 2^60 entries.
        assert!(
            Layout::from_bytes(&sealed(&[0, 0, 1, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f])).is_err()
        );
    }
}
