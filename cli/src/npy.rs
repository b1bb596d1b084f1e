//! The headers of NumPy arrays (`.npy`).
//!
//! The header of NumPy's format versions 1 to 3 is a Python dictionary. It is parsed as such, and what it says about the
//! size of the data is compared with the file.
//!
//! The crate npyz reads such headers, too. Its errors have no place in the file, and it refuses what NumPy writes: titles of fields,
//! and field shapes of 0.

use dtc_compiler::layout::Kind;
use std::ops::Range;

/// An array in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Array {
    /// Where in the file its data is.
    pub data: Range<usize>,
    /// What one element is.
    pub element: Element,
}

/// One element of an array: a scalar, or a record of fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The type string, or words, for messages.
    pub text: String,
    /// What its scalars in the byte order of this machine may be, each kind once.
    pub kinds: Vec<Kind>,
    /// Whether there are bytes that NumPy knows nothing of, padding aside.
    pub opaque: bool,
    /// Whether it is a record.
    pub structured: bool,
}

/// Bytes of a type string that messages repeat.
const LONGEST_CODE: usize = 40;

/// The header of a one-dimensional array, padded as NumPy does.
pub fn header(descr: &str, elements: u64) -> Vec<u8> {
    let mut dictionary = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({elements},), }}");
    let padding = (dictionary.len() + 10 + 1).next_multiple_of(64) - (dictionary.len() + 10 + 1);
    dictionary.extend(std::iter::repeat_n(' ', padding));
    dictionary.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    // A dictionary with one number is far shorter than 64 KiB.
    header.extend_from_slice(&(dictionary.len() as u16).to_le_bytes());
    header.extend_from_slice(dictionary.as_bytes());
    header
}

/// Why a header is not one.
#[derive(Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// Where in the file.
    pub place: String,
    /// What the place should hold.
    pub expected: String,
    /// What it holds.
    pub found: String,
}

fn wrong<T>(place: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> Result<T, HeaderError> {
    Err(HeaderError { place: place.into(), expected: expected.into(), found: found.into() })
}

impl Array {
    /// Reads the header of a file.
    ///
    /// # Errors
    ///
    /// A [`HeaderError`] where it is none, or promises more data than there is.
    pub fn read(bytes: &[u8]) -> Result<Array, HeaderError> {
        const MAGIC: &[u8] = b"\x93NUMPY";
        if !bytes.starts_with(MAGIC) {
            let found = String::from_utf8_lossy(&bytes[..bytes.len().min(6)]).escape_debug().to_string();
            return wrong("header, byte 0", "the mark \\x93NUMPY", format!("\"{found}\""));
        }
        let length_bytes = match bytes.get(6..8) {
            Some([1, 0]) => 2,
            Some([2 | 3, 0]) => 4,
            Some([major, minor]) => {
                return wrong("header, byte 6", "format version 1.0, 2.0 or 3.0", format!("{major}.{minor}"));
            }
            _ => return wrong("header, byte 6", "a format version", "the end of the file"),
        };
        let start = 8 + length_bytes;
        let Some(length) = bytes.get(8..start) else {
            return wrong("header, byte 8", "the length of the header", "the end of the file");
        };
        let length = length.iter().rev().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
        let Some(text) = bytes.get(start..start.saturating_add(length)) else {
            let rest = bytes.len() - start;
            return wrong("header, byte 8", format!("a header of {length} bytes"), format!("{rest} bytes in the file"));
        };
        let Ok(text) = std::str::from_utf8(text) else {
            return wrong(format!("header, byte {start}"), "a dictionary in UTF-8", "other bytes");
        };
        let (data, element) = array_bytes(text)?;
        let (start, rest) = (start + length, bytes.len() - start - length);
        if data > rest as u128 {
            return wrong("data", format!("{data} bytes, as descr and shape say"), format!("{rest} bytes"));
        }
        Ok(Array { data: start..start + data as usize, element })
    }
}

/// How many bytes of data the dictionary promises, and what one element is.
fn array_bytes(text: &str) -> Result<(u128, Element), HeaderError> {
    let mut parser = Parser { text, at: 0 };
    let Literal::Dictionary(members) = parser.literal(0)? else {
        return wrong("header", "a dictionary", "another value");
    };
    parser.skip_space();
    if parser.at < text.len() {
        return parser.wrong("the end of the header");
    }
    let member = |name: &str| match members.iter().find(|(key, _)| key == name) {
        Some((_, value)) => Ok(value),
        None => wrong("header", format!("the member '{name}'"), "none of that name"),
    };
    let mut element = Element::default();
    let descr = member("descr")?;
    let item = item_bytes(descr, 0, &mut element)?;
    (element.text, element.structured) = match descr {
        Literal::Text(code) => (format!("'{}'", start_of(code).escape_debug()), false),
        _ => ("records without one".to_owned(), true),
    };
    let Literal::Truth = member("fortran_order")? else {
        return wrong("header, fortran_order", "True or False", "another value");
    };
    match shape_product(member("shape")?)?.checked_mul(item) {
        Some(bytes) => Ok((bytes, element)),
        None => wrong("header, shape", "an array of less than 2^127 bytes", "a larger one"),
    }
}

/// The beginning of a text, for messages.
fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_CODE)]
}

