//! Arithmetic modulo the Mersenne prime 2^127 - 1, in which fingerprints are computed.

use std::hash::{Hash, Hasher};
use std::ops::{Add, Deref, Mul};

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
        // For the largest values, one folding step leaves a value above the modulus.
        Residue::fold(Residue::fold(value).0)
    }

    /// Reduces a value of at most twice the modulus.
    #[inline]
    const fn fold(value: u128) -> Residue {
        Residue((value & MODULUS) + (value >> 127))
    }

    /// The smallest non-negative representative.
    pub(crate) const fn value(self) -> u128 {
        if self.0 == MODULUS { 0 } else { self.0 }
    }

    /// The upper and the lower 128 bits of the product.
    #[inline]
    const fn product(self, other: Residue) -> (u128, u128) {
        let (a1, a0) = ((self.0 >> 64) as u64 as u128, self.0 as u64 as u128);
        let (b1, b0) = ((other.0 >> 64) as u64 as u128, other.0 as u64 as u128);
        // The upper halves are below 2^63, so the middle sum stays below 2^128.
        let middle = a0 * b1 + a1 * b0;
        let (low, carry) = (a0 * b0).overflowing_add(middle << 64);
        let high = a1 * b1 + (middle >> 64) + carry as u128;
        (high, low)
    }

    #[inline]
    pub(crate) const fn times(self, other: Residue) -> Residue {
        // The product is high * 2^128 + low with high below 2^126, and 2^127 is congruent to 1.
        let (high, low) = self.product(other);
        Residue::fold((low & MODULUS) + (high << 1 | low >> 127))
    }

    /// `self * other + more`, with one reduction.
    #[inline]
    pub(crate) const fn times_plus(self, other: Residue, more: Residue) -> Residue {
        let (high, low) = self.product(other);
        let (low, carry) = low.overflowing_add(more.0);
        Residue::fold((low & MODULUS) + ((high + carry as u128) << 1 | low >> 127))
    }

    /// The sum of four products, with one reduction.
    #[inline]
    pub(crate) fn sum_of_products(factors: [(Residue, Residue); 4]) -> Residue {
        let (mut high, mut low) = (0, 0u128);
        for (one, other) in factors {
            let (more_high, more_low) = one.product(other);
            let (sum, carry) = low.overflowing_add(more_low);
            // Each upper part is at most 2^126 - 1, and the four lower parts carry at most three times.
            (high, low) = (high + more_high + u128::from(carry), sum);
        }
        let high = Residue::fold(high).0;
        Residue::fold(high << 1 | low >> 127) + Residue(low & MODULUS)
    }

    #[inline]
    pub(crate) const fn plus(self, other: Residue) -> Residue {
        Residue::fold(self.0 + other.0)
    }

    /// The power of a residue, by squaring.
    pub(crate) const fn power(self, mut exponent: u128) -> Residue {
        let mut base = self;
        let mut result = Residue::ONE;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(base);
            }
            base = base.times(base);
            exponent >>= 1;
        }
        result
    }

    /// The multiplicative inverse; zero for zero.
    pub(crate) const fn inverse(self) -> Residue {
        // The inverse is the power p - 2 (Fermat).
        self.power(MODULUS - 2)
    }

    /// `self - 1`.
    #[inline]
    pub(crate) const fn less_one(self) -> Residue {
        self.plus(Residue(MODULUS - 1))
    }

    /// The sum of the first `terms` powers, 1 + r + r^2 + ..., in O(log terms) steps.
    pub(crate) fn geometric_sum(self, terms: u64) -> Residue {
        // Recurrences: sum(2n) = sum(n) * (1 + r^n), sum(n + 1) = sum(n) * r + 1.
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

/// A sum of up to 2^64 products with one reduction, at the end.
#[derive(Clone, Copy)]
pub(crate) struct FieldSum {
    low: u128,
    high: u128,
    /// Number of carries out of 2^256.
    carries: u64,
}

impl FieldSum {
    pub(crate) const ZERO: FieldSum = FieldSum { low: 0, high: 0, carries: 0 };

    #[inline]
    pub(crate) fn add_product(&mut self, one: Residue, other: Residue) {
        let (high, low) = one.product(other);
        let (low, carry) = self.low.overflowing_add(low);
        // The upper part of a product is below 2^126.
        let (high, carries) = self.high.overflowing_add(high + u128::from(carry));
        *self = FieldSum { low, high, carries: self.carries + u64::from(carries) };
    }

    /// Whether every product added so far was zero.
    #[inline]
    pub(crate) fn is_zero(&self) -> bool {
        self.low | self.high == 0 && self.carries == 0
    }

    /// The reduced sum.
    pub(crate) fn residue(self) -> Residue {
        // 2^128 is congruent to 2, and 2^256 to 4.
        let high = Residue::new(self.high);
        Residue::new(self.low) + (high + high) + Residue::new(u128::from(self.carries) << 2)
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

/// Bits of the lowest digit of an exponent.
pub(crate) const LOWEST_DIGIT: u32 = 12;

/// Bits of the other digits. Two digits cover displacements below 2 MiB, which cost one product.
pub(crate) const DIGIT: u32 = 9;

/// Number of digits above the lowest in 64 bits.
const DIGITS: usize = (u64::BITS - LOWEST_DIGIT).div_ceil(DIGIT) as usize;

/// Trailing bits of an exponent that are zero for most displacements.
const EVEN: u32 = 3;

/// A table: of a base that is known when the crate is compiled, or on the heap.
pub(crate) enum Held<T: 'static> {
    Constant(&'static T),
    Heap(Box<T>),
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match self {
            Held::Constant(table) => table,
            Held::Heap(table) => table,
        }
    }
}

/// Powers of a base by the lowest digit of their exponent. Entries of multiples of 8 come first, so that displacements of large elements touch few
/// cache lines.
type Lowest = [Residue; 1 << LOWEST_DIGIT];

/// Powers of a base by each of the other digits.
type Others = [[Residue; 1 << DIGIT]; DIGITS];

/// The tables of a base that is known when the crate is compiled. In memory that processes share, and read as far as they are used.
pub(crate) struct ConstantPowers {
    lowest: Lowest,
    digits: Others,
}

impl ConstantPowers {
    /// Tables for a base other than 0.
    pub(crate) const fn new(base: Residue) -> ConstantPowers {
        let (mut lowest, mut digits) = ([Residue::ONE; 1 << LOWEST_DIGIT], [[Residue::ONE; 1 << DIGIT]; DIGITS]);
        Powers::fill(&mut lowest, &mut digits, base);
        ConstantPowers { lowest, digits }
    }
}

/// Powers of one base with unsigned exponents of 64 bits, from tables of the digits of the exponent.
pub(crate) struct Powers {
    lowest: Held<Lowest>,
    digits: Held<Others>,
}

/// Powers of one base with signed exponents of 64 bits.
pub(crate) struct SignedPowers {
    positive: Powers,
    negative: Powers,
}

/// A table on the heap. `Box::new` of an array may build it on the stack first, and callers have stacks of 32 KiB.
pub(crate) fn on_heap<T: Clone, const N: usize>(value: T) -> Box<[T; N]> {
    /// Never reached, because the vector has `N` values. It is a function of its own to keep its frame out of the
    /// caller's.
    #[cold]
    #[inline(never)]
    fn by_stack<T: Clone, const N: usize>(values: Box<[T]>, value: T) -> Box<[T; N]> {
        drop(values);
        Box::new(std::array::from_fn(|_| value.clone()))
    }
    match vec![value.clone(); N].into_boxed_slice().try_into() {
        Ok(table) => table,
        Err(values) => by_stack(values, value),
    }
}

impl Powers {
    /// Tables for a base other than 0.
    pub(crate) fn new(base: Residue) -> Powers {
        let (mut lowest, mut digits) = (on_heap(Residue::ONE), on_heap([Residue::ONE; 1 << DIGIT]));
        Powers::fill(&mut lowest, &mut digits, base);
        Powers { lowest: Held::Heap(lowest), digits: Held::Heap(digits) }
    }

    /// Those of a base that is known when the crate is compiled.
    pub(crate) const fn constant(tables: &'static ConstantPowers) -> Powers {
        Powers { lowest: Held::Constant(&tables.lowest), digits: Held::Constant(&tables.digits) }
    }

    const fn fill(lowest: &mut Lowest, digits: &mut Others, base: Residue) {
        // `step` is the base raised to the place value of the next digit. Constant functions have no `for`.
        let mut step = Residue::ONE;
        let mut exponent = 0;
        while exponent < 1 << LOWEST_DIGIT {
            lowest[Powers::place(exponent)] = step;
            step = step.times(base);
            exponent += 1;
        }
        let mut digit = 0;
        while digit < DIGITS {
            let mut power = Residue::ONE;
            let mut entry = 0;
            while entry < 1 << DIGIT {
                digits[digit][entry] = power;
                power = power.times(step);
                entry += 1;
            }
            step = power;
            digit += 1;
        }
    }

    /// Index of the lowest digit of an exponent in `lowest`.
    #[inline(always)]
    const fn place(exponent: u64) -> usize {
        let (even, odd) = (exponent & ((1 << LOWEST_DIGIT) - 1), exponent & ((1 << EVEN) - 1));
        (even >> EVEN | odd << (LOWEST_DIGIT - EVEN)) as usize
    }

    /// The base raised to `exponent`.
    #[inline(always)]
    pub(crate) fn of(&self, exponent: u64) -> Residue {
        let (lowest, rest) = (self.lowest[Powers::place(exponent)], exponent >> LOWEST_DIGIT);
        if rest == 0 {
            return lowest;
        }
        let two_digits = lowest * self.digits[0][(rest & ((1 << DIGIT) - 1)) as usize];
        let others = rest >> DIGIT;
        if others == 0 { two_digits } else { self.extended(two_digits, others) }
    }

    /// The base raised to the lowest digit of `exponent`, and the remaining upper bits.
    #[inline(always)]
    pub(crate) fn lowest(&self, exponent: u64) -> (Residue, u64) {
        (self.lowest[Powers::place(exponent)], exponent >> LOWEST_DIGIT)
    }

    /// The base raised to the upper bits that [`Powers::lowest`] returned, if they are one digit.
    #[inline(always)]
    pub(crate) fn second(&self, digit: usize) -> Residue {
        self.digits[0][digit]
    }

    /// The base raised to the two lowest digits of `exponent`, and the remaining upper bits.
    #[inline(always)]
    pub(crate) fn two_lowest(&self, exponent: u64) -> (Residue, u64) {
        let (lowest, rest) = self.lowest(exponent);
        (lowest * self.digits[0][(rest & ((1 << DIGIT) - 1)) as usize], rest >> DIGIT)
    }

    /// The base raised to the upper bits that [`Powers::two_lowest`] returned, if they are one digit.
    #[inline(always)]
    pub(crate) fn third(&self, digit: usize) -> Residue {
        self.digits[1][digit]
    }

    /// Multiplies the power of the two lowest digits with those of the others.
    #[inline(never)]
    fn extended(&self, two_digits: Residue, mut others: u64) -> Residue {
        let mut result = two_digits;
        for digit in &self.digits[1..] {
            if others == 0 {
                break;
            }
            result = result * digit[(others & ((1 << DIGIT) - 1)) as usize];
            others >>= DIGIT;
        }
        result
    }
}

impl SignedPowers {
    /// Tables for a base other than 0.
    pub(crate) fn new(base: Residue) -> SignedPowers {
        SignedPowers { positive: Powers::new(base), negative: Powers::new(base.inverse()) }
    }

    /// Those of a base that is known when the crate is compiled, by its powers and those of its inverse.
    pub(crate) const fn constant(positive: &'static ConstantPowers, negative: &'static ConstantPowers) -> SignedPowers {
        SignedPowers { positive: Powers::constant(positive), negative: Powers::constant(negative) }
    }

    /// The powers with non-negative exponents.
    #[inline]
    pub(crate) fn positive(&self) -> &Powers {
        &self.positive
    }

    /// The base raised to `exponent`.
    #[inline]
    pub(crate) fn of(&self, exponent: i64) -> Residue {
        let powers = if exponent < 0 { &self.negative } else { &self.positive };
        powers.of(exponent.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schoolbook multiplication by doubling, which cannot overflow.
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
        let most = Residue(MODULUS);
        assert_eq!(Residue::sum_of_products([(most, most); 4]), Residue::ZERO);
        let (c, d) = (a * b, b * b);
        let sum = Residue::sum_of_products([(a, b), (c, d), (a, d), (most, c)]);
        assert_eq!(sum, a * b + c * d + a * d);
        assert_eq!(a.times_plus(b, c), a * b + c);
        let (mut many, mut wanted) = (FieldSum::ZERO, Residue::ZERO);
        for _ in 0..100 {
            many.add_product(most, Residue(MODULUS - 1));
            many.add_product(c, d);
            wanted = wanted + c * d;
        }
        assert_eq!(many.residue(), wanted);
        assert_eq!(most.times_plus(most, most), Residue::ZERO);
        assert_eq!(Residue::new(MODULUS), Residue::ZERO);
        assert_eq!(Residue::new(u128::MAX), Residue::new(1));
        assert_eq!(a * a.inverse(), Residue::ONE);
        assert_eq!(Residue::ONE.less_one(), Residue::ZERO);
        assert_eq!(most.less_one() + Residue::ONE, Residue::ZERO);
    }

    #[test]
    fn powers_and_sums_agree_with_their_definitions() {
        let base = Residue::new(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);
        let (powers, signed) = (Powers::new(base), SignedPowers::new(base));
        for exponent in [0u64, 1, 7, 8, 255, 256, 4095, 4096, 65_537, (1 << 21) - 1, 1 << 30, u64::MAX] {
            assert_eq!(powers.of(exponent), base.power(exponent.into()));
        }
        assert_eq!(signed.of(-77) * signed.of(77), Residue::ONE);
        assert_eq!(signed.of(i64::MIN) * base.power(1 << 63), Residue::ONE);
        for terms in 0u64..40 {
            let direct = (0..terms).fold(Residue::ZERO, |sum, k| sum + base.power(k.into()));
            assert_eq!(base.geometric_sum(terms), direct);
        }
    }
}
