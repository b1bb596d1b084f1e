//! Tests for compute-sanitizer: every family on both tiers, small, with buffers of exactly the bytes that a call may
//! touch, so that an access to the next byte is an error.

use crate::buffers::Buffers;
use crate::harness::{Outcome, Tests, text};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::Datatype;
use dtc_tests::conformance::Expectation;
use dtc_tests::corpus;

/// Packed bytes of a type: several blocks of every kernel, and some seconds under the slowest tool.
const BYTES: i64 = 20_000;
/// Most bytes of memory or of packed bytes.
const LARGEST: i128 = 100_000;

pub fn add(tests: &mut Tests, on: &OnTier) {
    for (name, datatype) in types::families(BYTES).unwrap_or_default() {
        let on = on.clone();
        tests.add(format!("{}: {name}", on.name), move || exact(&on, &datatype, &[1, 3]));
    }
    // Shapes that cut tiles at every edge.
    for (rows, columns) in [(33, 65), (64, 64), (100, 7), (7, 100)] {
        let on = on.clone();
        tests.add(format!("{}: tiles of {rows} x {columns}", on.name), move || {
            exact(&on, &types::columns(rows, columns)?, &[1, 2])
        });
    }
    let on = on.clone();
    tests.add(format!("{}: the corpus", on.name), move || {
        for case in corpus::all() {
            exact(&on, &case.datatype, &[2]).map_err(|fault| format!("{}: {fault:?}", case.name))?;
        }
        Ok(())
    });
}

/// Whole packs and unpacks, and fragments of them, in buffers without slack.
fn exact(on: &OnTier, datatype: &Datatype, counts: &[u64]) -> Outcome {
    let committed = on.engine.commit(datatype);
    for &count in counts {
        let Some((low, high)) = committed.span(count) else { continue };
        let total = committed.packed_size(count).map_err(text)?;
        if high - low > LARGEST || low > LARGEST || total as i128 > LARGEST {
            continue;
        }
        committed.prepare(&on.gpu).map_err(text)?;
        if let Some(problem) = on.gpu.problem() {
            return Err(format!("a kernel was not compiled: {problem}").into());
        }
        // If a byte is in the map twice, an unpack may leave either value.
        let overlaps = Expectation::new(datatype, count).overlaps;
        let buffers = Buffers::new(&on.gpu, &committed, count, 1)?;
        for (from, length, skew) in [
            (0, total, 0),
            (0, total.div_ceil(2), 0),
            (total / 2, total - total / 2, 4),
            (total / 3, total / 3, 1),
            (total - 1, 1, 7),
            (total / 5 * 4 / 16 * 16, total / 8, 16),
        ] {
            if length == 0 || from + length > total {
                continue;
            }
            if overlaps {
                buffers.pack_fragment(&committed, from, length, skew)?;
            } else {
                buffers.fragment(&committed, from, length, skew)?;
            }
        }
    }
    Ok(())
}
