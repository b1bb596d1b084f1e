//! Datatypes in the formats of serde.

use super::read;
use crate::datatype::text;
use crate::datatype::written::Names;
use crate::datatype::{Argument, Constructor, Datatype, Distribution, GivenBounds, Order};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Nodes that a description nests. A node takes stack in serializers, and two levels of JSON; serde_json reads 128 levels.
const NODES: usize = 32;

/// Levels of lists and objects that are read: those that serde_json reads.
const LEVELS: usize = 128;

/// ```
/// use dtc_compiler::datatype::Datatype;
/// let face: Datatype = "vector 12 1 14 double".parse()?;
/// let text = serde_json::to_string(&face)?;
/// assert_eq!(text, r#"{"kind":"vector","count":12,"blocklength":1,"stride":14,"child":{"kind":"named","name":"MPI_DOUBLE"}}"#);
/// assert_eq!(serde_json::from_str::<Datatype>(&text)?.to_string(), face.to_string());
/// // A format that people do not read has the notation.
/// let bytes = postcard::to_stdvec(&face)?;
/// assert_eq!(&bytes[1..], b"vector 12 1 14 double");
/// assert_eq!(postcard::from_bytes::<Datatype>(&bytes)?.size(), 96);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Serialize for Datatype {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.collect_str(self);
        }
        let names = Names::nesting(self, NODES);
        describe(self, &names, serializer)
    }
}

fn describe<S: Serializer>(datatype: &Datatype, names: &Names<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    let root = Tree { node: datatype, names, root: datatype };
    if names.shared.is_empty() {
        return root.serialize(serializer);
    }
    let mut description = serializer.serialize_map(Some(2))?;
    description.serialize_entry("types", &Types { names, root })?;
    description.serialize_entry("root", "root")?;
    description.end()
}

/// The trees of a description.
struct Types<'a, 'n> {
    names: &'a Names<'n>,
    root: Tree<'a, 'n>,
}

impl Serialize for Types<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut types = serializer.serialize_map(Some(self.names.shared.len() + 1))?;
        for (number, &node) in self.names.shared.iter().enumerate() {
            types.serialize_entry(&name(number + 1), &Tree { node, names: self.names, root: node })?;
        }
        types.serialize_entry("root", &self.root)?;
        types.end()
    }
}

fn name(number: usize) -> String {
    format!("t{number}")
}

/// A node, and what is below it up to nodes that have names.
struct Tree<'a, 'n> {
    node: &'a Datatype,
    names: &'a Names<'n>,
    /// The node that is written whatever its name.
    root: &'a Datatype,
}

impl Serialize for Tree<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Tree { node, names, root } = *self;
        let mut map = serializer.serialize_map(None)?;
        if let Some(number) = names.of(node).filter(|_| !node.is(root)) {
            map.serialize_entry("ref", &name(number))?;
            return map.end();
        }
        let constructor = node.constructor();
        map.serialize_entry("kind", constructor.name())?;
        if let Constructor::Named(predefined) = constructor {
            map.serialize_entry("name", predefined.name())?;
        }
        for (key, argument) in constructor.arguments() {
            match argument {
                Argument::Length(_) => {}
                Argument::Integer(number) | Argument::Address(number) => map.serialize_entry(key, &number)?,
                Argument::Integers(numbers) | Argument::Addresses(numbers) => map.serialize_entry(key, numbers)?,
                Argument::Order(Order::C) => map.serialize_entry(key, "C")?,
                Argument::Order(Order::Fortran) => map.serialize_entry(key, "Fortran")?,
                Argument::Distributions(all) => {
                    map.serialize_entry(key, &all.iter().map(|&one| Written(one)).collect::<Vec<_>>())?;
                }
            }
        }
        let tree = |node| Tree { node, names, root };
        match (constructor, node.children()) {
            (Constructor::Struct { .. }, children) => {
                map.serialize_entry("children", &children.iter().map(tree).collect::<Vec<_>>())?;
            }
            (_, children) => children.iter().try_for_each(|child| map.serialize_entry("child", &tree(child)))?,
        }
        if let Some(given) = node.given() {
            map.serialize_entry("facts", &Bounds(given))?;
        }
        map.end()
    }
}

/// A distribution: a word, or an object with the length of blocks.
struct Written(Distribution);

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (word, length) = match self.0 {
            Distribution::Block(length) => ("block", length),
            Distribution::Cyclic(length) => ("cyclic", length),
            Distribution::None => ("none", None),
        };
        match length {
            None => serializer.serialize_str(word),
            Some(length) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(word, &length)?;
                map.end()
            }
        }
    }
}

struct Bounds(GivenBounds);

impl Serialize for Bounds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("lb", &self.0.lb)?;
        map.serialize_entry("extent", &self.0.extent)?;
        map.end()
    }
}

/// Reads every description that [`read`] reads. What it says of the use of the type is checked, and left out.
impl<'de> Deserialize<'de> for Datatype {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Datatype, D::Error> {
        if !deserializer.is_human_readable() {
            return text::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom);
        }
        let mut json = String::new();
        Transcribed { json: &mut json, levels: LEVELS }.deserialize(deserializer)?;
        match read(&json) {
            Ok(description) => Ok(description.datatype),
            // Line and column are those of the transcript, which no one sees.
            Err(error) => {
                let (place, expected, found) = (error.place(), error.expected(), error.found());
                Err(D::Error::custom(format_args!("{place}: expected {expected}, found {found}")))
            }
        }
    }
}

/// Writes a value as JSON.
struct Transcribed<'a> {
    json: &'a mut String,
    /// How much deeper it may nest.
    levels: usize,
}

impl Transcribed<'_> {
    fn put<E>(self, value: impl fmt::Display) -> Result<(), E> {
        self.json.push_str(&value.to_string());
        Ok(())
    }

    /// What is inside of this value.
    fn inner<E: serde::de::Error>(&mut self) -> Result<Transcribed<'_>, E> {
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| E::custom(format_args!("expected at most {LEVELS} levels, found more")))?;
        Ok(Transcribed { json: self.json, levels })
    }
}

impl<'de> DeserializeSeed<'de> for Transcribed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Transcribed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the description of a datatype")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.put(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.put(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.put(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        // JSON has no infinities; neither is a count.
        if value.is_finite() { self.put(format_args!("{value:?}")) } else { self.put("null") }
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.put("null")
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.json.push('"');
        for letter in value.chars() {
            match letter {
                '"' | '\\' => self.json.extend(['\\', letter]),
                '\0'..='\x1f' => self.json.push_str(&format!("\\u{:04x}", u32::from(letter))),
                letter => self.json.push(letter),
            }
        }
        self.json.push('"');
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.json.push('[');
        let start = self.json.len();
        loop {
            let end = self.json.len();
            if end > start {
                self.json.push(',');
            }
            if items.next_element_seed(self.inner()?)?.is_none() {
                self.json.truncate(end);
                break;
            }
        }
        self.put(']')
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.json.push('{');
        let start = self.json.len();
        loop {
            let end = self.json.len();
            if end > start {
                self.json.push(',');
            }
            if members.next_key_seed(self.inner()?)?.is_none() {
                self.json.truncate(end);
                break;
            }
            self.json.push(':');
            members.next_value_seed(self.inner()?)?;
        }
        self.put('}')
    }
}
