//! What a bundle holds, for programs.

use super::target::{self, Target};
use super::types::BuiltType;
use dtc_compiler::codegen::cranelift;
use serde_json::json;

/// The manifest, JSON.
pub fn write(types: &[BuiltType], targets: &[Target]) -> String {
    let (cpus, gpus) = target::divide(targets);
    let targets = cpus.into_iter().map(Target::Cpu).chain(gpus.into_iter().map(Target::Gpu));
    let types: Vec<_> = types.iter().map(of_type).collect();
    let manifest = json!({
        "format": 1,
        "dtc": env!("CARGO_PKG_VERSION"),
        "cranelift": cranelift::VERSION,
        "llvm": llvm_version(),
        "targets": targets.map(|target| target.to_string()).collect::<Vec<_>>(),
        "types": types,
    });
    format!("{manifest:#}\n")
}

/// The version of LLVM, which compiled the functions; null where Cranelift did.
fn llvm_version() -> Option<String> {
    #[cfg(feature = "llvm")]
    return Some(dtc_compiler::codegen::llvm::version());
    #[cfg(not(feature = "llvm"))]
    None
}

fn of_type(BuiltType { name, pipeline, uses, .. }: &BuiltType) -> serde_json::Value {
    let facts = pipeline.datatype().facts();
    let mut value = json!({
        "name": name,
        "type": pipeline.datatype().to_string(),
        "hash": pipeline.hash().to_string(),
        "layout": pipeline.layout().to_string(),
        "size": facts.size,
        "extent": facts.extent(),
        "kernel": pipeline.plan().decision().to_string(),
    });
    if let Some(uses) = uses {
        value["uses"] = json!({
            "packs": uses.packs,
            "packed_bytes": uses.packed_bytes,
            "unpacks": uses.unpacks,
            "unpacked_bytes": uses.unpacked_bytes,
            "largest": uses.largest,
        });
    }
    value
}
