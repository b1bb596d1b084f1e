//! The `long double` of x86 and the binary128 of IEEE 754. Both have a sign and an exponent of 15 bits with one bias; the leading
//! bit of the mantissa is written out in the one and implied in the other. So every number of x86 has an exact binary128.

/// Bits of the fraction: without the leading bit.
const FRACTION: u32 = 63;
/// Bits that the fraction of a binary128 has beyond that.
const EXCESS: u32 = 112 - FRACTION;
/// Sign, exponent and the first bit of the fraction of a binary128 NaN.
const NOT_A_NUMBER: u128 = 0x1_ffff << 111;
/// The exponent of infinities and NaNs.
const SPECIAL: u128 = 0x7fff;

/// The binary128 of a long double, whose 6 bytes of padding are ignored. Encodings that x86 refuses are not numbers.
#[inline(always)]
pub fn to_binary128(bits: u128) -> u128 {
    let (sign, exponent) = (bits >> 79 & 1, bits >> 64 & SPECIAL);
    let (leading, fraction) = (bits >> FRACTION & 1, bits & ((1 << FRACTION) - 1));
    if exponent != 0 && leading == 0 {
        return NOT_A_NUMBER;
    }
    // With a leading bit, the lowest exponent has the same scale as the one above it.
    let exponent = exponent.max(leading);
    sign << 127 | exponent << 112 | fraction << EXCESS
}

/// The long double nearest to a binary128, of two the even one. The padding is 0.
#[inline(always)]
pub fn from_binary128(bits: u128) -> u128 {
    let (sign, magnitude) = (bits >> 127, bits << 1 >> 1);
    let (kept, excess) = (magnitude >> EXCESS, magnitude & ((1 << EXCESS) - 1));
    let infinity = SPECIAL << FRACTION;
    let kept = if kept >= infinity {
        // A NaN whose only fraction bits are dropped must not become an infinity.
        kept | u128::from(kept == infinity && excess != 0) << (FRACTION - 1)
    } else {
        let half = 1 << (EXCESS - 1);
        kept + u128::from(excess > half || excess == half && kept & 1 == 1)
    };
    let (exponent, fraction) = (kept >> FRACTION, kept & ((1 << FRACTION) - 1));
    sign << 79 | exponent << 64 | u128::from(exponent != 0) << FRACTION | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(sign_and_exponent: u128, mantissa: u64) -> u128 {
        sign_and_exponent << 64 | u128::from(mantissa)
    }

    #[test]
    fn known_values() {
        // 1, -2, pi as x86 has it, the greatest, the least normal and the least of all, infinity, and one that is no number.
        let known = [
            (extended(0x3fff, 1 << 63), 0x3fff << 112),
            (extended(0xc000, 1 << 63), 0xc000 << 112),
            (extended(0x4000, 0xc90f_daa2_2168_c235), 0x4000_921f_b544_42d1_846a_0000_0000_0000),
            (extended(0x7ffe, u64::MAX), 0x7ffe_ffff_ffff_ffff_fffe_0000_0000_0000),
            (extended(1, 1 << 63), 1 << 112),
            (extended(0, 1), 1 << 49),
            (extended(0xffff, 1 << 63), 0xffff << 112),
            (extended(0x7fff, 3 << 62), 0xffff << 111),
            (extended(0x8000, 0), 1 << 127),
        ];
        for (long_double, binary128) in known {
            assert_eq!(to_binary128(0xabcd << 80 | long_double), binary128, "{long_double:x}");
            assert_eq!(from_binary128(binary128), long_double, "{binary128:x}");
        }
    }

    #[test]
    fn unusual_encodings() {
        // A denormal with a leading bit is the least normal number; a number without one is none, nor are other specials.
        assert_eq!(to_binary128(extended(0, 1 << 63)), 1 << 112);
        for (exponent, mantissa) in [(0x3fff, 1), (0x7fff, 0), (0x7fff, 1 << 62)] {
            assert_eq!(to_binary128(extended(exponent, mantissa)), NOT_A_NUMBER);
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        let one = 0x3fff_u128 << 112;
        let half = 1u128 << 48;
        for (excess, mantissa) in
            [(half - 1, 0), (half, 0), (half + 1, 1), (3 * half - 1, 1), (3 * half, 2), (4 * half, 2)]
        {
            assert_eq!(from_binary128(one + excess), extended(0x3fff, 1 << 63 | mantissa), "{excess:x}");
        }
        // Up to the next exponent, to the normal numbers, and to infinity.
        assert_eq!(from_binary128((0x4000 << 112) - 1), extended(0x4000, 1 << 63));
        assert_eq!(from_binary128((1 << 112) - 1), extended(1, 1 << 63));
        assert_eq!(from_binary128((0x7fff << 112) - 1), extended(0x7fff, 1 << 63));
        // Never from what is no number to infinity.
        assert_eq!(from_binary128((0x7fff << 112) + 1), extended(0x7fff, 3 << 62));
    }
}
