//! Small helpers for what commands print.

use std::fmt::Write;

/// The first lines of a text, each cut to a width, and how much is left out.
pub fn shortened(text: &str, lines: usize, width: usize) -> String {
    let total = text.lines().count();
    let shown = if total > lines { lines.saturating_sub(1) } else { total };
    let mut short = String::new();
    for line in text.lines().take(shown) {
        short.push_str("    ");
        match line.char_indices().nth(width) {
            None => short.push_str(line),
            Some((end, _)) => {
                // Writing to a string cannot fail.
                let _ = write!(short, "{} ... {} more characters", &line[..end], line[end..].chars().count());
            }
        }
        short.push('\n');
    }
    if total > shown {
        let _ = writeln!(short, "    ... {} more lines", total - shown);
    }
    short
}

/// A number of bytes that people can read.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 10 << 10 {
        return format!("{} bytes", grouped(number));
    }
    let mut value = number as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in the unit that suits it.
pub fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        t if t < 1e3 => format!("{t:.1} ns"),
        t if t < 1e6 => format!("{:.2} us", t / 1e3),
        t if t < 1e9 => format!("{:.2} ms", t / 1e6),
        t => format!("{:.2} s", t / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let short = shortened("one\ntwo two\nthree\nfour", 3, 3);
        assert_eq!(short, "    one\n    two ... 4 more characters\n    ... 2 more lines\n");
        assert_eq!(shortened("one\ntwo", 2, 9), "    one\n    two\n");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
    }
}
