//! The structure of the sources: which crate is built with which, that no file imports another in a circle, and what guides show of them.

mod arrows;
mod circles;
mod family;
mod modules;
mod outside;
mod picture;
mod workspace;

use std::path::Path;

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}
