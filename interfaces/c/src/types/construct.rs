//! A function for each constructor of MPI, with its arguments. `dtc_type_create` has all of them, and facts about bounds.

use super::create::{distributions, made_of, order};
use super::{dtc_type, give};
use crate::arguments::{self, list};
use crate::engine::dtc_engine;
use crate::handle;
use crate::memory;
use crate::status::{Outcome, answer};
use dtc_compiler::datatype::Constructor;
use std::ffi::c_int;

/// The lists of a constructor: the name of their length, the length, and how many lists have it.
type Lists = (&'static str, i64, u64);

/// No lists.
const NONE: Lists = ("", 0, 0);

/// Makes a type of one child by a constructor with these lists.
///
/// # Safety
///
/// `old` is a type, and `place` null, misaligned or writable.
unsafe fn make(
    old: *const dtc_type,
    (name, length, lists): Lists,
    place: *mut *mut dtc_type,
    constructor: impl FnOnce() -> Outcome<Constructor>,
) -> c_int {
    answer(|| {
        // SAFETY: `old` is a type (contract of the caller, clause 1).
        let old = unsafe { handle::borrow(old)? };
        let _claim = memory::for_numbers(arguments::list_length(name, length)?.saturating_mul(lists))?;
        let made = made_of(old.engine(), constructor()?, &[old], None)?;
        // SAFETY: `place` is what `give` asks for (contract of the caller, clause 2).
        unsafe { give(made, place) }
    })
}

/// `MPI_Type_dup`, with every number in 64 bits. (MPI 4.1, 5.1.10)
///
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_dup(old: *const dtc_type, new_type: *mut *mut dtc_type) -> c_int {
    let constructor = || Ok(Constructor::Dup);
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, NONE, new_type, constructor) }
}

/// `MPI_Type_contiguous`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: how many follow each other.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_contiguous(count: i64, old: *const dtc_type, new_type: *mut *mut dtc_type) -> c_int {
    let constructor = || Ok(Constructor::Contiguous { count });
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, NONE, new_type, constructor) }
}

/// `MPI_Type_vector`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: blocks.
/// `blocklength`: elements of a block.
/// `stride`: from the beginning of a block to that of the next, in extents of the child.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_vector(
    count: i64,
    blocklength: i64,
    stride: i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || Ok(Constructor::Vector { count, blocklength, stride });
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, NONE, new_type, constructor) }
}

/// `MPI_Type_create_hvector`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: blocks.
/// `blocklength`: elements of a block.
/// `stride`: from the beginning of a block to that of the next, in bytes.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_hvector(
    count: i64,
    blocklength: i64,
    stride: i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || Ok(Constructor::Hvector { count, blocklength, stride_bytes: stride });
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, NONE, new_type, constructor) }
}

/// `MPI_Type_indexed`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: blocks.
/// `blocklengths`: elements of each.
/// `displacements`: of each, in extents of the child.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written, and the lists have the lengths that are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_indexed(
    count: i64,
    blocklengths: *const i64,
    displacements: *const i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || {
        // SAFETY: the list has the length that is given (contract of this function).
        let blocklengths = unsafe { list("indexed.blocklengths", blocklengths, count)? };
        // SAFETY: the list has the length that is given (contract of this function).
        let displacements = unsafe { list("indexed.displacements", displacements, count)? };
        Ok(Constructor::Indexed { blocklengths: blocklengths.into(), displacements: displacements.into() })
    };
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, ("count", count, 2), new_type, constructor) }
}

/// `MPI_Type_create_hindexed`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: blocks.
/// `blocklengths`: elements of each.
/// `displacements`: of each, in bytes.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written, and the lists have the lengths that are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_hindexed(
    count: i64,
    blocklengths: *const i64,
    displacements: *const i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || {
        // SAFETY: the list has the length that is given (contract of this function).
        let blocklengths = unsafe { list("hindexed.blocklengths", blocklengths, count)? };
        // SAFETY: the list has the length that is given (contract of this function).
        let displacements = unsafe { list("hindexed.displacements", displacements, count)? };
        Ok(Constructor::Hindexed { blocklengths: blocklengths.into(), displacements_bytes: displacements.into() })
    };
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, ("count", count, 2), new_type, constructor) }
}

/// `MPI_Type_create_indexed_block`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: blocks.
/// `blocklength`: elements of every one.
/// `displacements`: of each, in extents of the child.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written, and the lists have the lengths that are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_indexed_block(
    count: i64,
    blocklength: i64,
    displacements: *const i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || {
        // SAFETY: the list has the length that is given (contract of this function).
        let displacements = unsafe { list("indexed_block.displacements", displacements, count)? };
        Ok(Constructor::IndexedBlock { blocklength, displacements: displacements.into() })
    };
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, ("count", count, 1), new_type, constructor) }
}

/// `MPI_Type_create_hindexed_block`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: blocks.
/// `blocklength`: elements of every one.
/// `displacements`: of each, in bytes.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written, and the lists have the lengths that are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_hindexed_block(
    count: i64,
    blocklength: i64,
    displacements: *const i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || {
        // SAFETY: the list has the length that is given (contract of this function).
        let displacements = unsafe { list("hindexed_block.displacements", displacements, count)? };
        Ok(Constructor::HindexedBlock { blocklength, displacements_bytes: displacements.into() })
    };
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, ("count", count, 1), new_type, constructor) }
}

