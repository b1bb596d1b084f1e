//! The oracle of reductions: each element by itself, in wider arithmetic than the engine's.

use dtc_compiler::layout::Kind;
use dtc_compiler::operation::{Element, Operation, Reduction};
use rand::Rng;
use rand::rngs::SmallRng;
use std::cmp::Ordering;

/// The value of a basic element.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    Real(f64),
}

/// Reads an element. Long doubles are whole numbers here: see [`draw`].
fn read(kind: Kind, bytes: &[u8]) -> Number {
    let bits = bytes.iter().rev().fold(0u128, |bits, &byte| bits << 8 | u128::from(byte));
    let width = 8 * bytes.len() as u32;
    let signed = || (bits << (128 - width)) as i128 >> (128 - width);
    match kind {
        Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 => Number::Integer(signed()),
        Kind::F16 => Number::Real(real(bits, 5, 10)),
        Kind::F32 => Number::Real(real(bits, 8, 23)),
        Kind::F64 => Number::Real(f64::from_bits(bits as u64)),
        Kind::F80 => {
            let (sign, exponent) = (bits >> 79 & 1, bits >> 64 & 0x7fff);
            let magnitude = if exponent == 0 { 0 } else { (bits as u64 >> (16383 + 63 - exponent)) as i128 };
            Number::Integer(if sign == 1 { -magnitude } else { magnitude })
        }
        _ => Number::Integer(bits as i128),
    }
}

/// The float with `exponent_bits` and `mantissa_bits`.
fn real(bits: u128, exponent_bits: u32, mantissa_bits: u32) -> f64 {
    let sign = if bits >> (exponent_bits + mantissa_bits) & 1 == 1 { -1.0 } else { 1.0 };
    let largest = (1 << exponent_bits) - 1;
    let exponent = (bits >> mantissa_bits) as i32 & largest;
    let mantissa = (bits & ((1 << mantissa_bits) - 1)) as f64 * (-f64::from(mantissa_bits)).exp2();
    let bias = largest / 2;
    match exponent {
        0 => sign * mantissa * f64::from(1 - bias).exp2(),
        _ if exponent == largest && mantissa == 0.0 => sign * f64::INFINITY,
        _ if exponent == largest => f64::NAN,
        _ => sign * (1.0 + mantissa) * f64::from(exponent - bias).exp2(),
    }
}

/// The bits of the nearest such float; of two, the even one.
fn round(value: f64, exponent_bits: u32, mantissa_bits: u32) -> u128 {
    let sign = u128::from(value.is_sign_negative()) << (exponent_bits + mantissa_bits);
    let infinity = ((1u128 << exponent_bits) - 1) << mantissa_bits;
    if value.is_nan() {
        return infinity | 1;
    }
    // The bits of positive floats have the order of their values.
    let (mut low, mut high) = (0, infinity);
    let of = |bits: u128| {
        let bias = (1 << (exponent_bits - 1)) - 1;
        if bits == infinity { f64::from(bias + 1).exp2() } else { real(bits, exponent_bits, mantissa_bits) }
    };
    let magnitude = value.abs();
    while high - low > 1 {
        let middle = (low + high) / 2;
        if of(middle) <= magnitude { low = middle } else { high = middle }
    }
    let (below, above) = (magnitude - of(low), of(high) - magnitude);
    let nearest = if below < above || below == above && low % 2 == 0 { low } else { high };
    sign | nearest
}

fn write(kind: Kind, number: Number, bytes: &mut [u8]) {
    let bits = match (kind, number) {
        (Kind::F16, Number::Real(value)) => round(value, 5, 10),
        (Kind::F32, Number::Real(value)) => round(value, 8, 23),
        (_, Number::Real(value)) => value.to_bits().into(),
        (Kind::F80, Number::Integer(0)) => 0,
        (Kind::F80, Number::Integer(value)) => {
            let magnitude = value.unsigned_abs() as u64;
            let zeros = magnitude.leading_zeros();
            let sign = u128::from(value < 0) << 79;
            sign | u128::from(16383 + 63 - zeros) << 64 | u128::from(magnitude << zeros)
        }
        (_, Number::Integer(value)) => value as u128,
    };
    // The padding of a long double keeps its value.
    let length = if kind == Kind::F80 { 10 } else { bytes.len() };
    bytes[..length].copy_from_slice(&bits.to_le_bytes()[..length]);
}

