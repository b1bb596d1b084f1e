//! Tokens of the texts that people write: the notation of datatypes and the textual form of layouts.

use crate::suggest::shorten;
use std::fmt;
use std::str::FromStr;

/// Why a text is not the notation of a datatype or the form of a layout: the place, what was expected there, and what was found.
///
/// ```
/// use dtc_compiler::datatype::text;
/// use dtc_compiler::layout::Layout;
/// let error = text::parse("vector 12 1\n  (contiguous 5 double)").unwrap_err();
/// assert_eq!((error.line(), error.column()), (2, 3));
/// assert_eq!(error.to_string(), "line 2, column 3: expected an integer (stride), found `(`");
/// let error = Layout::parse("layout lb 0 extent 4 {\n  %0 = dense 4 y byte\n  root %0\n}").unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 16: expected `x`, found `y`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    line: usize,
    column: usize,
    expected: String,
    found: String,
}

impl TextError {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// What the place should hold.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What it holds.
    pub fn found(&self) -> &str {
        &self.found
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: expected {}, found {}", self.line, self.column, self.expected, self.found)
    }
}

impl std::error::Error for TextError {}

/// A word, a number or a single mark. Empty at the end of the text.
#[derive(Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Where it begins in the text, in bytes.
    start: usize,
}

/// Splits a text into tokens.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// Begins a remark, which ends with its line.
    remark: char,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str, remark: char) -> Tokens<'a> {
        Tokens { text, at: 0, remark }
    }

    /// The next token, which stays.
    pub(crate) fn peek(&self) -> Token<'a> {
        let mut rest = self.text[self.at..].trim_start();
        while let Some(remark) = rest.strip_prefix(self.remark) {
            rest = remark.find('\n').map_or("", |end| remark[end..].trim_start());
        }
        let in_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let length = match rest.chars().next() {
            Some(mark) if !in_word(mark) => mark.len_utf8(),
            _ => rest.find(|letter| !in_word(letter)).unwrap_or(rest.len()),
        };
        Token { text: &rest[..length], start: self.text.len() - rest.len() }
    }

    pub(crate) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = token.start + token.text.len();
        token
    }

    /// Takes the next token if it is this one.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let is_next = self.peek().text == text;
        if is_next {
            self.next();
        }
        is_next
    }

    /// Takes the next token, which must be this one.
    pub(crate) fn need(&mut self, text: &str) -> Result<(), TextError> {
        let token = self.next();
        if token.text == text { Ok(()) } else { Err(self.unexpected(token, format_args!("`{text}`"))) }
    }

    /// Takes the end of the text, which must be here.
    pub(crate) fn need_end(&mut self) -> Result<(), TextError> {
        let token = self.next();
        if token.text.is_empty() { Ok(()) } else { Err(self.unexpected(token, "the end")) }
    }

    /// Takes a number, which the error calls by `expected`.
    pub(crate) fn number<T: FromStr>(&mut self, expected: impl fmt::Display) -> Result<T, TextError> {
        let token = self.next();
        token.text.parse().map_err(|_| self.unexpected(token, expected))
    }

    /// Takes the items of a list in brackets.
    pub(crate) fn list<T>(
        &mut self,
        separator: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, TextError>,
    ) -> Result<Vec<T>, TextError> {
        self.need("[")?;
        let mut items = Vec::new();
        if self.take("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take("]") {
                return Ok(items);
            }
            if !separator.is_empty() && !self.take(separator) {
                return Err(self.unexpected(self.peek(), format_args!("`{separator}` or `]`")));
            }
        }
    }

    /// The error of a token that is not what was expected.
    pub(crate) fn unexpected(&self, token: Token, expected: impl fmt::Display) -> TextError {
        match token.text {
            "" => self.error(token, expected, "the end"),
            text => self.error(token, expected, format_args!("`{}`", shorten(text))),
        }
    }

    /// An error at the place of a token.
    pub(crate) fn error(&self, token: Token, expected: impl fmt::Display, found: impl fmt::Display) -> TextError {
        let before = &self.text[..token.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TextError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}
