//! Bundles: files of entries that were compiled ahead of time, and the search through them. Numbers are little-endian.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `dtcbundl` |
//! | 8 | 4 | version of this format |
//! | 12 | 4 | zero |
//! | 16 | 8 | length of the payload |
//! | 24 | 32 | blake3 of bytes 0 to 24 and the payload |
//! | 56 | 8 | length of the next |
//! | 64 | | version of dtc whose kernels these are |
//! | | 8 | number of entries |
//! | | 40 each | key, and length in 8 bytes; by ascending keys |
//! | | | the entries, one behind the other |

use super::config::{Config, Hook};
use super::folder;
use super::key::Key;
use super::record;
use dtc_host::lock::Lock;
use dtc_host::{Cause, Finding, trust};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"dtcbundl";
const VERSION: u32 = 1;
const CHECKED: usize = 24;
const HEADER: usize = CHECKED + blake3::OUT_LEN;
/// Largest file of a bundle, in bytes.
const BUNDLE_LIMIT: u64 = 1 << 30;
/// Name of the bundle in the directory that `dtc build` makes.
const NAME: &str = "kernels.dtc";

/// The entries of a bundle, whole and checked.
///
/// ```
/// use dtc_store::{Bundle, Key};
/// use std::collections::BTreeMap;
/// let entries = BTreeMap::from([(Key::of(&[b"source"]), b"code".to_vec())]);
/// let bundle = Bundle::parse(Bundle::write("0.1.0", &entries), "0.1.0")?;
/// assert_eq!(bundle.get(&Key::of(&[b"source"])), Some(&b"code"[..]));
/// assert!(Bundle::parse(Bundle::write("0.1.0", &entries), "0.2.0").is_err());
/// # Ok::<(), dtc_store::Cause>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    bytes: Vec<u8>,
    /// By ascending keys: where the entries are in `bytes`.
    entries: Vec<(Key, Range<usize>)>,
}

impl Bundle {
    /// The file of these entries. Equal entries give equal bytes.
    ///
    /// `maker`: the version of dtc whose kernels they are.
    pub fn write(maker: &str, entries: &BTreeMap<Key, Vec<u8>>) -> Vec<u8> {
        let mut payload = Vec::new();
        let number = |payload: &mut Vec<u8>, value: usize| payload.extend_from_slice(&(value as u64).to_le_bytes());
        number(&mut payload, maker.len());
        payload.extend_from_slice(maker.as_bytes());
        number(&mut payload, entries.len());
        for (key, entry) in entries {
            payload.extend_from_slice(key.as_bytes());
            number(&mut payload, entry.len());
        }
        entries.values().for_each(|entry| payload.extend_from_slice(entry));
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        number(&mut bytes, payload.len());
        let checksum = record::checksum(&bytes, &payload);
        bytes.extend_from_slice(&checksum);
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Checks the bytes of a file.
    ///
    /// # Errors
    ///
    /// Magic, version, length, checksum, maker or index are not those of a bundle of `maker`.
    pub fn parse(bytes: Vec<u8>, maker: &str) -> Result<Bundle, Cause> {
        let found = bytes.len() as u64;
        let truncated = Cause::Length { expected: HEADER as u64, found };
        // Fields are checked front to back, so that the first wrong one is reported.
        let rest = bytes.strip_prefix(&MAGIC).ok_or(Cause::NoBundle)?;
        let (version, rest) = rest.split_first_chunk().ok_or(truncated.clone())?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(Cause::Version { expected: VERSION, found: version });
        }
        let (_, rest) = rest.split_first_chunk::<4>().ok_or(truncated.clone())?;
        let (length, rest) = rest.split_first_chunk().ok_or(truncated.clone())?;
        let (sum, payload) = rest.split_first_chunk::<{ blake3::OUT_LEN }>().ok_or(truncated)?;
        let expected = u64::from_le_bytes(*length).saturating_add(HEADER as u64);
        if expected != found {
            return Err(Cause::Length { expected, found });
        }
        if record::checksum(&bytes[..CHECKED], payload) != *sum {
            return Err(Cause::Checksum);
        }
        let (made_by, rest) = maker_of(payload).ok_or(Cause::Index)?;
        if made_by != maker.as_bytes() {
            let found = String::from_utf8_lossy(made_by).into_owned();
            return Err(Cause::Maker { expected: maker.to_owned(), found });
        }
        let entries = index(rest, bytes.len()).ok_or(Cause::Index)?;
        Ok(Bundle { bytes, entries })
    }

