//! Builds libdtc_mpi, the interposer, of its C sources and the object that libdtc is linked of.
//!
//! The sources of an ABI are compiled once for each, against declarations of their own: no MPI is needed here.

use crate::steps::{Outcome, VERSION, point, root, run};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name that programs are linked with.
const SONAME: &str = "libdtc_mpi.so.0";

/// The ABIs, which are folders of `interfaces/mpi/abi`.
const ABIS: [&str; 3] = ["mpich", "open_mpi", "standard"];

/// The sources that do not depend on an ABI.
const COMMON: [&str; 14] = [
    "board.c",
    "entry.c",
    "find.c",
    "fortran.c",
    "landing.c",
    "moves.c",
    "ranges.c",
    "redirect.c",
    "registry.c",
    "report.c",
    "report_calls.c",
    "requests.c",
    "settings.c",
    "staging.c",
];

/// Links the interposer into the folder of the libraries. `object` is libdtc with every symbol but its functions hidden; `system` is
/// what it needs.
pub(crate) fn link(object: &Path, library: &Path, system: &[&str]) -> Outcome {
    let sources = root().join("interfaces/mpi");
    let objects = library.join("libdtc_mpi.objects");
    fs::create_dir_all(&objects).map_err(|error| format!("{}: {error}", objects.display()))?;
    let linked = compile(&sources, &objects).and_then(|parts| {
        let name = format!("libdtc_mpi.so.{VERSION}");
        let mut version_script = OsString::from("-Wl,--version-script=");
        version_script.push(sources.join("pkg/dtc_mpi.map"));
        let mut link = Command::new(compiler());
        link.args(["-shared", "-o"]).arg(library.join(&name)).args(parts).arg(object).arg(version_script);
        link.arg(format!("-Wl,-soname,{SONAME},--gc-sections,-s,-z,relro,-z,now,-z,nodelete,--no-undefined"));
        run(link.args(system))?;
        point(&library.join(SONAME), &name)?;
        point(&library.join("libdtc_mpi.so"), SONAME)
    });
    fs::remove_dir_all(&objects).map_err(|error| format!("{}: {error}", objects.display()))?;
    linked
}

/// Compiles the sources; returns the objects.
fn compile(sources: &Path, objects: &Path) -> Outcome<Vec<PathBuf>> {
    let abis = ABIS.iter().map(|abi| ("abi.c", Some(*abi)));
    let mut made = Vec::new();
    for (source, abi) in COMMON.iter().map(|source| (*source, None)).chain(abis) {
        let object = objects.join(format!("{}.o", abi.unwrap_or(source)));
        let mut compile = Command::new(compiler());
        compile.args([
            "-std=gnu11",
            "-O2",
            "-fPIC",
            "-fvisibility=hidden",
            "-ftls-model=initial-exec",
            "-D_GNU_SOURCE",
        ]);
        compile.args(["-Wall", "-Wextra", "-c", "-o"]).arg(&object).arg(sources.join("src").join(source));
        compile.arg("-I").arg(root().join("interfaces/c/include"));
        if let Some(abi) = abi {
            compile.arg("-I").arg(sources.join("abi").join(abi)).arg("-I").arg(sources.join("abi"));
        }
        run(&mut compile)?;
        made.push(object);
    }
    Ok(made)
}

/// The C compiler.
fn compiler() -> OsString {
    std::env::var_os("CC").unwrap_or_else(|| "cc".into())
}
