//! The first call of an engine: the generic kernels are loaded, and nothing is compiled.

use crate::buffers::Buffers;
use crate::harness::{Outcome, Tests, expect, text};
use crate::types;
use dtc_runtime::store::Config;
use dtc_runtime::{Engine, GenericCode, Policy};

/// Architectures that dtc brings machine code for, by their major numbers.
const KNOWN: [u32; 5] = [7, 8, 9, 10, 12];

pub fn add(tests: &mut Tests) {
    tests.add("first call: the generic kernels are machine code", machine_code);
}

fn machine_code() -> Outcome {
    let engine = Engine::builder().policy(Policy::Off).store(Config::none()).build();
    let gpu = engine.gpu(0).map_err(text)?;
    let (device, code) = (gpu.device().info(), gpu.generic_code().map_err(text)?);
    let is_machine =
        matches!(code, GenericCode::Machine { architecture } if architecture / 10 == device.architecture() / 10);
    let known = KNOWN.contains(&device.compute_capability.major) && !device.integrated;
    expect(is_machine || !known, || format!("sm_{}: {code}", device.architecture()))?;
    let committed = engine.commit(&types::listed(131, 2000)?);
    Ok(Buffers::new(&gpu, &committed, 1, 1)?.pack_and_check(&committed)?)
}
