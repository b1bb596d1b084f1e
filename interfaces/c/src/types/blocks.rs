//! Types from a list of blocks, as other libraries describe them.

use super::{Type, dtc_type, give};
use crate::arguments;
use crate::engine::dtc_engine;
use crate::handle;
use crate::memory;
use crate::status::answer;
use dtc_compiler::datatype::{Constructor, Datatype, GivenBounds, Predefined};
use std::ffi::c_int;

/// Consecutive elements in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_block {
    /// Displacement of the first element, in bytes.
    pub displacement: i64,
    /// Number of elements, one extent apart.
    pub count: i64,
    /// Type of the elements; null for bytes.
    pub element: *const dtc_type,
}

/// Makes a type from its blocks in packed order, with the bounds that the caller knows.
///
/// `blocks`: `n_blocks` blocks; their types may be released right after.
/// `lb`, `extent`: the bounds, in bytes.
/// `type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not an engine, or an element is not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or the number of blocks negative.
/// `DTC_ERROR_TYPE`: a count is negative, or sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `engine` is null or an engine, `blocks` has `n_blocks` entries whose elements are null or types, and `type` is null or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_from_blocks(
    engine: *const dtc_engine,
    blocks: *const dtc_block,
    n_blocks: i64,
    lb: i64,
    extent: i64,
    r#type: *mut *mut dtc_type,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `blocks` has `n_blocks` entries, which no thread writes during the call (contract of this function).
        let blocks = unsafe { arguments::list("blocks", blocks, n_blocks)? };
        let _claim = memory::for_numbers(4 * blocks.len() as u64)?;
        let byte = Datatype::named(Predefined::BYTE);
        let mut elements = Vec::with_capacity(blocks.len());
        for block in blocks {
            elements.push(match block.element.is_null() {
                true => byte.clone(),
                // SAFETY: the element of a block is a live type if it is not null (contract of this function).
                false => unsafe { handle::borrow(block.element)? }.datatype().clone(),
            });
        }
        let blocklengths = blocks.iter().map(|block| block.count).collect();
        let displacements_bytes = blocks.iter().map(|block| block.displacement).collect();
        // One list of blocks of one type is shorter, and faster to commit, than a struct.
        let uniform = elements.windows(2).all(|pair| pair[0].is(&pair[1]));
        let constructor = match uniform {
            true => Constructor::Hindexed { blocklengths, displacements_bytes },
            false => Constructor::Struct { blocklengths, displacements_bytes },
        };
        if uniform {
            elements.truncate(1);
            if elements.is_empty() {
                elements.push(byte);
            }
        }
        let datatype = Datatype::new(constructor, elements, Some(GivenBounds { lb, extent }))?;
        // SAFETY: `type` is null or writable, or `give` refuses it as misaligned (contract of this function).
        unsafe { give(Type::new(engine, datatype), r#type) }
    })
}
