//! Objects of `dtc build`, linked and run beside the reference walker: examples, corpus and random types.

mod driven;

use driven::{AARCH64, Toolchain, expect_objects};
use dtc_compiler::codegen::cranelift::{CpuTarget, object};
use dtc_runtime::Engine;

#[test]
fn objects_move_what_the_walker_says() {
    // Cranelift's code for AVX-512 is that for AVX2.
    let targets = CpuTarget::running_on(Engine::new().target().level);
    for target in targets.into_iter().filter(|target| !matches!(target, CpuTarget::X86_64V4 | CpuTarget::Zen5)) {
        expect_objects(&Toolchain::GCC, target, object);
    }
}

#[test]
#[ignore = "needs a compiler for AArch64 and an emulator: ./test aarch64"]
fn objects_for_aarch64_move_what_the_walker_says() {
    expect_objects(&AARCH64, CpuTarget::Aarch64, object);
}
