//! The predefined types of C and Fortran, and the pair types.

use crate::layout::Kind;

/// One basic element of a predefined type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset of the element in the type, in bytes.
    pub offset: i64,
    /// Kind of the element.
    pub kind: Kind,
}

const fn field(offset: i64, kind: Kind) -> Field {
    Field { offset, kind }
}

/// A predefined MPI type with the sizes and alignments of the 64-bit Linux ABIs (LP64, 16-byte `long double`).
///
/// # Standard sections
///
/// MPI 4.1, 3.2.2 (basic types), 6.9.4 (pair types of `MINLOC` and `MAXLOC`), 19.1.9 (sized Fortran types).
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::Predefined;
/// let pair = Predefined::by_name("MPI_DOUBLE_INT").unwrap();
/// assert_eq!((pair.size(), pair.extent()), (12, 16));
/// assert_eq!(Predefined::by_name("MPI_NOTHING"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Predefined(u8);

struct Definition {
    name: &'static str,
    fields: &'static [Field],
}

macro_rules! predefined {
    ($($constant:ident $name:literal [$($offset:literal $kind:ident),+];)*) => {
        const TABLE: &[Definition] = &[$(Definition {
            name: concat!("MPI_", $name),
            fields: &[$(field($offset, Kind::$kind)),+],
        }),*];

        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names of the MPI standard")]
        #[repr(u8)]
        enum Index { $($constant),* }

        impl Predefined {
            $(
                #[doc = concat!("`MPI_", $name, "`")]
                pub const $constant: Predefined = Predefined(Index::$constant as u8);
            )*
        }
    };
}

predefined! {
    CHAR "CHAR" [0 Char];
    SIGNED_CHAR "SIGNED_CHAR" [0 I8];
    UNSIGNED_CHAR "UNSIGNED_CHAR" [0 U8];
    SHORT "SHORT" [0 I16];
    UNSIGNED_SHORT "UNSIGNED_SHORT" [0 U16];
    INT "INT" [0 I32];
    UNSIGNED "UNSIGNED" [0 U32];
    LONG "LONG" [0 I64];
    UNSIGNED_LONG "UNSIGNED_LONG" [0 U64];
    LONG_LONG_INT "LONG_LONG_INT" [0 I64];
    LONG_LONG "LONG_LONG" [0 I64];
    UNSIGNED_LONG_LONG "UNSIGNED_LONG_LONG" [0 U64];
    FLOAT "FLOAT" [0 F32];
    DOUBLE "DOUBLE" [0 F64];
    LONG_DOUBLE "LONG_DOUBLE" [0 F80];
    WCHAR "WCHAR" [0 I32];
    C_BOOL "C_BOOL" [0 B8];
    INT8_T "INT8_T" [0 I8];
    INT16_T "INT16_T" [0 I16];
    INT32_T "INT32_T" [0 I32];
    INT64_T "INT64_T" [0 I64];
    UINT8_T "UINT8_T" [0 U8];
    UINT16_T "UINT16_T" [0 U16];
    UINT32_T "UINT32_T" [0 U32];
    UINT64_T "UINT64_T" [0 U64];
    C_COMPLEX "C_COMPLEX" [0 C64];
    C_FLOAT_COMPLEX "C_FLOAT_COMPLEX" [0 C64];
    C_DOUBLE_COMPLEX "C_DOUBLE_COMPLEX" [0 C128];
    C_LONG_DOUBLE_COMPLEX "C_LONG_DOUBLE_COMPLEX" [0 C160];
    BYTE "BYTE" [0 Byte];
    PACKED "PACKED" [0 Byte];
    AINT "AINT" [0 I64];
    OFFSET "OFFSET" [0 I64];
    COUNT "COUNT" [0 I64];
    CXX_BOOL "CXX_BOOL" [0 B8];
    CXX_FLOAT_COMPLEX "CXX_FLOAT_COMPLEX" [0 C64];
    CXX_DOUBLE_COMPLEX "CXX_DOUBLE_COMPLEX" [0 C128];
    CXX_LONG_DOUBLE_COMPLEX "CXX_LONG_DOUBLE_COMPLEX" [0 C160];
    INTEGER "INTEGER" [0 I32];
    REAL "REAL" [0 F32];
    DOUBLE_PRECISION "DOUBLE_PRECISION" [0 F64];
    COMPLEX "COMPLEX" [0 C64];
    DOUBLE_COMPLEX "DOUBLE_COMPLEX" [0 C128];
    LOGICAL "LOGICAL" [0 B32];
    CHARACTER "CHARACTER" [0 Char];
    INTEGER1 "INTEGER1" [0 I8];
    INTEGER2 "INTEGER2" [0 I16];
    INTEGER4 "INTEGER4" [0 I32];
    INTEGER8 "INTEGER8" [0 I64];
    INTEGER16 "INTEGER16" [0 I128];
    REAL2 "REAL2" [0 F16];
    REAL4 "REAL4" [0 F32];
    REAL8 "REAL8" [0 F64];
    REAL16 "REAL16" [0 F128];
    COMPLEX4 "COMPLEX4" [0 C32];
    COMPLEX8 "COMPLEX8" [0 C64];
    COMPLEX16 "COMPLEX16" [0 C128];
    COMPLEX32 "COMPLEX32" [0 C256];
    LOGICAL1 "LOGICAL1" [0 B8];
    LOGICAL2 "LOGICAL2" [0 B16];
    LOGICAL4 "LOGICAL4" [0 B32];
    LOGICAL8 "LOGICAL8" [0 B64];
    FLOAT_INT "FLOAT_INT" [0 F32, 4 I32];
    DOUBLE_INT "DOUBLE_INT" [0 F64, 8 I32];
    LONG_INT "LONG_INT" [0 I64, 8 I32];
    TWO_INT "2INT" [0 I32, 4 I32];
    SHORT_INT "SHORT_INT" [0 I16, 4 I32];
    LONG_DOUBLE_INT "LONG_DOUBLE_INT" [0 F80, 16 I32];
    TWO_REAL "2REAL" [0 F32, 4 F32];
    TWO_DOUBLE_PRECISION "2DOUBLE_PRECISION" [0 F64, 8 F64];
    TWO_INTEGER "2INTEGER" [0 I32, 4 I32];
}