    /// Reads a bundle: a file, or the directory that `dtc build` made.
    ///
    /// # Errors
    ///
    /// The file is absent, someone else could have written it, or [`Bundle::parse`] refuses it.
    pub fn open(path: &Path, maker: &str) -> Result<Bundle, Finding> {
        let file = if path.is_dir() { path.join(NAME) } else { path.to_owned() };
        // The path is made absolute first: a bare name has no parent.
        let whole = std::path::absolute(&file).map_err(|error| Cause::of_read(&error).at(&file))?;
        let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
            return Err(Cause::NotRegular.at(&whole));
        };
        let file = trust::directory(parent, false)?.join(name);
        let read = || {
            let (_, bytes) = folder::read_trusted(&file, BUNDLE_LIMIT)?.ok_or(Cause::Missing)?;
            Bundle::parse(bytes, maker)
        };
        read().map_err(|cause| cause.at(&file))
    }

    /// The entry of a key.
    pub fn get(&self, key: &Key) -> Option<&[u8]> {
        self.bytes.get(self.range(key)?)
    }

    fn range(&self, key: &Key) -> Option<Range<usize>> {
        let at = self.entries.binary_search_by_key(key, |(key, _)| *key).ok()?;
        Some(self.entries[at].1.clone())
    }

    /// How many entries it has.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// The name of a bundle's file in the directory that `dtc build` makes.
    pub fn file_name() -> &'static str {
        NAME
    }

    /// All entries.
    pub fn to_entries(&self) -> BTreeMap<Key, Vec<u8>> {
        self.entries.iter().map(|(key, range)| (*key, self.bytes[range.clone()].to_vec())).collect()
    }
}

/// The maker that a payload begins with, and the rest.
fn maker_of(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = payload.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// The entries of an index, which fill the file up to its end. `None` if they do not, or are out of order.
fn index(bytes: &[u8], end: usize) -> Option<Vec<(Key, Range<usize>)>> {
    let (count, mut rest) = bytes.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    if count > rest.len() / (Key::BYTES + 8) {
        return None;
    }
    let mut start = end - (rest.len() - count * (Key::BYTES + 8));
    let mut entries: Vec<(Key, Range<usize>)> = Vec::with_capacity(count);
    for _ in 0..count {
        let (key, length);
        (key, rest) = rest.split_first_chunk::<{ Key::BYTES }>()?;
        (length, rest) = rest.split_first_chunk()?;
        let key = Key::from_bytes(*key);
        let stop = start.checked_add(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        if stop > end || entries.last().is_some_and(|(last, _)| *last >= key) {
            return None;
        }
        entries.push((key, start..stop));
        start = stop;
    }
    (start == end).then_some(entries)
}

/// The bundles of an engine, in the order of search.
///
/// ```
/// use dtc_store::{Bundles, Config, Key};
/// let bundles = Bundles::open(&Config::none(), "0.1.0");
/// assert!(bundles.get(&Key::of(&[b"source"])).is_none());
/// assert!(bundles.load("/nonexistent".as_ref()).is_err());
/// ```
pub struct Bundles {
    maker: String,
    loaded: Lock<Vec<Arc<Bundle>>>,
}

/// The bytes of an entry, which hold their bundle: entries may have hundreds of kilobytes.
#[derive(Clone, Debug)]
pub struct BundleEntry {
    bundle: Arc<Bundle>,
    range: Range<usize>,
}

impl Deref for BundleEntry {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // The range is one that the bundle found.
        self.bundle.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for Bundles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundles").field("maker", &self.maker).finish_non_exhaustive()
    }
}

impl Bundles {
    /// Loads the bundles that a configuration names. One that cannot be used is told to its hook, and left out.
    ///
    /// `maker`: the version of dtc that runs.
    pub fn open(config: &Config, maker: &str) -> Bundles {
        let bundles = Bundles { maker: maker.to_owned(), loaded: Lock::new(Vec::new()) };
        let (paths, hook): (&[PathBuf], &Hook) = (&config.bundles, &config.hook);
        for path in paths {
            if let Err(finding) = bundles.load(path) {
                hook(&finding);
            }
        }
        bundles
    }

    /// Adds a bundle, which is searched after the others.
    ///
    /// # Errors
    ///
    /// As [`Bundle::open`]. Nothing has changed then.
    pub fn load(&self, path: &Path) -> Result<(), Finding> {
        let bundle = Arc::new(Bundle::open(path, &self.maker)?);
        self.loaded.lock().push(bundle);
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.loaded.lock().is_empty()
    }

    /// The entries of a key, from all bundles that have it.
    pub fn all(&self, key: &Key) -> Vec<BundleEntry> {
        let loaded = self.loaded.lock();
        let entry = |bundle: &Arc<Bundle>| Some(BundleEntry { range: bundle.range(key)?, bundle: bundle.clone() });
        loaded.iter().filter_map(entry).collect()
    }

    /// The entry of a key, from the first bundle that has it.
    pub fn get(&self, key: &Key) -> Option<BundleEntry> {
        let loaded = self.loaded.lock();
        loaded.iter().find_map(|bundle| Some(BundleEntry { range: bundle.range(key)?, bundle: bundle.clone() }))
    }
}
