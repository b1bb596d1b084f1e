//! Reading the notation.

use super::print::lower;
use crate::datatype::constructor::KINDS;
use crate::datatype::{
    Constructor, Datatype, DatatypeError, Distribution, GivenBounds, Order, Predefined, ReadArguments, TabledDatatype,
};
use crate::suggest::{closest, plain_constructor, plain_name};
use crate::tokens::{TextError, Token, Tokens};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// Reads the notation. The [module](super) shows it.
///
/// The text may nest to any depth; time and memory are linear in its length.
///
/// ```
/// use dtc_compiler::datatype::text;
/// let pairs = text::parse("indexed [3@0, 1@10] 2int")?;
/// assert_eq!((pairs.facts().size, pairs.facts().extent()), (32, 88));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn parse(text: &str) -> Result<Datatype, TextError> {
    let tokens = Tokens::new(text, '#');
    let start = tokens.peek();
    let datatype = any(text)?;
    datatype.without_tables(String::new).map_err(|error| tokens.error(start, error.expected(), error.found()))
}

/// Reads the notation of a type that may have index tables: `table` and `addresses`.
///
/// ```
/// use dtc_compiler::datatype::text;
/// let pages = text::parse_tabled("table 0 1024 64 65536 (contiguous 8192 double)")?;
/// assert_eq!((pages.tables().len(), pages.facts().size), (1, 64 * 65536));
/// assert_eq!(pages.to_string(), "table 0 1024 64 65536 (contiguous 8192 double)");
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn parse_tabled(text: &str) -> Result<TabledDatatype, TextError> {
    let tokens = Tokens::new(text, '#');
    let start = tokens.peek();
    TabledDatatype::of(any(text)?)
        .map_err(|error| tokens.error(start, format!("{}: {}", error.place(), error.expected()), error.found()))
}

fn any(text: &str) -> Result<Datatype, TextError> {
    Parser { tokens: Tokens::new(text, '#'), names: HashMap::new() }.document()
}

impl FromStr for TabledDatatype {
    type Err = TextError;

    /// Reads the notation, as [`parse_tabled`] does.
    fn from_str(text: &str) -> Result<TabledDatatype, TextError> {
        parse_tabled(text)
    }
}

impl FromStr for Datatype {
    type Err = TextError;

    /// Reads the notation of [`text`](super), as [`parse`] does. What `Display` prints is read as an equal type. JSON is read by
    /// [`json::read`](crate::datatype::json::read).
    ///
    /// ```
    /// use dtc_compiler::datatype::Datatype;
    /// let face: Datatype = "vector 12 1 14 (contiguous 5 double)".parse()?;
    /// assert_eq!((face.size(), face.extent()), (480, 6200));
    /// assert_eq!(face.to_string(), "vector 12 1 14 (contiguous 5 double)");
    /// let error = "vector 12 1 double".parse::<Datatype>().unwrap_err();
    /// assert_eq!(error.to_string(), "line 1, column 13: expected an integer (stride), found `double`");
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    fn from_str(text: &str) -> Result<Datatype, TextError> {
        parse(text)
    }
}

/// The words of the notation beside the names of constructors.
const WORDS: [&str; 9] = ["let", "given", "of", "over", "c", "fortran", "block", "cyclic", "none"];

