//! Closed functions by LLVM, linked and run beside the reference walker: examples, corpus and random types, for every target.

mod driven;

use driven::{AARCH64, Toolchain, expect_objects};
use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_compiler::codegen::llvm::object;
use dtc_runtime::Engine;

#[test]
fn objects_by_llvm_move_what_the_walker_says() {
    for target in CpuTarget::running_on(Engine::new().target().level) {
        expect_objects(&Toolchain::GCC, target, object);
    }
}

#[test]
#[ignore = "needs a compiler for AArch64 and an emulator: ./test llvm installs them"]
fn objects_by_llvm_for_aarch64_move_what_the_walker_says() {
    expect_objects(&AARCH64, CpuTarget::Aarch64, object);
}
