//! Parser of the textual form of layouts.

use super::{Edge, Kind, Layout, LayoutBuilder, Node, NodeId, Run};
use std::fmt;

/// A syntax error: its place, what was expected there and what was found.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// let error = Layout::parse("layout lb 0 extent 4 {\n  %0 = dense 4 y byte\n  root %0\n}").unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 16: expected `x`, found `y`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    line: usize,
    column: usize,
    expected: String,
    found: String,
}

impl ParseError {
    /// Line of the error, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column of the error in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: expected {}, found {}", self.line, self.column, self.expected, self.found)
    }
}

impl std::error::Error for ParseError {}

/// Splits a text into words, numbers and single punctuation characters.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Start and end of the next token; both are the length of the text at its end.
    fn peek_range(&self) -> (usize, usize) {
        let mut rest = &self.text[self.at..];
        loop {
            rest = rest.trim_start();
            match rest.strip_prefix(';') {
                Some(comment) => rest = comment.find('\n').map_or("", |end| &comment[end..]),
                None => break,
            }
        }
        let start = self.text.len() - rest.len();
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let length = match rest.chars().next() {
            None => 0,
            Some(c) if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            Some(c) => c.len_utf8(),
        };
        (start, start + length)
    }

    fn peek(&self) -> &'a str {
        let (start, end) = self.peek_range();
        &self.text[start..end]
    }

    fn error(&self, expected: impl Into<String>) -> ParseError {
        let (start, end) = self.peek_range();
        let before = &self.text[..start];
        let found = &self.text[start..end];
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().unwrap_or("").chars().count() + 1,
            expected: expected.into(),
            found: if found.is_empty() { "the end of the text".to_owned() } else { format!("`{found}`") },
        }
    }

    /// The error at an earlier place. Line and column are only computed here.
    fn error_at(&self, at: usize, expected: impl Into<String>) -> ParseError {
        Tokens { text: self.text, at }.error(expected)
    }

    fn take(&mut self) -> &'a str {
        let (start, end) = self.peek_range();
        self.at = end;
        &self.text[start..end]
    }

    fn expect(&mut self, token: &str) -> Result<(), ParseError> {
        if self.peek() != token {
            return Err(self.error(format!("`{token}`")));
        }
        self.take();
        Ok(())
    }

    fn number<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T, ParseError> {
        let number = self.peek().parse().map_err(|_| self.error(expected))?;
        self.take();
        Ok(number)
    }

    fn count(&mut self) -> Result<u64, ParseError> {
        self.number("a count")
    }

    fn offset(&mut self) -> Result<i64, ParseError> {
        self.number("an offset in bytes")
    }

    fn kind(&mut self) -> Result<Kind, ParseError> {
        let kind = Kind::by_name(self.peek()).ok_or_else(|| self.error("an element kind"))?;
        self.take();
        Ok(kind)
    }

    /// Parses `%N`, the id of an earlier node.
    fn node(&mut self, nodes: &[NodeId]) -> Result<NodeId, ParseError> {
        self.expect("%")?;
        let place = self.at;
        let number: usize = self.number("the number of a node")?;
        let expected = || format!("the number of an earlier node (below {})", nodes.len());
        nodes.get(number).copied().ok_or_else(|| self.error_at(place, expected()))
    }

    /// Parses `%N`, or `OFFSET: %N`.
    fn edge(&mut self, nodes: &[NodeId]) -> Result<Edge, ParseError> {
        let mut offset = 0;
        if self.peek() != "%" {
            offset = self.offset()?;
            self.expect(":")?;
        }
        Ok(Edge { offset, node: self.node(nodes)? })
    }

    fn list<T>(
        &mut self,
        separator: Option<&str>,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect("[")?;
        let mut items = Vec::new();
        while self.peek() != "]" {
            if let (Some(separator), false) = (separator, items.is_empty()) {
                self.expect(separator)?;
            }
            items.push(item(self)?);
        }
        self.take();
        Ok(items)
    }

    fn definition(&mut self, nodes: &[NodeId]) -> Result<Node, ParseError> {
        let place = self.at;
        Ok(match self.take() {
            "dense" => {
                let count = self.count()?;
                self.expect("x")?;
                Node::Dense { count, kind: self.kind()? }
            }
            "stream" => {
                let count = self.count()?;
                self.expect("x")?;
                let stride = self.offset()?;
                self.expect("of")?;
                Node::Stream { count, stride, child: self.edge(nodes)? }
            }
            "indexed" => {
                let offsets = self.list(None, Self::offset)?.into();
                self.expect("of")?;
                Node::Indexed { offsets, child: self.edge(nodes)? }
            }
            "runs" => {
                let runs = self.list(None, |tokens| {
                    tokens.expect("(")?;
                    let run = Run { offset: tokens.offset()?, count: tokens.count()? };
                    tokens.expect(")")?;
                    Ok(run)
                })?;
                self.expect("x")?;
                Node::Runs { runs: runs.into(), kind: self.kind()? }
            }
            "record" => Node::Record { parts: self.list(Some(","), |tokens| tokens.edge(nodes))?.into() },
            _ => return Err(self.error_at(place, "`dense`, `stream`, `indexed`, `runs` or `record`")),
        })
    }
}

