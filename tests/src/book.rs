//! The code blocks of the book in `docs/`, and how each of them is tested.
//!
//! A comment of HTML in the line before a block says it:
//!
//! ```text
//! <!-- run: STAGE -->       the block is run, after the blocks of its page before it, by the test of that stage
//! <!-- file: NAME -->       the block is written to this file in the folder where the blocks of the page run
//! <!-- prints -->           each line of the block is in what the block before it printed; `...` in a line stands for any text
//! <!-- shown: REASON -->    no test runs the block; a script of the shell is parsed
//! ```

use std::fs;
use std::path::{Path, PathBuf};

/// A code block.
pub struct Block {
    /// The page, from the root of the workspace.
    pub page: String,
    /// The line of its fence, from 1.
    pub line: usize,
    /// The language behind its fence.
    pub language: String,
    /// The comment before it: `run`, `file`, `prints`, `shown`, and what follows the colon.
    pub mark: Option<(String, String)>,
    /// Its lines.
    pub text: String,
}

/// The pages below a folder of the workspace, from its root.
///
/// # Panics
///
/// If a folder cannot be read.
pub fn pages(root: &Path, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let below = path.strip_prefix(root).expect("a file of the workspace");
                found.push(below.to_str().expect("a name in UTF-8").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The mark in a line, if it is one.
fn mark(line: &str) -> Option<(String, String)> {
    let inside = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let (kind, what) = inside.split_once(':').unwrap_or((inside, ""));
    Some((kind.trim().to_owned(), what.trim().to_owned()))
}

/// The code blocks of a page.
///
/// # Panics
///
/// If the page cannot be read, or a block does not end.
pub fn blocks(root: &Path, page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let (mut found, mut before, mut open): (Vec<Block>, &str, Option<Block>) = (Vec::new(), "", None);
    for (line, text) in text.lines().enumerate() {
        match (&mut open, text.strip_prefix("```")) {
            (None, Some(language)) => {
                let (page, language) = (page.to_owned(), language.to_owned());
                open = Some(Block { page, line: line + 1, language, mark: mark(before), text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.text.extend([text, "\n"]),
            (None, None) => {}
        }
        before = text;
    }
    assert!(open.is_none(), "{page}: a code block does not end");
    found
}

/// A step of a page: what is written, run or compared.
pub enum Step {
    /// A file with this name and text.
    File(String, String),
    /// A script.
    Script(String),
    /// Lines that the script before prints.
    Prints(String),
}

/// What a stage does for a page, with the places of the blocks: nothing, unless some block of the page is run in that stage.
///
/// # Panics
///
/// If the page cannot be read, or a block that is run is no script of the shell.
pub fn steps(root: &Path, page: &str, stage: &str) -> Vec<(String, Step)> {
    let blocks = blocks(root, page);
    let runs = |block: &Block| block.mark.as_ref().is_some_and(|(kind, what)| kind == "run" && what == stage);
    if !blocks.iter().any(runs) {
        return Vec::new();
    }
    let (mut steps, mut ran) = (Vec::new(), false);
    for block in blocks {
        let place = format!("{}:{}", block.page, block.line);
        match &block.mark {
            Some((kind, name)) if kind == "file" => steps.push((place, Step::File(name.clone(), block.text))),
            Some((kind, what)) if kind == "run" => {
                ran = what == stage;
                if ran {
                    assert_eq!(block.language, "sh", "{place}: a script of the shell");
                    steps.push((place, Step::Script(block.text)));
                }
            }
            Some((kind, _)) if kind == "prints" && ran => steps.push((place, Step::Prints(block.text))),
            _ => ran = false,
        }
    }
    steps
}

/// Holds printed text against the lines of a `prints` block.
///
/// # Panics
///
/// If a line is missing.
pub fn expect_printed(place: &str, expected: &str, printed: &str) {
    for line in expected.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "...") {
        let parts: Vec<&str> = line.split("...").collect();
        let has = |printed: &str| {
            let mut rest = printed;
            parts.iter().all(|part| match rest.find(part.trim()) {
                Some(at) => {
                    rest = &rest[at + part.trim().len()..];
                    true
                }
                None => false,
            })
        };
        assert!(printed.lines().any(has), "{place}: expected the line\n{line}\nin what was printed:\n{printed}");
    }
}
