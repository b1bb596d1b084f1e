//! Bundles by the C interface.

mod common;

use common::{Engine, fails, ok};
use dtc::*;
use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_compiler::{Pipeline, datatype::text};
use dtc_runtime::BundleWriter;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

#[test]
fn a_bundle_is_loaded_or_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kernels.dtc");
    let path = CString::new(file.as_os_str().as_bytes()).expect("a path");
    let engine = Engine::new();
    // SAFETY: an engine, and a text or null.
    let load = |path: *const std::ffi::c_char| unsafe { dtc_load_bundle(engine.0, path) };
    fails(load(null()), DTC_ERROR_ARGUMENT, "path");
    fails(load(path.as_ptr()), DTC_ERROR_ARGUMENT, "expected a bundle, found none");
    std::fs::write(&file, "other bytes").expect("a file");
    fails(load(path.as_ptr()), DTC_ERROR_ARGUMENT, "expected a bundle, found other bytes");
    let records = text::parse("contiguous 20 (resized 0 64 (struct [1@0 double, 1@12 int]))").expect("a type");
    let mut writer = BundleWriter::default();
    for target in CpuTarget::running_on(dtc_runtime::Engine::new().target().level) {
        writer.add_cpu(&Pipeline::new(records.clone()), target).expect("kernels");
    }
    std::fs::write(&file, writer.finish()).expect("a file");
    ok(load(path.as_ptr()));
    // SAFETY: no engine.
    fails(unsafe { dtc_load_bundle(null(), path.as_ptr()) }, DTC_ERROR_HANDLE, "engine");
}
