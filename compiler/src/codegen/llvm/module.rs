//! The text of a module: both functions, their lists and their attributes.

use super::emit::Emitter;
use crate::codegen::error::{CodegenError, checked_size};
use crate::codegen::target::CpuTarget;
use crate::plan::{Direction, Offsets, Plan, Step};
use std::fmt::Write;

/// The function of the C library.
const MEMCPY: &str = "\ndeclare ptr @memcpy(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64) #1\n";

/// The module of a plan: `NAME_pack` and `NAME_unpack`, and the lists that they read. The name is an identifier of C.
///
/// # Errors
///
/// [`CodegenError::Size`] when the plan is too large, as [`Decision::allows`](crate::plan::Decision::allows) says.
///
/// ```
/// use dtc_compiler::codegen::cranelift::CpuTarget;
/// use dtc_compiler::codegen::llvm;
/// use dtc_compiler::{Pipeline, datatype::text};
/// let rows = Pipeline::new(text::parse("vector 100 3 5 double")?);
/// let module = llvm::ir(CpuTarget::X86_64V4, "rows", rows.plan())?;
/// assert!(module.contains("define void @rows_pack(ptr"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ir(target: CpuTarget, name: &str, plan: &Plan) -> Result<String, CodegenError> {
    checked_size(plan)?;
    let vectors = target.vectors();
    let mut lists = Vec::new();
    let mut bodies = String::new();
    for direction in [Direction::Pack, Direction::Unpack] {
        let (read, written) = match direction {
            Direction::Pack => ("%memory", "%packed"),
            Direction::Unpack => ("%packed", "%memory"),
        };
        let body = Emitter { plan, vectors, direction, around: 1, lists: &mut lists }.body();
        // Writing to a string cannot fail.
        let _ = write!(
            bodies,
            "\ndefine void @{name}_{direction}(ptr noalias nocapture readonly {read}, ptr noalias nocapture writeonly \
             {written}, i64 %count) #0 {{\n{body}}}\n"
        );
    }
    let mut module = format!("source_filename = \"{name}\"\ntarget triple = \"{}\"\n", target.triple_name());
    for (index, &id) in lists.iter().enumerate() {
        let _ = write!(module, "\n@list{index} = private unnamed_addr constant {}\n", list(plan.step(id)));
    }
    module.push_str(&bodies);
    if bodies.contains("@memcpy") {
        module.push_str(MEMCPY);
    }
    let _ = write!(
        module,
        "\nattributes #0 = {{ nounwind \"target-cpu\"=\"{}\"{} }}\nattributes #1 = {{ nobuiltin nounwind }}\n",
        cpu(target),
        features(target)
    );
    Ok(module)
}

/// The entries of a list.
fn list(step: &Step) -> String {
    let entries = |kind: &str, alignment: u32, entries: &mut dyn Iterator<Item = i64>| {
        let entries: Vec<String> = entries.map(|entry| format!("{kind} {entry}")).collect();
        format!("[{} x {kind}] [{}], align {alignment}", entries.len(), entries.join(", "))
    };
    match step {
        Step::List { offsets, .. } | Step::Scatter { offsets, .. } => match offsets {
            Offsets::Narrow(offsets) => entries("i32", 4, &mut offsets.iter().map(|&offset| i64::from(offset))),
            Offsets::Wide(offsets) => entries("i64", 8, &mut offsets.iter().copied()),
        },
        Step::Runs(table) => {
            let runs = table.runs.iter().zip(table.positions.iter());
            let numbers = runs.flat_map(|(run, &position)| [run.offset, position as i64, run.count as i64]);
            entries("i64", 8, &mut numbers.into_iter())
        }
        _ => entries("i64", 8, &mut std::iter::empty()),
    }
}

/// The CPU of a target as LLVM calls it.
pub(super) fn cpu(target: CpuTarget) -> String {
    match target {
        CpuTarget::Aarch64 => "generic".to_owned(),
        CpuTarget::Zen5 => "x86-64-v4".to_owned(),
        target => target.to_string(),
    }
}

/// What a target has beyond that CPU. Tuned for `znver4`, rows of 512 and 1,024 bytes took 1.4 times as long on a Zen 5.
fn features(target: CpuTarget) -> &'static str {
    match target {
        CpuTarget::Zen5 => " \"target-features\"=\"+avx512vbmi\"",
        _ => "",
    }
}
