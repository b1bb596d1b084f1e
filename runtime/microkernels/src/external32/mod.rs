//! Converting values between memory and `external32`, where both are contiguous.

#[cfg(target_arch = "x86_64")]
mod long_double;

use dtc_compiler::external32::Conversion;
use dtc_compiler::plan::strategy::Level;

/// Blocks of values that are converted alike.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// Number of blocks.
    pub count: usize,
    /// Values in each block, side by side.
    pub values: usize,
    /// Bytes from one block to the next at the source.
    pub from_stride: usize,
    /// Bytes from one block to the next at the destination.
    pub to_stride: usize,
}

/// Converts values at any alignment. Returns false if one cannot be represented; it then loses its most significant bytes.
///
/// # Safety
///
/// The CPU has the level that the function was selected for; the values are readable and initialised at `from`, `to` is writable
/// for what they become, and the two do not overlap.
pub type ConvertFn = unsafe fn(conversion: Conversion, from: *const u8, to: *mut u8, blocks: Blocks) -> bool;

/// The function that converts to `external32`, or from there.
pub fn select_convert<const TO: bool>(level: Level) -> ConvertFn {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Zen4 | Level::Zen5 => avx512::<TO>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::<TO>,
        _ => portable::<TO>,
    }
}

unsafe fn portable<const TO: bool>(conversion: Conversion, from: *const u8, to: *mut u8, blocks: Blocks) -> bool {
    // SAFETY: `convert` needs no CPU feature, and its values are those of `ConvertFn`'s contract.
    unsafe { convert::<TO>(conversion, from, to, blocks) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<const TO: bool>(conversion: Conversion, from: *const u8, to: *mut u8, blocks: Blocks) -> bool {
    // SAFETY: `select_convert` returns this function for CPUs with AVX2 only, and the values of `convert` are those of
    // `ConvertFn`'s contract.
    unsafe { convert::<TO>(conversion, from, to, blocks) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512<const TO: bool>(conversion: Conversion, from: *const u8, to: *mut u8, blocks: Blocks) -> bool {
    // SAFETY: `select_convert` returns this function for CPUs with AVX-512 only, and the values of `convert` are those of
    // `ConvertFn`'s contract.
    unsafe { convert::<TO>(conversion, from, to, blocks) }
}

#[inline(always)]
unsafe fn convert<const TO: bool>(conversion: Conversion, from: *const u8, to: *mut u8, blocks: Blocks) -> bool {
    // SAFETY: the arrays have the sizes of the conversion on both sides, so every block is in what `ConvertFn`'s contract makes
    // readable at `from` and writable at `to`.
    unsafe {
        match (conversion, TO) {
            (Conversion::Bytes, _) => {
                for block in 0..blocks.count {
                    let (from, to) = (from.add(block * blocks.from_stride), to.add(block * blocks.to_stride));
                    from.copy_to_nonoverlapping(to, blocks.values);
                }
                true
            }
            (Conversion::Big16, _) => each(from, to, blocks, |value| (u16::from_ne_bytes(value).to_be_bytes(), true)),
            (Conversion::Big32, _) => each(from, to, blocks, |value| (u32::from_ne_bytes(value).to_be_bytes(), true)),
            (Conversion::Big64, _) => each(from, to, blocks, |value| (u64::from_ne_bytes(value).to_be_bytes(), true)),
            (Conversion::Big128, _) => big128(from, to, blocks),
            (Conversion::Long, true) => each(from, to, blocks, |value| {
                let (value, kept) = (i64::from_ne_bytes(value), i64::from_ne_bytes(value) as i32);
                (kept.to_be_bytes(), i64::from(kept) == value)
            }),
            (Conversion::Long, false) => {
                each(from, to, blocks, |value| (i64::from(i32::from_be_bytes(value)).to_ne_bytes(), true))
            }
            (Conversion::UnsignedLong, true) => each(from, to, blocks, |value| {
                let (value, kept) = (u64::from_ne_bytes(value), u64::from_ne_bytes(value) as u32);
                (kept.to_be_bytes(), u64::from(kept) == value)
            }),
            (Conversion::UnsignedLong, false) => {
                each(from, to, blocks, |value| (u64::from(u32::from_be_bytes(value)).to_ne_bytes(), true))
            }
            (Conversion::WideCharacter, true) => each(from, to, blocks, |value| {
                let (value, kept) = (u32::from_ne_bytes(value), u32::from_ne_bytes(value) as u16);
                (kept.to_be_bytes(), u32::from(kept) == value)
            }),
            (Conversion::WideCharacter, false) => {
                each(from, to, blocks, |value| (u32::from(u16::from_be_bytes(value)).to_ne_bytes(), true))
            }
            #[cfg(target_arch = "x86_64")]
            (Conversion::LongDouble, true) => each(from, to, blocks, |value| {
                (long_double::to_binary128(u128::from_ne_bytes(value)).to_be_bytes(), true)
            }),
            #[cfg(target_arch = "x86_64")]
            (Conversion::LongDouble, false) => each(from, to, blocks, |value| {
                (long_double::from_binary128(u128::from_be_bytes(value)).to_ne_bytes(), true)
            }),
            // Elsewhere a long double of 16 bytes is a binary128.
            #[cfg(not(target_arch = "x86_64"))]
            (Conversion::LongDouble, _) => big128(from, to, blocks),
        }
    }
}

#[inline(always)]
unsafe fn big128(from: *const u8, to: *mut u8, blocks: Blocks) -> bool {
    // SAFETY: values of 16 bytes become values of 16 bytes, which `ConvertFn`'s contract makes readable at `from` and writable at
    // `to`.
    unsafe { each(from, to, blocks, |value| (u128::from_ne_bytes(value).to_be_bytes(), true)) }
}

/// Converts values of `FROM` bytes to values of `TO` bytes. Returns whether all of them can be represented.
#[inline(always)]
unsafe fn each<const FROM: usize, const TO: usize>(
    from: *const u8,
    to: *mut u8,
    blocks: Blocks,
    convert: impl Fn([u8; FROM]) -> ([u8; TO], bool),
) -> bool {
    let mut all = true;
    for block in 0..blocks.count {
        // SAFETY: `block` and `at` count the values of `blocks`, which `ConvertFn`'s contract makes readable at `from` and
        // writable at `to`. Arrays of bytes are at any address.
        unsafe {
            let from = from.add(block * blocks.from_stride).cast::<[u8; FROM]>();
            let to = to.add(block * blocks.to_stride).cast::<[u8; TO]>();
            for at in 0..blocks.values {
                let (converted, represented) = convert(from.add(at).read());
                to.add(at).write(converted);
                all &= represented;
            }
        }
    }
    all
}

/// Makes a value in `external32` one that memory represents exactly, so that its bytes can come in parts and in any order: the bits
/// of a long double that memory has no room for are dropped.
pub fn drop_excess(conversion: Conversion, external: &mut [u8; 16]) {
    if conversion == Conversion::LongDouble && cfg!(target_arch = "x86_64") {
        *external = (u128::from_be_bytes(*external) >> 49 << 49).to_be_bytes();
    }
}

/// The first value in memory that cannot be represented: its index and the value.
pub fn first_misfit(conversion: Conversion, memory: &[u8]) -> Option<(usize, i128)> {
    let values = memory.chunks_exact(conversion.packed_size() as usize).map(|value| match *value {
        [a, b, c, d] => i128::from(u32::from_ne_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] if conversion == Conversion::Long => {
            i64::from_ne_bytes([a, b, c, d, e, f, g, h]).into()
        }
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]).into(),
        _ => 0,
    });
    let range = match conversion {
        Conversion::Long => i32::MIN.into()..=i32::MAX.into(),
        Conversion::UnsignedLong => 0..=u32::MAX.into(),
        Conversion::WideCharacter => 0..=u16::MAX.into(),
        _ => return None,
    };
    values.enumerate().find(|(_, value): &(usize, i128)| !range.contains(value))
}