fn compare(one: Number, other: Number) -> Option<Ordering> {
    match (one, other) {
        (Number::Integer(one), Number::Integer(other)) => Some(one.cmp(&other)),
        (Number::Real(one), Number::Real(other)) => one.partial_cmp(&other),
        _ => None,
    }
}

/// Bytes of one element, drawn so that ties, zeros, signs and NaNs occur.
pub fn draw(reduction: Reduction, rng: &mut SmallRng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &kind in reduction.element().kinds() {
        let at = bytes.len();
        bytes.extend((0..kind.size()).map(|_| rng.random::<u8>()));
        let part = &mut bytes[at..];
        let small = i128::from(rng.random_range(-3..4));
        match kind {
            // The value is not 0, because the integers of this oracle have no -0.
            Kind::F80 => write(kind, Number::Integer((2 * small + 1) * i128::from(rng.random_range(1..1000))), part),
            Kind::C64 | Kind::C128 => {}
            _ if rng.random_bool(0.3) => {}
            Kind::F16 | Kind::F32 | Kind::F64 => write(kind, Number::Real(small as f64 * 0.5), part),
            _ => write(kind, Number::Integer(small), part),
        }
    }
    bytes
}

/// The new value of an element of memory.
pub fn accumulate(reduction: Reduction, memory: &[u8], packed: &[u8]) -> Vec<u8> {
    let operation = reduction.operation();
    let mut result = memory.to_vec();
    let kinds = reduction.element().kinds();
    if operation == Operation::Replace {
        return packed.to_vec();
    }
    if let [value, index] = *kinds {
        let (values, indices) = (value.size() as usize, index.size() as usize);
        let order = compare(read(value, &memory[..values]), read(value, &packed[..values]));
        let better = if operation == Operation::MinLoc { Ordering::Greater } else { Ordering::Less };
        let lower =
            || compare(read(index, &memory[values..]), read(index, &packed[values..])) == Some(Ordering::Greater);
        if order == Some(better) {
            return packed.to_vec();
        } else if order == Some(Ordering::Equal) && lower() {
            result[values..values + indices].copy_from_slice(&packed[values..]);
        }
        return result;
    }
    match kinds[0] {
        Kind::C64 => complex::<4>(operation, Kind::F32, memory, packed),
        Kind::C128 => complex::<8>(operation, Kind::F64, memory, packed),
        // The 16 bits of a bfloat16 are the upper half of a 32-bit float.
        Kind::U16 if reduction.element() == Element::Bf16 => {
            let widened = |bytes: &[u8]| real(u128::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16, 8, 23);
            match arithmetic(operation, Number::Real(widened(memory)), Number::Real(widened(packed))) {
                Choice::Memory => result,
                Choice::Packed => packed.to_vec(),
                // Below the normal range, the engine first rounds to a 32-bit float.
                Choice::Value(Number::Real(value)) => {
                    let value = real(round(value, 8, 23), 8, 23);
                    (round(value, 8, 7) as u16).to_le_bytes().to_vec()
                }
                Choice::Value(Number::Integer(_)) => unreachable!("floats"),
            }
        }
        kind => {
            match arithmetic(operation, read(kind, memory), read(kind, packed)) {
                Choice::Memory => {}
                Choice::Packed => result = packed.to_vec(),
                Choice::Value(value) => write(kind, value, &mut result),
            }
            result
        }
    }
}

enum Choice {
    Memory,
    Packed,
    Value(Number),
}

