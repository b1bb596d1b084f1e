//! Prints the hand-written loop of a datatype: the command beside the library.

#![forbid(unsafe_code)]

use serde_json::Value;
use std::process::ExitCode;

const USAGE: &str = "usage: hand-loop FILE.json [--case NAME]

Prints C functions pack and unpack for the type that the file describes.
With --case, the file is a collection with a list `cases`, and NAME picks one.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [file] => load(file, None),
        [file, "--case", name] | ["--case", name, file] => load(file, Some(name)),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Reads a file and prints its loops.
fn load(file: &str, case: Option<&str>) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    let document = match case {
        None => &document,
        Some(name) => document
            .get("cases")
            .and_then(Value::as_array)
            .and_then(|cases| cases.iter().find(|case| case.get("name").and_then(Value::as_str) == Some(name)))
            .ok_or_else(|| format!("{file}: there is no case named {name}"))?,
    };
    dtc_hand_loop::hand_loop(document).map_err(|error| format!("{file}: {error}"))
}
