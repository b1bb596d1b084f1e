//! One word for one thing: the words that the glossary rules out stand in no comment, document or identifier.

use super::{root, written};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The document with the words.
const GLOSSARY: &str = "docs/reference/glossary.md";

/// Files and folders that are not read, each with its reason.
const EXCEPTIONS: [(&str, &str); 6] = [
    (GLOSSARY, "lists the words"),
    ("THIRD-PARTY-NOTICES", "licences of others"),
    ("interfaces/python/THIRD-PARTY-NOTICES", "licences of others"),
    ("bench/results", "reports of their days"),
    ("fuzz/corpus", "input that a machine made"),
    ("fuzz/artifacts", "input that a machine made"),
];

/// A word that is ruled out, or several that follow each other.
struct Ruled {
    words: Vec<String>,
    /// What is written in their place.
    instead: String,
}

impl Ruled {
    /// Whether a line has the words, the last one perhaps in plural.
    fn is_in(&self, line: &[String]) -> bool {
        let (last, before) = self.words.split_last().expect("a word");
        line.windows(self.words.len()).any(|found| {
            let (end, begin) = found.split_last().expect("a word");
            begin == before && (end == last || end.strip_suffix('s') == Some(last))
        })
    }
}

/// The words of a line: identifiers are cut at underscores and before capital letters, and punctuation is a word that ends a phrase.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in line.chars() {
        let goes_on = before.is_alphabetic() && !(letter.is_uppercase() && before.is_lowercase());
        match words.last_mut() {
            Some(word) if letter.is_alphabetic() && goes_on => word.extend(letter.to_lowercase()),
            _ if !matches!(letter, ' ' | '_') => words.push(letter.to_lowercase().to_string()),
            _ => {}
        }
        before = letter;
    }
    words
}

/// The rows of the glossary's last table.
fn ruled(glossary: &str) -> Vec<Ruled> {
    let (_, table) = glossary.split_once("| concept | word | not |").expect("a table of words that are ruled out");
    let rows = table.lines().skip(2).map_while(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let mut all = Vec::new();
    for row in rows {
        let [_, instead, not] = row.split('|').map(str::trim).collect::<Vec<_>>()[..] else { panic!("{row}") };
        for phrase in not.split(", ") {
            all.push(Ruled { words: words(phrase), instead: instead.to_owned() });
        }
    }
    all
}

/// The texts below a folder that may have words of ours.
fn texts(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let below = path.strip_prefix(root()).unwrap_or(&path);
        if name == "target" || name.starts_with('.') || EXCEPTIONS.iter().any(|(file, _)| below == Path::new(file)) {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            texts(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// A line for each word of these that a file has, as `FILE:LINE: ...`. Files that are no text have none.
fn complaints(files: &[PathBuf], ruled: &[Ruled]) -> String {
    let mut all = String::new();
    for file in files {
        let Ok(text) = fs::read_to_string(file) else { continue };
        let name = file.strip_prefix(root()).unwrap_or(file).display();
        for (number, line) in text.lines().enumerate() {
            let found = words(line);
            for Ruled { words, instead } in ruled.iter().filter(|ruled| ruled.is_in(&found)) {
                all += &format!("{name}:{}: \"{}\": write \"{instead}\"\n", number + 1, words.join(" "));
            }
        }
    }
    all
}

#[test]
fn words_that_the_glossary_rules_out_stand_nowhere() {
    let glossary = fs::read_to_string(root().join(GLOSSARY)).expect("the glossary");
    let mut files = Vec::new();
    texts(root(), &mut files);
    assert!(files.len() > 1000, "expected the texts of the project, found {} files", files.len());
    let complaints = complaints(&files, &ruled(&glossary));
    assert!(complaints.is_empty(), "words that docs/reference/glossary.md rules out:\n{complaints}");
}

#[test]
fn words_are_found_in_identifiers_and_sentences() {
    let table =
        "| concept | word | not |\n| --- | --- | --- |\n| what is eaten | fruit | apple, ripe pear |\n\nOn pears.";
    let ruled = ruled(table);
    let text = "An appletree, a pear and ripePear;\nlet old_apples = fn_apple();\n// Ripe pears.\nripe, (pear)";
    let folder = written(&[("a.rs", text)]);
    let file = folder.path().join("a.rs");
    let found = complaints(std::slice::from_ref(&file), &ruled);
    let expected = [(1, "ripe pear"), (2, "apple"), (3, "ripe pear")];
    let expected: String = expected
        .iter()
        .map(|(line, word)| format!("{}:{line}: \"{word}\": write \"fruit\"\n", file.display()))
        .collect();
    assert_eq!(found, expected);
}
