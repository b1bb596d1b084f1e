//! The package of Python on a GPU that the CPU emulates.

use dtc_emulator::Emulator;
use std::path::Path;

/// The folder of the package's tests.
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../interfaces/python/tests");

/// `DTC_PYTHON` is an interpreter that has the package, NumPy and pytest: `./test python` makes it.
#[test]
#[ignore = "needs the wheel: ./test python"]
fn arrays_on_an_emulated_gpu() {
    let python = std::env::var("DTC_PYTHON").expect("DTC_PYTHON");
    let emulator = Emulator::get(|| dtc_compiler::codegen::cuda::generic_source().expect("a text"));
    for hidden in [&[] as &[(&str, &str)], &[("EMULATOR_HIDDEN", "1")]] {
        let arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_device.py"];
        emulator.run(&python, Path::new(TESTS), &arguments, hidden).fine();
    }
}
