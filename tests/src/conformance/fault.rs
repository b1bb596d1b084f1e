//! What a run finds wrong.

/// What a run found wrong: where, expected and found.
pub type Fault = String;

/// Says where two buffers differ first.
pub(super) fn compare(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    let at = (0..found.len().max(expected.len())).find(|at| found.get(*at) != expected.get(*at));
    let at = at.unwrap_or_default();
    Err(format!("{what}: byte {at} is {:02x?}, expected {:02x?}", found.get(at), expected.get(at)))
}
