//! The arrows between the crates, as the manifests have them: they are those that ARCHITECTURE.md lists, and `docs/pictures/rooms.svg` draws.
//!
//! `DTC_BLESS=1 cargo test -p dtc-tests --test structure` draws the picture anew.

use super::picture::{Arrows, draw};
use super::root;
use super::workspace::packages;

fn arrows() -> Arrows {
    packages().into_iter().map(|package| (package.name, package.dependencies)).collect()
}

#[test]
fn arrows_between_crates_are_those_of_the_architecture() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let listed: Vec<&str> = text.lines().filter(|line| line.contains(" -> dtc-")).collect();
    let mut expected: Vec<String> = Vec::new();
    for (from, to) in arrows().iter().filter(|(_, to)| !to.is_empty()) {
        expected.push(format!("{from} -> {}", to.join(" ")));
    }
    let expected = expected.join("\n");
    assert!(
        listed.join("\n") == expected,
        "ARCHITECTURE.md: expected the dependencies of the manifests,\n{expected}\n\nfound\n{}",
        listed.join("\n")
    );
}

#[test]
fn the_picture_shows_every_crate_and_its_arrows() {
    let drawn = draw(&arrows());
    let path = root().join("docs/pictures/rooms.svg");
    if std::env::var_os("DTC_BLESS").is_some() {
        std::fs::write(&path, &drawn).expect("the picture to be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        drawn == found,
        "docs/pictures/rooms.svg: expected a picture of the manifests' dependencies, found another; run DTC_BLESS=1 cargo test -p dtc-tests \
         --test structure"
    );
}
