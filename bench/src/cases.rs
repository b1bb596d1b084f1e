//! Lists of cases: many descriptions in one file.

use dtc_compiler::datatype::json;
use dtc_measure::bench::case::Case;
use dtc_measure::description;
use dtc_measure::failure::Failure;
use dtc_measure::paths::shown;
use serde_json::Value;
use std::path::Path;

/// Reads a list of cases for the CPU: descriptions with names, and with origins for each direction.
pub fn list(file: &Path) -> Result<Vec<Case>, Failure> {
    let place = shown(file);
    let text = description::text_of(file, "a list of cases")?;
    let document: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::description(place.to_string(), "a list of cases in JSON", error))?;
    let Some(list) = document.get("cases").and_then(Value::as_array) else {
        return Err(Failure::description(format_args!("{place}: $.cases"), "a list", "none"));
    };
    let mut cases = Vec::new();
    for (index, case) in list.iter().enumerate() {
        let text = case.to_string();
        let description = json::read(&text).map_err(|error| {
            let path = error.place().trim_start_matches('$');
            Failure::description(format_args!("{place}: $.cases[{index}]{path}"), error.expected(), error.found())
        })?;
        let origin = |name: &str| case.get(name).and_then(Value::as_u64).unwrap_or(description.origin_bytes);
        let name = case.get("name").and_then(Value::as_str).map_or_else(|| format!("case_{index}"), str::to_owned);
        cases.push(Case {
            name,
            count: description.count,
            pack_origin: origin("send_origin_bytes"),
            unpack_origin: origin("recv_origin_bytes"),
            buffer: description.buffer_bytes,
            datatype: description.datatype,
        });
    }
    Ok(cases)
}
