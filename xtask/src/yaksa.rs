//! Installs libyaksa and its header below lib/dtc/yaksa, a folder of its own that no compiler or loader searches. MPICH
//! is configured with `--with-yaksa=` and that folder.

use crate::places::install_stripped;
use crate::steps::{Outcome, VERSION, below_destdir, build, point, read, root, write};
use std::fs;
use std::path::{Path, PathBuf};

/// Name that the loader looks up.
const SONAME: &str = "libyaksa.so.0";

/// Installs the library below `prefix`, or below `DESTDIR` and `prefix`, and returns the folder. Without `library`,
/// cargo builds it first.
pub fn install(prefix: &Path, library: Option<PathBuf>) -> Outcome<PathBuf> {
    let library = library.map_or_else(|| build("dtc-yaksa", "libyaksa.so"), Ok)?;
    let folder = below_destdir(std::env::var_os("DESTDIR"), prefix)?.join("lib/dtc/yaksa");
    let [include, lib, pkgconfig] = ["include", "lib", "lib/pkgconfig"].map(|name| folder.join(name));
    for folder in [&include, &lib, &pkgconfig] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let sources = root().join("interfaces/yaksa");
    write(&include.join("yaksa.h"), &read(&sources.join("include/yaksa.h"))?)?;
    let file = read(&sources.join("pkg/yaksa.pc.in"))?.replace("@VERSION@", VERSION);
    write(&pkgconfig.join("yaksa.pc"), &file)?;
    install_stripped(&library, &lib.join(SONAME), "--strip-all")?;
    point(&lib.join("libyaksa.so"), SONAME)?;
    Ok(folder)
}
