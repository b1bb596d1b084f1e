//! `yaksa_type_get_*`.

use crate::status::{answer, write};
use crate::types::Shared;

/// # Safety
///
/// The type is alive, and the place is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_get_size(of: u64, size: *mut u64) -> i32 {
    // SAFETY: `of` is alive, and `size` is null or writable (contract of this function).
    answer(|| unsafe { write(size, Shared::of_handle(of).shape.size) })
}

/// # Safety
///
/// The type is alive, and the places are null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_get_extent(of: u64, lb: *mut i64, extent: *mut i64) -> i32 {
    answer(|| {
        // SAFETY: `of` is alive, and `lb` and `extent` are null or writable (contract of this function).
        unsafe {
            let shape = &Shared::of_handle(of).shape;
            write(lb, shape.lb)?;
            write(extent, shape.extent())
        }
    })
}

/// # Safety
///
/// As for `yaksa_type_get_extent`.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_type_get_true_extent(of: u64, lb: *mut i64, extent: *mut i64) -> i32 {
    answer(|| {
        // SAFETY: `of` is alive, and `lb` and `extent` are null or writable (contract of this function).
        unsafe {
            let shape = &Shared::of_handle(of).shape;
            write(lb, shape.true_lb)?;
            // A shape is made only if this fits.
            write(extent, shape.true_ub - shape.true_lb)
        }
    })
}
