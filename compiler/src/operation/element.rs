//! Elements that reduction operations compute with.

use crate::datatype::{Predefined, Signature};
use crate::layout::Kind;
use std::fmt;

/// Groups of elements in the table of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Integer,
    Float,
    Complex,
    Logical,
    Byte,
    Pair,
}

macro_rules! elements {
    ($($variant:ident $name:literal $class:ident [$($kind:ident),+] $doc:literal;)*) => {
        /// A basic element of an operation: a number, a logical, a byte, or a value with its index.
        ///
        /// C and Fortran types of one representation are one element. Multi-language types (`MPI_AINT`, ...) are
        /// integers.
        ///
        /// # Standard sections
        ///
        /// MPI 4.1, 6.9.2 (the groups of types), 6.9.4 (pairs).
        ///
        /// # Example
        ///
        /// ```
        /// use dtc_compiler::datatype::Predefined;
        /// use dtc_compiler::operation::Element;
        /// assert_eq!(Element::of(Predefined::LONG), Some(Element::I64));
        /// assert_eq!(Element::of(Predefined::CHARACTER), None);
        /// // Packed pairs have no padding.
        /// assert_eq!(Element::ShortInt.size(), 6);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Element { $(#[doc = $doc] $variant),* }

        impl Element {
            /// All elements.
            pub const ALL: &'static [Element] = &[$(Element::$variant),*];

            /// Its basic elements in type-map order: two for a pair.
            ///
            /// No predefined type is a bfloat16. Applications describe them as unsigned integers of 16 bits, or as
            /// bytes.
            pub const fn kinds(self) -> &'static [Kind] {
                match self { $(Element::$variant => &[$(Kind::$kind),+]),* }
            }

            pub(super) const fn class(self) -> Class {
                match self { $(Element::$variant => Class::$class),* }
            }

            /// Name in messages.
            pub const fn name(self) -> &'static str {
                match self { $(Element::$variant => $name),* }
            }
        }
    };
}

elements! {
    I8 "i8" Integer [I8] "A signed integer of 8 bits.";
    I16 "i16" Integer [I16] "A signed integer of 16 bits.";
    I32 "i32" Integer [I32] "A signed integer of 32 bits.";
    I64 "i64" Integer [I64] "A signed integer of 64 bits.";
    U8 "u8" Integer [U8] "An unsigned integer of 8 bits.";
    U16 "u16" Integer [U16] "An unsigned integer of 16 bits.";
    U32 "u32" Integer [U32] "An unsigned integer of 32 bits.";
    U64 "u64" Integer [U64] "An unsigned integer of 64 bits.";
    F16 "f16" Float [F16] "A float of 16 bits.";
    Bf16 "bf16" Float [U16] "A bfloat16: the upper half of a float of 32 bits.";
    F32 "f32" Float [F32] "A float of 32 bits.";
    F64 "f64" Float [F64] "A float of 64 bits.";
    F80 "f80" Float [F80] "A `long double` of x86: 80 bits stored in 16 bytes.";
    C64 "c64" Complex [C64] "A complex number of two 32-bit floats.";
    C128 "c128" Complex [C128] "A complex number of two 64-bit floats.";
    B8 "b8" Logical [B8] "A logical of 8 bits.";
    B16 "b16" Logical [B16] "A logical of 16 bits.";
    B32 "b32" Logical [B32] "A logical of 32 bits.";
    B64 "b64" Logical [B64] "A logical of 64 bits.";
    Byte "byte" Byte [Byte] "An uninterpreted byte.";
    FloatInt "f32 with i32" Pair [F32, I32] "`MPI_FLOAT_INT`.";
    DoubleInt "f64 with i32" Pair [F64, I32] "`MPI_DOUBLE_INT`.";
    LongInt "i64 with i32" Pair [I64, I32] "`MPI_LONG_INT`.";
    TwoInt "i32 with i32" Pair [I32, I32] "`MPI_2INT` and `MPI_2INTEGER`.";
    ShortInt "i16 with i32" Pair [I16, I32] "`MPI_SHORT_INT`.";
    LongDoubleInt "f80 with i32" Pair [F80, I32] "`MPI_LONG_DOUBLE_INT`.";
    TwoReal "f32 with f32" Pair [F32, F32] "`MPI_2REAL`.";
    TwoDoublePrecision "f64 with f64" Pair [F64, F64] "`MPI_2DOUBLE_PRECISION`.";
}