/// `MPI_Type_create_struct`, with every number in 64 bits. (MPI 4.1, 5.1.2)
///
/// `count`: blocks, each of a type of its own.
/// `blocklengths`: elements of each.
/// `displacements`: of each, in bytes.
/// `types`: the child of each; they may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not an engine, or a child is not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// The lists have `count` entries, the children are types, and `new_type` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_struct(
    engine: *const dtc_engine,
    count: i64,
    blocklengths: *const i64,
    displacements: *const i64,
    types: *const *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is an engine or refused (contract of this function).
        let engine = unsafe { handle::borrow(engine)? };
        let _claim = memory::for_numbers(arguments::list_length("count", count)?.saturating_mul(3))?;
        // SAFETY: the lists have `count` entries (contract of this function).
        let (blocklengths, displacements, types) = unsafe {
            (
                list("struct.blocklengths", blocklengths, count)?,
                list("struct.displacements", displacements, count)?,
                list("struct.types", types, count)?,
            )
        };
        let mut children = Vec::with_capacity(types.len());
        for &child in types {
            // SAFETY: the children are types (contract of this function).
            children.push(unsafe { handle::borrow(child)? });
        }
        let (blocklengths, displacements_bytes) = (blocklengths.into(), displacements.into());
        let made = made_of(engine, Constructor::Struct { blocklengths, displacements_bytes }, &children, None)?;
        // SAFETY: `new_type` may be written (contract of this function).
        unsafe { give(made, new_type) }
    })
}

/// `MPI_Type_create_subarray`, with every number in 64 bits. (MPI 4.1, 5.1.3)
///
/// `ndims`: axes.
/// `sizes`: elements of the array along each.
/// `subsizes`: of the part along each.
/// `starts`: where the part begins along each, from 0.
/// `order_of_axes`: `DTC_ORDER_...`.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written, and the lists have the lengths that are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_subarray(
    ndims: i64,
    sizes: *const i64,
    subsizes: *const i64,
    starts: *const i64,
    order_of_axes: i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || {
        // SAFETY: the list has the length that is given (contract of this function).
        let sizes = unsafe { list("subarray.sizes", sizes, ndims)? };
        // SAFETY: the list has the length that is given (contract of this function).
        let subsizes = unsafe { list("subarray.subsizes", subsizes, ndims)? };
        // SAFETY: the list has the length that is given (contract of this function).
        let starts = unsafe { list("subarray.starts", starts, ndims)? };
        Ok(Constructor::Subarray {
            sizes: sizes.into(),
            subsizes: subsizes.into(),
            starts: starts.into(),
            order: order("subarray", order_of_axes)?,
        })
    };
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, ("ndims", ndims, 3), new_type, constructor) }
}

/// `MPI_Type_create_darray`, with every number in 64 bits. (MPI 4.1, 5.1.4)
///
/// `size`: processes.
/// `rank`: this one, from 0.
/// `ndims`: axes.
/// `gsizes`: elements of the array along each.
/// `distribs`: how each is distributed: `DTC_DISTRIBUTE_...`.
/// `dargs`: lengths of blocks, or `DTC_DISTRIBUTE_DEFAULT`.
/// `psizes`: processes along each.
/// `order_of_axes`: `DTC_ORDER_...`.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written, and the lists have the lengths that are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_darray(
    size: i64,
    rank: i64,
    ndims: i64,
    gsizes: *const i64,
    distribs: *const i64,
    dargs: *const i64,
    psizes: *const i64,
    order_of_axes: i64,
    old: *const dtc_type,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || {
        // SAFETY: the list has the length that is given (contract of this function).
        let gsizes = unsafe { list("darray.gsizes", gsizes, ndims)? };
        // SAFETY: the list has the length that is given (contract of this function).
        let distribs = unsafe { list("darray.distribs", distribs, ndims)? };
        // SAFETY: the list has the length that is given (contract of this function).
        let dargs = unsafe { list("darray.dargs", dargs, ndims)? };
        // SAFETY: the list has the length that is given (contract of this function).
        let psizes = unsafe { list("darray.psizes", psizes, ndims)? };
        Ok(Constructor::Darray {
            size,
            rank,
            gsizes: gsizes.into(),
            distributions: distributions(distribs, dargs)?,
            psizes: psizes.into(),
            order: order("darray", order_of_axes)?,
        })
    };
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, ("ndims", ndims, 4), new_type, constructor) }
}

/// `MPI_Type_create_resized`, with every number in 64 bits. (MPI 4.1, 5.1.8)
///
/// `lb`: the lower bound, in bytes.
/// `extent`: in bytes.
/// `old`: the child; it may be released right after, and need not be committed.
/// `new_type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, or a length negative.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits.
///
/// # Safety
///
/// `old` is a type, and `new_type` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_resized(
    old: *const dtc_type,
    lb: i64,
    extent: i64,
    new_type: *mut *mut dtc_type,
) -> c_int {
    let constructor = || Ok(Constructor::Resized { lb, extent });
    // SAFETY: both pointers are what `make` asks for (contract of this function).
    unsafe { make(old, NONE, new_type, constructor) }
}
