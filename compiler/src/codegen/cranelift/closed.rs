//! What closed functions refer to: `memcpy`, and the lists beside them.

use crate::plan::StepId;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, GlobalValueData, InstBuilder, Signature, UserExternalName, Value, types,
};
use cranelift_frontend::FunctionBuilder;

/// Longest piece, in bytes, that straight code moves: 16 words of 16 bytes. A call of `memcpy` takes as long as these.
pub(super) const INLINE_BYTES: u64 = 256;

/// Namespaces of functions and data, as `cranelift-module` numbers them.
const FUNCTIONS: u32 = 0;
const DATA: u32 = 1;

/// What a kernel may refer to.
pub(super) enum Surroundings {
    /// The runtime: microkernels, and lists by a table of pointers, the fourth parameter.
    Runtime,
    /// Nothing but the C library and the lists beside it.
    #[cfg_attr(not(feature = "objects"), expect(dead_code, reason = "functions in objects alone are closed"))]
    Closed(Closed),
}

/// The names of what a closed function refers to, in its object.
#[derive(Clone)]
pub(super) struct Closed {
    /// The function `memcpy`.
    pub(super) memcpy: u32,
    /// The datum of the first list; those of the others follow.
    pub(super) first_list: u32,
    /// Lists that the object has already.
    pub(super) lists: Vec<StepId>,
}

/// Returns at once when there are no elements; goes on in a new block otherwise.
pub(super) fn return_without_elements(builder: &mut FunctionBuilder<'_>, count: Value) {
    let (elements, none) = (builder.create_block(), builder.create_block());
    builder.ins().brif(count, elements, &[], none, &[]);
    builder.switch_to_block(none);
    builder.ins().return_(&[]);
    builder.switch_to_block(elements);
}

/// The address of a list in the object.
pub(super) fn address_of_list(builder: &mut FunctionBuilder<'_>, index: u32) -> Value {
    let name = builder.func.declare_imported_user_function(UserExternalName { namespace: DATA, index });
    let (name, offset) = (ExternalName::user(name), 0.into());
    let list = builder.create_global_value(GlobalValueData::Symbol { name, offset, colocated: true, tls: false });
    builder.ins().symbol_value(types::I64, list)
}

/// A call of `memcpy`.
pub(super) fn copy(builder: &mut FunctionBuilder<'_>, memcpy: u32, arguments: &[Value; 3]) {
    let mut signature = Signature::new(builder.func.signature.call_conv);
    signature.params.extend([AbiParam::new(types::I64); 3]);
    signature.returns.push(AbiParam::new(types::I64));
    let signature = builder.import_signature(signature);
    let name = builder.func.declare_imported_user_function(UserExternalName { namespace: FUNCTIONS, index: memcpy });
    let data = ExtFuncData { name: ExternalName::user(name), signature, colocated: false, patchable: false };
    let function = builder.import_function(data);
    builder.ins().call(function, arguments);
}
