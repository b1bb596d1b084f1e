//! Fields of a JSON object.

use serde_json::Value;

pub fn text<'tree>(tree: &'tree Value, field: &str, path: &str) -> Result<&'tree str, String> {
    tree.get(field).and_then(Value::as_str).ok_or_else(|| format!("{path}.{field}: expected text"))
}

pub fn number(tree: &Value, field: &str, path: &str) -> Result<i64, String> {
    tree.get(field).and_then(Value::as_i64).ok_or_else(|| format!("{path}.{field}: expected a whole number"))
}

pub fn numbers(tree: &Value, field: &str, path: &str) -> Result<Vec<i64>, String> {
    tree.get(field)
        .and_then(Value::as_array)
        .and_then(|list| list.iter().map(Value::as_i64).collect())
        .ok_or_else(|| format!("{path}.{field}: expected a list of whole numbers"))
}
