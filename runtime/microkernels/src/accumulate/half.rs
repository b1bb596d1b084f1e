//! Floats of 16 bits, converted to floats of 32 for each operation.
//!
//! Sums and products are rounded twice: to 32 bits, then to 16. The result is that of one rounding, because 24 bits of mantissa
//! are at least twice 11 plus 2. The exception is a product of bfloat16 below the normal range.

use super::value::{Arithmetic, Ordered, Value};

/// A float of 16 bits as IEEE 754 has it.
#[derive(Clone, Copy)]
pub(super) struct Float16(u16);

/// A bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Bfloat(u16);

impl From<Float16> for f32 {
    #[inline(always)]
    fn from(Float16(bits): Float16) -> f32 {
        let sign = u32::from(bits & 0x8000) << 16;
        let magnitude = u32::from(bits & 0x7fff) << 13;
        // The exponents differ by 112. The product is exact, for subnormal numbers too.
        let value = f32::from_bits(magnitude) * f32::from_bits(239 << 23);
        let infinite_or_nan = if magnitude >= 0x7c00 << 13 { 0x7f80_0000 } else { 0 };
        f32::from_bits(value.to_bits() | infinite_or_nan | sign)
    }
}

impl From<f32> for Float16 {
    #[inline(always)]
    fn from(value: f32) -> Float16 {
        let bits = value.to_bits();
        let sign = (bits >> 16) & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        // Beside 0.5, a float of 32 bits counts in units of the smallest half.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
        let nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
        let rounded = match magnitude {
            0..0x3880_0000 => subnormal,
            // From 65520 on, halfway from the largest half to the next power of two.
            0x477f_f000..=0x7f80_0000 => 0x7c00,
            0x7f80_0001.. => nan,
            _ => normal,
        };
        Float16((sign | rounded) as u16)
    }
}

impl From<Bfloat> for f32 {
    #[inline(always)]
    fn from(Bfloat(bits): Bfloat) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }
}

impl From<f32> for Bfloat {
    #[inline(always)]
    fn from(value: f32) -> Bfloat {
        let bits = value.to_bits();
        let odd = (bits >> 16) & 1;
        let rounded = bits.wrapping_add(0x7fff + odd) >> 16;
        let nan = bits >> 16 | 0x40;
        Bfloat(if value.is_nan() { nan } else { rounded } as u16)
    }
}

macro_rules! short_floats {
    ($($float:ident),*) => { $(
        impl Value for $float {
            #[inline(always)]
            fn each(memory: &mut [u8], packed: &[u8], combine: impl Fn(Self, Self) -> Self) {
                u16::each(memory, packed, |memory, packed| combine($float(memory), $float(packed)).0);
            }
        }

        impl Arithmetic for $float {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                (f32::from(self) + f32::from(other)).into()
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                (f32::from(self) * f32::from(other)).into()
            }
        }

        impl Ordered for $float {
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                f32::from(self) < f32::from(other)
            }

            #[inline(always)]
            fn equals(self, other: Self) -> bool {
                f32::from(self) == f32::from(other)
            }
        }
    )* };
}

short_floats!(Float16, Bfloat);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let (half, bfloat) = (f32::from(Float16(bits)), f32::from(Bfloat(bits)));
            assert!(Float16::from(half).0 == bits || half.is_nan() && f32::from(Float16::from(half)).is_nan());
            assert!(Bfloat::from(bfloat).0 == bits || bfloat.is_nan() && f32::from(Bfloat::from(bfloat)).is_nan());
        }
        assert_eq!(f32::from(Float16(0x3c01)), 1.0 + 1.0 / 1024.0);
        assert_eq!(f32::from(Float16(0x8001)), -1.0 / f32::from_bits((127 + 24) << 23));
        assert_eq!(f32::from(Float16(0xfc00)), f32::NEG_INFINITY);
        assert_eq!(f32::from(Bfloat(0x3f81)), 1.0 + 1.0 / 128.0);
    }

    /// Between neighbours, the nearer is taken, and the even one halfway.
    #[test]
    fn rounding_is_to_nearest_even() {
        for bits in 0..0x7c00u16 {
            let (low, high) = (f64::from(f32::from(Float16(bits))), f64::from(f32::from(Float16(bits + 1))));
            // Beyond the largest half, the next number would be the next power of two.
            let high = if high.is_infinite() { 65536.0 } else { high };
            let middle = ((low + high) / 2.0) as f32;
            assert_eq!(Float16::from(middle).0, bits + (bits & 1), "{bits:#x}");
            assert_eq!(Float16::from(middle.next_down()).0, bits, "{bits:#x}");
            assert_eq!(Float16::from(-middle.next_up()).0, 0x8000 | (bits + 1), "{bits:#x}");
        }
        for bits in 0..0x7f80u16 {
            let middle = f32::from_bits(u32::from(bits) << 16 | 0x8000);
            assert_eq!(Bfloat::from(middle).0, bits + (bits & 1), "{bits:#x}");
            assert_eq!(Bfloat::from(middle.next_down()).0, bits, "{bits:#x}");
            assert_eq!(Bfloat::from(-middle.next_up()).0, 0x8000 | (bits + 1), "{bits:#x}");
        }
    }
}