fn shape_product(shape: &Literal) -> Result<u128, HeaderError> {
    let Literal::List(lengths) = shape else {
        return wrong("header, shape", "a tuple of lengths", "another value");
    };
    let mut product = 1u128;
    for length in lengths {
        let Literal::Number(length) = *length else {
            return wrong("header, shape", "lengths", "another value");
        };
        product = match product.checked_mul(length.into()) {
            Some(product) => product,
            None => return wrong("header, shape", "an array of less than 2^127 bytes", "a larger one"),
        };
    }
    Ok(product)
}

/// Bytes of one array element, whose scalars are added to what is known of it.
fn item_bytes(descr: &Literal, depth: usize, element: &mut Element) -> Result<u128, HeaderError> {
    let fields = match descr {
        Literal::Text(code) => return code_bytes(code, element),
        Literal::List(fields) if depth < 16 => fields,
        _ => return wrong("header, descr", "a type string such as '<f8' or a list of fields", "another value"),
    };
    let mut bytes = 0u128;
    for field in fields {
        let Literal::List(field) = field else {
            return wrong("header, descr", "fields as (name, type) or (name, type, shape)", "another value");
        };
        // NumPy writes padding as fields without a name.
        let padding = matches!(field.as_slice(), [Literal::Text(name), Literal::Text(_)] if name.is_empty());
        let (of, copies) = match field.as_slice() {
            [_, of] => (of, 1),
            [_, of, shape] => (of, shape_product(shape)?),
            _ => {
                let found = format!("a tuple of {}", field.len());
                return wrong("header, descr", "fields as (name, type) or (name, type, shape)", found);
            }
        };
        let mut unused = Element::default();
        let element = if padding { &mut unused } else { &mut *element };
        let sum = item_bytes(of, depth + 1, element)?.checked_mul(copies).and_then(|field| bytes.checked_add(field));
        bytes = match sum {
            Some(sum) => sum,
            None => return wrong("header, descr", "elements of less than 2^127 bytes", "larger ones"),
        };
    }
    Ok(bytes)
}

