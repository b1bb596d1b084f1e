//! Numbers and types as CUDA C++ writes them.

/// The CUDA type of a word of `bytes` bytes.
pub(crate) fn word_type(bytes: u32) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "uint4",
    }
}

/// A constant; beyond 31 bits one of 64.
pub(crate) fn number(number: u64) -> String {
    if number < 1 << 31 { number.to_string() } else { format!("{number}ull") }
}

/// A signed constant; beyond 31 bits one of 64. The most negative one has no literal.
pub(crate) fn signed(number: i64) -> String {
    match i32::try_from(number) {
        Ok(number) if number > i32::MIN => number.to_string(),
        _ if number == i64::MIN => "(-9223372036854775807ll - 1)".to_owned(),
        _ => format!("{number}ll"),
    }
}
