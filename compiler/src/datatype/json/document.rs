//! A JSON document as a flat list of its values in the order of the text: nothing nests, so nothing recurses.

use super::error::DescriptionError;
use crate::suggest::{shorten, shorten_to};
use json_event_parser::{JsonEvent, LowLevelJsonParser};
use std::borrow::Cow;

/// Characters of the parser's message that are shown: all of its own words, and the beginning of what it quotes.
const LONGEST_MESSAGE: usize = 200;

/// A parsed document. Values are named by their index; the root is 0.
pub(super) struct Document<'a> {
    text: &'a str,
    entries: Vec<Member<'a>>,
}

struct Member<'a> {
    value: Value<'a>,
    /// Byte offset of the value in the text.
    start: usize,
    /// Index of the first entry behind this value and everything in it.
    after: usize,
}

/// One value; the members of a container are the entries that follow it.
pub(super) enum Value<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A number that is no integer, or none of 64 bits.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    /// The key of a member; the value follows.
    Key(Cow<'a, str>),
    List,
    /// A list of integers only, at least one; no entries follow for them. Long lists are nearly all of a long text.
    Integers(Vec<i64>),
    Object,
}

impl<'a> Document<'a> {
    /// Parses a text of any depth.
    pub(super) fn parse(text: &'a str) -> Result<Document<'a>, DescriptionError> {
        let bytes = text.as_bytes();
        let mut parser = LowLevelJsonParser::new().with_max_stack_size(usize::MAX);
        let mut document = Document { text, entries: Vec::new() };
        let mut open = Vec::new();
        let mut offset = 0;
        // Bytes that the parser has not seen.
        let mut skipped = 0;
        loop {
            let parsed = parser.parse_next(&bytes[offset..], true);
            let start = skip(bytes, offset);
            offset += parsed.consumed_bytes;
            let value = match parsed.event {
                None => continue,
                Some(Ok(JsonEvent::Eof)) => return Ok(document),
                Some(Err(error)) => {
                    let position = position(text, skipped + error.location().start.offset as usize);
                    let place = document.path_of_opened(&open);
                    let found = format!("a syntax error: {}", shorten_to(error.message(), LONGEST_MESSAGE));
                    return Err(DescriptionError::new(place, "well-formed JSON", found, Some(position)));
                }
                Some(Ok(JsonEvent::EndArray | JsonEvent::EndObject)) => {
                    let after = document.entries.len();
                    if let Some(container) = open.pop() {
                        let container: &mut Member = &mut document.entries[container];
                        container.after = after;
                    }
                    continue;
                }
                Some(Ok(JsonEvent::StartArray)) => match scan_integers(bytes, offset) {
                    None => Value::List,
                    Some((integers, end)) => {
                        // The parser goes on with the bracket that closes what it takes for an empty list.
                        skipped += end - offset;
                        offset = end;
                        Value::Integers(integers)
                    }
                },
                Some(Ok(JsonEvent::StartObject)) => Value::Object,
                Some(Ok(JsonEvent::ObjectKey(key))) => Value::Key(key),
                Some(Ok(JsonEvent::String(string))) => Value::String(string),
                Some(Ok(JsonEvent::Number(number))) => match number.parse() {
                    Ok(integer) => Value::Integer(integer),
                    Err(_) => Value::Number(number),
                },
                Some(Ok(JsonEvent::Boolean(boolean))) => Value::Boolean(boolean),
                Some(Ok(JsonEvent::Null)) => Value::Null,
            };
            let index = document.entries.len();
            if matches!(value, Value::List | Value::Integers(_) | Value::Object) {
                open.push(index);
            }
            document.entries.push(Member { value, start, after: index + 1 });
        }
    }

    pub(super) fn value(&self, index: usize) -> &Value<'a> {
        &self.entries[index].value
    }

    /// The values of a list, by index.
    pub(super) fn items(&self, list: usize) -> impl Iterator<Item = usize> {
        let end = self.entries[list].after;
        let mut next = list + 1;
        std::iter::from_fn(move || {
            let item = next;
            (item < end).then(|| {
                next = self.entries[item].after;
                item
            })
        })
    }

