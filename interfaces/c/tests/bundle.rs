//! Bundles by the C interface.

mod common;

use common::{Engine, Type, config, fails, ok};
use dtc::*;
use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_compiler::{Pipeline, datatype::text};
use dtc_runtime::BundleWriter;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

#[test]
fn a_bundle_is_loaded_or_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kernels.dtc");
    let path = CString::new(file.as_os_str().as_bytes()).expect("a path");
    // Kernels are compiled by `dtc_compile_pending` alone, which is not called.
    let settings = dtc_config { thread: DTC_THREAD_NONE, ..config() };
    let mut engine = null_mut();
    // SAFETY: settings with their size, and a place.
    ok(unsafe { dtc_init(&settings, &mut engine) });
    let engine = Engine(engine);
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
    let bundled = engine.describe(&records);
    let other =
        engine.describe(&text::parse("contiguous 21 (resized 0 64 (struct [1@0 double, 1@12 int]))").expect("a type"));
    let compiled = |of: &Type| {
        // SAFETY: a type.
        ok(unsafe { dtc_type_commit(of.0, 0) });
        let memory: Vec<u8> = (0..64 * 21).map(|at| at as u8).collect();
        let mut packed = [0; 12 * 21];
        // Until it has been moved as described for long enough.
        for _ in 0..100 {
            let bytes = of.pack(&memory, 0, 1, 0, &mut packed);
            let expected = memory.chunks(64).flat_map(|record| record[..8].iter().chain(&record[12..16]));
            assert!(packed[..bytes].iter().eq(expected.take(bytes)));
        }
        of.info().compiled
    };
    assert_eq!((compiled(&bundled), compiled(&other)), (1, 0));
    // SAFETY: no engine.
    fails(unsafe { dtc_load_bundle(null(), path.as_ptr()) }, DTC_ERROR_HANDLE, "engine");
}
