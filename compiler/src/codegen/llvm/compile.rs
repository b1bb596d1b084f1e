//! LLVM: verifies, optimises and compiles a module.

use super::module::{cpu, ir};
use crate::codegen::error::CodegenError;
use crate::codegen::target::CpuTarget;
use crate::plan::Plan;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::passes::PassBuilderOptions;
use inkwell::support::get_llvm_version;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};
use std::fmt::Display;

/// The vectorisers of higher levels take strided words for gathers and scatters, at up to twice the time of single moves. The module
/// has the vectors that pay.
const PASSES: &str = "default<O1>,function(loop-unroll<O3>,instcombine,simplifycfg)";

/// The version of LLVM, which is that of the library that was found when the process started.
///
/// ```
/// assert!(dtc_compiler::codegen::llvm::version().starts_with("19."));
/// ```
pub fn version() -> String {
    let (major, minor, patch) = get_llvm_version();
    format!("{major}.{minor}.{patch}")
}

/// An ELF object with the functions of [`ir`](super::ir), which need nothing but `memcpy` of the C library. Equal arguments and equal versions of
/// LLVM give equal bytes.
///
/// # Errors
///
/// [`CodegenError::Size`] when the plan is too large; [`CodegenError::Target`] and [`CodegenError::Function`] when LLVM refuses
/// something.
///
/// ```
/// use dtc_compiler::codegen::cranelift::CpuTarget;
/// use dtc_compiler::codegen::llvm;
/// use dtc_compiler::{Pipeline, datatype::text};
/// let rows = Pipeline::new(text::parse("vector 100 3 5 double")?);
/// let elf = llvm::object(CpuTarget::Aarch64, "rows", rows.plan())?;
/// assert_eq!(elf[..4], *b"\x7fELF");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn object(target: CpuTarget, name: &str, plan: &Plan) -> Result<Vec<u8>, CodegenError> {
    compiled(target, name, plan, FileType::Object)
}

/// The instructions of [`object`], as an assembler reads them.
///
/// # Errors
///
/// As for [`object`].
///
/// ```
/// use dtc_compiler::codegen::cranelift::CpuTarget;
/// use dtc_compiler::codegen::llvm;
/// use dtc_compiler::{Pipeline, datatype::text};
/// let rows = Pipeline::new(text::parse("vector 100 3 5 double")?);
/// assert!(llvm::assembly(CpuTarget::X86_64V3, "rows", rows.plan())?.contains("rows_pack:"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn assembly(target: CpuTarget, name: &str, plan: &Plan) -> Result<String, CodegenError> {
    Ok(String::from_utf8_lossy(&compiled(target, name, plan, FileType::Assembly)?).into_owned())
}

fn compiled(target: CpuTarget, name: &str, plan: &Plan, form: FileType) -> Result<Vec<u8>, CodegenError> {
    let text = ir(target, name, plan)?;
    let config = InitializationConfig::default();
    match target {
        CpuTarget::Aarch64 => Target::initialize_aarch64(&config),
        _ => Target::initialize_x86(&config),
    }
    let triple = TargetTriple::create(target.triple_name());
    let backend = Target::from_triple(&triple).map_err(|error| CodegenError::Target(error.to_string()))?;
    let machine: TargetMachine = backend
        .create_target_machine(
            &triple,
            &cpu(target),
            "",
            OptimizationLevel::Aggressive,
            RelocMode::PIC,
            CodeModel::Default,
        )
        .ok_or_else(|| CodegenError::Target(format!("LLVM without {target}")))?;
    let context = Context::create();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), name);
    let module = context.create_module_from_ir(buffer).map_err(refused)?;
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    module.verify().map_err(refused)?;
    module.run_passes(PASSES, &machine, PassBuilderOptions::create()).map_err(refused)?;
    module.verify().map_err(refused)?;
    let bytes = machine.write_to_memory_buffer(&module, form).map_err(refused)?;
    Ok(bytes.as_slice().to_vec())
}

fn refused(error: impl Display) -> CodegenError {
    CodegenError::Function(error.to_string())
}
