//! Every page is in the table of contents, and every link leads somewhere.

use super::{read, root};
use dtc_tests::book::pages;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

const SUMMARY: &str = "docs/SUMMARY.md";

/// Folders and files with links, beside the book.
const OTHERS: [&str; 4] = ["bench", "interfaces", "examples", "tests"];
const OF_THE_ROOT: [&str; 5] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// The lines of a page, those of code blocks left out.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    lines.map(|(number, line)| (number + 1, line)).collect()
}

/// The targets of the links and pictures in a line. What stands between backquotes is code.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let (before, target) = (&rest[..at], &rest[at + 2..]);
        let Some(end) = target.find(')') else { break };
        let whole = line.len() - rest.len() + before.len();
        if line[..whole].matches('`').count().is_multiple_of(2) {
            found.push(&target[..end]);
        }
        rest = &target[end..];
    }
    found
}

/// The name that a heading gets, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().trim_start_matches('#').trim().to_lowercase();
    let kept = letters.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The anchors of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).into_iter().filter(|(_, line)| line.starts_with('#'));
    let name = |(_, heading): (usize, &str)| {
        let name = anchor(heading);
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
    };
    headings.map(name).collect()
}

/// A path without `..`, from the root.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(flat.pop(), "{}: a path inside of the workspace", path.display()),
            Component::Normal(name) => flat.push(name),
            _ => {}
        }
    }
    flat
}

/// What is wrong with a link of a page.
fn complaint(page: &str, target: &str, anchors: &mut BTreeMap<PathBuf, BTreeSet<String>>) -> Option<String> {
    if target.contains(':') {
        return None;
    }
    let (path, name) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let file = if path.is_empty() { PathBuf::from(page) } else { flat(&folder.join(path)) };
    let whole = root().join(&file);
    if !whole.exists() {
        return Some(format!("expected a file {}", file.display()));
    }
    if name.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let there = anchors.entry(file.clone()).or_insert_with(|| {
        let text = std::fs::read_to_string(&whole).unwrap_or_else(|error| panic!("{}: {error}", whole.display()));
        self::anchors(&text)
    });
    (!there.contains(name)).then(|| format!("expected a heading of {} that makes {name}", file.display()))
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut all = pages(root(), "docs");
    all.extend(OTHERS.iter().flat_map(|folder| pages(root(), folder)));
    all.extend(OF_THE_ROOT.map(str::to_owned));
    all.retain(|page| !page.contains("/target/") && !page.contains("/node_modules/"));
    let (mut links, mut complaints, mut anchors) = (0, String::new(), BTreeMap::new());
    for page in &all {
        for (line, text) in prose(&read(page)) {
            for target in targets(text) {
                links += 1;
                if let Some(complaint) = complaint(page, target, &mut anchors) {
                    complaints += &format!("{page}:{line}: {target}: {complaint}\n");
                }
            }
        }
    }
    assert!(complaints.is_empty(), "links that lead nowhere:\n{complaints}");
    assert!(links > 300, "expected the links of the book, found {links}");
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let text = read(SUMMARY);
    let listed: Vec<PathBuf> =
        targets_of_all(&text).into_iter().map(|target| flat(&Path::new("docs").join(target))).collect();
    let mut pages: Vec<PathBuf> = pages(root(), "docs").into_iter().map(PathBuf::from).collect();
    pages.retain(|page| page != Path::new(SUMMARY));
    let missing: Vec<&PathBuf> = pages.iter().filter(|page| !listed.contains(page)).collect();
    assert!(missing.is_empty(), "{SUMMARY}: expected all pages, found none of {missing:?}");
    let distinct: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(distinct.len(), listed.len(), "{SUMMARY}: a page is listed twice");
}

fn targets_of_all(text: &str) -> Vec<&str> {
    text.lines().flat_map(targets).collect()
}

#[test]
fn titles_in_the_table_of_contents_are_those_of_the_pages() {
    for line in read(SUMMARY).lines() {
        let (Some(target), Some(title)) = (targets(line).first().copied(), line.split('[').nth(1)) else { continue };
        let title = title.split("](").next().expect("a title");
        if target.starts_with("..") {
            continue;
        }
        let text = read(&format!("docs/{target}"));
        let heading = text.lines().next().and_then(|line| line.strip_prefix("# "));
        assert_eq!(heading, Some(title), "docs/{target}: its heading, and its title in {SUMMARY}");
    }
}

#[test]
fn anchors_are_made_as_on_the_hosts() {
    let text = "# A `type`'s bytes, 1_2\n```sh\n# no heading\n```\n## Again\n## Again\n";
    let expected = ["a-types-bytes-1_2", "again", "again-1"];
    assert_eq!(anchors(text), expected.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(targets("[a](b.md#c), `[&](int)` and ![d](e.svg)"), ["b.md#c", "e.svg"]);
}
