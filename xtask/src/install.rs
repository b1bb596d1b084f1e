//! Installs libdtc, and the interposer, which contains it.
//!
//! rustc's archive contains the whole Rust library with every symbol visible, so two of them cannot be linked into one
//! program. This module joins it into one object that hides all symbols but the interface, and links both libraries
//! from that object. rustc could write the shared library itself, but with its own list of exports, which excludes
//! symbol versions.

use crate::places::Places;
use crate::steps::{Outcome, VERSION, build, point, read, root, run, write};
use crate::{documents, interposer};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name that programs are linked with; its number changes with the interface.
const SONAME: &str = "libdtc.so.0";

/// Libraries of the system that the Rust library needs.
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];

/// Installs the library, and says how to use it. Without `archive`, cargo builds it first.
pub fn install(places: &Places, archive: Option<PathBuf>) -> Outcome {
    let archive = archive.map_or_else(|| build("dtc-capi", "libdtc.a"), Ok)?;
    let library = places.library_folder()?;
    let within = |folder: &str| places.folder(&format!("{}/{folder}", places.libraries));
    let (include, pkgconfig, cmake) = (places.folder("include")?, within("pkgconfig")?, within("cmake/dtc")?);
    let sources = root().join("interfaces/c");
    for header in ["dtc.h", "dtc_mpi.h"] {
        write(&include.join(header), &read(&sources.join("include").join(header))?)?;
    }
    let kernels = "dtc_matching.cuh";
    write(&include.join(kernels), &read(&root().join("templates/kernels").join(kernels))?)?;
    for (folder, depth, name) in
        [(&pkgconfig, 1, "dtc.pc.in"), (&cmake, 2, "dtc-config.cmake.in"), (&cmake, 2, "dtc-config-version.cmake.in")]
    {
        let text = places.fill(&read(&sources.join("pkg").join(name))?, depth);
        write(&folder.join(name.trim_end_matches(".in")), &text)?;
    }
    let functions = functions(&read(&sources.join("include/dtc.h"))?);
    let object = library.join("libdtc.o");
    hide(&archive, &functions, &object)?;
    let linked = link(&sources.join("pkg/dtc.map"), &object, &library)
        .and_then(|()| pack(&object, &library))
        .and_then(|()| interposer::link(&object, &library, &SYSTEM));
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
    println!("The guides are in {prefix}/share/doc/dtc, the examples in {prefix}/share/dtc.");
    Ok(())
}

/// Names of the functions that the header declares.
fn functions(header: &str) -> Vec<String> {
    let name = |line: &str| {
        let (declared, _) = line.split_once('(')?;
        let name = declared.rsplit([' ', '*']).next()?;
        (name.starts_with("dtc_") && !line.starts_with([' ', '#', '/'])).then(|| name.to_owned())
    };
    header.lines().filter_map(name).collect()
}

/// Joins the members of an archive that the functions need into one object, and hides its other symbols.
fn hide(archive: &Path, functions: &[String], object: &Path) -> Outcome {
    let mut link = Command::new("ld");
    // Section groups are dissolved: the linker would otherwise take a group from other Rust code, and lose the one
    // hidden here.
    link.args(["-r", "--gc-sections", "--strip-debug", "--force-group-allocation", "-o"]).arg(object);
    for function in functions {
        link.args(["-u", function]);
    }
    run(link.arg(archive))?;
    // The standard library contains its bitcode, which tools would take for that of the whole joined object.
    let dropped = ["--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
    run(Command::new("objcopy").args(["--wildcard", "--keep-global-symbol=dtc_*"]).args(dropped).arg(object))
}

/// Links the shared library with versions of its symbols, and its symbolic links. It is marked as never unloaded,
/// because a thread of its own may be compiling.
fn link(map: &Path, object: &Path, library: &Path) -> Outcome {
    let name = format!("libdtc.so.{VERSION}");
    let mut version_script = OsString::from("-Wl,--version-script=");
    version_script.push(map);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut link = Command::new(compiler);
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
    run(Command::new("ar").arg("rcs").arg(archive).arg(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_header() {
        let header = "#define DTC_X (1)\nint dtc_init(const dtc_config *config,\n             dtc_engine **engine);\n\
                      const char *dtc_message(void);\ntypedef void (*dtc_log_function)(void *context);\n";
        assert_eq!(functions(header), ["dtc_init", "dtc_message"]);
    }
}
