//! The book stays short: words of all parts but Reference.

use super::{read, root};
use dtc_tests::book::pages;

/// Words that all parts but Reference and the records of decisions may have together.
const MOST: usize = 25_000;

const PARTS: [&str; 6] = ["start", "how-to", "understand", "performance", "integrate", "inside"];

#[test]
fn the_book_is_no_longer_than_its_limit() {
    let count = |part: &str| -> usize {
        let pages = pages(root(), &format!("docs/{part}"));
        pages.iter().map(|page| read(page).split_whitespace().count()).sum()
    };
    let counts: Vec<(&str, usize)> = PARTS.iter().map(|part| (*part, count(part))).collect();
    let all: usize = counts.iter().map(|(_, words)| words).sum();
    assert!(all <= MOST, "expected at most {MOST} words, found {all}: {counts:?}");
}
