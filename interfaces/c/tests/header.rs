//! The header that is checked in is the one that the sources make.
//!
//! `DTC_BLESS=1 cargo test -p dtc-capi --test header` rewrites it.

use std::path::Path;

#[test]
fn the_header_is_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml");
    config.after_includes = config.after_includes.map(|text| text.replace("@VERSION@", env!("CARGO_PKG_VERSION")));
    let bindings = cbindgen::Builder::new().with_crate(folder).with_config(config).generate().expect("a header");
    let mut written = Vec::new();
    bindings.write(&mut written);
    let written = String::from_utf8(written).expect("a text");
    let path = folder.join("include/dtc.h");
    if std::env::var_os("DTC_BLESS").is_some() {
        std::fs::write(&path, &written).expect("the header to be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = written.lines().zip(found.lines()).find(|(written, found)| written != found);
    assert!(
        written == found,
        "include/dtc.h: expected what cbindgen makes of the sources, found another text from {difference:?} on; run \
         DTC_BLESS=1 cargo test -p dtc-capi --test header"
    );
}
