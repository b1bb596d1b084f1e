//! Reads any text in the notations of datatypes and layouts: an accepted text round-trips.
#![no_main]

use dtc_compiler::canonicalise;
use dtc_compiler::datatype::text;
use dtc_compiler::layout::Layout;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    if let Ok(datatype) = text::parse(input) {
        let again = text::parse(&text::print(&datatype)).expect("what was printed is read");
        assert_eq!(again.facts(), datatype.facts());
    }
    if let Ok(layout) = Layout::parse(input) {
        assert_eq!(layout.verify(), Ok(()));
        let canonical = canonicalise(&layout).layout;
        assert_eq!(canonical.type_hash(), layout.type_hash());
        let again = Layout::parse(&canonical.to_string()).expect("what was printed is read");
        assert_eq!(again.type_hash(), layout.type_hash());
    }
});
