//! The sections of a page in the language of `man`.

use super::sections::{STATUSES, Sections, VARIABLES};
use dtc_measure::program::Names;

/// The sections of a command behind those that its help makes. `names` are those that its texts follow.
pub fn sections(sections: &Sections, names: &Names) -> String {
    let mut page = String::new();
    list("EXIT STATUS", STATUSES, names, &mut page);
    let read: Vec<&str> = sections.variables.iter().flat_map(|group| group.iter()).copied().collect();
    list("ENVIRONMENT", VARIABLES.into_iter().filter(|(name, _)| read.contains(name)), names, &mut page);
    list("FILES", sections.files.iter().copied(), names, &mut page);
    for (index, (call, what)) in sections.examples.iter().enumerate() {
        if index == 0 {
            page.push_str(".SH EXAMPLES\n");
        }
        let (call, what) = (text(call, names), text(what, names));
        page.push_str(&format!("{what}\n.PP\n.nf\n.RS 4\n{call}\n.RE\n.fi\n.PP\n"));
    }
    page
}

/// A section of words and what they mean; nothing without a word.
fn list<'a>(heading: &str, entries: impl IntoIterator<Item = (&'a str, &'a str)>, names: &Names, page: &mut String) {
    for (index, (word, meaning)) in entries.into_iter().enumerate() {
        if index == 0 {
            page.push_str(&format!(".SH \"{heading}\"\n"));
        }
        page.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", text(word, names), text(meaning, names)));
    }
}

/// A text whose characters mean themselves.
fn text(text: &str, names: &Names) -> String {
    let escaped = names.of_text(text).replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}
