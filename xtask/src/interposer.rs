//! Links libdtc_mpi, the interposer, of the library that cargo makes of its crate, which contains libdtc.

use crate::object::{defined, hide};
use crate::steps::{Outcome, VERSION, point, root, run, tool};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Name that programs are linked with.
const SONAME: &str = "libdtc_mpi.so.0";

/// Links the interposer into the folder of the libraries. `archive` is what cargo makes of its crate, and `system` is what it needs.
pub(crate) fn link(archive: &Path, library: &Path, system: &[&str]) -> Outcome {
    let exported: Vec<String> =
        defined(archive)?.into_iter().filter(|name| name.starts_with("MPI_") || name.starts_with("mpi_")).collect();
    let object = library.join("libdtc_mpi.o");
    hide(archive, &exported, &object)?;
    let name = format!("libdtc_mpi.so.{VERSION}");
    let mut version_script = OsString::from("-Wl,--version-script=");
    version_script.push(root().join("interfaces/mpi/pkg/dtc_mpi.map"));
    let mut link = tool("CC", "cc");
    link.args(["-shared", "-o"]).arg(library.join(&name)).arg(&object).arg(version_script);
    link.arg(format!("-Wl,-soname,{SONAME},--gc-sections,-s,-z,relro,-z,now,-z,nodelete,--no-undefined"));
    let linked = run(link.args(system));
    fs::remove_file(&object).map_err(|error| format!("{}: {error}", object.display()))?;
    linked?;
    point(&library.join(SONAME), &name)?;
    point(&library.join("libdtc_mpi.so"), SONAME)
}