impl Layout {
    /// Parses the textual form. A comment runs from `;` to the end of its line. The word `exact` is accepted and
    /// ignored, because only [`crate::canonicalise`] can establish it.
    ///
    /// # Errors
    ///
    /// The first syntax error, or the first break of a rule of [`Layout::verify`].
    pub fn parse(text: &str) -> Result<Layout, ParseError> {
        let mut tokens = Tokens { text, at: 0 };
        let mut builder = LayoutBuilder::new();
        let mut nodes = Vec::new();
        tokens.expect("layout")?;
        if tokens.peek() == "exact" {
            tokens.take();
        }
        tokens.expect("lb")?;
        let lb = tokens.offset()?;
        tokens.expect("extent")?;
        let place = tokens.at;
        let extent = tokens.offset()?;
        lb.checked_add(extent).ok_or_else(|| tokens.error_at(place, "an extent whose upper bound fits 64 bits"))?;
        tokens.expect("{")?;
        while tokens.peek() == "%" {
            tokens.take();
            let number: usize = tokens.peek().parse().unwrap_or(usize::MAX);
            if number != nodes.len() {
                return Err(tokens.error(format!("node number {}", nodes.len())));
            }
            tokens.take();
            tokens.expect("=")?;
            let place = tokens.at;
            let node = tokens.definition(&nodes)?;
            let expected = "a node with counts of at least 1, no empty child, and sizes that fit 64 bits";
            nodes.push(builder.intern(node).ok_or_else(|| tokens.error_at(place, expected))?);
        }
        tokens.expect("root")?;
        let place = tokens.at;
        let root = tokens.edge(&nodes)?;
        let measure = builder.measure(root.node);
        let fits = |bound: i64| bound.checked_add(root.offset).is_some();
        if !fits(measure.low) || !fits(measure.high) {
            return Err(tokens.error_at(place, "a root whose bounds fit 64 bits"));
        }
        tokens.expect("}")?;
        if !tokens.peek().is_empty() {
            return Err(tokens.error("the end of the text"));
        }
        Ok(builder.finish(root, lb, extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_NODE: &str = "layout lb -33 extent 64 {
  %0 = dense 3 x i16
  %1 = stream 4 x -16 of 2: %0
  %2 = indexed [5 -7 100] of 3: %1
  %3 = runs [(0 3) (40 1)] x i32
  %4 = record [9: %2, -20: %3, 0: %0]
  root -33: %4
}";

    #[test]
    fn the_form_round_trips() {
        let layout = Layout::parse(EVERY_NODE).unwrap();
        assert_eq!(layout.to_string(), EVERY_NODE);
        assert_eq!(layout.verify(), Ok(()));
        let empty = "layout lb 0 extent 8 {\n  %0 = record []\n  root %0\n}";
        assert_eq!(Layout::parse(empty).unwrap().to_string(), empty);
    }

    #[test]
    fn faults_are_placed() {
        let error = |text: &str| Layout::parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "line 1, column 1: expected `layout`, found the end of the text");
        assert_eq!(
            error("layout lb 0 extent 4 {\n  %0 = stream 2 x 8 of %0\n  root %0\n}"),
            "line 2, column 25: expected the number of an earlier node (below 0), found `0`"
        );
        assert_eq!(
            error("layout lb 0 extent 4 {\n  %0 = dense 0 x byte\n  root %0\n}"),
            "line 2, column 8: expected a node with counts of at least 1, no empty child, and sizes that fit 64 bits, \
             found `dense`"
        );
        assert_eq!(
            error("layout lb 0 extent 4 {\n  %0 = blob\n}"),
            "line 2, column 8: expected `dense`, `stream`, `indexed`, `runs` or `record`, found `blob`"
        );
        assert!(
            error("layout lb 0 extent 4 {\n %0 = dense 9223372036854775807 x f64\n root %0\n}").contains("64 bits")
        );
        assert!(error("layout lb 0 extent 4 {\n %0 = dense 1 x f64\n root %0\n} more").contains("end of the text"));
    }
}
