//! The family of kernels that CONTRIBUTING.md shows is that of the sources.

use super::root;

/// The lines of a source that are code.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("#[");
    text.lines().map(str::trim).filter(is_code)
}

#[test]
fn the_family_of_the_contributing_guide_is_that_of_the_sources() {
    let read =
        |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (guide, source) = (read("CONTRIBUTING.md"), read("compiler/src/plan/gpu/families/gather.rs"));
    let (_, shown) = guide.split_once("```rust\n").expect("CONTRIBUTING.md: a block of Rust");
    let (shown, _) = shown.split_once("```").expect("CONTRIBUTING.md: the end of the block");
    let mut lines = code(&source);
    for line in code(shown) {
        assert!(
            lines.any(|own| own == line),
            "CONTRIBUTING.md: expected the lines of gather.rs in their order, found {line}"
        );
    }
}
