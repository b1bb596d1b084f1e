//! `yaksa_type_create_*` and `yaksa_type_free`.

use super::InfoHandle;
use crate::construct::{self, Order};
use crate::memory;
use crate::status::{Status, answer, list, write};
use crate::types::Shared;

/// Makes a type from another one and `numbers` numbers, and writes its handle.
///
/// # Safety
///
/// The handle is a builtin's or alive, and the place is null or writable.
unsafe fn create(old: u64, numbers: i64, new: *mut u64, make: impl FnOnce(Shared) -> Result<Shared, Status>) -> i32 {
    answer(|| {
        if new.is_null() {
            return Err(Status::Internal);
        }
        let _claim = memory::for_numbers(numbers)?;
        // SAFETY: `old` is a builtin's handle or alive, and `new`, which is not null, is writable (contract of this
        // function).
        unsafe { write(new, make(Shared::from_handle(old))?.into_handle()) }
    })
}

/// # Safety
///
/// The old type is alive, and the place of the new one is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_vector(
    count: i64,
    blocklength: i64,
    stride: i64,
    old: u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    // SAFETY: `old` is alive, and `new` is null or writable (contract of this function).
    unsafe { create(old, 0, new, |old| construct::vector(count, blocklength, stride, old)) }
}

/// # Safety
///
/// As for `yaksa_type_create_vector`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_hvector(
    count: i64,
    blocklength: i64,
    stride: i64,
    old: u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    // SAFETY: `old` is alive, and `new` is null or writable (contract of this function).
    unsafe { create(old, 0, new, |old| construct::hvector(count, blocklength, stride, old)) }
}

/// # Safety
///
/// As for `yaksa_type_create_vector`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_contig(count: i64, old: u64, _info: InfoHandle, new: *mut u64) -> i32 {
    // SAFETY: `old` is alive, and `new` is null or writable (contract of this function).
    unsafe { create(old, 0, new, |old| construct::contiguous(count, old)) }
}

/// # Safety
///
/// As for `yaksa_type_create_vector`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_dup(old: u64, _info: InfoHandle, new: *mut u64) -> i32 {
    // SAFETY: `old` is alive, and `new` is null or writable (contract of this function).
    unsafe { create(old, 0, new, Ok) }
}

/// # Safety
///
/// As for `yaksa_type_create_vector`, and the list has `count` entries.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_indexed_block(
    count: i64,
    blocklength: i64,
    displacements: *const i64,
    old: u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    // SAFETY: `old` is alive, `new` is null or writable, and `displacements` has `count` entries (contract of this
    // function).
    unsafe {
        create(old, count.saturating_mul(2), new, |old| {
            construct::indexed_block(blocklength, list(displacements, count)?, old)
        })
    }
}

/// # Safety
///
/// As for `yaksa_type_create_indexed_block`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_hindexed_block(
    count: i64,
    blocklength: i64,
    displacements: *const i64,
    old: u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    // SAFETY: `old` is alive, `new` is null or writable, and `displacements` has `count` entries (contract of this
    // function).
    unsafe {
        create(old, count.saturating_mul(2), new, |old| {
            construct::hindexed_block(blocklength, list(displacements, count)?, old)
        })
    }
}

/// # Safety
///
/// As for `yaksa_type_create_vector`, and the lists have `count` entries.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_indexed(
    count: i64,
    blocklengths: *const i64,
    displacements: *const i64,
    old: u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    // SAFETY: `old` is alive, `new` is null or writable, and each list has `count` entries (contract of this function).
    unsafe {
        create(old, count.saturating_mul(4), new, |old| {
            construct::indexed(list(blocklengths, count)?, list(displacements, count)?, old)
        })
    }
}

/// # Safety
///
/// As for `yaksa_type_create_indexed`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_hindexed(
    count: i64,
    blocklengths: *const i64,
    displacements: *const i64,
    old: u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    // SAFETY: `old` is alive, `new` is null or writable, and each list has `count` entries (contract of this function).
    unsafe {
        create(old, count.saturating_mul(4), new, |old| {
            construct::hindexed(list(blocklengths, count)?, list(displacements, count)?, old)
        })
    }
}

/// # Safety
///
/// As for `yaksa_type_create_vector`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_resized(
    old: u64,
    lb: i64,
    extent: i64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    // SAFETY: `old` is alive, and `new` is null or writable (contract of this function).
    unsafe { create(old, 0, new, |old| construct::resized(old, lb, extent)) }
}

/// # Safety
///
/// The old types are alive, the lists have `count` entries, and the place of the new type is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_struct(
    count: i64,
    blocklengths: *const i64,
    displacements: *const i64,
    old: *const u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    answer(|| {
        // SAFETY: every list has `count` entries, the handles in `old` are alive, and `new`, which is not null, is
        // writable (contract of this function).
        unsafe {
            if new.is_null() {
                return Err(Status::Internal);
            }
            let _claim = memory::for_numbers(count.saturating_mul(4))?;
            let children = list(old, count)?.iter().map(|&old| Shared::from_handle(old));
            let made = construct::structure(list(blocklengths, count)?, list(displacements, count)?, children)?;
            write(new, made.into_handle())
        }
    })
}

/// # Safety
///
/// As for `yaksa_type_create_vector`, and the lists have `ndims` entries.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_create_subarray(
    ndims: i32,
    sizes: *const i64,
    subsizes: *const i64,
    starts: *const i64,
    order: u32,
    old: u64,
    _info: InfoHandle,
    new: *mut u64,
) -> i32 {
    let make = |old| {
        let order = match order {
            0 => Order::C,
            1 => Order::Fortran,
            _ => return Err(Status::Internal),
        };
        let axes = i64::from(ndims);
        // SAFETY: each list has `ndims` entries (contract of this function).
        let (sizes, subsizes, starts) = unsafe { (list(sizes, axes)?, list(subsizes, axes)?, list(starts, axes)?) };
        construct::subarray(sizes, subsizes, starts, order, old)
    };
    // SAFETY: `old` is alive, and `new` is null or writable (contract of this function).
    unsafe { create(old, i64::from(ndims), new, make) }
}

/// # Safety
///
/// The type is a builtin or alive, and this is the last use of the handle.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_free(of: u64) -> i32 {
    answer(|| {
        // SAFETY: `of` is a builtin's handle or alive, and is not used after this call (contract of this function).
        unsafe { Shared::release(of) };
        Ok(())
    })
}
