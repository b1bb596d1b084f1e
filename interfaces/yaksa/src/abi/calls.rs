//! `yaksa_ipack`, `yaksa_pack`, `yaksa_pack_stream`, and the same for unpacking.

use super::InfoHandle;
use super::infos::hints;
use super::requests::into_handle;
use crate::operation::of_number;
use crate::pack::Call;
use crate::status::{Status, answer, write};
use crate::types::Shared;
use dtc_runtime::Range;

use std::ffi::c_void;

/// The call that the arguments describe.
///
/// # Safety
///
/// The type and the info are alive.
#[inline]
unsafe fn call<'a>(
    of: u64,
    memory: *mut c_void,
    range: Range,
    packed: *mut c_void,
    info: InfoHandle,
    operation: u64,
) -> Result<Call<'a>, Status> {
    let operation = of_number(operation)?;
    // SAFETY: `of` is alive, and `info` is null or alive (contract of this function).
    let (of, info) = unsafe { (Shared::of_handle(of), hints(info)) };
    Ok(Call { of, memory: memory.cast(), range, packed: packed.cast(), info, operation })
}

/// # Safety
///
/// The type and the info are alive, the bytes to move are there until the request is done, and the places are null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_ipack(
    input: *const c_void,
    count: u64,
    of: u64,
    offset: u64,
    output: *mut c_void,
    max: u64,
    actual: *mut u64,
    info: InfoHandle,
    operation: u64,
    request: *mut u64,
) -> i32 {
    // SAFETY: `of` and `info` are alive, the bytes of the elements and of the packed side stay valid until the request
    // is done, and `actual` and `request` are null or writable (contract of this function).
    answer(|| unsafe {
        let requested =
            call(of, input.cast_mut(), Range::elements(count).fragment(offset, max), output, info, operation)?;
        let (bytes, pending) = requested.start::<true>()?;
        write(actual, bytes)?;
        write(request, into_handle(pending))
    })
}

/// # Safety
///
/// As for `yaksa_ipack`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_iunpack(
    input: *const c_void,
    length: u64,
    output: *mut c_void,
    count: u64,
    of: u64,
    offset: u64,
    actual: *mut u64,
    info: InfoHandle,
    operation: u64,
    request: *mut u64,
) -> i32 {
    // SAFETY: `of` and `info` are alive, the bytes of the elements and of the packed side stay valid until the request
    // is done, and `actual` and `request` are null or writable (contract of this function).
    answer(|| unsafe {
        let requested =
            call(of, output, Range::elements(count).fragment(offset, length), input.cast_mut(), info, operation)?;
        let (bytes, pending) = requested.start::<false>()?;
        write(actual, bytes)?;
        write(request, into_handle(pending))
    })
}

/// # Safety
///
/// As for `yaksa_ipack`, until the function returns.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_pack(
    input: *const c_void,
    count: u64,
    of: u64,
    offset: u64,
    output: *mut c_void,
    max: u64,
    actual: *mut u64,
    info: InfoHandle,
    operation: u64,
) -> i32 {
    // SAFETY: `of` and `info` are alive, the bytes of the elements and of the packed side stay valid until this
    // returns, which `finish` does when they are moved, and `actual` is null or writable (contract of this function).
    answer(|| unsafe {
        let requested =
            call(of, input.cast_mut(), Range::elements(count).fragment(offset, max), output, info, operation)?;
        write(actual, requested.finish::<true>()?)
    })
}

/// # Safety
///
/// As for `yaksa_pack`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_unpack(
    input: *const c_void,
    length: u64,
    output: *mut c_void,
    count: u64,
    of: u64,
    offset: u64,
    actual: *mut u64,
    info: InfoHandle,
    operation: u64,
) -> i32 {
    // SAFETY: `of` and `info` are alive, the bytes of the elements and of the packed side stay valid until this
    // returns, which `finish` does when they are moved, and `actual` is null or writable (contract of this function).
    answer(|| unsafe {
        let requested =
            call(of, output, Range::elements(count).fragment(offset, length), input.cast_mut(), info, operation)?;
        write(actual, requested.finish::<false>()?)
    })
}

/// # Safety
///
/// As for `yaksa_ipack`, until the stream has come past the call; `stream` points to a `cudaStream_t` that is alive.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_pack_stream(
    input: *const c_void,
    count: u64,
    of: u64,
    offset: u64,
    output: *mut c_void,
    max: u64,
    actual: *mut u64,
    info: InfoHandle,
    operation: u64,
    stream: *mut c_void,
) -> i32 {
    // SAFETY: `of` and `info` are alive, the bytes of the elements and of the packed side stay valid until the stream
    // has passed the call, and `stream` points to a live stream (contract of this function).
    answer(|| unsafe {
        let requested =
            call(of, input.cast_mut(), Range::elements(count).fragment(offset, max), output, info, operation)?;
        write(actual, requested.enqueue::<true>(pointed_to(stream)?)?)
    })
}

/// # Safety
///
/// As for `yaksa_pack_stream`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_unpack_stream(
    input: *const c_void,
    length: u64,
    output: *mut c_void,
    count: u64,
    of: u64,
    offset: u64,
    actual: *mut u64,
    info: InfoHandle,
    operation: u64,
    stream: *mut c_void,
) -> i32 {
    // SAFETY: `of` and `info` are alive, the bytes of the elements and of the packed side stay valid until the stream
    // has passed the call, and `stream` points to a live stream (contract of this function).
    answer(|| unsafe {
        let requested =
            call(of, output, Range::elements(count).fragment(offset, length), input.cast_mut(), info, operation)?;
        write(actual, requested.enqueue::<false>(pointed_to(stream)?)?)
    })
}

/// The stream that the argument of the stream forms points to.
///
/// # Safety
///
/// The pointer is null or readable.
unsafe fn pointed_to(stream: *mut c_void) -> Result<*mut c_void, Status> {
    // SAFETY: `stream` is null, which `as_ref` refuses, or points to a readable handle of CUDA (contract of this
    // function).
    unsafe { stream.cast::<*mut c_void>().as_ref() }.copied().ok_or(Status::Internal)
}
