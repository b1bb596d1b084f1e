//! Reading the notation.

use super::print::lower;
use crate::datatype::constructor::KINDS;
use crate::datatype::suggest::{closest, plain_constructor, plain_name, shorten};
use crate::datatype::{
    Constructor, Datatype, DatatypeError, Distribution, GivenBounds, Order, Predefined, ReadArguments,
};
use std::collections::HashMap;
use std::fmt;

/// Why a text is not the notation of a datatype: where, what was expected, and what was found.
///
/// ```
/// use dtc_compiler::datatype::text;
/// let error = text::parse("vector 12 1\n  (contiguous 5 double)").unwrap_err();
/// assert_eq!((error.line(), error.column()), (2, 3));
/// assert_eq!(error.to_string(), "line 2, column 3: expected an integer (stride), found (");
/// let error = text::parse("contiguous -5 double").unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 1: expected contiguous.count: a count of at least 0, found -5");
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

/// Reads the notation. The [module](super) shows it.
///
/// The text may nest to any depth; time and memory are linear in its length.
///
/// ```
/// use dtc_compiler::datatype::text;
/// let pairs = text::parse("indexed [3@0, 1@10] 2int")?;
/// assert_eq!((pairs.facts().size, pairs.facts().extent()), (32, 88));
/// # Ok::<(), text::TextError>(())
/// ```
pub fn parse(text: &str) -> Result<Datatype, TextError> {
    let mut parser = Parser { tokens: Tokens { text, offset: 0 }, predefined: HashMap::new(), names: HashMap::new() };
    parser.document()
}

/// The words of the notation beside the names of constructors.
const WORDS: [&str; 9] = ["let", "given", "of", "over", "c", "fortran", "block", "cyclic", "none"];

/// All words of the notation.
fn words<'a>() -> impl Iterator<Item = &'a str> + Clone {
    let constructors = KINDS.iter().map(|&(name, _)| -> &'a str { name }).filter(|&name| name != "named");
    WORDS.into_iter().map(|word| -> &'a str { word }).chain(constructors)
}

/// Of a text, with where it starts.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    start: usize,
}

struct Tokens<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Tokens<'a> {
    /// The next token, which stays; empty at the end.
    fn peek(&mut self) -> Token<'a> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.offset) {
                Some(byte) if byte.is_ascii_whitespace() => self.offset += 1,
                Some(b'#') => {
                    let rest = &bytes[self.offset..];
                    self.offset += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        let rest = &self.text[self.offset..];
        let word = |from: usize| {
            let end = rest[from..].find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            end.map_or(rest.len(), |end| from + end)
        };
        let length = match rest.chars().next() {
            None => 0,
            Some('-') => word(1),
            Some(letter) if letter.is_ascii_alphanumeric() || letter == '_' => word(0),
            Some(other) => other.len_utf8(),
        };
        Token { text: &rest[..length], start: self.offset }
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.offset += token.text.len();
        token
    }

    fn error(&self, start: usize, expected: impl Into<String>, found: impl Into<String>) -> TextError {
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TextError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn unexpected(&self, token: Token, expected: impl Into<String>) -> TextError {
        let found = if token.text.is_empty() { "the end".to_owned() } else { shorten(token.text) };
        self.error(token.start, expected, found)
    }

    /// Takes the next token if it is this one.
    fn take(&mut self, text: &str) -> bool {
        let taken = self.peek().text == text;
        if taken {
            self.next();
        }
        taken
    }

    fn need(&mut self, text: &str) -> Result<(), TextError> {
        if self.take(text) {
            return Ok(());
        }
        let token = self.peek();
        Err(self.unexpected(token, text))
    }

    fn number(&mut self, what: &str) -> Result<i64, TextError> {
        let token = self.next();
        token.text.parse().map_err(|_| self.unexpected(token, format!("an integer ({what})")))
    }

    /// The items of a list with brackets.
    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), TextError>) -> Result<(), TextError> {
        self.need("[")?;
        if self.take("]") {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.take("]") {
                return Ok(());
            }
            if !self.take(",") {
                let token = self.peek();
                return Err(self.unexpected(token, ", or ]"));
            }
        }
    }

    fn block(&mut self) -> Result<(i64, i64), TextError> {
        let length = self.number("length")?;
        self.need("@")?;
        Ok((length, self.number("displacement")?))
    }

    fn blocks(&mut self) -> Result<(Vec<i64>, Vec<i64>), TextError> {
        let (mut lengths, mut displacements) = (Vec::new(), Vec::new());
        self.list(|tokens| {
            let (length, displacement) = tokens.block()?;
            lengths.push(length);
            displacements.push(displacement);
            Ok(())
        })?;
        Ok((lengths, displacements))
    }

    fn distribution(&mut self) -> Result<Distribution, TextError> {
        let token = self.next();
        let distribution = match token.text {
            "none" | "MPI_DISTRIBUTE_NONE" => return Ok(Distribution::None),
            "block" | "MPI_DISTRIBUTE_BLOCK" => Distribution::Block,
            "cyclic" | "MPI_DISTRIBUTE_CYCLIC" => Distribution::Cyclic,
            _ => return Err(self.unexpected(token, "block, cyclic or none")),
        };
        if !self.take("(") {
            return Ok(distribution(None));
        }
        let length = self.number("block length")?;
        self.need(")")?;
        Ok(distribution(Some(length)))
    }

    /// The arguments of a constructor with one child, if the word names one.
    fn constructor(&mut self, word: &str) -> Result<Option<Constructor>, TextError> {
        Ok(Some(match word {
            "struct" => return Ok(None),
            "indexed" => {
                let (blocklengths, displacements) = self.blocks()?;
                Constructor::Indexed { blocklengths, displacements }
            }
            "hindexed" => {
                let (blocklengths, displacements_bytes) = self.blocks()?;
                Constructor::Hindexed { blocklengths, displacements_bytes }
            }
            "subarray" => {
                let order = self.order("order")?;
                let (mut sizes, mut subsizes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
                self.list(|tokens| {
                    let (subsize, start) = tokens.block()?;
                    tokens.need("of")?;
                    sizes.push(tokens.number("size")?);
                    subsizes.push(subsize);
                    starts.push(start);
                    Ok(())
                })?;
                Constructor::Subarray { sizes, subsizes, starts, order }
            }
            "darray" => {
                let order = self.order("order")?;
                let rank = self.number("rank")?;
                self.need("of")?;
                let size = self.number("processes")?;
                let (mut gsizes, mut distributions, mut psizes) = (Vec::new(), Vec::new(), Vec::new());
                self.list(|tokens| {
                    distributions.push(tokens.distribution()?);
                    gsizes.push(tokens.number("elements")?);
                    tokens.need("over")?;
                    psizes.push(tokens.number("processes")?);
                    Ok(())
                })?;
                Constructor::Darray { size, rank, gsizes, distributions, psizes, order }
            }
            // The others have their arguments one after the other.
            other => return Constructor::read(other, self),
        }))
    }
}