/// All words of the notation.
fn words<'a>() -> impl Iterator<Item = &'a str> + Clone {
    let constructors = KINDS.iter().map(|&(name, _)| -> &'a str { name }).filter(|&name| name != "named");
    WORDS.into_iter().map(|word| -> &'a str { word }).chain(constructors)
}

/// A number, and what it is.
fn number(tokens: &mut Tokens, what: &str) -> Result<i64, TextError> {
    tokens.number(format_args!("an integer ({what})"))
}

/// `LENGTH@DISPLACEMENT`.
fn block(tokens: &mut Tokens) -> Result<(i64, i64), TextError> {
    let length = number(tokens, "length")?;
    tokens.need("@")?;
    Ok((length, number(tokens, "displacement")?))
}

fn blocks(tokens: &mut Tokens) -> Result<[Arc<[i64]>; 2], TextError> {
    let (lengths, displacements): (Vec<i64>, Vec<i64>) = tokens.list(",", block)?.into_iter().unzip();
    Ok([lengths.into(), displacements.into()])
}

fn distribution(tokens: &mut Tokens) -> Result<Distribution, TextError> {
    let token = tokens.next();
    let distribution = match token.text {
        "none" | "MPI_DISTRIBUTE_NONE" => return Ok(Distribution::None),
        "block" | "MPI_DISTRIBUTE_BLOCK" => Distribution::Block,
        "cyclic" | "MPI_DISTRIBUTE_CYCLIC" => Distribution::Cyclic,
        _ => return Err(tokens.unexpected(token, "block, cyclic or none")),
    };
    if !tokens.take("(") {
        return Ok(distribution(None));
    }
    let length = number(tokens, "block length")?;
    tokens.need(")")?;
    Ok(distribution(Some(length)))
}

/// The arguments of a constructor with one child, if the word names one. Lists of one length are one list of their items.
fn constructor(tokens: &mut Tokens, word: &str) -> Result<Option<Constructor>, TextError> {
    Ok(Some(match word {
        "struct" => return Ok(None),
        "indexed" => {
            let [blocklengths, displacements] = blocks(tokens)?;
            Constructor::Indexed { blocklengths, displacements }
        }
        "hindexed" => {
            let [blocklengths, displacements_bytes] = blocks(tokens)?;
            Constructor::Hindexed { blocklengths, displacements_bytes }
        }
        "subarray" => {
            let order = tokens.order("order")?;
            let (mut sizes, mut subsizes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
            tokens.list(",", |tokens| {
                let (subsize, start) = block(tokens)?;
                tokens.need("of")?;
                sizes.push(number(tokens, "size")?);
                subsizes.push(subsize);
                starts.push(start);
                Ok(())
            })?;
            Constructor::Subarray { sizes: sizes.into(), subsizes: subsizes.into(), starts: starts.into(), order }
        }
        "darray" => {
            let order = tokens.order("order")?;
            let rank = number(tokens, "rank")?;
            tokens.need("of")?;
            let size = number(tokens, "processes")?;
            let (mut gsizes, mut distributions, mut psizes) = (Vec::new(), Vec::new(), Vec::new());
            tokens.list(",", |tokens| {
                distributions.push(distribution(tokens)?);
                gsizes.push(number(tokens, "elements")?);
                tokens.need("over")?;
                psizes.push(number(tokens, "processes")?);
                Ok(())
            })?;
            Constructor::Darray { size, rank, gsizes: gsizes.into(), distributions, psizes: psizes.into(), order }
        }
        // The others have their arguments one after the other.
        other => return Constructor::read(other, tokens),
    }))
}

impl ReadArguments for Tokens<'_> {
    type Error = TextError;

    fn integer(&mut self, name: &'static str) -> Result<i64, TextError> {
        number(
            self,
            match name {
                "stride_bytes" => "stride in bytes",
                "lb" => "lower bound",
                name => name,
            },
        )
    }

    fn integers(&mut self, _name: &'static str) -> Result<Arc<[i64]>, TextError> {
        self.list(",", |tokens| number(tokens, "displacement")).map(Arc::from)
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
        self.list(",", distribution)
    }
}

/// What waits for a type to be complete.
enum OpenType<'a> {
    Parenthesis,
    Given { given: GivenBounds, head: Token<'a> },
    Node { constructor: Constructor, head: Token<'a> },
    Struct { blocklengths: Vec<i64>, displacements_bytes: Vec<i64>, children: Vec<Datatype>, head: Token<'a> },
    Let { name: &'a str },
}

/// A complete type. Bounds may be given to a new one only: others have users already.
enum Complete {
    New(Datatype),
    Known(Datatype),
}

impl Complete {
    fn made(self) -> Datatype {
        match self {
            Complete::New(made) | Complete::Known(made) => made,
        }
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    names: HashMap<&'a str, Datatype>,
}

impl<'a> Parser<'a> {
    /// What waits is a list and not a stack of calls, so that depth costs no stack.
    fn document(&mut self) -> Result<Datatype, TextError> {
        let mut frames: Vec<OpenType<'a>> = Vec::new();
        loop {
            if frames.is_empty() && self.tokens.take("let") {
                let name = self.new_name()?;
                self.tokens.need("=")?;
                frames.push(OpenType::Let { name });
            }
            let mut complete = self.head(&mut frames)?;
            // A type is complete: everything that waited for nothing else is, too.
            while let Some(finished) = complete {
                let Some(frame) = frames.pop() else {
                    self.tokens.need_end()?;
                    return Ok(finished.made());
                };
                complete = self.complete(frame, finished, &mut frames)?;
            }
        }
    }

    /// Reads up to the place of the next type, or a type without parts.
    fn head(&mut self, frames: &mut Vec<OpenType<'a>>) -> Result<Option<Complete>, TextError> {
        let head = self.tokens.next();
        if let Some(constructor) = constructor(&mut self.tokens, head.text)? {
            frames.push(OpenType::Node { constructor, head });
            return Ok(None);
        }
        match head.text {
            "(" => frames.push(OpenType::Parenthesis),
            "given" => {
                let lb = number(&mut self.tokens, "lower bound")?;
                let extent = number(&mut self.tokens, "extent")?;
                frames.push(OpenType::Given { given: GivenBounds { lb, extent }, head });
            }
            "struct" => {
                self.tokens.need("[")?;
                if self.tokens.take("]") {
                    return self.build(head, structure(Vec::new(), Vec::new()), []);
                }
                let (blocklength, displacement) = block(&mut self.tokens)?;
                frames.push(OpenType::Struct {
                    blocklengths: vec![blocklength],
                    displacements_bytes: vec![displacement],
                    children: Vec::new(),
                    head,
                });
            }
            word => {
                if let Some(known) = self.names.get(word) {
                    return Ok(Some(Complete::Known(known.clone())));
                }
                if let Some(predefined) = predefined(word) {
                    return Ok(Some(Complete::New(Datatype::named(predefined))));
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
                return Err(self.tokens.unexpected(head, expected));
            }
        }
        Ok(None)
    }

    /// Hands a type to what waited for it. Returns what that completes, if it does.
    fn complete(
        &mut self,
        frame: OpenType<'a>,
        finished: Complete,
        frames: &mut Vec<OpenType<'a>>,
    ) -> Result<Option<Complete>, TextError> {
        match frame {
            OpenType::Parenthesis => {
                self.tokens.need(")")?;
                Ok(Some(finished))
            }
            OpenType::Given { given, head } => {
                let plain = match finished {
                    Complete::New(made) => made,
                    Complete::Known(_) => {
                        return Err(self.tokens.error(head, "bounds given where a type is made", "a finished type"));
                    }
                };
                let made = Datatype::of(plain.constructor().clone(), plain.children().iter().cloned(), Some(given));
                Ok(Some(Complete::Known(made.map_err(|error| self.built(head, error))?)))
            }
            OpenType::Node { constructor, head } => {
                let child = finished.made();
                self.build(head, constructor, [child])
            }
            OpenType::Struct { mut blocklengths, mut displacements_bytes, mut children, head } => {
                children.push(finished.made());
                if self.tokens.take(",") {
                    let (blocklength, displacement) = block(&mut self.tokens)?;
                    blocklengths.push(blocklength);
                    displacements_bytes.push(displacement);
                    frames.push(OpenType::Struct { blocklengths, displacements_bytes, children, head });
                    return Ok(None);
                }
                self.tokens.need("]")?;
                self.build(head, structure(blocklengths, displacements_bytes), children)
            }
            OpenType::Let { name } => {
                self.tokens.need(";")?;
                let made = finished.made();
                self.names.insert(name, made);
                Ok(None)
            }
        }
    }

    fn build(
        &self,
        head: Token<'a>,
        constructor: Constructor,
        children: impl IntoIterator<Item = Datatype>,
    ) -> Result<Option<Complete>, TextError> {
        let made = Datatype::of(constructor, children, None).map_err(|error| self.built(head, error))?;
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

    fn built(&self, head: Token<'a>, error: DatatypeError) -> TextError {
        self.tokens.error(head, format!("{}: {}", error.place(), error.expected()), error.found())
    }
}

fn structure(blocklengths: Vec<i64>, displacements_bytes: Vec<i64>) -> Constructor {
    Constructor::Struct { blocklengths: blocklengths.into(), displacements_bytes: displacements_bytes.into() }
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
