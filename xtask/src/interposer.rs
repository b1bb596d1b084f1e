//! Builds libdtc_mpi, the interposer, of its C sources and the library that cargo makes of its crate, which contains libdtc.
//!
//! The sources of an ABI are compiled once for each, against declarations of their own: no MPI is needed here.

use crate::object::{declared, hide};
use crate::steps::{Outcome, VERSION, point, read, root, run};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name that programs are linked with.
const SONAME: &str = "libdtc_mpi.so.0";

/// The ABIs, which are folders of `interfaces/mpi/abi`.
const ABIS: [&str; 3] = ["mpich", "open_mpi", "standard"];

/// The sources that do not depend on an ABI.
const COMMON: [&str; 4] = ["entry.c", "fortran.c", "redirect.c", "report_calls.c"];

/// What the C sources use of the crate beside the functions of its headers.
const VARIABLES: [&str; 2] = ["dtc_mpi_engine", "dtc_mpi_tracked_count"];

/// Links the interposer into the folder of the libraries. `archive` is what cargo makes of its crate, `functions` are those of libdtc, and
/// `system` is what it needs.
pub(crate) fn link(archive: &Path, functions: &[String], library: &Path, system: &[&str]) -> Outcome {
    let sources = root().join("interfaces/mpi");
    let objects = library.join("libdtc_mpi.objects");
    fs::create_dir_all(&objects).map_err(|error| format!("{}: {error}", objects.display()))?;
    let object = objects.join("libdtc_mpi.o");
    let hidden = used(&sources, functions).and_then(|used| hide(archive, &used, &object));
    let linked = hidden.and_then(|()| compile(&sources, &objects)).and_then(|parts| {
        let name = format!("libdtc_mpi.so.{VERSION}");
        let mut version_script = OsString::from("-Wl,--version-script=");
        version_script.push(sources.join("pkg/dtc_mpi.map"));
        let mut link = Command::new(compiler());
        link.args(["-shared", "-o"]).arg(library.join(&name)).args(parts).arg(&object).arg(version_script);
        link.arg(format!("-Wl,-soname,{SONAME},--gc-sections,-s,-z,relro,-z,now,-z,nodelete,--no-undefined"));
        run(link.args(system))?;
        point(&library.join(SONAME), &name)?;
        point(&library.join("libdtc_mpi.so"), SONAME)
    });
    fs::remove_dir_all(&objects).map_err(|error| format!("{}: {error}", objects.display()))?;
    linked
}

/// What the C sources use of the crate.
fn used(sources: &Path, functions: &[String]) -> Outcome<Vec<String>> {
    let mut used: Vec<String> = functions.iter().cloned().chain(VARIABLES.map(str::to_owned)).collect();
    for header in ["board.h", "interposer.h", "landing.h", "moves.h", "registry.h", "settings.h"] {
        used.extend(declared(&read(&sources.join("c").join(header))?));
    }
    Ok(used)
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
        compile.args(["-Wall", "-Wextra", "-c", "-o"]).arg(&object).arg(sources.join("c").join(source));
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
