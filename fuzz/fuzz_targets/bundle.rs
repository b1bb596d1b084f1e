//! Reads any bytes as a bundle, with and without a valid header, as what types share, and as kernels: an error, or what was written.
#![no_main]

use dtc_compiler::codegen::cranelift::Image;
use dtc_compiler::datatype::text;
use dtc_compiler::{Pipeline, Shared};
use dtc_runtime::store::Bundle;
use libfuzzer_sys::fuzz_target;

const MAKER: &str = "0.1.0";

/// The bytes as the payload of a bundle.
fn with_header(payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"dtcbundl\x01\0\0\0\0\0\0\0".to_vec();
    bytes.extend((payload.len() as u64).to_le_bytes());
    let checksum = blake3::Hasher::new().update(&bytes).update(payload).finalize();
    bytes.extend(checksum.as_bytes());
    bytes.extend(payload);
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    for candidate in [bytes.to_vec(), with_header(bytes)] {
        // No two files hold the same entries.
        if let Ok(bundle) = Bundle::parse(candidate.clone(), MAKER) {
            assert_eq!(Bundle::write(MAKER, &bundle.to_entries()), candidate);
        }
    }
    let lists = text::parse("indexed_block 30 [0, 50, 147, 531, 790, 912] int").expect("a type");
    let pipeline = Pipeline::new(lists);
    if let Some(shared) = Shared::decode(bytes) {
        assert_eq!(shared.layout.verify(), Ok(()));
        assert_eq!(shared.plan.size(), shared.layout.size());
    }
    let plan = pipeline.plan();
    if let Ok(image) = Image::from_bytes(bytes, plan) {
        assert!(Image::from_bytes(&image.to_bytes(), plan).is_ok());
    }
});
