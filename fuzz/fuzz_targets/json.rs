//! Reads any text as a JSON description: an error, or a datatype whose written form describes the same type.
#![no_main]

use dtc_compiler::datatype::json;
use dtc_compiler::{canonicalise, lower};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(description) = json::read(text) else { return };
    let again = json::read(&json::write(&description.datatype)).expect("what was written is read");
    assert_eq!(again.datatype.facts(), description.datatype.facts());
    let layout = lower(&description.datatype);
    assert_eq!(layout.type_hash(), canonicalise(&layout).layout.type_hash());
});
