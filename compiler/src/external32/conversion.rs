//! The `external32` representation of a value of each predefined type.

use crate::datatype::{Field, Predefined};
use crate::layout::Kind;

/// Conversion of one value between memory and `external32`. A value is what is converted by itself: a complex number is
/// two.
///
/// # Standard section
///
/// MPI 4.1, 14.5.2.
///
/// ```
/// use dtc_compiler::external32::Conversion;
/// assert_eq!((Conversion::Long.packed_size(), Conversion::Long.external_size()), (8, 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// None, for bytes and characters.
    Bytes,
    /// 2 bytes, most significant first.
    Big16,
    /// 4 bytes, most significant first.
    Big32,
    /// 8 bytes, most significant first.
    Big64,
    /// 16 bytes, most significant first.
    Big128,
    /// A `long` of 8 bytes: the 4 least significant ones, most significant first.
    Long,
    /// An `unsigned long` of 8 bytes: the 4 least significant ones, most significant first.
    UnsignedLong,
    /// A `wchar_t` of 4 bytes: the 2 least significant ones, most significant first.
    WideCharacter,
    /// A `long double` of 16 bytes, converted to binary128.
    LongDouble,
}

impl Conversion {
    /// Bytes of a value in memory and in packed form.
    pub const fn packed_size(self) -> u64 {
        match self {
            Conversion::Bytes => 1,
            Conversion::Big16 => 2,
            Conversion::Big32 | Conversion::WideCharacter => 4,
            Conversion::Big64 | Conversion::Long | Conversion::UnsignedLong => 8,
            Conversion::Big128 | Conversion::LongDouble => 16,
        }
    }

    /// Bytes of a value in `external32`; at most those in memory.
    pub const fn external_size(self) -> u64 {
        match self {
            Conversion::Bytes => 1,
            Conversion::Big16 | Conversion::WideCharacter => 2,
            Conversion::Big32 | Conversion::Long | Conversion::UnsignedLong => 4,
            Conversion::Big64 => 8,
            Conversion::Big128 | Conversion::LongDouble => 16,
        }
    }
}

/// Consecutive values with the same conversion.
///
/// ```
/// use dtc_compiler::external32::{Conversion, ConversionRun};
/// let complex = ConversionRun { conversion: Conversion::Big64, values: 2 };
/// # let _ = complex;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversionRun {
    /// The conversion of each value.
    pub conversion: Conversion,
    /// Number of values.
    pub values: u64,
}

impl ConversionRun {
    /// The values of a basic element. The kind cannot tell `long` and `wchar_t`, because it is that of another type of
    /// the same size.
    pub(super) fn of(predefined: Predefined, field: Field) -> ConversionRun {
        let (conversion, values) = match field.kind {
            Kind::Byte | Kind::Char | Kind::I8 | Kind::U8 | Kind::B8 => (Conversion::Bytes, 1),
            Kind::I16 | Kind::U16 | Kind::F16 | Kind::B16 => (Conversion::Big16, 1),
            Kind::I32 if predefined == Predefined::WCHAR => (Conversion::WideCharacter, 1),
            Kind::I32 | Kind::U32 | Kind::F32 | Kind::B32 => (Conversion::Big32, 1),
            Kind::I64 if [Predefined::LONG, Predefined::LONG_INT].contains(&predefined) => (Conversion::Long, 1),
            Kind::U64 if predefined == Predefined::UNSIGNED_LONG => (Conversion::UnsignedLong, 1),
            Kind::I64 | Kind::U64 | Kind::F64 | Kind::B64 => (Conversion::Big64, 1),
            Kind::I128 | Kind::F128 => (Conversion::Big128, 1),
            Kind::F80 => (Conversion::LongDouble, 1),
            Kind::C32 => (Conversion::Big16, 2),
            Kind::C64 => (Conversion::Big32, 2),
            Kind::C128 => (Conversion::Big64, 2),
            Kind::C160 => (Conversion::LongDouble, 2),
            Kind::C256 => (Conversion::Big128, 2),
        };
        ConversionRun { conversion, values }
    }
}