impl Predefined {
    /// How many there are.
    pub(super) const NUMBER: usize = TABLE.len();

    /// Its place among them.
    pub(super) fn index(self) -> usize {
        self.0.into()
    }

    /// Every predefined type.
    ///
    /// ```
    /// use dtc_compiler::datatype::Predefined;
    /// assert!(Predefined::all().any(|each| each == Predefined::LONG_DOUBLE_INT));
    /// ```
    pub fn all() -> impl Iterator<Item = Predefined> {
        (0..TABLE.len() as u8).map(Predefined)
    }

    /// The type of that name (`MPI_INT`, ...), if there is one.
    pub fn by_name(name: &str) -> Option<Predefined> {
        let index = TABLE.iter().position(|entry| entry.name == name)?;
        Some(Predefined(index as u8))
    }

    /// Its MPI name.
    ///
    /// ```
    /// assert_eq!(dtc_compiler::datatype::Predefined::TWO_INT.name(), "MPI_2INT");
    /// ```
    pub fn name(self) -> &'static str {
        TABLE[self.0 as usize].name
    }

    /// Its basic elements in type-map order.
    ///
    /// ```
    /// use dtc_compiler::datatype::Predefined;
    /// assert_eq!(Predefined::SHORT_INT.fields()[1].offset, 4);
    /// ```
    pub fn fields(self) -> &'static [Field] {
        TABLE[self.0 as usize].fields
    }

    /// Bytes of the elements, without padding.
    pub fn size(self) -> u64 {
        self.fields().iter().map(|field| field.kind.size()).sum()
    }

    /// The strictest alignment of its elements in bytes.
    pub fn alignment(self) -> u64 {
        self.fields().iter().map(|field| field.kind.alignment()).max().unwrap_or(1)
    }

    /// Bytes from one element of an array to the next.
    pub fn extent(self) -> u64 {
        let end = self.fields().iter().map(|field| field.offset as u64 + field.kind.size()).max();
        end.unwrap_or(0).next_multiple_of(self.alignment())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_extents_are_those_of_the_abi() {
        let of = |name| {
            let found = Predefined::by_name(name).unwrap();
            (found.size(), found.extent())
        };
        assert_eq!(of("MPI_LONG_DOUBLE"), (16, 16));
        assert_eq!(of("MPI_LONG_DOUBLE_INT"), (20, 32));
        assert_eq!(of("MPI_SHORT_INT"), (6, 8));
        assert_eq!(of("MPI_C_LONG_DOUBLE_COMPLEX"), (32, 32));
        assert_eq!(of("MPI_2DOUBLE_PRECISION"), (16, 16));
    }
}
