//! Kinds of basic elements.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! kinds {
    ($($variant:ident $name:literal $size:literal $alignment:literal $doc:literal;)*) => {
        /// The kind of a basic element. Packing only needs its size; accumulation, `external32` and element borders
        /// need the rest.
        ///
        /// # Example
        ///
        /// ```
        /// use dtc_compiler::layout::Kind;
        /// assert_eq!(Kind::C128.size(), 16);
        /// assert_eq!(Kind::by_name("f32"), Some(Kind::F32));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Kind { $(#[doc = $doc] $variant),* }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// Size of one element in bytes.
            pub const fn size(self) -> u64 {
                match self { $(Kind::$variant => $size),* }
            }

            /// Alignment in bytes in C and Fortran compilers.
            pub const fn alignment(self) -> u64 {
                match self { $(Kind::$variant => $alignment),* }
            }

            /// Name in the textual forms.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),* }
            }

            /// The kind with this name, if there is one.
            pub fn by_name(name: &str) -> Option<Kind> {
                match name { $($name => Some(Kind::$variant),)* _ => None }
            }
        }
    };
}

kinds! {
    Byte "byte" 1 1 "An uninterpreted byte.";
    Char "char" 1 1 "A character.";
    I8 "i8" 1 1 "A signed integer of 8 bits.";
    I16 "i16" 2 2 "A signed integer of 16 bits.";
    I32 "i32" 4 4 "A signed integer of 32 bits.";
    I64 "i64" 8 8 "A signed integer of 64 bits.";
    I128 "i128" 16 16 "A signed integer of 128 bits.";
    U8 "u8" 1 1 "An unsigned integer of 8 bits.";
    U16 "u16" 2 2 "An unsigned integer of 16 bits.";
    U32 "u32" 4 4 "An unsigned integer of 32 bits.";
    U64 "u64" 8 8 "An unsigned integer of 64 bits.";
    F16 "f16" 2 2 "A float of 16 bits.";
    F32 "f32" 4 4 "A float of 32 bits.";
    F64 "f64" 8 8 "A float of 64 bits.";
    F80 "f80" 16 16 "An extended float: 80 bits stored in 16 bytes.";
    F128 "f128" 16 16 "A float of 128 bits.";
    C32 "c32" 4 2 "A complex number of two 16-bit floats.";
    C64 "c64" 8 4 "A complex number of two 32-bit floats.";
    C128 "c128" 16 8 "A complex number of two 64-bit floats.";
    C160 "c160" 32 16 "A complex number of two extended floats, 16 bytes each.";
    C256 "c256" 32 16 "A complex number of two 128-bit floats.";
    B8 "b8" 1 1 "A logical of 8 bits.";
    B16 "b16" 2 2 "A logical of 16 bits.";
    B32 "b32" 4 4 "A logical of 32 bits.";
    B64 "b64" 8 8 "A logical of 64 bits.";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
