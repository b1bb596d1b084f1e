//! Basic types: elements by kind and size, and the predefined types of MPI by name.

use super::{Type, dtc_type, give};
use crate::arguments;
use crate::engine::dtc_engine;
use crate::handle;
use crate::memory;
use crate::status::{Failure, Outcome, answer};
use dtc_compiler::datatype::{Constructor, Datatype, Predefined};
use dtc_compiler::layout::Kind;
use std::ffi::{CStr, c_char, c_int};

/// Elements of several kinds.
pub const DTC_KIND_MIXED: i32 = -1;
/// Uninterpreted bytes, of any size.
pub const DTC_KIND_BYTES: i32 = 0;
/// A character; 1 byte.
pub const DTC_KIND_CHARACTER: i32 = 1;
/// A signed integer; 1, 2, 4, 8 or 16 bytes.
pub const DTC_KIND_SIGNED: i32 = 2;
/// An unsigned integer; 1, 2, 4 or 8 bytes.
pub const DTC_KIND_UNSIGNED: i32 = 3;
/// An IEEE float; 2, 4, 8 or 16 bytes.
pub const DTC_KIND_FLOAT: i32 = 4;
/// A complex number of two IEEE floats; 4, 8, 16 or 32 bytes.
pub const DTC_KIND_COMPLEX: i32 = 5;
/// A logical; 1, 2, 4 or 8 bytes.
pub const DTC_KIND_LOGICAL: i32 = 6;
/// A float of 80 bits in 16 bytes: `long double` on x86-64.
pub const DTC_KIND_EXTENDED: i32 = 7;
/// A complex number of two of those; 32 bytes.
pub const DTC_KIND_COMPLEX_EXTENDED: i32 = 8;
/// A bfloat16, the upper half of a float of 32 bits; 2 bytes. It is an element of operations: in types it is an unsigned
/// integer, and `dtc_type_query` tells it as one.
pub const DTC_KIND_BFLOAT: i32 = 9;

/// The number of a kind.
pub(super) fn number(kind: Kind) -> i32 {
    match kind {
        Kind::Byte => DTC_KIND_BYTES,
        Kind::Char => DTC_KIND_CHARACTER,
        Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 | Kind::I128 => DTC_KIND_SIGNED,
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => DTC_KIND_UNSIGNED,
        Kind::F16 | Kind::F32 | Kind::F64 | Kind::F128 => DTC_KIND_FLOAT,
        Kind::F80 => DTC_KIND_EXTENDED,
        Kind::C32 | Kind::C64 | Kind::C128 | Kind::C256 => DTC_KIND_COMPLEX,
        Kind::C160 => DTC_KIND_COMPLEX_EXTENDED,
        Kind::B8 | Kind::B16 | Kind::B32 | Kind::B64 => DTC_KIND_LOGICAL,
    }
}

/// The element of a kind and size, as a predefined type.
fn predefined(kind: i32, size: u64) -> Outcome<Predefined> {
    if !(DTC_KIND_BYTES..=DTC_KIND_BFLOAT).contains(&kind) {
        return Err(Failure::argument("kind", "one of DTC_KIND_", kind));
    }
    let known = |kind: Kind, size| kind.size() == size;
    let fits = |each: &Predefined| match each.fields() {
        [only] => number(only.kind) == kind && known(only.kind, size),
        _ => false,
    };
    Predefined::all().find(fits).ok_or_else(|| Failure::argument("size", "a size that the kind has", size))
}

/// Makes a basic type: one element of a kind. Its extent is its size. `DTC_KIND_BYTES` may have any size, 0 included.
///
/// `kind`: `DTC_KIND_...`.
/// `size`: bytes of the element.
/// `type`: receives the type, which is committed as any other.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: no such kind, no such size of it, or `type` is null.
///
/// # Safety
///
/// `engine` is null or an engine; `type` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_basic(
    engine: *const dtc_engine,
    kind: i32,
    size: i64,
    r#type: *mut *mut dtc_type,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine (contract of this function).
        let engine = unsafe { handle::borrow(engine)? };
        let _claim = memory::for_a_call()?;
        let bytes = arguments::length("size", size)?;
        let bfloat = (kind, bytes) == (DTC_KIND_BFLOAT, 2);
        let datatype = if bfloat {
            Datatype::named(Predefined::UINT16_T)
        } else if kind == DTC_KIND_BYTES && bytes != 1 {
            let byte = Datatype::named(Predefined::BYTE);
            Datatype::new(Constructor::Contiguous { count: size }, [byte], None)?
        } else {
            Datatype::named(predefined(kind, bytes)?)
        };
        let made = Type { bfloat, ..Type::new(engine, datatype) };
        // SAFETY: `type` is null or writable (contract of this function).
        unsafe { give(made, r#type) }
    })
}

/// Makes a predefined type of MPI by its name, pair types among them: "MPI_DOUBLE_INT". Sizes and alignments are those of
/// 64-bit Linux. (MPI 4.1, 3.2.2 and 6.9.4)
///
/// `name`: the name of the type in C or Fortran.
/// `type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: no such name, or a pointer is null.
///
/// # Safety
///
/// `engine` is null or an engine; `name` is null or a text that ends; `type` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_named(
    engine: *const dtc_engine,
    name: *const c_char,
    r#type: *mut *mut dtc_type,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine (contract of this function).
        let engine = unsafe { handle::borrow(engine)? };
        let _claim = memory::for_a_call()?;
        arguments::check_pointer("name", name)?;
        // SAFETY: `name` is not null, so it is a text that ends with a byte 0 (contract of this function); it is not
        // used after this call.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let known = Predefined::by_name(&name);
        let known = known.ok_or_else(|| Failure::argument("name", "a predefined type of MPI", &name))?;
        // SAFETY: `type` is null or writable (contract of this function).
        unsafe { give(Type::new(engine, Datatype::named(known)), r#type) }
    })
}
