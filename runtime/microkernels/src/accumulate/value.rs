//! Elements as values that can be computed with.

/// An element that is read from bytes and written to them, at any alignment.
pub(super) trait Value: Copy {
    /// Accumulates every element of memory with the packed one beside it.
    fn each(memory: &mut [u8], packed: &[u8], combine: impl Fn(Self, Self) -> Self);
}

/// Sums and products.
pub(super) trait Arithmetic: Value {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

/// Values with an order. A NaN is neither less than any value nor equal to one.
pub(super) trait Ordered: Value {
    fn less(self, other: Self) -> bool;
    fn equals(self, other: Self) -> bool;
}

/// Values that are true or false.
pub(super) trait Truth: Value {
    fn is_true(self) -> bool;
    fn from_truth(truth: bool) -> Self;
}

/// Patterns of bits.
pub(super) trait Bits: Value {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
}

/// Accumulates elements of `N` bytes.
#[inline(always)]
pub(super) fn each_array<const N: usize>(
    memory: &mut [u8],
    packed: &[u8],
    combine: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    let (memory, packed) = (memory.as_chunks_mut::<N>().0, packed.as_chunks::<N>().0);
    for (memory, packed) in memory.iter_mut().zip(packed) {
        *memory = combine(*memory, *packed);
    }
}

macro_rules! primitives {
    ($($primitive:ty),*) => { $(
        impl Value for $primitive {
            #[inline(always)]
            fn each(memory: &mut [u8], packed: &[u8], combine: impl Fn(Self, Self) -> Self) {
                each_array(memory, packed, |memory, packed| {
                    combine(Self::from_ne_bytes(memory), Self::from_ne_bytes(packed)).to_ne_bytes()
                });
            }
        }

        impl Ordered for $primitive {
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn equals(self, other: Self) -> bool {
                self == other
            }
        }
    )* };
}

macro_rules! integers {
    ($($integer:ty),*) => { $(
        impl Arithmetic for $integer {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }

        impl Truth for $integer {
            #[inline(always)]
            fn is_true(self) -> bool {
                self != 0
            }

            #[inline(always)]
            fn from_truth(truth: bool) -> Self {
                truth.into()
            }
        }

        impl Bits for $integer {
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
        }
    )* };
}

macro_rules! floats {
    ($($float:ty),*) => { $(
        impl Arithmetic for $float {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                self * other
            }
        }

        impl Value for Complex<$float> {
            #[inline(always)]
            fn each(memory: &mut [u8], packed: &[u8], combine: impl Fn(Self, Self) -> Self) {
                const PART: usize = size_of::<$float>();
                let read = |bytes: [u8; 2 * PART]| {
                    let part = |at: usize| <$float>::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
                    Complex { real: part(0), imaginary: part(PART) }
                };
                each_array(memory, packed, |memory, packed| {
                    let result = combine(read(memory), read(packed));
                    let (real, imaginary) = (result.real.to_ne_bytes(), result.imaginary.to_ne_bytes());
                    std::array::from_fn(|byte| if byte < PART { real[byte] } else { imaginary[byte - PART] })
                });
            }
        }
    )* };
}

primitives!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
integers!(i8, i16, i32, i64, u8, u16, u32, u64);
floats!(f32, f64);

/// A complex number.
#[derive(Clone, Copy)]
pub(super) struct Complex<T> {
    real: T,
    imaginary: T,
}

impl<T: Arithmetic + std::ops::Sub<Output = T>> Arithmetic for Complex<T>
where
    Complex<T>: Value,
{
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        Complex { real: self.real.sum(other.real), imaginary: self.imaginary.sum(other.imaginary) }
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        Complex {
            real: self.real.product(other.real) - self.imaginary.product(other.imaginary),
            imaginary: self.real.product(other.imaginary).sum(self.imaginary.product(other.real)),
        }
    }
}
