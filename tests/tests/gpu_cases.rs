//! The cases of the GPU benchmark: the descriptions mean what the index tells the peers to move.

use dtc_compiler::datatype::{Datatype, json};
use dtc_compiler::lower;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/gpu")
}

fn parsed(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn cases() -> Vec<Value> {
    parsed(&folder().join("cases.json"))["cases"].as_array().expect("a list of cases").clone()
}

/// Types with one extent, so that their hashes differ only by their bytes.
fn bounded(tree: Value, count: &Value, extent: &Value) -> Datatype {
    let all = json!({"kind": "contiguous", "count": count, "child": tree});
    let tree = json!({"type": {"kind": "resized", "lb": 0, "extent": extent, "child": all}});
    json::read(&tree.to_string()).unwrap_or_else(|error| panic!("{error}")).datatype
}

fn integer(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("expected a number, found {value}"))
}

/// The loop nest in the index, as a type of bytes.
fn nest(shape: &Value) -> Value {
    let byte = json!({"kind": "named", "name": "MPI_BYTE"});
    let mut tree = json!({"kind": "contiguous", "count": shape["element_bytes"], "child": byte});
    let (sizes, strides) = (shape["sizes"].as_array().unwrap(), shape["strides_bytes"].as_array().unwrap());
    for (size, stride) in sizes.iter().zip(strides).rev() {
        tree = json!({"kind": "hvector", "count": size, "blocklength": 1, "stride_bytes": stride, "child": tree});
    }
    let displacements = [&shape["offset_bytes"]];
    json!({"kind": "hindexed_block", "blocklength": 1, "displacements_bytes": displacements, "child": tree})
}

#[test]
fn descriptions_and_loop_nests_are_the_same_bytes() {
    let mut compared = 0;
    for case in cases().iter().filter(|case| case["shape"]["kind"] == "nest") {
        let description = parsed(&folder().join(case["file"].as_str().unwrap()));
        assert_eq!(description["count"], case["count"], "{case}");
        assert_eq!(description["buffer_bytes"], case["buffer_bytes"], "{case}");
        let extent = &case["buffer_bytes"];
        let described = lower(&bounded(description["type"].clone(), &case["count"], extent));
        let told = lower(&bounded(nest(&case["shape"]), &1.into(), extent));
        assert_eq!(described.type_hash(), told.type_hash(), "{case}");
        assert_eq!(described.size(), integer(&case["packed_bytes"]), "{case}");
        assert!(described.true_lb() >= 0 && described.true_ub() <= integer(extent) as i64, "{case}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

/// The output function of SplitMix64.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn draw(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

#[test]
fn lists_are_drawn_as_the_documentation_says() {
    for case in cases().iter().filter(|case| case["shape"]["kind"] != "nest") {
        let shape = &case["shape"];
        let seed = integer(&shape["seed"]);
        let runs: Vec<(u64, u64)> = if shape["kind"] == "blocks" {
            let (number, bytes) = (integer(&shape["blocks"]), integer(&shape["block_bytes"]));
            let mut order: Vec<u64> = (0..number).collect();
            order.sort_unstable_by_key(|&index| draw(seed, index));
            order.into_iter().map(|index| (index * bytes, bytes)).collect()
        } else {
            let (unit, most) = (integer(&shape["unit_bytes"]), integer(&shape["most_units"]));
            let mut at = 0;
            let run = |index| {
                let drawn = draw(seed, index);
                let (length, gap) = (1 + (drawn & 0xffff_ffff) % most, 1 + (drawn >> 32) % most);
                let offset = at;
                at += length + gap;
                (offset * unit, length * unit)
            };
            (0..integer(&shape["runs"])).map(run).collect()
        };
        let words = runs.iter().flat_map(|&(offset, length)| [offset, length]);
        let checksum = (0..).zip(words).fold(0u64, |sum, (index, word)| sum.wrapping_add(mix(mix(index) ^ word)));
        assert_eq!(shape["checksum"], format!("{checksum:016x}"), "{case}");
        assert_eq!(integer(&case["packed_bytes"]), runs.iter().map(|run| run.1).sum::<u64>(), "{case}");
        let end = runs.iter().map(|run| run.0 + run.1).max();
        assert_eq!(Some(integer(&case["buffer_bytes"])), end, "{case}");
    }
}
