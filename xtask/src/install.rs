//! Installs libdtc, and the interposer, which contains it.
//!
//! rustc's archive of the interposer's crate contains the whole Rust library, that of libdtc too, with every symbol visible, so two of them
//! cannot be linked into one program. This module joins what each library needs of it into one object that hides all symbols but the
//! interface, and links the libraries from these objects. rustc could write the shared library itself, but with its own list of exports, which excludes
//! symbol versions.

use crate::object::{declared, hide};
use crate::places::Places;
use crate::steps::{Outcome, VERSION, build, point, read, root, run, tool, write};
use crate::{documents, interposer};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Name that programs are linked with; its number changes with the interface.
const SONAME: &str = "libdtc.so.0";

/// Libraries of the system that the Rust library needs.
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];

/// Installs the library, and says how to use it. Without `archive`, cargo builds it first.
pub fn install(places: &Places, archive: Option<PathBuf>) -> Outcome {
    let archive = archive.map_or_else(|| build("dtc-mpi", "libdtc_mpi.a"), Ok)?;
    let library = places.library_folder()?;
    let within = |folder: &str| places.folder(&format!("{}/{folder}", places.libraries));
    let (include, pkgconfig, cmake) = (places.folder("include")?, within("pkgconfig")?, within("cmake/dtc")?);
    let sources = root().join("interfaces/c");
    for header in ["dtc.h", "dtc_mpi.h"] {
        write(&include.join(header), &read(&sources.join("include").join(header))?)?;
    }
    let kernels = "dtc_matching.cuh";
    write(&include.join(kernels), &read(&root().join("matching/kernels").join(kernels))?)?;
    for (folder, depth, name) in
        [(&pkgconfig, 1, "dtc.pc.in"), (&cmake, 2, "dtc-config.cmake.in"), (&cmake, 2, "dtc-config-version.cmake.in")]
    {
        let text = places.fill(&read(&sources.join("pkg").join(name))?, depth);
        write(&folder.join(name.trim_end_matches(".in")), &text)?;
    }
    let functions = declared(&read(&sources.join("include/dtc.h"))?);
    let object = library.join("libdtc.o");
    hide(&archive, &functions, &object)?;
    let linked = link(&sources.join("pkg/dtc.map"), &object, &library)
        .and_then(|()| pack(&object, &library))
        .and_then(|()| interposer::link(&archive, &library, &SYSTEM));
    fs::remove_file(&object).map_err(|error| format!("{}: {error}", object.display()))?;
    linked?;
    documents::install(places)?;
    let used = places.used.join(&places.libraries);
    let (used, prefix) = (used.display(), places.used.display());
    println!("libdtc {VERSION} is in {prefix}. To build a program with it, and one that needs nothing of it:");
    println!("    export PKG_CONFIG_PATH={used}/pkgconfig");
    println!("    cc program.c $(pkg-config --cflags --libs dtc) -Wl,-rpath,{used}");
    println!("    cc -static program.c $(pkg-config --static --cflags --libs dtc)");
    println!("To run an MPI program with it: LD_PRELOAD={used}/libdtc_mpi.so");
    println!("The book is in {prefix}/share/doc/dtc, the examples in {prefix}/share/dtc.");
    Ok(())
}

/// Links the shared library with versions of its symbols, and its symbolic links. It is marked as never unloaded,
/// because a thread of its own may be compiling.
fn link(map: &Path, object: &Path, library: &Path) -> Outcome {
    let name = format!("libdtc.so.{VERSION}");
    let mut version_script = OsString::from("-Wl,--version-script=");
    version_script.push(map);
    let mut link = tool("CC", "cc");
    link.args(["-shared", "-o"]).arg(library.join(&name)).arg(object).arg(version_script);
    link.arg(format!("-Wl,-soname,{SONAME},--gc-sections,-s,-z,relro,-z,now,-z,nodelete,--no-undefined"));
    run(link.args(SYSTEM))?;
    point(&library.join(SONAME), &name)?;
    point(&library.join("libdtc.so"), SONAME)
}

/// Writes the static library.
fn pack(object: &Path, library: &Path) -> Outcome {
    let archive = library.join("libdtc.a");
    // `ar` would add to an existing archive.
    if archive.exists() {
        fs::remove_file(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    }
    run(tool("AR", "ar").arg("rcs").arg(archive).arg(object))
}
