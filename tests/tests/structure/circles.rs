//! No file imports another in a circle, so that each can be read after those that it names.

use super::modules::Crate;
use super::workspace::packages;
use super::{root, written};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::path::Path;

/// The circles of a crate, one after the other, with the imports in each; empty if there are none.
fn circles(root_file: &Path, shown_below: &Path) -> String {
    let read = Crate::read(root_file);
    let imports = read.imports();
    let graph: DiGraphMap<usize, ()> = imports.iter().copied().collect();
    let name = |file: usize| read.files[file].strip_prefix(shown_below).expect("a file of the crate").display();
    let mut text = String::new();
    for circle in tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1) {
        text += &format!("{}: {} files import each other:\n", root_file.display(), circle.len());
        let inside = imports.iter().filter(|(from, to)| circle.contains(from) && circle.contains(to));
        let mut lines: Vec<String> =
            inside.map(|&(from, to)| format!("    {} -> {}\n", name(from), name(to))).collect();
        lines.sort();
        text.extend(lines);
    }
    text
}

#[test]
fn no_file_imports_another_in_a_circle() {
    let roots = packages().into_iter().flat_map(|package| package.roots);
    let complaints: String = roots.map(|file| circles(&file, root())).collect();
    assert!(complaints.is_empty(), "expected no circles of imports, found\n{complaints}");
}

/// The circles of a crate of these files; the first is its root.
fn circles_of(files: &[(&str, &str)]) -> String {
    let folder = written(files);
    let text = circles(&folder.path().join(files[0].0), folder.path());
    text.lines().skip(1).map(|line| line.trim().to_owned() + "\n").collect()
}

#[test]
fn circles_are_found_however_a_name_is_written() {
    let root = ("lib.rs", "mod a;\nmod b;\npub use a::A;");
    let b = ("b.rs", "use crate::a::A;\npub struct B(A);\npub const LENGTH: usize = 1;\npub fn f() {}");
    let expected = "a.rs -> b.rs\nb.rs -> a.rs\n";
    let references = [
        "use crate::b::B;\npub struct A(Box<B>);",
        "use super::b;\npub struct A(Box<b::B>);",
        "use super::b::*;\npub struct A([u8; LENGTH]);",
        "pub use super::b::*;\npub struct A([u8; LENGTH]);",
        "pub struct A([u8; super::b::LENGTH]);",
        "pub struct A;\nfn g() { use crate::b::f as h; h() }",
        "pub struct A;\nfn g() { println!(\"{}\", [crate::b::LENGTH][0]) }",
        "pub struct A;\npub use crate::b::f;\nfn g() { f() }",
        "pub struct A;\nmod inner { use super::super::b::B; fn g(_: B) {} }",
        "pub struct A;\n#[cfg(not(test))] fn g() { crate::b::f() }",
    ];
    for a in references {
        assert_eq!(circles_of(&[root, ("a.rs", a), b]), expected, "{a}");
    }
}

#[test]
fn a_re_export_leads_to_the_file_that_defines_the_name() {
    let root = ("lib.rs", "mod parent;");
    let child = ("parent/child.rs", "use super::Defined;\npub fn f(_: Defined) {}");
    let circle = circles_of(&[root, ("parent/mod.rs", "mod child;\nuse child::f;\npub struct Defined;"), child]);
    assert_eq!(circle, "parent/child.rs -> parent/mod.rs\nparent/mod.rs -> parent/child.rs\n");
    let parent = ("parent/mod.rs", "mod child;\nmod defined;\npub use defined::Defined;\nuse child::f;");
    assert_eq!(circles_of(&[root, parent, child, ("parent/defined.rs", "pub struct Defined;")]), "");
}

#[test]
fn names_that_macros_define_belong_to_their_file() {
    let root = ("lib.rs", "mod a;\nmod b;");
    let a = ("a.rs", "use super::b::Made;\npub struct A;\nfn f(_: Made) {}");
    let b = ("b.rs", "make!(Made);\nuse super::a::A;\nfn f(_: A) {}");
    assert_eq!(circles_of(&[root, a, b]), "a.rs -> b.rs\nb.rs -> a.rs\n");
}

#[test]
fn tests_and_what_is_only_handed_on_are_no_imports() {
    let root = ("lib.rs", "mod a;\nmod b;");
    let b = ("b.rs", "use super::a::A;\npub fn f(_: A) {}\nfn private() {}");
    let unrelated = [
        "pub struct A;\npub(crate) use super::b::f;",
        "pub struct A;\npub use super::b::*;\nfn g(private: u8) -> u8 { private }",
        "pub struct A;\n#[cfg(test)] mod tests { use crate::b::f; }",
        "pub struct A;\n#[cfg(all(test, unix))] mod tests { use crate::b::f; }",
        "pub struct A;\nfn g() { std::mem::drop(1) }",
    ];
    for a in unrelated {
        assert_eq!(circles_of(&[root, ("a.rs", a), b]), "", "{a}");
    }
}