impl Element {
    /// The element of a predefined type. `None` for characters, integers and floats of 128 bits, and complex numbers of
    /// 16-bit, extended and 128-bit floats.
    ///
    /// ```
    /// use dtc_compiler::datatype::Predefined;
    /// use dtc_compiler::operation::Element;
    /// assert_eq!(Element::of(Predefined::TWO_INTEGER), Some(Element::TwoInt));
    /// assert_eq!(Element::of(Predefined::C_LONG_DOUBLE_COMPLEX), None);
    /// ```
    pub fn of(predefined: Predefined) -> Option<Element> {
        let is = |element: &&Element| {
            let kinds = predefined.fields().iter().map(|field| field.kind);
            element.kinds().iter().copied().eq(kinds) && **element != Element::Bf16
        };
        Element::ALL.iter().find(is).copied()
    }

    /// Size of a packed element in bytes. Pairs are packed without padding.
    pub const fn size(self) -> u64 {
        match self.kinds() {
            [value, index] => value.size() + index.size(),
            [only] => only.size(),
            _ => 0,
        }
    }

    /// Whether a type with this signature certainly consists of other elements.
    ///
    /// A signature is conclusive if all its elements are of one kind, or are pairs of one kind. Bytes and mixed kinds
    /// may hold any element.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::operation::Element;
    /// let mut types = TypeBuilder::new();
    /// let double = types.named(Predefined::DOUBLE);
    /// let doubles = types.contiguous(6, double)?;
    /// let signature = types.finish(doubles)?.signature();
    /// assert!(Element::I32.contradicts(&signature));
    /// assert!(!Element::F64.contradicts(&signature));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn contradicts(self, signature: &Signature) -> bool {
        let wild = |kind: Kind| kind == Kind::Byte;
        !signature.repeats(self.kinds())
            && Kind::ALL.iter().any(|&kind| signature.repeats(&[kind]) && !wild(kind))
            && signature.elements() > 0
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_the_bytes_of_their_predefined_types() {
        let mut without = Vec::new();
        for predefined in Predefined::all() {
            match Element::of(predefined) {
                Some(element) => assert_eq!(element.size(), predefined.size(), "{}", predefined.name()),
                None => without.extend(predefined.fields().iter().map(|field| field.kind)),
            }
        }
        without.sort_by_key(|kind| *kind as u8);
        without.dedup();
        assert_eq!(without, [Kind::Char, Kind::I128, Kind::F128, Kind::C32, Kind::C160, Kind::C256]);
    }

    #[test]
    fn only_what_is_certain_contradicts() {
        let of = |kinds: &[Kind], times| {
            let once = Signature::of_kinds(kinds.iter().copied());
            once.repeat(times)
        };
        assert!(!Element::TwoInt.contradicts(&of(&[Kind::I32], 4)));
        assert!(!Element::DoubleInt.contradicts(&of(&[Kind::F64, Kind::I32], 3)));
        assert!(Element::DoubleInt.contradicts(&of(&[Kind::F64], 3)));
        assert!(!Element::F64.contradicts(&of(&[Kind::Byte], 24)));
        assert!(!Element::F64.contradicts(&of(&[Kind::F64, Kind::I32], 3)));
        assert!(Element::U32.contradicts(&of(&[Kind::I32], 3)));
        assert!(!Element::U32.contradicts(&Signature::EMPTY));
        assert!(Element::Bf16.contradicts(&of(&[Kind::F16], 3)));
    }
}
