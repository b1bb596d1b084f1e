//! The `long double` of x86: a float of 80 bits in 16 bytes, of which the last 6 are padding.

use super::value::{Arithmetic, Ordered, Value, each_array};

/// A float of 80 bits with its padding.
#[derive(Clone, Copy)]
pub(super) struct Extended([u8; 16]);

impl Extended {
    #[inline(always)]
    pub(super) fn from_ne_bytes(bytes: [u8; 16]) -> Extended {
        Extended(bytes)
    }

    #[inline(always)]
    pub(super) fn to_ne_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The number as an integer of the same order; `None` if it is not a number.
    fn rank(self) -> Option<i128> {
        let bits = u128::from_le_bytes(self.0) & ((1 << 80) - 1);
        let magnitude = (bits & ((1 << 79) - 1)) as i128;
        let infinity = 0x7fff << 64 | 1 << 63;
        (magnitude <= infinity).then_some(if bits >> 79 == 1 { -magnitude } else { magnitude })
    }
}

impl Value for Extended {
    #[inline(always)]
    fn each(memory: &mut [u8], packed: &[u8], combine: impl Fn(Self, Self) -> Self) {
        each_array(memory, packed, |memory, packed| combine(Extended(memory), Extended(packed)).0);
    }
}

impl Ordered for Extended {
    fn less(self, other: Self) -> bool {
        self.rank().zip(other.rank()).is_some_and(|(one, other)| one < other)
    }

    fn equals(self, other: Self) -> bool {
        self.rank().zip(other.rank()).is_some_and(|(one, other)| one == other)
    }
}

/// Replaces the first operand by the result of an instruction of the x87 unit, which rounds to 64 bits of mantissa by default.
macro_rules! x87 {
    ($instruction:literal, $one:expr, $other:expr) => {{
        let (mut one, other) = ($one.0, $other.0);
        // SAFETY: two loads and a store of 10 bytes inside arrays of 16. The register stack is empty here, as the calling
        // convention demands, and left empty.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{one}]",
                "fld tbyte ptr [{other}]",
                $instruction,
                "fstp tbyte ptr [{one}]",
                one = in(reg) &raw mut one,
                other = in(reg) &raw const other,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        Extended(one)
    }};
}

impl Arithmetic for Extended {
    fn sum(self, other: Self) -> Self {
        x87!("faddp st(1), st", self, other)
    }

    fn product(self, other: Self) -> Self {
        x87!("fmulp st(1), st", self, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mantissa * 2^(exponent - 63)`, with a mark in the padding.
    fn extended(negative: bool, exponent: i32, mantissa: u64) -> Extended {
        let sign_and_exponent = u128::from(negative) << 15 | (exponent + 16383) as u128;
        Extended((0xabcd_u128 << 80 | sign_and_exponent << 64 | u128::from(mantissa)).to_le_bytes())
    }

    #[test]
    fn sums_and_products_have_64_bits_of_mantissa() {
        let one = extended(false, 0, 1 << 63);
        let tiny = extended(false, -63, 1 << 63);
        assert_eq!(one.sum(tiny).0, extended(false, 0, 1 << 63 | 1).0);
        let three = extended(false, 1, 3 << 62);
        assert_eq!(three.product(three).0, extended(false, 3, 9 << 60).0);
        assert_eq!(one.sum(extended(true, 0, 1 << 63)).rank(), Some(0));
    }

    #[test]
    fn numbers_are_ordered() {
        let infinity = |negative| extended(negative, 16384, 1 << 63);
        let nan = extended(false, 16384, 3 << 62);
        let ascending = [infinity(true), extended(true, 3, 1 << 63), extended(false, -5, 1 << 63), infinity(false)];
        for (at, low) in ascending.iter().enumerate() {
            for high in &ascending[at + 1..] {
                assert!(low.less(*high) && !high.less(*low) && !low.equals(*high));
            }
            assert!(low.equals(*low) && !low.less(nan) && !nan.less(*low) && !nan.equals(nan));
        }
        assert!(extended(false, -16383, 0).equals(extended(true, -16383, 0)));
    }
}
