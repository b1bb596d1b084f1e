//! The compiler of kernels.

use super::backend::Backend;
use super::closed::Surroundings;
use super::{CodegenError, CpuTarget, MachineCode, Relocation, Source, emit};
use crate::codegen::error::checked_size;
use crate::plan::{Direction, Level, Plan};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{Context, FinalizedRelocTarget, binemit::Reloc};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::fmt;
use target_lexicon::Triple;

/// Compiles kernels for the architecture of this process.
///
/// # Example
///
/// ```
/// use dtc_compiler::codegen::cranelift::Compiler;
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::{Direction, Level, Plan};
/// let text = "layout lb 0 extent 24 {\n  %0 = runs [(0 8) (12 4)] x byte\n  root %0\n}";
/// let plan = Plan::new(&Layout::parse(text)?);
/// let compiler = Compiler::new(Level::Portable)?;
/// assert!(!compiler.compile(&plan, Direction::Pack)?.code.is_empty());
/// assert!(compiler.intermediate(&plan, Direction::Pack)?.contains("load.i64"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Compiler {
    isa: OwnedTargetIsa,
    /// The same with registers allocated in one pass, which spills what is not needed soon. Kernels that only call microkernels lose
    /// nothing by that, and are compiled in half of the time.
    single_pass: OwnedTargetIsa,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").field("target", self.isa.triple()).finish_non_exhaustive()
    }
}

impl Compiler {
    /// Prepares the backend of this machine's architecture for CPUs of a level.
    ///
    /// # Errors
    ///
    /// [`CodegenError::Target`] on architectures that Cranelift does not know.
    pub fn new(level: Level) -> Result<Compiler, CodegenError> {
        let avx2 = cfg!(target_arch = "x86_64") && level >= Level::Avx2;
        Compiler::with(Backend { triple: Triple::host(), avx2, object: false })
    }

    /// Prepares the backend of any target, for kernels that another machine runs.
    ///
    /// # Errors
    ///
    /// [`CodegenError::Target`] where the backend is left out: see the feature `objects`.
    pub fn for_target(target: CpuTarget) -> Result<Compiler, CodegenError> {
        let triple = target.triple().map_err(CodegenError::Target)?;
        Compiler::with(Backend { triple, avx2: target.has_avx2(), object: false })
    }

    fn with(backend: Backend) -> Result<Compiler, CodegenError> {
        Ok(Compiler { isa: backend.build("backtracking")?, single_pass: backend.build("single_pass")? })
    }

    /// Compiles the kernel of a plan. Takes in the order of 100 microseconds.
    ///
    /// # Errors
    ///
    /// [`CodegenError::Size`] when the plan is too large, as [`Decision::allows`](crate::plan::Decision::allows) says;
    /// [`CodegenError::Function`] when Cranelift refuses the function.
    pub fn compile(&self, plan: &Plan, direction: Direction) -> Result<MachineCode, CodegenError> {
        let (function, references) = self.function(plan, direction)?;
        let mut context = Context::for_function(function);
        let isa = if references.only_calls { &self.single_pass } else { &self.isa };
        let compiled = context
            .compile(&**isa, &mut ControlPlane::default())
            .map_err(|error| CodegenError::Function(error.inner.to_string()))?;
        let mut relocations = Vec::new();
        for relocation in compiled.buffer.relocs() {
            let microkernel = match &relocation.target {
                FinalizedRelocTarget::ExternalName(name) => references.microkernel(name),
                FinalizedRelocTarget::Func(_) => None,
            };
            let (Some(microkernel), Reloc::Abs8) = (microkernel, relocation.kind) else {
                return Err(CodegenError::Function(format!("a relocation of kind {}", relocation.kind)));
            };
            relocations.push(Relocation { offset: relocation.offset, microkernel, addend: relocation.addend });
        }
        // Cranelift adds instructions without a location.
        let located = compiled.buffer.get_srclocs_sorted().iter().filter(|source| !source.loc.is_default());
        let sources = located.map(|source| Source { range: source.start..source.end, step: emit::step_of(source.loc) });
        Ok(MachineCode {
            code: compiled.code_buffer().to_vec(),
            alignment: u64::from(compiled.buffer.alignment),
            relocations,
            sources: sources.collect(),
            tables: references.tables,
        })
    }

    /// The kernel in Cranelift's textual intermediate form, before optimisation.
    ///
    /// # Errors
    ///
    /// [`CodegenError::Size`], as for [`Compiler::compile`].
    pub fn intermediate(&self, plan: &Plan, direction: Direction) -> Result<String, CodegenError> {
        Ok(self.function(plan, direction)?.0.display().to_string())
    }

    fn function(&self, plan: &Plan, direction: Direction) -> Result<(Function, emit::References), CodegenError> {
        checked_size(plan)?;
        let mut signature = Signature::new(self.isa.default_call_conv());
        signature.params.extend([AbiParam::new(types::I64); 4]);
        let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature);
        let mut context = FunctionBuilderContext::new();
        let builder = FunctionBuilder::new(&mut function, &mut context);
        let references = emit::kernel(builder, plan, direction, self.isa.frontend_config(), Surroundings::Runtime);
        Ok((function, references))
    }
}
