//! Lines of a text, indented, and the numbers in them.

use std::fmt::{self, Display, Write};

/// Lines at a depth of indentation.
#[derive(Default)]
pub(super) struct Text {
    written: String,
    depth: usize,
}

impl Text {
    /// Adds a line.
    pub(super) fn line(&mut self, line: impl Display) {
        let indent = 4 * self.depth;
        // Writing to a string cannot fail.
        let _ = writeln!(self.written, "{:indent$}{line}", "");
    }

    pub(super) fn empty_line(&mut self) {
        self.written.push('\n');
    }

    /// Adds text that has its own lines.
    pub(super) fn append(&mut self, text: &str) {
        self.written.push_str(text);
    }

    /// Adds a line that begins a block, and indents what follows.
    pub(super) fn open(&mut self, line: impl Display) {
        self.line(format_args!("{line} {{"));
        self.depth += 1;
    }

    /// Adds the head of a function and the brace below it.
    pub(super) fn function(&mut self, head: impl Display) {
        self.line(head);
        self.line("{");
        self.depth += 1;
    }

    /// Indents what follows.
    pub(super) fn indent(&mut self) {
        self.depth += 1;
    }

    /// Ends what `indent` began.
    pub(super) fn outdent(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Ends a block.
    pub(super) fn close(&mut self, end: &str) {
        self.outdent();
        self.line(end);
    }

    pub(super) fn into_string(self) -> String {
        self.written
    }
}

/// A signed constant. Decimal constants of C and C++ have the first type that holds them; the most negative number has no
/// constant.
pub(super) fn constant(number: i64) -> String {
    match number {
        i64::MIN => format!("(-{} - 1)", i64::MAX),
        number => number.to_string(),
    }
}

/// `TEXT + NUMBER`, as a person writes it.
pub(super) fn plus(text: &str, number: i64) -> String {
    match number {
        0 => text.to_owned(),
        _ if number == i64::MIN => format!("{text} + {}", constant(number)),
        ..0 => format!("{text} - {}", -number),
        _ => format!("{text} + {number}"),
    }
}

/// `TEXT + INDEX * STRIDE`, as a person writes it.
pub(super) fn plus_product(text: &str, index: &str, stride: i64) -> String {
    match stride {
        0 => text.to_owned(),
        1 => format!("{text} + {index}"),
        -1 => format!("{text} - {index}"),
        _ if stride == i64::MIN => format!("{text} + {index} * {}", constant(stride)),
        ..=-2 => format!("{text} - {index} * {}", -stride),
        2.. => format!("{text} + {index} * {stride}"),
    }
}

/// Items in lines of a limited number of columns, each behind a prefix.
pub(super) fn wrapped<T: Display>(items: impl Iterator<Item = T>, prefix: &str, columns: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for item in items {
        let item = item.to_string();
        if !line.is_empty() && prefix.len() + line.len() + 1 + item.len() > columns {
            let _ = writeln!(lines, "{prefix}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&item);
    }
    let _ = writeln!(lines, "{prefix}{line}");
    lines
}

/// `packed` or `packed + 8`.
pub(super) struct Behind<'a>(pub(super) &'a str, pub(super) u64);

impl Display for Behind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            0 => f.write_str(self.0),
            bytes => write!(f, "{} + {bytes}", self.0),
        }
    }
}
