//! The declarations of NVRTC beside those of the crate cudarc.

use super::*;
use crate::driver::declarations::{Signature, sizes};
use cudarc::nvrtc::sys;

/// The signature of a field of the table.
fn of<S: Signature>(_: fn(&NvrtcFunctions) -> &S) -> Vec<usize> {
    S::sizes()
}

#[test]
fn functions_have_the_arguments_of_the_header() {
    assert_eq!(of(|functions| &functions.version), sizes(sys::nvrtcVersion as unsafe fn(_, _) -> _));
    assert_eq!(
        of(|functions| &functions.architecture_count),
        sizes(sys::nvrtcGetNumSupportedArchs as unsafe fn(_) -> _)
    );
    assert_eq!(of(|functions| &functions.architectures), sizes(sys::nvrtcGetSupportedArchs as unsafe fn(_) -> _));
    assert_eq!(of(|functions| &functions.error_text), sizes(sys::nvrtcGetErrorString as unsafe fn(_) -> _));
    assert_eq!(of(|functions| &functions.create), sizes(sys::nvrtcCreateProgram as unsafe fn(_, _, _, _, _, _) -> _));
    assert_eq!(of(|functions| &functions.destroy), sizes(sys::nvrtcDestroyProgram as unsafe fn(_) -> _));
    assert_eq!(of(|functions| &functions.compile), sizes(sys::nvrtcCompileProgram as unsafe fn(_, _, _) -> _));
    for size_of in [sys::nvrtcGetProgramLogSize, sys::nvrtcGetPTXSize, sys::nvrtcGetCUBINSize] {
        assert_eq!(SizeOf::sizes(), sizes(size_of as unsafe fn(_, _) -> _));
    }
    for text_of in [sys::nvrtcGetProgramLog, sys::nvrtcGetPTX, sys::nvrtcGetCUBIN] {
        assert_eq!(TextOf::sizes(), sizes(text_of as unsafe fn(_, _) -> _));
    }
}

#[test]
fn constants_are_those_of_the_header() {
    use sys::nvrtcResult::*;
    assert_eq!(SUCCESS, NVRTC_SUCCESS as c_int);
    assert_eq!(INVALID_INPUT, NVRTC_ERROR_INVALID_INPUT as c_int);
    assert_eq!(INVALID_OPTION, NVRTC_ERROR_INVALID_OPTION as c_int);
    assert_eq!(COMPILATION, NVRTC_ERROR_COMPILATION as c_int);
    assert_eq!(BUILTIN_OPERATION_FAILURE, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE as c_int);
}
