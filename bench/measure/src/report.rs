//! Small helpers for what commands print.

use crate::failure::Failure;
use std::fmt::Write;
use std::io;

/// Prints a line of a report: a name, and what is found of it.
pub fn row(out: &mut dyn io::Write, name: &str, value: &str) -> Result<(), Failure> {
    Ok(writeln!(out, "    {name:<15}{value}")?)
}

/// The first lines of a text, indented and each cut to a width in columns, and how much is left out.
pub fn shortened(text: &str, lines: usize, width: usize) -> String {
    const INDENT: usize = 4;
    // Columns for the longest remark on what is left out.
    const REMARK: usize = 30;
    let total = text.lines().count();
    let shown = if total > lines { lines.saturating_sub(1) } else { total };
    let mut short = String::new();
    for line in text.lines().take(shown) {
        short.push_str("    ");
        let longer = line.char_indices().nth(width.saturating_sub(INDENT)).is_some();
        match line.char_indices().nth(width.saturating_sub(INDENT + REMARK)) {
            Some((end, _)) if longer => {
                // Writing to a string cannot fail.
                let _ = write!(short, "{} ... {} more characters", &line[..end], line[end..].chars().count());
            }
            _ => short.push_str(line),
        }
        short.push('\n');
    }
    if total > shown {
        let _ = writeln!(short, "    ... {} more lines", total - shown);
    }
    short
}

/// The first `characters` characters of a text.
pub fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// A text in lines of at most `width` columns, broken at blanks; words that are longer are cut.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(width.max(1)) {
            let needed = piece.len() + usize::from(used > 0);
            if used + needed > width && used > 0 {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                if used > 0 {
                    line.push(' ');
                    used += 1;
                }
                line.extend(piece);
                used += piece.len();
            }
        }
    }
    lines
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
        let long = format!("one\n{}\nthree\nfour", "two ".repeat(20));
        let short = shortened(&long, 3, 40);
        assert_eq!(short, "    one\n    two tw ... 74 more characters\n    ... 2 more lines\n");
        assert_eq!(shortened("one\ntwo", 2, 9), "    one\n    two\n");
    }

    #[test]
    fn texts_are_wrapped() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
    }
}
