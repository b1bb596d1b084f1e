//! What a bundle holds, for programs.

use crate::target::{self, Target};
use crate::types::{BuiltTabled, BuiltType};
use dtc_compiler::codegen::cranelift;
use dtc_compiler::tabled::TabledLayout;
use dtc_runtime::store::RecordedUses;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The name of its file.
pub const NAME: &str = "manifest.json";

/// The manifest, JSON. `files` are those beside it.
pub fn write(types: &[BuiltType], tabled: &[BuiltTabled], targets: &[Target], files: &[String]) -> String {
    let (cpus, gpus) = target::divide(targets);
    let targets = cpus.into_iter().map(Target::Cpu).chain(gpus.into_iter().map(Target::Gpu));
    let types: Vec<_> = types.iter().map(of_type).chain(tabled.iter().map(of_tabled)).collect();
    let manifest = json!({
        "format": 1,
        "dtc": env!("CARGO_PKG_VERSION"),
        "cranelift": cranelift::VERSION,
        "llvm": llvm_version(),
        "targets": targets.map(|target| target.to_string()).collect::<Vec<_>>(),
        "files": files,
        "types": types,
    });
    format!("{manifest:#}\n")
}

/// The files that a manifest lists; nothing for what is no manifest.
pub fn files(path: &Path) -> Option<BTreeSet<String>> {
    let manifest: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    manifest.get("dtc")?.as_str()?;
    manifest.get("files")?.as_array()?.iter().map(|file| file.as_str().map(str::to_owned)).collect()
}

/// The version of LLVM, which compiled the functions; null where Cranelift did.
fn llvm_version() -> Option<String> {
    #[cfg(feature = "llvm")]
    return Some(dtc_compiler::codegen::llvm::version());
    #[cfg(not(feature = "llvm"))]
    None
}

fn of_type(BuiltType { name, pipeline, uses, .. }: &BuiltType) -> Value {
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
    add_uses(&mut value, *uses);
    value
}

/// Adds how often a recorded type was used.
fn add_uses(value: &mut Value, uses: Option<RecordedUses>) {
    if let Some(RecordedUses { packs, packed_bytes, unpacks, unpacked_bytes, largest }) = uses {
        value["uses"] = json!({
            "packs": packs,
            "packed_bytes": packed_bytes,
            "unpacks": unpacks,
            "unpacked_bytes": unpacked_bytes,
            "largest": largest,
        });
    }
}

fn of_tabled(BuiltTabled { name, datatype, uses }: &BuiltTabled) -> Value {
    let layout = TabledLayout::new(datatype);
    let mut value = json!({
        "name": name,
        "type": datatype.to_string(),
        "hash": layout.hash(),
        "layout": layout.to_string(),
        "tables": datatype.tables().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "most_bytes": layout.most_bytes(),
    });
    add_uses(&mut value, *uses);
    value
}
