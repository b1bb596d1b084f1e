//! File format of an entry: a header of 88 bytes, then the payload. Numbers are little-endian.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `dtcstore` |
//! | 8 | 4 | version of this format |
//! | 12 | 4 | zero |
//! | 16 | 32 | key |
//! | 48 | 8 | length of the payload |
//! | 56 | 32 | blake3 of bytes 0 to 56 and the payload |

use super::key::Key;
use dtc_host::Cause;

const MAGIC: [u8; 8] = *b"dtcstore";
const VERSION: u32 = 1;
const CHECKED: usize = 56;
pub(super) const HEADER: usize = CHECKED + blake3::OUT_LEN;

pub(super) fn checksum(checked: &[u8], payload: &[u8]) -> [u8; blake3::OUT_LEN] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(checked);
    hasher.update(payload);
    *hasher.finalize().as_bytes()
}

/// The header of a payload.
pub(super) fn header(key: &Key, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let checksum = checksum(&bytes, payload);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// The payload of a file, if it was written under this key and is whole.
pub(super) fn payload(key: &Key, mut file: Vec<u8>) -> Result<Vec<u8>, Cause> {
    let found = file.len() as u64;
    let truncated = Cause::Length { expected: HEADER as u64, found };
    // Fields are checked front to back, so that the first wrong one is reported.
    let rest = file.strip_prefix(&MAGIC).ok_or(match file.len() {
        0..8 => truncated.clone(),
        _ => Cause::Magic,
    })?;
    let (version, rest) = rest.split_first_chunk().ok_or(truncated.clone())?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(Cause::Version { expected: VERSION, found: version });
    }
    let (_, rest) = rest.split_first_chunk::<4>().ok_or(truncated.clone())?;
    let (named, rest) = rest.split_first_chunk::<{ Key::BYTES }>().ok_or(truncated.clone())?;
    let (length, rest) = rest.split_first_chunk().ok_or(truncated.clone())?;
    let (sum, rest) = rest.split_first_chunk::<{ blake3::OUT_LEN }>().ok_or(truncated)?;
    let expected = u64::from_le_bytes(*length).saturating_add(HEADER as u64);
    if expected != found {
        return Err(Cause::Length { expected, found });
    }
    if checksum(&file[..CHECKED], rest) != *sum {
        return Err(Cause::Checksum);
    }
    // The key is checked after the checksum, to tell damage from a whole entry under another name.
    if named != key.as_bytes() {
        return Err(Cause::Key);
    }
    file.drain(..HEADER);
    Ok(file)
}
