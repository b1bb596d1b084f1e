//! Faults that a run finds.

/// A fault: its place, the expected and the found value.
pub type Fault = String;

/// Reports the first difference of two buffers.
pub(super) fn compare(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    let at = (0..found.len().max(expected.len())).find(|at| found.get(*at) != expected.get(*at));
    let at = at.unwrap_or_default();
    Err(format!("{what}: byte {at} is {:02x?}, expected {:02x?}", found.get(at), expected.get(at)))
}
