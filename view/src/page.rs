//! The page: one template that holds style, script and data.

use crate::data::View;
use dtc_measure::failure::Failure;
use std::io;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// What all parts of the page need, and then the parts.
const SCRIPTS: [&str; 6] = [
    include_str!("page/base.js"),
    include_str!("page/blocks.js"),
    include_str!("page/drawing.js"),
    include_str!("page/memory.js"),
    include_str!("page/graphs.js"),
    include_str!("page/plans.js"),
];

/// The page of a view: one file of HTML that loads nothing.
///
/// See the [crate](crate) for an example.
///
/// # Errors
///
/// None that a view can have.
pub fn html(view: &View) -> Result<String, Failure> {
    // No `</script>` inside a script ends it before its end.
    let data = serde_json::to_string(view).map_err(io::Error::from)?.replace('<', "\\u003c");
    let title = escaped(&view.name);
    let parts =
        [("{{title}}", title.as_str()), ("{{style}}", STYLE), ("{{script}}", &SCRIPTS.concat()), ("{{view}}", &data)];
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + data.len() + 40_000);
    let mut rest = PAGE;
    // What replaces a mark is not searched for marks.
    while let Some(at) = rest.find("{{") {
        page.push_str(&rest[..at]);
        let (mark, text) = parts.iter().find(|(mark, _)| rest[at..].starts_with(mark)).unwrap_or(&("{{", "{{"));
        page.push_str(text);
        rest = &rest[at + mark.len()..];
    }
    page.push_str(rest);
    Ok(page)
}

/// A text inside of an element or an attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
