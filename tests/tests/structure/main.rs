//! The structure of the sources: which crate is built with which, that no file or folder imports another in a circle, and what guides show
//! of them.

mod arrows;
mod circles;
mod family;
mod folders;
mod functions;
mod includes;
mod modules;
mod names;
mod outside;
mod picture;
mod published;
mod recipes;
mod words;
mod workspace;

use std::path::Path;

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// A folder with these files, by their names and texts.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder of the file")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    folder
}
