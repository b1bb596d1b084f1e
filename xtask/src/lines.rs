//! Counts the lines of the product's code: what users build, without tests, comments and blank lines.

use crate::steps::{Outcome, root};
use std::process::Command;

/// What is counted, each with the files and folders below it; `bench/measure` is the half of `dtc bench` that the command shares.
const PLACES: [&str; 8] =
    ["compiler", "runtime", "interfaces", "matching", "cli", "view", "bench/measure", "templates"];

/// Files and folders that are not, each with its reason.
const LEFT_OUT: [(&str, &str); 5] = [
    ("bench/measure/calls.c", "a link to a peer"),
    ("bench/measure/peer.c", "a link to a peer"),
    ("interfaces/mpi", "the interposer, which is counted by itself"),
    ("matching/bench", "of the developers' benchmark"),
    ("interfaces/c/include/dtc.h", "written by `cargo test -p dtc-capi --test header`"),
];

/// Folders and files of tests, benchmarks and examples, wherever they are.
const OF_TESTS: [&str; 4] = ["tests", "benches", "examples", "tests.rs"];

/// How the names of source files end.
const EXTENSIONS: [&str; 7] = ["rs", "c", "cpp", "h", "hpp", "cu", "def"];

/// Prints the lines of each place in the working tree, and how many they were at a commit.
pub fn lines(since: Option<&str>) -> Outcome {
    let now = counts(None)?;
    let before = since.map(|commit| counts(Some(commit))).transpose()?;
    let mut sums = (0, 0);
    for (at, place) in PLACES.into_iter().enumerate() {
        let old = before.map(|before| before[at]);
        sums = (sums.0 + now[at], sums.1 + old.unwrap_or(0));
        print(place, now[at], old);
    }
    print("all", sums.0, before.map(|_| sums.1));
    Ok(())
}

fn print(place: &str, now: usize, before: Option<usize>) {
    match before {
        Some(before) => println!("{place:<14}{before:>8}{now:>8}{:>+8}", now as i64 - before as i64),
        None => println!("{place:<14}{now:>8}"),
    }
}

/// The lines of each place, at a commit or in the working tree.
fn counts(commit: Option<&str>) -> Outcome<[usize; PLACES.len()]> {
    let list = match commit {
        Some(commit) => git(&["ls-tree", "-r", "--name-only", commit])?,
        None => git(&["ls-files"])?,
    };
    let mut counts = [0; PLACES.len()];
    for file in list.lines() {
        let Some(place) = place_of(file) else { continue };
        let text = match commit {
            Some(commit) => git(&["show", &format!("{commit}:{file}")])?,
            // A file that is deleted and not yet committed is listed.
            None => std::fs::read_to_string(root().join(file)).unwrap_or_default(),
        };
        counts[place] += code_lines(&text);
    }
    Ok(counts)
}

fn git(arguments: &[&str]) -> Outcome<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    match String::from_utf8(output.stdout) {
        Ok(text) if output.status.success() => Ok(text),
        _ => Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The place of a file that is counted.
fn place_of(file: &str) -> Option<usize> {
    let (_, extension) = file.rsplit_once('.')?;
    let is_left_out = LEFT_OUT.iter().any(|(path, _)| is_below(file, path));
    let is_of_tests = file.split('/').any(|name| OF_TESTS.contains(&name));
    PLACES
        .iter()
        .position(|place| is_below(file, place))
        .filter(|_| EXTENSIONS.contains(&extension) && !is_left_out && !is_of_tests)
}

/// Whether a file is another one, or in this folder.
fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Lines with code, but not those of items under `#[cfg(test)]`.
fn code_lines(text: &str) -> usize {
    let mut code = plain(text);
    while let Some(at) = ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|attribute| code.find(attribute)).min() {
        let end = at + end_of_item(&code[at..]);
        let line_ends = code[at..end].matches('\n').count();
        code.replace_range(at..end, &"\n".repeat(line_ends));
    }
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Where an item ends: at a semicolon, or at the brace that closes its first one.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in code.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The code without its comments, with an `x` for each letter of its strings, so that what is left of braces is code.
fn plain(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest, ""),
            'r' if !code.ends_with(|before: char| before.is_alphanumeric() || before == '_') => raw_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        let (taken, after) = rest.split_at(length.max(letter.len_utf8()));
        match (length, letter) {
            (0, _) => code.push_str(taken),
            (_, '/') => code.extend(taken.chars().filter(|letter| *letter == '\n')),
            _ => code.extend(taken.chars().map(|letter| if letter.is_whitespace() { letter } else { 'x' })),
        }
        rest = after;
    }
    code
}

/// The length of a string with its quotation marks, the last followed by `end`; of a plain one without `end`, marks may be escaped.
fn string(rest: &str, end: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '"' if !escaped && rest[at + 1..].starts_with(end) => return at + 1 + end.len(),
            '\\' if end.is_empty() => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of a raw string with number signs; 0 if there is none.
fn raw_string(rest: &str) -> usize {
    let signs = rest[1..].len() - rest[1..].trim_start_matches('#').len();
    if signs == 0 || !rest[1 + signs..].starts_with('"') {
        return 0;
    }
    1 + signs + string(&rest[1 + signs..], &rest[1..=signs])
}

/// The length of a character with its marks; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(0, |end| end + 4),
        Some(_) => letters.next().filter(|(_, letter)| *letter == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_tests_and_blank_lines_do_not_count() {
        let text = "//! Doc.\n\nfn f<'a>() -> &'a str {\n    // No.\n    /* no\n no */ \"{ // \\\" yes\"\n}\n\n#[cfg(test)]\n\
                    mod tests {\n    const BRACE: char = '}';\n    const TEXT: &str = r#\"}\"\n\"#;\n}\nconst LAST: char = '\\'';\n";
        assert_eq!(code_lines(text), 4);
    }

    #[test]
    fn only_the_product_counts() {
        let counted = ["compiler/src/lib.rs", "templates/kernels/words.cu", "interfaces/c/src/lib.rs"];
        assert!(counted.iter().all(|file| place_of(file).is_some()));
        let not = [
            "compiler/tests/text.rs",
            "interfaces/mpi/src/lib.rs",
            "docs/reference/ir.md",
            "tests/src/lib.rs",
            "templates/generic.ptx",
        ];
        assert!(not.iter().all(|file| place_of(file).is_none()));
    }
}
