//! The published schema of descriptions and the reader agree.

mod common;

use common::documents::{ACCEPTED, REFUSED, expand};
use dtc_compiler::datatype::Predefined;
use dtc_compiler::datatype::json::read;
use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../docs/type-description.schema.json")).unwrap()
}

/// What a schema cannot say, by words of the reader: arithmetic over several fields, references, syntax.
const BEYOND_A_SCHEMA: &[&str] = &[
    "well-formed JSON",
    "every key once",
    "entries",
    "fit 64 bits",
    "fits 64 bits",
    "0 to ",
    "a rank below",
    "blocks that cover",
    "name of a type in types",
    "no named types",
    "contain themselves",
];

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    for template in ACCEPTED {
        let text = expand(template);
        let document: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
        if let Err(error) = validator.validate(&document) {
            panic!("{template}: {error}");
        }
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let mut refused = 0;
    for (template, ..) in REFUSED {
        let text = expand(template);
        let error = read(&text).unwrap_err();
        // A float without fraction is an integer to a schema.
        if BEYOND_A_SCHEMA.iter().any(|words| error.expected().contains(words)) || error.found() == "1e3" {
            continue;
        }
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(!validator.is_valid(&document), "{template} is valid, but {error}");
        refused += 1;
    }
    assert!(refused > 30, "{refused} documents are within the reach of the schema");
}

#[test]
fn the_schema_lists_every_predefined_type() {
    let schema = schema();
    let names: Vec<&str> = schema["$defs"]["named"]["properties"]["name"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(names, Predefined::all().map(Predefined::name).collect::<Vec<_>>());
}

#[test]
fn every_field_has_a_description() {
    let schema = schema();
    let mut waiting = vec![&schema];
    let mut fields = 0;
    while let Some(value) = waiting.pop() {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            // The conditions that select a kind repeat a field to test it.
            for (name, field) in properties
                .iter()
                .filter(|(_, field)| field.get("const").is_none() || field.as_object().unwrap().len() > 1)
            {
                assert!(field["description"].is_string(), "{name}: {field}");
                fields += 1;
            }
        }
        match value {
            Value::Object(members) => waiting.extend(members.values()),
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    assert!(fields > 60);
}
