//! Decodes any bytes as a layout, with and without a valid header: an error, or a valid layout.
#![no_main]

use dtc_compiler::canonicalise;
use dtc_compiler::layout::Layout;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for candidate in [Layout::from_bytes(bytes), Layout::from_body(bytes)] {
        let Ok(layout) = candidate else { continue };
        assert_eq!(layout.verify(), Ok(()));
        let again = Layout::from_bytes(&layout.to_bytes()).expect("what was written is read");
        assert_eq!(again.type_hash(), layout.type_hash());
        assert_eq!(canonicalise(&layout).layout.type_hash(), layout.type_hash());
    }
});
