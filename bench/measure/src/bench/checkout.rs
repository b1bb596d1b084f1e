//! The checkout of dtc that a benchmark runs in, or the installation, where it finds examples and scripts.

use std::path::PathBuf;

/// Where `cargo xtask install` puts what a checkout has, below the prefix.
const SHARED: &str = "share/dtc";

/// A file or folder of the checkout that the working directory or the executable is in, or of the installation of the executable.
pub fn checkout_file(name: &str) -> Option<PathBuf> {
    let executable = std::env::current_exe().ok();
    let starts = [std::env::current_dir().ok(), executable.clone()];
    let checkouts = starts.iter().flatten().flat_map(|start| start.ancestors()).map(|folder| folder.join(name));
    // The executable is in the folder bin of the prefix.
    let prefix = executable.as_deref().and_then(|path| path.parent()?.parent());
    let installed = prefix.map(|prefix| prefix.join(SHARED).join(name));
    checkouts.chain(installed).find(|path| path.exists())
}