impl ReadArguments for Tokens<'_> {
    type Error = TextError;

    fn integer(&mut self, name: &'static str) -> Result<i64, TextError> {
        self.number(match name {
            "stride_bytes" => "stride in bytes",
            "lb" => "lower bound",
            name => name,
        })
    }

    fn integers(&mut self, _name: &'static str) -> Result<Vec<i64>, TextError> {
        let mut integers = Vec::new();
        self.list(|tokens| {
            integers.push(tokens.number("displacement")?);
            Ok(())
        })?;
        Ok(integers)
    }

    fn order(&mut self, _name: &'static str) -> Result<Order, TextError> {
        let token = self.next();
        match token.text {
            "c" | "C" | "MPI_ORDER_C" => Ok(Order::C),
            "fortran" | "Fortran" | "MPI_ORDER_FORTRAN" => Ok(Order::Fortran),
            _ => Err(self.unexpected(token, "c or fortran")),
        }
    }

    fn distributions(&mut self, _name: &'static str) -> Result<Vec<Distribution>, TextError> {
        let mut distributions = Vec::new();
        self.list(|tokens| {
            distributions.push(tokens.distribution()?);
            Ok(())
        })?;
        Ok(distributions)
    }
}

/// What waits for a type to be complete.
enum Frame<'a> {
    Parenthesis,
    Given { given: GivenBounds, start: usize },
    Node { constructor: Constructor, start: usize },
    Struct { blocklengths: Vec<i64>, displacements_bytes: Vec<i64>, children: Vec<Datatype>, start: usize },
    Let { name: &'a str },
}

/// A complete type. Bounds may be given to a new one only: others have users already.
enum Complete {
    New(Datatype),
    Known(Datatype),
    Predefined(Predefined),
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    predefined: HashMap<Predefined, Datatype>,
    names: HashMap<&'a str, Datatype>,
}

impl<'a> Parser<'a> {
    /// What waits is a list and not a stack of calls, so that depth costs no stack.
    fn document(&mut self) -> Result<Datatype, TextError> {
        let mut frames: Vec<Frame<'a>> = Vec::new();
        loop {
            if frames.is_empty() && self.tokens.take("let") {
                let name = self.new_name()?;
                self.tokens.need("=")?;
                frames.push(Frame::Let { name });
            }
            let mut complete = self.head(&mut frames)?;
            // A type is complete: everything that waited for nothing else is, too.
            while let Some(finished) = complete {
                let Some(frame) = frames.pop() else {
                    let token = self.tokens.next();
                    return match token.text {
                        "" => Ok(self.made(finished)),
                        _ => Err(self.tokens.unexpected(token, "the end")),
                    };
                };
                complete = self.complete(frame, finished, &mut frames)?;
            }
        }
    }

