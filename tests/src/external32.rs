//! The oracle of `external32`: converts element by element, by the table and the formats of the standard.

use crate::type_map::Entry;
use dtc_compiler::layout::Kind;
use rand::Rng;
use rand::rngs::SmallRng;

/// Every predefined type and its bytes in `external32`: MPI 4.1, 14.5.2. Pair types have two elements.
#[rustfmt::skip]
pub const SIZES: &[(&str, u64)] = &[
    ("PACKED", 1), ("BYTE", 1), ("CHAR", 1), ("UNSIGNED_CHAR", 1), ("SIGNED_CHAR", 1), ("WCHAR", 2),
    ("SHORT", 2), ("UNSIGNED_SHORT", 2), ("INT", 4), ("LONG", 4), ("UNSIGNED", 4), ("UNSIGNED_LONG", 4),
    ("LONG_LONG_INT", 8), ("LONG_LONG", 8), ("UNSIGNED_LONG_LONG", 8), ("FLOAT", 4), ("DOUBLE", 8), ("LONG_DOUBLE", 16),
    ("C_BOOL", 1), ("INT8_T", 1), ("INT16_T", 2), ("INT32_T", 4), ("INT64_T", 8),
    ("UINT8_T", 1), ("UINT16_T", 2), ("UINT32_T", 4), ("UINT64_T", 8), ("AINT", 8), ("COUNT", 8), ("OFFSET", 8),
    ("C_COMPLEX", 8), ("C_FLOAT_COMPLEX", 8), ("C_DOUBLE_COMPLEX", 16), ("C_LONG_DOUBLE_COMPLEX", 32),
    ("CHARACTER", 1), ("LOGICAL", 4), ("INTEGER", 4), ("REAL", 4), ("DOUBLE_PRECISION", 8), ("COMPLEX", 8), ("DOUBLE_COMPLEX", 16),
    ("CXX_BOOL", 1), ("CXX_FLOAT_COMPLEX", 8), ("CXX_DOUBLE_COMPLEX", 16), ("CXX_LONG_DOUBLE_COMPLEX", 32),
    ("INTEGER1", 1), ("INTEGER2", 2), ("INTEGER4", 4), ("INTEGER8", 8), ("INTEGER16", 16),
    ("REAL2", 2), ("REAL4", 4), ("REAL8", 8), ("REAL16", 16),
    ("COMPLEX4", 4), ("COMPLEX8", 8), ("COMPLEX16", 16), ("COMPLEX32", 32),
    ("LOGICAL1", 1), ("LOGICAL2", 2), ("LOGICAL4", 4), ("LOGICAL8", 8),
    ("FLOAT_INT", 8), ("DOUBLE_INT", 12), ("LONG_INT", 8), ("2INT", 8), ("SHORT_INT", 6), ("LONG_DOUBLE_INT", 20),
    ("2REAL", 8), ("2DOUBLE_PRECISION", 16), ("2INTEGER", 8),
];

/// Representation of one value of an element.
struct Format {
    memory: usize,
    external: usize,
    signed: bool,
    long_double: bool,
}

fn format(entry: &Entry) -> Format {
    let parts = if matches!(entry.kind, Kind::C32 | Kind::C64 | Kind::C128 | Kind::C160 | Kind::C256) { 2 } else { 1 };
    let memory = entry.kind.size() as usize / parts;
    let (external, signed) = match (entry.predefined.name(), entry.kind) {
        ("MPI_LONG" | "MPI_LONG_INT", Kind::I64) => (4, true),
        ("MPI_UNSIGNED_LONG", _) => (4, false),
        ("MPI_WCHAR", _) => (2, false),
        _ => (memory, false),
    };
    Format { memory, external, signed, long_double: matches!(entry.kind, Kind::F80 | Kind::C160) }
}