    /// The members of an object: key, index of the key, index of the value.
    pub(super) fn members(&self, object: usize) -> impl Iterator<Item = (&str, usize, usize)> {
        self.items(object).filter_map(|index| match &self.entries[index].value {
            Value::Key(key) => Some((key.as_ref(), index, index + 1)),
            _ => None,
        })
    }

    /// An error about a value.
    pub(super) fn error(
        &self,
        index: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> DescriptionError {
        let position = position(self.text, self.entries[index].start);
        DescriptionError::new(self.path(index), expected, found, Some(position))
    }

    /// An error about one value of a list.
    pub(super) fn error_in(
        &self,
        list: usize,
        item: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> DescriptionError {
        let index = match self.entries[list].value {
            Value::Integers(_) => None,
            _ => self.items(list).nth(item),
        };
        if let Some(index) = index {
            return self.error(index, expected, found);
        }
        let bytes = self.text.as_bytes();
        let mut offset = self.entries[list].start + 1;
        for _ in 0..item {
            offset += bytes[offset..].iter().position(|&byte| byte == b',').map_or(0, |comma| comma + 1);
        }
        let place = format!("{}[{item}]", self.path(list));
        DescriptionError::new(place, expected, found, Some(position(self.text, skip(bytes, offset))))
    }

    /// An error about a value of the wrong kind.
    pub(super) fn unexpected(&self, index: usize, expected: impl Into<String>) -> DescriptionError {
        self.error(index, expected, self.describe(index))
    }

    /// A value in words.
    pub(super) fn describe(&self, index: usize) -> String {
        match &self.entries[index].value {
            Value::Null => "null".to_owned(),
            Value::Boolean(boolean) => boolean.to_string(),
            Value::Integer(integer) => integer.to_string(),
            Value::Number(number) => shorten(number),
            Value::String(string) => format!("the text \"{}\"", shorten(string)),
            Value::Key(key) => format!("the key {}", shorten(key)),
            Value::List | Value::Integers(_) => "a list".to_owned(),
            Value::Object => "an object".to_owned(),
        }
    }

    /// The path of a value, or of the member that a key belongs to.
    fn path(&self, target: usize) -> String {
        let mut path = "$".to_owned();
        let mut at = 0;
        // Only the container that holds the target is entered, so this is linear in the document.
        while at != target {
            let holds = |index: usize| (index..self.entries[index].after).contains(&target);
            let next = match self.entries[at].value {
                Value::Object => {
                    let member = self.members(at).find(|&(_, key, value)| key == target || holds(value));
                    member.map(|(name, key, value)| {
                        push_name(&mut path, name);
                        if key == target { key } else { value }
                    })
                }
                _ => self.items(at).enumerate().find(|&(_, item)| holds(item)).map(|(position, item)| {
                    path.push_str(&format!("[{position}]"));
                    item
                }),
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        path
    }

    /// The path of the innermost container while the document is still being read.
    fn path_of_opened(&self, open: &[usize]) -> String {
        let mut path = "$".to_owned();
        let entered = open.iter().skip(1).map(|&container| &self.entries[container - 1].value);
        let last = self.entries.last().map(|entry| &entry.value).filter(|value| matches!(value, Value::Key(_)));
        for value in entered.chain(last) {
            match value {
                Value::Key(name) => push_name(&mut path, name),
                // Positions in lists are not counted here; line and column say more.
                _ => path.push_str("[..]"),
            }
        }
        path
    }
}

/// Where the value behind `offset` starts.
fn skip(bytes: &[u8], offset: usize) -> usize {
    const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
    let mut start = offset;
    if start == 0 && bytes.starts_with(BYTE_ORDER_MARK) {
        start = BYTE_ORDER_MARK.len();
    }
    while matches!(bytes.get(start), Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')) {
        start += 1;
    }
    start
}

/// The integers from `offset` to the bracket that closes their list, and the offset of that bracket. Nothing if there
/// is anything else, or if they do not fit 64 bits: then the general way finds out what is wrong.
fn scan_integers(bytes: &[u8], mut offset: usize) -> Option<(Vec<i64>, usize)> {
    let mut integers = Vec::new();
    let space = |offset: &mut usize| {
        while matches!(bytes.get(*offset), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            *offset += 1;
        }
    };
    loop {
        space(&mut offset);
        let negative = bytes.get(offset) == Some(&b'-');
        offset += usize::from(negative);
        let first = offset;
        // Below zero there is one number more.
        let mut below = 0i64;
        while let Some(digit @ b'0'..=b'9') = bytes.get(offset) {
            below = below.checked_mul(10)?.checked_sub((digit - b'0').into())?;
            offset += 1;
        }
        let digits = offset - first;
        if digits == 0 || digits > 1 && bytes[first] == b'0' {
            return None;
        }
        integers.push(if negative { below } else { below.checked_neg()? });
        space(&mut offset);
        match bytes.get(offset)? {
            b',' => offset += 1,
            b']' => return Some((integers, offset)),
            _ => return None,
        }
    }
}

/// Line and column of an offset, from 1; columns are characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let column = before[start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
    (line, column)
}

/// `.name`, or `["a name"]` if it is no identifier.
fn push_name(path: &mut String, name: &str) {
    if !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
        path.push('.');
        path.push_str(&shorten(name));
    } else {
        path.push_str(&format!("[\"{}\"]", shorten(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_positions_lead_to_the_value() {
        let text = "{\"a\": [1,\n {\"é\": 2, \"x y\": [[], 3.5]}]}";
        let document = Document::parse(text).unwrap();
        let index = (0..).find(|&index| matches!(document.value(index), Value::Number(_))).unwrap();
        let error = document.unexpected(index, "nothing");
        assert_eq!(error.place(), "$.a[1][\"x y\"][1]");
        assert_eq!((error.line(), error.column()), (Some(2), Some(23)));
        assert_eq!(error.found(), "3.5");
    }

    #[test]
    fn integers_are_those_of_json() {
        let scan = |text: &str| scan_integers(text.as_bytes(), 0).map(|(integers, _)| integers);
        assert_eq!(scan(" 1,-20\n,0 , -0]"), Some(vec![1, -20, 0, 0]));
        assert_eq!(scan("9223372036854775807,-9223372036854775808]"), Some(vec![i64::MAX, i64::MIN]));
        let others = [
            "]",
            "1",
            "1,",
            "1,]",
            "01]",
            "-]",
            "1 2]",
            "1.0]",
            "1e3]",
            "9223372036854775808]",
            "+1]",
            "\"1\"]",
            "[1]]",
        ];
        for other in others {
            assert_eq!(scan(other), None, "{other}");
        }
        let text = "{\"a\":\n[1, 2,\n  3], \"b\": }";
        let error = Document::parse(text).err().unwrap();
        assert_eq!((error.place(), error.line(), error.column()), ("$.b", Some(3), Some(12)));
        let document = Document::parse("{\"a\":\n[1, 2,\n  3]}").unwrap();
        let error = document.error_in(2, 2, "", "");
        assert_eq!((error.place(), error.line(), error.column()), ("$.a[2]", Some(3), Some(3)));
    }

    #[test]
    fn syntax_errors_name_the_open_container() {
        let error = Document::parse("{\"type\": {\"count\": [1, 2,]}}").err().unwrap();
        assert_eq!(error.place(), "$.type.count");
        assert_eq!((error.line(), error.column()), (Some(1), Some(26)));
        for text in ["", "  ", "{", "[1", "{\"a\"", "{\"a\":", "{} {}", "01", "nul", "\"", "{\"a\" 1}", "\u{feff}"] {
            let error = Document::parse(text).err().unwrap();
            assert_eq!(error.expected(), "well-formed JSON");
        }
    }
}