/// Bytes of a type string: byte order, kind, length, and for times a unit.
fn code_bytes(code: &str, element: &mut Element) -> Result<u128, HeaderError> {
    let refused =
        || wrong("header, descr", "a type string such as '<f8'", format!("'{}'", start_of(code).escape_debug()));
    let rest = code.strip_prefix(['<', '>', '|', '=']).unwrap_or(code);
    let mut characters = rest.chars();
    let Some(kind) = characters.next() else { return refused() };
    let rest = characters.as_str();
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, unit) = rest.split_at(digits);
    let unit_allowed = matches!(kind, 'm' | 'M');
    let unit_fine = unit.is_empty() || unit_allowed && unit.starts_with('[') && unit.ends_with(']');
    let Ok(length) = digits.parse::<u64>() else { return refused() };
    let swapped = code.starts_with(if cfg!(target_endian = "little") { '>' } else { '<' });
    let kinds = kinds_of(kind, length);
    let ordered = matches!(kind, 'U' | 'm' | 'M') || length > 1 && !matches!(kind, 'S' | 'a' | 'V');
    if !(swapped && ordered) {
        element.opaque |= kind == 'V';
        for kind in kinds {
            if !element.kinds.contains(kind) {
                element.kinds.push(*kind);
            }
        }
    }
    match kind {
        'O' => wrong("header, descr", "elements that are bytes", "Python objects"),
        'U' if unit_fine => Ok(u128::from(length) * 4),
        'b' | 'i' | 'u' | 'f' | 'c' | 'm' | 'M' | 'S' | 'a' | 'V' if unit_fine => Ok(length.into()),
        _ => refused(),
    }
}

/// The kinds that scalars of a type string may be. Logicals of Fortran are integers in NumPy, and both formats of 16 bytes that
/// compilers call long double have one name.
fn kinds_of(kind: char, length: u64) -> &'static [Kind] {
    match (kind, length) {
        ('b', 1) => &[Kind::B8],
        ('i', 1) => &[Kind::I8, Kind::Char],
        ('u', 1) => &[Kind::U8, Kind::Char],
        ('S' | 'a', _) => &[Kind::Char],
        ('U', _) => &[Kind::I32],
        ('i', 2) => &[Kind::I16, Kind::B16],
        ('i', 4) => &[Kind::I32, Kind::B32],
        ('i', 8) => &[Kind::I64, Kind::B64],
        ('m' | 'M', 8) => &[Kind::I64],
        ('u', 2) => &[Kind::U16],
        ('u', 4) => &[Kind::U32],
        ('u', 8) => &[Kind::U64],
        ('f', 2) => &[Kind::F16],
        ('f', 4) => &[Kind::F32],
        ('f', 8) => &[Kind::F64],
        ('f', 16) => &[Kind::F80, Kind::F128],
        ('c', 8) => &[Kind::C64],
        ('c', 16) => &[Kind::C128],
        ('c', 32) => &[Kind::C160, Kind::C256],
        _ => &[],
    }
}

