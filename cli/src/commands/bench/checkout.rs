//! The checkout of dtc that a benchmark runs in, where it finds examples and scripts.

use std::path::PathBuf;

/// A file or folder of the checkout that the working directory or the executable lies in.
pub fn checkout_file(name: &str) -> Option<PathBuf> {
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    starts
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
}
