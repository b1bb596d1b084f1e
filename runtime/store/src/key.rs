//! Keys: hashes of everything that an entry was compiled from.

use std::fmt;

/// Name of an entry: a hash of everything that it depends on.
///
/// ```
/// use dtc_store::Key;
/// let key = Key::of(&[b"source", b"sm_90", b"13.0"]);
/// // Part boundaries are hashed too.
/// assert_ne!(key, Key::of(&[b"sourcesm", b"_90", b"13.0"]));
/// assert_eq!(key.to_string().len(), 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    pub(super) const BYTES: usize = blake3::OUT_LEN;

    /// The key of these parts: the generated source, the target, and the versions of the compilers involved.
    ///
    /// ```
    /// use dtc_store::Key;
    /// assert_eq!(Key::of(&[b"a", b""]), Key::of(&[b"a", b""]));
    /// assert_ne!(Key::of(&[b"a", b""]), Key::of(&[b"a"]));
    /// ```
    pub fn of(parts: &[&[u8]]) -> Key {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Key(*hasher.finalize().as_bytes())
    }

    pub(super) fn from_bytes(bytes: [u8; Key::BYTES]) -> Key {
        Key(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8; Key::BYTES] {
        &self.0
    }

    /// Parses the output of [`fmt::Display`], and nothing else: an entry has exactly one name.
    pub(super) fn parse(text: &str) -> Option<Key> {
        let key = Key(*blake3::Hash::from_hex(text).ok()?.as_bytes());
        (key.to_string() == text).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({self})")
    }
}
