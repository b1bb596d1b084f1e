//! Divisions as multiplications, whose numbers a kernel finds in its parameters.

/// What divides numbers below 2^63 by `size` as a multiplication: `high(at * magic) >> shift`. A shift of 64 stands for a
/// size of 1. (Granlund and Montgomery 1994, section 4, rounding up.)
pub(super) fn magic(size: u64) -> (u64, u32) {
    if size <= 1 {
        return (0, 64);
    }
    let bits = 64 - (size - 1).leading_zeros();
    let magic = (1u128 << (63 + bits)) / u128::from(size) + 1;
    (magic as u64, bits - 1)
}

/// What divides numbers by others below 2^12, if their product is below 2^27: `high((2 * at + 1) * half)`, of 32 bits. An odd numerator keeps half a
/// step away from the next quotient.
pub(super) fn half(divisor: u64) -> u64 {
    (1u64 << 31).div_ceil(divisor)
}

#[cfg(test)]
mod tests {
    use super::{half, magic};

    #[test]
    fn halves_divide() {
        for divisor in 1..=4096 {
            for at in 0..(1 << 27) / divisor.max(1 << 11) {
                assert_eq!(((2 * at + 1) * half(divisor)) >> 32, at / divisor, "{at} / {divisor}");
            }
        }
    }

    #[test]
    fn magic_numbers_divide() {
        let sizes = [1, 2, 3, 5, 7, 8, 17, 1001, 4096, (1 << 31) - 1, 1 << 40, (1 << 62) + 1, 1 << 62, 1 << 63];
        for size in sizes {
            let (magic, shift) = magic(size);
            let interesting =
                [0, 1, size - 1, size, size + 1, 3 * (size / 2), (1 << 63) - 1, (1 << 63) / size * size - 1];
            for at in interesting.into_iter().filter(|at| at >> 63 == 0) {
                let found = if shift == 64 { at } else { ((u128::from(at) * u128::from(magic)) >> 64) as u64 >> shift };
                assert_eq!(found, at / size, "{at} / {size}");
            }
        }
    }
}
