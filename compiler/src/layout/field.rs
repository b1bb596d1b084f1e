//! Arithmetic modulo the Mersenne prime 2^127 - 1, in which fingerprints are computed.

use std::hash::{Hash, Hasher};
use std::ops::{Add, Mul};

const MODULUS: u128 = (1 << 127) - 1;

/// A residue modulo 2^127 - 1. Zero has two forms, 0 and the modulus, so that sums need no comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residue(u128);

impl PartialEq for Residue {
    fn eq(&self, other: &Residue) -> bool {
        self.value() == other.value()
    }
}

impl Eq for Residue {}

impl Hash for Residue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

impl Residue {
    pub(crate) const ZERO: Residue = Residue(0);
    pub(crate) const ONE: Residue = Residue(1);

    pub(crate) const fn new(value: u128) -> Residue {
        // Of the largest value the first step leaves one too much.
        Residue::fold(Residue::fold(value).0)
    }

    /// Of a value of at most twice the modulus.
    #[inline]
    const fn fold(value: u128) -> Residue {
        Residue((value & MODULUS) + (value >> 127))
    }

    /// The smallest representative.
    pub(crate) const fn value(self) -> u128 {
        if self.0 == MODULUS { 0 } else { self.0 }
    }

    #[inline]
    const fn times(self, other: Residue) -> Residue {
        let (a1, a0) = ((self.0 >> 64) as u64 as u128, self.0 as u64 as u128);
        let (b1, b0) = ((other.0 >> 64) as u64 as u128, other.0 as u64 as u128);
        // The upper halves are below 2^63, so the middle sum stays below 2^128.
        let low = a0 * b0;
        let middle = a0 * b1 + a1 * b0;
        let high = a1 * b1;
        // The product is high * 2^128 + middle * 2^64 + low, and 2^127 is 1: the low 63 bits of `middle` stay where
        // they are, the others wrap round once. Both partial sums are below 2^127, and so the last sum fits too.
        let wrapped = high * 2 + (middle >> 63);
        let stayed = Residue::fold(((middle & (u64::MAX as u128 >> 1)) << 64) + (low & MODULUS)).0;
        Residue::fold(wrapped + stayed + (low >> 127))
    }

    #[inline]
    const fn plus(self, other: Residue) -> Residue {
        Residue::fold(self.0 + other.0)
    }

    /// The power of a residue, by squaring.
    pub(crate) fn power(self, mut exponent: u128) -> Residue {
        let mut base = self;
        let mut result = Residue::ONE;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result * base;
            }
            base = base * base;
            exponent >>= 1;
        }
        result
    }

    /// The sum of the first `terms` powers of a residue: 1 + r + r^2 + ... in O(log terms) steps.
    pub(crate) fn geometric_sum(self, terms: u64) -> Residue {
        // Of n terms: sum(2n) = sum(n) * (1 + r^n) and sum(n + 1) = sum(n) * r + 1.
        let mut sum = Residue::ZERO;
        let mut power = Residue::ONE;
        for bit in (0..u64::BITS - terms.leading_zeros()).rev() {
            sum = sum * (Residue::ONE + power);
            power = power * power;
            if terms >> bit & 1 == 1 {
                sum = sum * self + Residue::ONE;
                power = power * self;
            }
        }
        sum
    }
}

impl Mul for Residue {
    type Output = Residue;
    #[inline]
    fn mul(self, other: Residue) -> Residue {
        self.times(other)
    }
}

impl Add for Residue {
    type Output = Residue;
    #[inline]
    fn add(self, other: Residue) -> Residue {
        self.plus(other)
    }
}

/// Powers of one base with exponents of 64 bits, from tables: eight products instead of up to 128.
pub(crate) struct Powers {
    positive: Box<[[Residue; 256]; 8]>,
    negative: Box<[[Residue; 256]; 8]>,
}

impl Powers {
    /// Tables for a base that is neither 0 nor 1.
    pub(crate) fn new(base: Residue) -> Powers {
        // Fermat: the inverse is the power p - 2.
        let inverse = base.power(MODULUS - 2);
        Powers { positive: Powers::tables(base), negative: Powers::tables(inverse) }
    }

    fn tables(base: Residue) -> Box<[[Residue; 256]; 8]> {
        let mut tables = Box::new([[Residue::ONE; 256]; 8]);
        let mut step = base;
        for table in tables.iter_mut() {
            for digit in 1..256 {
                table[digit] = table[digit - 1] * step;
            }
            step = table[255] * step;
        }
        tables
    }

    #[inline]
    fn look_up(tables: &[[Residue; 256]; 8], mut exponent: u64) -> Residue {
        let mut result = Residue::ONE;
        let mut table = 0;
        while exponent > 0 {
            let digit = exponent & 255;
            if digit > 0 {
                result = result * tables[table][digit as usize];
            }
            exponent >>= 8;
            table += 1;
        }
        result
    }

    /// The base to a signed exponent.
    #[inline]
    pub(crate) fn signed(&self, exponent: i64) -> Residue {
        let tables = if exponent < 0 { &self.negative } else { &self.positive };
        Powers::look_up(tables, exponent.unsigned_abs())
    }

    /// The base to an unsigned exponent.
    #[inline]
    pub(crate) fn unsigned(&self, exponent: u64) -> Residue {
        Powers::look_up(&self.positive, exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schoolbook product by doubling, which cannot overflow.
    fn slow_product(a: Residue, b: Residue) -> Residue {
        let mut sum = Residue::ZERO;
        for bit in (0..127).rev() {
            sum = sum + sum;
            if b.0 >> bit & 1 == 1 {
                sum = sum + a;
            }
        }
        sum
    }

    #[test]
    fn products_agree_with_doubling() {
        let mut a = Residue::new(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let mut b = Residue::new(MODULUS - 1);
        for _ in 0..500 {
            assert_eq!(a * b, slow_product(a, b));
            (a, b) = (a * a + b, a);
        }
        assert_eq!(Residue::new(MODULUS), Residue::ZERO);
        assert_eq!(Residue::new(u128::MAX), Residue::new(1));
    }

    #[test]
    fn powers_and_sums_agree_with_their_definitions() {
        let base = Residue::new(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);
        let powers = Powers::new(base);
        for exponent in [0u64, 1, 255, 256, 65_537, u64::MAX] {
            assert_eq!(powers.unsigned(exponent), base.power(exponent.into()));
        }
        assert_eq!(powers.signed(-77) * powers.signed(77), Residue::ONE);
        assert_eq!(powers.signed(i64::MIN) * base.power(1 << 63), Residue::ONE);
        for terms in 0u64..40 {
            let direct = (0..terms).fold(Residue::ZERO, |sum, k| sum + base.power(k.into()));
            assert_eq!(base.geometric_sum(terms), direct);
        }
    }
}
