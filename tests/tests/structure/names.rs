//! A name is one type in a crate, so that a reader who has met it knows it.

use super::modules::Crate;
use super::workspace::packages;
use super::{root, written};
use std::collections::BTreeSet;
use std::path::Path;

/// Names that stand for one role in several files, and the role.
const EXCEPTIONS: [(&str, &str); 5] = [
    ("Arguments", "what a command of dtc is called with"),
    ("Emitter", "what writes the code of a plan, for each code generator"),
    ("Handle", "a handle of the ABI that is bound, which for Fortran is MPICH's"),
    ("Place", "where a step is applied, in the values of each code generator"),
    ("Status", "the status of an MPI, for each ABI"),
];

/// A line for each name of a crate that is defined in more than one file.
fn doubles(root_file: &Path, shown_below: &Path) -> BTreeSet<String> {
    let read = Crate::read(root_file);
    let types = read.types().into_iter();
    let several = types.filter(|(name, files)| files.len() > 1 && EXCEPTIONS.iter().all(|(other, _)| other != name));
    let below = |file: &&Path| file.strip_prefix(shown_below).expect("a file of the crate").display().to_string();
    several
        .map(|(name, files)| format!("{name}: {}\n", files.iter().map(below).collect::<Vec<_>>().join(", ")))
        .collect()
}

#[test]
fn a_name_is_one_type_in_a_crate() {
    // Tests and benchmarks are read one file at a time.
    let is_product =
        |file: &&Path| !["tests", "bench", "fuzz"].iter().any(|folder| file.starts_with(root().join(folder)));
    let packages = packages();
    let roots = packages.iter().flat_map(|package| &package.roots).map(|file| &**file);
    let in_sources = |file: &&Path| file.parent().is_some_and(|folder| folder.ends_with("src"));
    let doubles: BTreeSet<String> =
        roots.filter(is_product).filter(in_sources).flat_map(|file| doubles(file, root())).collect();
    assert!(doubles.is_empty(), "expected one type of a name in a crate, found\n{}", String::from_iter(doubles));
}

#[test]
fn names_of_two_files_are_found_and_those_of_tests_are_not() {
    let folder = written(&[
        ("lib.rs", "mod a;\nmod b;\nstruct Own;\n#[cfg(test)] mod tests { struct Same; }"),
        ("a.rs", "pub struct Same;\nconst LENGTH: usize = 1;"),
        ("b.rs", "enum Same { B }\nconst LENGTH: usize = 1;\nstruct B;"),
    ]);
    let found = doubles(&folder.path().join("lib.rs"), folder.path());
    assert_eq!(found, BTreeSet::from(["Same: a.rs, b.rs\n".to_owned()]));
}
