//! No folder imports another in a circle, nor do the files of one folder: by the modules of Rust, through whatever module an import leads,
//! and by the includes of C and CUDA.

use super::includes::includes;
use super::modules::Crate;
use super::workspace::packages;
use super::{root, written};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::BTreeSet;
use std::path::Path;

/// The imports among what is in one folder: files, and folders with all that is below them. A file and what is in the folder that it is
/// the face of, as `mod.rs` is, are one.
fn among_siblings(imports: impl IntoIterator<Item = [Vec<String>; 2]>) -> BTreeSet<[String; 2]> {
    let lift = |[from, to]: [Vec<String>; 2]| {
        let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
        (common < from.len().min(to.len())).then(|| [from, to].map(|path| path[..=common].join("/")))
    };
    imports.into_iter().filter_map(lift).collect()
}

/// The circles among these imports, one after the other; empty if there are none.
fn circles(imports: &BTreeSet<[String; 2]>) -> String {
    let graph: DiGraphMap<&str, ()> = imports.iter().map(|[from, to]| (from.as_str(), to.as_str())).collect();
    let mut text = String::new();
    for circle in tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1) {
        let is_inside = |[from, to]: &[String; 2]| circle.contains(&from.as_str()) && circle.contains(&to.as_str());
        let inside = imports.iter().filter(|import| is_inside(import));
        text.extend(inside.map(|[from, to]| format!("{from} -> {to}\n")));
    }
    text
}

/// The imports among modules of a crate.
fn of_crate(root_file: &Path) -> BTreeSet<[String; 2]> {
    among_siblings(Crate::read(root_file).module_imports())
}

#[test]
fn no_module_imports_another_in_a_circle() {
    let mut complaints = String::new();
    for file in packages().into_iter().flat_map(|package| package.roots) {
        let circles = circles(&of_crate(&file));
        if !circles.is_empty() {
            complaints += &format!("{}:\n{circles}", file.display());
        }
    }
    assert!(
        complaints.is_empty(),
        "expected no circles of imports among files and folders of a folder, found\n{complaints}"
    );
}

#[test]
fn no_file_of_c_includes_another_in_a_circle() {
    let found = circles(&among_siblings(includes(root())));
    assert!(found.is_empty(), "expected no circles of includes, found\n{found}");
}

/// The circles among the modules of a crate of these files; the first is its root.
fn circles_of_modules(files: &[(&str, &str)]) -> String {
    let folder = written(files);
    circles(&of_crate(&folder.path().join(files[0].0)))
}

#[test]
fn folders_import_each_other_by_any_of_their_files() {
    let root = ("lib.rs", "mod a;\nmod b;");
    let (a, b) = (("a/mod.rs", "mod inner;"), ("b/mod.rs", "mod other;\npub mod inner;\npub struct B;"));
    let inner = ("b/inner.rs", "pub struct Inner;");
    let other = ("b/other.rs", "use crate::a::A;\nfn f(_: A) {}");
    let expected = "a -> b\nb -> a\n";
    for imported in
        ["use crate::b::B;", "use crate::b::inner::Inner;", "pub use crate::b::inner::Inner;", "use crate::b;"]
    {
        assert_eq!(circles_of_modules(&[root, a, ("a/inner.rs", imported), b, inner, other]), expected, "{imported}");
    }
}

#[test]
fn re_exports_count_where_they_are_and_where_they_lead() {
    let root = ("lib.rs", "mod a;\nmod b;\nmod c;");
    let a = ("a.rs", "pub use crate::b::B;");
    let b = ("b.rs", "pub struct B;\nuse crate::c::f;");
    let circle = circles_of_modules(&[root, a, b, ("c.rs", "use crate::a::B;\npub fn f(_: B) {}")]);
    assert_eq!(circle, "a -> b\nb -> c\nc -> a\nc -> b\n");
}

#[test]
fn a_folder_and_what_is_in_it_are_one_beside_others() {
    let root = ("lib.rs", "mod a;\nmod b;");
    let a = ("a/mod.rs", "mod x;\nmod y;\npub use x::X;\nuse crate::b::B;\nfn f(_: B) {}");
    let files =
        [root, a, ("a/x.rs", "pub struct X;"), ("a/y.rs", "use super::X;\nfn f(_: X) {}"), ("b.rs", "pub struct B;")];
    assert_eq!(circles_of_modules(&files), "");
    let back = ("a/x.rs", "pub struct X;\nuse super::y::f;");
    assert_eq!(circles_of_modules(&[root, a, back, files[3], files[4]]), "a/x -> a/y\na/y -> a/x\n");
}

#[test]
fn includes_are_found_beside_the_file_and_by_a_name_that_one_file_has() {
    let circle =
        [("a/one.h", "#include \"../b/two.h\"\n"), ("b/two.h", "  # include \"three.h\"\n#include <a/one.h>\n")];
    let three = ("a/three.h", "/* #include is a word here */\n");
    let folder = written(&[circle[0], circle[1], three]);
    assert_eq!(circles(&among_siblings(includes(folder.path()))), "a -> b\nb -> a\n");
    let folder = written(&[circle[0], circle[1], ("b/three.h", "")]);
    assert_eq!(circles(&among_siblings(includes(folder.path()))), "");
}
