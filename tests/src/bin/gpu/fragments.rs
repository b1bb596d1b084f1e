//! Random byte ranges of packed streams, with packed memory of any alignment.

use crate::buffers::Buffers;
use crate::harness::{Outcome, Tests};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::Datatype;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Number of fragments of each type.
const FRAGMENTS: usize = 64;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let families = types::families(3 << 20).unwrap_or_default();
    for (name, datatype) in families {
        let on = on.clone();
        tests.add(format!("{}: fragments: {name}", on.name), move || fragments(&on, &datatype));
    }
}

fn fragments(on: &OnTier, datatype: &Datatype) -> Outcome {
    let committed = on.engine.commit(datatype);
    let buffers = Buffers::new(&on.gpu, &committed, 1, 7)?;
    let total = buffers.expected.len();
    let mut rng = SmallRng::seed_from_u64(8);
    for index in 0..FRAGMENTS {
        // Half of the fragments are short, and half have whole words only.
        let longest = if rng.random() { total } else { 5000 };
        let granule = if rng.random() { 16 } else { 1 };
        let from = rng.random_range(0..total) / granule * granule;
        let length = (rng.random_range(1..=longest.min(total - from)) / granule * granule).max(1);
        let skew = rng.random_range(0..33) / granule * granule;
        buffers
            .fragment(&committed, from, length, skew)
            .map_err(|fault| format!("fragment {index}, {}: {fault}", committed.gpu_tier(&on.gpu)))?;
    }
    Ok(())
}