    /// Reads up to the place of the next type, or a type without parts.
    fn head(&mut self, frames: &mut Vec<Frame<'a>>) -> Result<Option<Complete>, TextError> {
        let token = self.tokens.next();
        let start = token.start;
        if let Some(constructor) = self.tokens.constructor(token.text)? {
            frames.push(Frame::Node { constructor, start });
            return Ok(None);
        }
        match token.text {
            "(" => frames.push(Frame::Parenthesis),
            "given" => {
                let lb = self.tokens.number("lower bound")?;
                let extent = self.tokens.number("extent")?;
                frames.push(Frame::Given { given: GivenBounds { lb, extent }, start });
            }
            "struct" => {
                self.tokens.need("[")?;
                if self.tokens.take("]") {
                    return self.build(start, structure(Vec::new(), Vec::new()), []);
                }
                let (blocklength, displacement) = self.tokens.block()?;
                frames.push(Frame::Struct {
                    blocklengths: vec![blocklength],
                    displacements_bytes: vec![displacement],
                    children: Vec::new(),
                    start,
                });
            }
            word => {
                if let Some(known) = self.names.get(word) {
                    return Ok(Some(Complete::Known(known.clone())));
                }
                if let Some(predefined) = predefined(word) {
                    return Ok(Some(Complete::Predefined(predefined)));
                }
                let names: Vec<String> = Predefined::all().map(lower).collect();
                let known = names.iter().map(String::as_str).chain(words()).chain(self.names.keys().copied());
                // MPI writes types and constructors in other ways, which lead to the notation's own words.
                let meant = closest(&plain_constructor(word), words())
                    .filter(|_| word.starts_with("MPI_"))
                    .or_else(|| closest(&plain_name(word, "MPI_"), known));
                let expected = match meant.filter(|_| !word.is_empty()) {
                    Some(meant) => format!("a type (perhaps {meant})"),
                    None => "a type".to_owned(),
                };
                return Err(self.tokens.unexpected(token, expected));
            }
        }
        Ok(None)
    }

    /// Hands a type to what waited for it. Returns what that completes, if it does.
    fn complete(
        &mut self,
        frame: Frame<'a>,
        finished: Complete,
        frames: &mut Vec<Frame<'a>>,
    ) -> Result<Option<Complete>, TextError> {
        match frame {
            Frame::Parenthesis => {
                self.tokens.need(")")?;
                Ok(Some(finished))
            }
            Frame::Given { given, start } => {
                let plain = match finished {
                    Complete::New(made) => made,
                    Complete::Predefined(predefined) => Datatype::named(predefined),
                    Complete::Known(_) => {
                        return Err(self.tokens.error(start, "bounds given where a type is made", "a finished type"));
                    }
                };
                let made = Datatype::new(plain.constructor().clone(), plain.children().iter().cloned(), Some(given));
                Ok(Some(Complete::Known(made.map_err(|error| self.built(start, error))?)))
            }
            Frame::Node { constructor, start } => {
                let child = self.made(finished);
                self.build(start, constructor, [child])
            }
            Frame::Struct { mut blocklengths, mut displacements_bytes, mut children, start } => {
                children.push(self.made(finished));
                if self.tokens.take(",") {
                    let (blocklength, displacement) = self.tokens.block()?;
                    blocklengths.push(blocklength);
                    displacements_bytes.push(displacement);
                    frames.push(Frame::Struct { blocklengths, displacements_bytes, children, start });
                    return Ok(None);
                }
                self.tokens.need("]")?;
                self.build(start, structure(blocklengths, displacements_bytes), children)
            }
            Frame::Let { name } => {
                self.tokens.need(";")?;
                let made = self.made(finished);
                self.names.insert(name, made);
                Ok(None)
            }
        }
    }

    fn made(&mut self, complete: Complete) -> Datatype {
        match complete {
            Complete::New(made) | Complete::Known(made) => made,
            Complete::Predefined(predefined) => {
                self.predefined.entry(predefined).or_insert_with(|| Datatype::named(predefined)).clone()
            }
        }
    }

    fn build(
        &self,
        start: usize,
        constructor: Constructor,
        children: impl IntoIterator<Item = Datatype>,
    ) -> Result<Option<Complete>, TextError> {
        let made = Datatype::new(constructor, children, None).map_err(|error| self.built(start, error))?;
        Ok(Some(Complete::New(made)))
    }

    fn new_name(&mut self) -> Result<&'a str, TextError> {
        let token = self.tokens.next();
        let name = token.text;
        if !name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
            return Err(self.tokens.unexpected(token, "a name"));
        }
        if words().any(|word| word == name) || predefined(name).is_some() || self.names.contains_key(name) {
            return Err(self.tokens.unexpected(token, "a new name"));
        }
        Ok(name)
    }

    fn built(&self, start: usize, error: DatatypeError) -> TextError {
        self.tokens.error(start, format!("{}: {}", error.place(), error.expected()), error.found())
    }
}

fn structure(blocklengths: Vec<i64>, displacements_bytes: Vec<i64>) -> Constructor {
    Constructor::Struct { blocklengths, displacements_bytes }
}

/// The predefined type of a name: MPI's own, or the same in lower case without `MPI_`.
fn predefined(word: &str) -> Option<Predefined> {
    if word.starts_with("MPI_") {
        return Predefined::by_name(word);
    }
    if word.is_empty() || word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    Predefined::by_name(&format!("MPI_{}", word.to_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_predefined_types_do_not_collide() {
        assert!(words().all(|word| predefined(word).is_none()));
        assert!(Predefined::all().all(|each| predefined(&lower(each)) == Some(each)));
    }
}
