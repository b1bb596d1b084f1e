//! The structure of the sources: which crate is built with which, and that no file imports another in a circle.

mod arrows;
mod circles;
mod modules;
mod outside;
mod picture;
mod workspace;

use std::path::Path;

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}
