//! A dtc with LLVM: what it emits, and what `dtc build` makes with it.

mod common;

use common::{dtc, write};
use dtc_compiler::codegen::cranelift::CpuTarget;
use serde_json::Value;
use std::fs;
use tempfile::tempdir;

#[test]
fn functions_are_emitted_for_every_processor() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "rows.dtc", "vector 1000 3 7 int");
    for target in CpuTarget::ALL {
        let target = target.to_string();
        let text = dtc(folder.path(), &["emit", "rows.dtc", "--as", "llvm-asm", "--target", &target]).fine();
        assert!(text.contains("rows_pack:") && text.contains("rows_unpack:"), "{target}: {text}");
    }
    let wide = dtc(folder.path(), &["emit", "rows.dtc", "--as", "llvm-asm", "--target", "zen5"]).fine();
    assert!(wide.contains("zmm"), "{wide}");
}

#[test]
fn libraries_are_the_same_every_time_and_name_their_compiler() {
    let folder = tempdir().expect("a folder");
    fs::create_dir(folder.path().join("types")).expect("a folder");
    write(folder.path(), "types/rows.dtc", "vector 1000 3 7 int");
    write(folder.path(), "types/turned.dtc", "hvector 45 1 8 (vector 37 1 45 double)");
    let built = || {
        dtc(folder.path(), &["build", "types", "-o", "halo", "--target", "x86-64-v3"]).fine();
        let read = |file: &str| fs::read(folder.path().join("halo").join(file)).expect(file);
        let made = ["lib/x86-64-v3/libhalo.a", "lib/x86-64-v3/libhalo.so", "manifest.json"].map(read);
        fs::remove_dir_all(folder.path().join("halo")).expect("a folder");
        made
    };
    let made = built();
    assert!(made == built(), "two builds differ");
    let [_, _, manifest] = made;
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert!(manifest["llvm"].as_str().is_some_and(|version| version.starts_with("19.")), "{manifest}");
}