fn arithmetic(operation: Operation, memory: Number, packed: Number) -> Choice {
    let order = compare(memory, packed);
    let chosen = |packed: bool| if packed { Choice::Packed } else { Choice::Memory };
    match (operation, memory, packed) {
        (Operation::Min, ..) => return chosen(order == Some(Ordering::Greater)),
        (Operation::Max, ..) => return chosen(order == Some(Ordering::Less)),
        _ => {}
    }
    Choice::Value(match (memory, packed) {
        (Number::Real(one), Number::Real(other)) => {
            Number::Real(if operation == Operation::Sum { one + other } else { one * other })
        }
        (Number::Integer(one), Number::Integer(other)) => Number::Integer(match operation {
            Operation::Sum => one.wrapping_add(other),
            Operation::Product => one.wrapping_mul(other),
            Operation::LogicalAnd => (one != 0 && other != 0).into(),
            Operation::LogicalOr => (one != 0 || other != 0).into(),
            Operation::LogicalXor => ((one != 0) != (other != 0)).into(),
            Operation::BitwiseAnd => one & other,
            Operation::BitwiseOr => one | other,
            Operation::BitwiseXor => one ^ other,
            _ => unreachable!("{operation} is none of numbers"),
        }),
        _ => unreachable!("both are of one kind"),
    })
}

/// A complex number with parts of `N` bytes; each operation rounds to a part.
fn complex<const N: usize>(operation: Operation, part: Kind, memory: &[u8], packed: &[u8]) -> Vec<u8> {
    let parts = |bytes: &[u8]| {
        [&bytes[..N], &bytes[N..]].map(|bytes| match read(part, bytes) {
            Number::Real(value) => value,
            Number::Integer(_) => unreachable!("parts are floats"),
        })
    };
    let rounded = |value: f64| if N == 4 { real(round(value, 8, 23), 8, 23) } else { value };
    let ([a, b], [c, d]) = (parts(memory), parts(packed));
    let result = match operation {
        Operation::Sum => [a + c, b + d],
        _ => [rounded(a * c) - rounded(b * d), rounded(a * d) + rounded(b * c)],
    };
    let mut bytes = vec![0; 2 * N];
    write(part, Number::Real(result[0]), &mut bytes[..N]);
    write(part, Number::Real(result[1]), &mut bytes[N..]);
    bytes
}

/// Whether two results are equal: the same bytes, or two NaNs.
pub fn same(reduction: Reduction, one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    let part = |kind: Kind| match kind {
        Kind::C64 => vec![Kind::F32; 2],
        Kind::C128 => vec![Kind::F64; 2],
        Kind::U16 if reduction.element() == Element::Bf16 => vec![Kind::U16],
        kind => vec![kind],
    };
    reduction.element().kinds().iter().copied().flat_map(part).all(|kind| {
        let range = at..at + kind.size() as usize;
        at = range.end;
        let (one, other) = (&one[range.clone()], &other[range]);
        let nan = |bytes: &[u8]| match kind {
            Kind::U16 => bytes[1] & 0x7f == 0x7f && (bytes[0] & 0x80 != 0) && bytes[0] & 0x7f != 0,
            _ => matches!(read(kind, bytes), Number::Real(value) if value.is_nan()),
        };
        let floats = matches!(kind, Kind::F16 | Kind::F32 | Kind::F64) || reduction.element() == Element::Bf16;
        one == other || floats && nan(one) && nan(other)
    })
}

/// An element of memory, a packed element, and the result. No computed result is a NaN, because the bits of such a NaN
/// depend on the processor.
pub fn draw_both(reduction: Reduction, rng: &mut SmallRng) -> [Vec<u8>; 3] {
    loop {
        let (memory, packed) = (draw(reduction, rng), draw(reduction, rng));
        let result = accumulate(reduction, &memory, &packed);
        let computed = matches!(reduction.operation(), Operation::Sum | Operation::Product);
        if !computed || !has_nan(reduction, &result) {
            return [memory, packed, result];
        }
    }
}

/// Whether a part of an element is a NaN.
fn has_nan(reduction: Reduction, bytes: &[u8]) -> bool {
    // Only a NaN is `same` as a value with other bits.
    (0..bytes.len()).any(|byte| {
        let mut other = bytes.to_vec();
        other[byte] ^= 2;
        same(reduction, bytes, &other)
    })
}
