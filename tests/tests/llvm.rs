//! Closed functions by LLVM, linked and run beside the reference walker: examples, corpus and random types, for every target.

mod driven;

use driven::{AARCH64, Functions, Subject, Toolchain, corpus_types, examples, random_types};
use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_compiler::codegen::{llvm, source};
use dtc_runtime::Engine;

/// Links and runs the objects of all types that have one. LLVM verifies each module.
fn expect_objects(toolchain: &Toolchain, target: CpuTarget) {
    let mut subjects = examples();
    subjects.extend(corpus_types());
    subjects.extend(random_types());
    let allowed = |subject: &Subject| subject.layout().size() > 0 && subject.pipeline.plan().decision().allows();
    subjects.retain(allowed);
    driven::expect(toolchain, &subjects, |subject| {
        let name = source::identifier(&subject.name);
        let object =
            llvm::object(target, &name, subject.pipeline.plan()).unwrap_or_else(|error| panic!("{name}: {error}"));
        Functions { text: driven::declarations(&name), fragments: false, object: Some(object) }
    });
}

#[test]
fn objects_by_llvm_move_what_the_walker_says() {
    for target in CpuTarget::running_on(Engine::new().target().level) {
        println!("{target}");
        expect_objects(&Toolchain::GCC, target);
    }
}

#[test]
#[ignore = "needs a compiler for AArch64 and an emulator: ./test llvm installs them"]
fn objects_by_llvm_for_aarch64_move_what_the_walker_says() {
    expect_objects(&AARCH64, CpuTarget::Aarch64);
}