/// What the dictionaries of headers hold. Tuples are lists here.
enum Literal {
    Text(String),
    Number(u64),
    Truth,
    List(Vec<Literal>),
    Dictionary(Vec<(String, Literal)>),
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn wrong<T>(&self, expected: &str) -> Result<T, HeaderError> {
        let found = match self.rest().chars().next() {
            Some(character) => format!("'{}'", character.escape_debug()),
            None => "the end of the header".to_owned(),
        };
        wrong(format!("header, character {}", self.at), expected, found)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips space and takes what comes next, if it is this.
    fn takes(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn literal(&mut self, depth: usize) -> Result<Literal, HeaderError> {
        if depth > 32 {
            return self.wrong("values nested less deeply");
        }
        for (open, close) in [("(", ")"), ("[", "]")] {
            if self.takes(open) {
                return self.list(close, depth);
            }
        }
        if self.takes("{") {
            return self.dictionary(depth);
        }
        for quote in ['\'', '"'] {
            if self.takes(quote.encode_utf8(&mut [0; 4])) {
                return self.quoted(quote).map(Literal::Text);
            }
        }
        if self.takes("True") || self.takes("False") {
            return Ok(Literal::Truth);
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        match self.rest()[..digits].parse() {
            Ok(number) => {
                self.at += digits;
                // Python 2 wrote long integers with an L.
                self.at += usize::from(self.rest().starts_with('L'));
                Ok(Literal::Number(number))
            }
            Err(_) if digits > 0 => self.wrong("a length of at most 64 bits"),
            Err(_) => self.wrong("a value"),
        }
    }

    fn list(&mut self, close: &str, depth: usize) -> Result<Literal, HeaderError> {
        let mut items = Vec::new();
        loop {
            if self.takes(close) {
                return Ok(Literal::List(items));
            }
            items.push(self.literal(depth + 1)?);
            if !self.takes(",") && !self.text[self.at..].starts_with(close) {
                return self.wrong("a comma or the end of the list");
            }
        }
    }

    fn dictionary(&mut self, depth: usize) -> Result<Literal, HeaderError> {
        let mut members = Vec::new();
        loop {
            if self.takes("}") {
                return Ok(Literal::Dictionary(members));
            }
            let Literal::Text(key) = self.literal(depth + 1)? else {
                return self.wrong("a member's name before this");
            };
            if !self.takes(":") {
                return self.wrong("a colon");
            }
            members.push((key, self.literal(depth + 1)?));
            if !self.takes(",") && !self.text[self.at..].starts_with('}') {
                return self.wrong("a comma or the end of the dictionary");
            }
        }
    }

    /// The rest of a string. Escapes stay as they are written: only names have them, and names are not used.
    fn quoted(&mut self, quote: char) -> Result<String, HeaderError> {
        let mut escaped = false;
        for (index, character) in self.rest().char_indices() {
            if character == quote && !escaped {
                let text = self.rest()[..index].to_owned();
                self.at += index + 1;
                return Ok(text);
            }
            escaped = character == '\\' && !escaped;
        }
        self.at = self.text.len();
        self.wrong("the end of a string")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(major: u8, dictionary: &str, data: usize) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([major, 0]);
        match major {
            1 => bytes.extend((dictionary.len() as u16).to_le_bytes()),
            _ => bytes.extend((dictionary.len() as u32).to_le_bytes()),
        }
        bytes.extend(dictionary.bytes());
        bytes.extend(std::iter::repeat_n(0, data));
        bytes
    }

    #[test]
    fn headers_of_all_versions_are_read() {
        let dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }\n";
        for (version, before) in [(1, 10), (2, 12), (3, 12)] {
            let start = before + dictionary.len();
            assert_eq!(Array::read(&file(version, dictionary, 96)).map(|array| array.data), Ok(start..start + 96));
        }
        let scalar = "{\"descr\": \"<M8[ns]\", \"fortran_order\": True, \"shape\": ()}";
        assert_eq!(Array::read(&file(1, scalar, 8)).map(|array| array.data.len()), Ok(8));
        let fields = "{'descr': [('a', '<i4'), (('title', 'b'), '|S3', (2,)), ('c', [('d', '|b1')])], \
                      'fortran_order': False, 'shape': (5L,)}";
        assert_eq!(Array::read(&file(1, fields, 55)).map(|array| array.data.len()), Ok(55));
    }

    #[test]
    fn written_headers_are_read() {
        for bytes in [0, 1, 1000, u64::from(u32::MAX)] {
            let header = header("|u1", bytes);
            assert_eq!(header.len() % 64, 0);
            assert_eq!(
                array_bytes(std::str::from_utf8(&header[10..]).unwrap()).map(|(bytes, _)| bytes),
                Ok(bytes.into())
            );
        }
    }

    #[test]
    fn malformed_headers_name_the_place() {
        let place = |bytes: &[u8]| Array::read(bytes).unwrap_err().place;
        assert_eq!(place(b"PK\x03\x04"), "header, byte 0");
        assert_eq!(place(b"\x93NUMPY\x04\x00"), "header, byte 6");
        assert_eq!(place(b"\x93NUMPY\x01\x00\xff\x00{"), "header, byte 8");
        let of = |dictionary: &str| place(&file(1, dictionary, 8));
        assert_eq!(of("{'descr': '<f8', 'shape': (1,)}"), "header");
        assert_eq!(of("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}"), "data");
        assert_eq!(of("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "header, descr");
        assert_eq!(of("{'descr': '|O8', 'fortran_order': False, 'shape': (1,)}"), "header, descr");
        assert_eq!(of("{'descr': '<f8' 'shape'}"), "header, character 16");
        assert_eq!(of(&"(".repeat(500)), "header, character 33");
        assert_eq!(of("{'descr"), "header, character 7");
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551615, 18446744073709551615)}";
        assert_eq!(of(huge), "header, shape");
    }
}