/// An element in memory whose values all have a representation; the padding of a long double is 0.
pub fn draw(entry: &Entry, rng: &mut SmallRng) -> Vec<u8> {
    let format = format(entry);
    let mut bytes: Vec<u8> = (0..entry.kind.size()).map(|_| rng.random()).collect();
    for value in bytes.chunks_exact_mut(format.memory) {
        if format.external < format.memory {
            let negative = format.signed && value[format.external - 1] >= 0x80;
            value[format.external..].fill(if negative { 0xff } else { 0 });
        }
        if format.long_double {
            let exponent: u16 = [0, 1, 0x3fff, 0x7ffe, 0x7fff, rng.random_range(0..0x7fff)][rng.random_range(0..6)];
            let mantissa: u64 = if exponent == 0x7fff { 0 } else { rng.random::<u64>() << rng.random_range(0..64) };
            let mantissa = mantissa << 1 >> 1 | u64::from(exponent != 0) << 63;
            let sign = u16::from(rng.random::<bool>()) << 15;
            value[..8].copy_from_slice(&mantissa.to_le_bytes());
            value[8..10].copy_from_slice(&(sign | exponent).to_le_bytes());
            value[10..].fill(0);
        }
    }
    bytes
}

/// Converts an element of memory to `external32`.
pub fn external(entry: &Entry, bytes: &[u8]) -> Vec<u8> {
    let format = format(entry);
    let mut all = Vec::new();
    for value in bytes.chunks_exact(format.memory) {
        if format.long_double {
            let (sign, number) = decode(u128::from_le_bytes(value.try_into().unwrap()) & ((1 << 80) - 1), 63, true);
            all.extend(encode(sign, number, 112, false).to_be_bytes());
        } else {
            all.extend(value.iter().take(format.external).rev());
        }
    }
    all
}

/// Converts an element of `external32` to memory.
pub fn memory(entry: &Entry, bytes: &[u8]) -> Vec<u8> {
    let format = format(entry);
    let mut all = Vec::new();
    for value in bytes.chunks_exact(format.external) {
        if format.long_double {
            let (sign, number) = decode(u128::from_be_bytes(value.try_into().unwrap()), 112, false);
            all.extend(encode(sign, number, 63, true).to_le_bytes());
        } else {
            let fill = if format.signed && value[0] >= 0x80 { 0xff } else { 0 };
            all.extend(value.iter().rev());
            all.extend(std::iter::repeat_n(fill, format.memory - format.external));
        }
    }
    all
}

/// `mantissa * 2^exponent`; `None` is infinity.
type Number = Option<(u128, i32)>;

/// A float with `fraction` bits of fraction and 15 bits of exponent. `leading` tells whether its leading bit is stored.
fn decode(bits: u128, fraction: u32, leading: bool) -> (bool, Number) {
    let width = fraction + u32::from(leading);
    let (sign, exponent) = (bits >> (width + 15) == 1, (bits >> width & 0x7fff) as i32);
    let mantissa = bits & ((1 << width) - 1);
    if exponent == 0x7fff {
        return (sign, None);
    }
    let mantissa = if leading || exponent == 0 { mantissa } else { mantissa | 1 << width };
    (sign, Some((mantissa, exponent.max(1) - 16383 - fraction as i32)))
}

/// The nearest float of that format; of two, the even one.
fn encode(sign: bool, number: Number, fraction: u32, leading: bool) -> u128 {
    let width = fraction + u32::from(leading);
    let infinity = 0x7fff << width | u128::from(leading) << fraction;
    let magnitude = match number {
        None => infinity,
        Some((0, _)) => 0,
        Some((mantissa, exponent)) => {
            // The exponent of the last bit of the format, for this number.
            let last = (127 - mantissa.leading_zeros() as i32 + exponent).max(-16382) - fraction as i32;
            let mut significand = if exponent >= last {
                mantissa << (exponent - last)
            } else {
                let (lost, unit) = ((last - exponent) as u32, 1u128 << (last - exponent));
                let twice = 2 * (mantissa % unit);
                let up = twice > unit || twice == unit && (mantissa >> lost) % 2 == 1;
                mantissa / unit + u128::from(up)
            };
            let mut field = last + fraction as i32 + 16383;
            if significand == 2 << fraction {
                (significand, field) = (1 << fraction, field + 1);
            }
            match (significand >> fraction, field) {
                (0, _) => significand,
                (_, 0x7fff..) => infinity,
                _ => (field as u128) << width | if leading { significand } else { significand - (1 << fraction) },
            }
        }
    };
    u128::from(sign) << (width + 15) | magnitude
}
