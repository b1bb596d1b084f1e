//! Objects: the functions of a type for programs that are linked without dtc.

use super::backend::Backend;
use super::closed::{Closed, Surroundings};
use super::emit;
use crate::codegen::error::{CodegenError, checked_size};
use crate::codegen::target::CpuTarget;
use crate::plan::{Direction, Offsets, Plan, Step};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, Signature, UserFuncName, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use std::fmt::Display;

/// An ELF object with two functions for a plan, which need nothing but `memcpy` of the C library:
///
/// ```c
/// void NAME_pack(const void *memory, void *packed, size_t count);
/// void NAME_unpack(const void *packed, void *memory, size_t count);
/// ```
///
/// `memory` is the address of the first of `count` elements. Equal arguments give equal bytes.
///
/// # Errors
///
/// [`CodegenError::Size`] when the plan is too large; [`CodegenError::Target`] and [`CodegenError::Function`] when Cranelift
/// refuses something.
///
/// ```
/// use dtc_compiler::codegen::cranelift::{CpuTarget, object};
/// use dtc_compiler::{Pipeline, datatype::text};
/// let rows = Pipeline::new(text::parse("vector 100 3 5 double")?);
/// let elf = object(CpuTarget::Aarch64, "rows", rows.plan())?;
/// assert_eq!(elf[..4], *b"\x7fELF");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn object(target: CpuTarget, name: &str, plan: &Plan) -> Result<Vec<u8>, CodegenError> {
    checked_size(plan)?;
    let triple = target.triple().map_err(CodegenError::Target)?;
    let isa = Backend { triple, avx2: target.has_avx2(), object: true }.build("backtracking")?;
    let builder = ObjectBuilder::new(isa, format!("{name}.o"), default_libcall_names()).map_err(refused)?;
    let mut module = ObjectModule::new(builder);
    let memcpy = memcpy(&mut module)?;
    let mut lists = Vec::new();
    for (suffix, direction) in [("pack", Direction::Pack), ("unpack", Direction::Unpack)] {
        let mut signature = Signature::new(module.isa().default_call_conv());
        signature.params.extend([AbiParam::new(types::I64); 3]);
        let id = module.declare_function(&format!("{name}_{suffix}"), Linkage::Export, &signature).map_err(refused)?;
        let mut context = Context::new();
        context.func.signature = signature;
        context.func.name = UserFuncName::user(0, id.as_u32());
        let known = lists.len();
        let closed = Closed { memcpy: memcpy.as_u32(), first_list: 0, lists };
        let mut scratch = FunctionBuilderContext::new();
        let builder = FunctionBuilder::new(&mut context.func, &mut scratch);
        let config = module.isa().frontend_config();
        lists = emit::kernel(builder, plan, direction, config, Surroundings::Closed(closed)).tables;
        for step in &lists[known..] {
            define(&mut module, plan.step(*step))?;
        }
        module.define_function(id, &mut context).map_err(refused)?;
    }
    module.finish().emit().map_err(refused)
}

fn refused(error: impl Display) -> CodegenError {
    CodegenError::Function(error.to_string())
}

fn memcpy(module: &mut ObjectModule) -> Result<FuncId, CodegenError> {
    let mut signature = Signature::new(module.isa().default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 3]);
    signature.returns.push(AbiParam::new(types::I64));
    module.declare_function("memcpy", Linkage::Import, &signature).map_err(refused)
}

/// Adds the list of a step. Data are numbered from 0 on, in the order of their declaration.
fn define(module: &mut ObjectModule, step: &Step) -> Result<DataId, CodegenError> {
    let bytes: Vec<u8> = match step {
        Step::List { offsets, .. } | Step::Scatter { offsets, .. } => match offsets {
            Offsets::Narrow(offsets) => offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(),
            Offsets::Wide(offsets) => offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(),
        },
        Step::Runs(table) => {
            table.runs.iter().flat_map(|run| [run.offset.to_le_bytes(), run.count.to_le_bytes()]).flatten().collect()
        }
        _ => Vec::new(),
    };
    let list = module.declare_anonymous_data(false, false).map_err(refused)?;
    let mut data = DataDescription::new();
    data.set_align(8);
    data.define(bytes.into_boxed_slice());
    module.define_data(list, &data).map_err(refused)?;
    Ok(list)
}
