//! Objects of `dtc build`, linked and run beside the reference walker: examples, corpus and random types.

mod driven;

use driven::{AARCH64, Functions, Subject, Toolchain, corpus_types, examples, random_types};
use dtc_compiler::codegen::cranelift::{CpuTarget, object};
use dtc_compiler::codegen::source;
use dtc_runtime::Engine;

/// Links and runs the objects of all types that have one.
fn expect_objects(toolchain: &Toolchain, target: CpuTarget) {
    let mut subjects = examples();
    subjects.extend(corpus_types());
    subjects.extend(random_types());
    let allowed = |subject: &Subject| subject.layout().size() > 0 && subject.pipeline.plan().decision().allows();
    subjects.retain(allowed);
    driven::expect(toolchain, &subjects, |subject| {
        let name = source::identifier(&subject.name);
        let object = object(target, &name, subject.pipeline.plan()).unwrap_or_else(|error| panic!("{name}: {error}"));
        Functions { text: driven::declarations(&name), fragments: false, object: Some(object) }
    });
}

#[test]
fn objects_move_what_the_walker_says() {
    // Cranelift's code for AVX-512 is that for AVX2.
    let targets = CpuTarget::running_on(Engine::new().target().level);
    for target in targets.into_iter().filter(|target| !matches!(target, CpuTarget::X86_64V4 | CpuTarget::Zen5)) {
        println!("{target}");
        expect_objects(&Toolchain::GCC, target);
    }
}

#[test]
#[ignore = "needs a compiler for AArch64 and an emulator: ./test aarch64"]
fn objects_for_aarch64_move_what_the_walker_says() {
    expect_objects(&AARCH64, CpuTarget::Aarch64);
}
