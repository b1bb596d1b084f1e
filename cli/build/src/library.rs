//! The libraries of one processor, and what tells where they are.

use crate::types::identifier;
use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use dtc_measure::failure::Failure;
use dtc_measure::output::Scratch;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

/// Headers of C, and libraries that programs of C, CUDA, MPI and dtc name: those of a bundle would hide them.
const TAKEN: &str = "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic \
                     stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype \
                     c dl gcc gcc_s m pthread rt cuda dtc mpi";

/// The name of the libraries in a folder: its own.
pub fn name(folder: &Path) -> Result<String, Failure> {
    let found = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let known = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    if identifier(&found).is_none() || !found.chars().all(known) {
        let expected = "a name of letters, digits, -, _ and . that begins with a letter, for the libraries";
        return Err(Failure::description("-o", expected, format_args!("{found:?}")));
    }
    let lower = found.to_lowercase();
    if TAKEN.split(' ').any(|taken| taken == lower) {
        let expected = "a name that no header or library of the system has";
        return Err(Failure::description("-o", expected, format_args!("{found:?}")));
    }
    Ok(found)
}

/// Names and bytes of what is linked.
pub type Objects = Vec<(String, Vec<u8>)>;

/// A static library with a table of its symbols.
pub fn archive(objects: Objects) -> Result<Vec<u8>, Failure> {
    let member = |(name, bytes): (String, Vec<u8>)| NewArchiveMember::new(bytes, &DEFAULT_OBJECT_READER, name);
    let members: Vec<_> = objects.into_iter().map(member).collect();
    let mut archive = Cursor::new(Vec::new());
    write_archive_to_stream(&mut archive, &members, ArchiveKind::Gnu, false, None)?;
    Ok(archive.into_inner())
}

/// A shared library, by the linker of a C compiler. Unlike the functions for a CPU, those for GPUs need libraries of the system.
pub fn shared(
    library: &str,
    objects: &[(String, Vec<u8>)],
    architecture: &str,
    system: &[&str],
) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::file(&std::env::temp_dir(), "room for objects to link", &error);
    let folder = Scratch::temporary("build").map_err(failed)?;
    let result = folder.path().join("library");
    let mut linker = Command::new(compiler(architecture));
    // Nothing in the result depends on when and where it is linked.
    linker.args(["-shared", "-nostartfiles", "-Wl,--build-id=none,--no-undefined,-z,noexecstack,-z,relro"]);
    linker.arg(format!("-Wl,-soname,lib{library}.so")).arg("-o").arg(&result);
    // By short names, so that the command line stays short.
    linker.current_dir(folder.path()).env("TMPDIR", folder.path()).arg("@objects").args(system);
    let mut names = String::new();
    for (at, (_, bytes)) in objects.iter().enumerate() {
        let name = format!("{at}.o");
        std::fs::write(folder.path().join(&name), bytes).map_err(failed)?;
        names.push_str(&format!("{name}\n"));
    }
    std::fs::write(folder.path().join("objects"), names).map_err(failed)?;
    output_of(linker, architecture)?;
    std::fs::read(&result).map_err(failed)
}

/// Runs a C compiler.
pub fn output_of(mut compiler: Command, architecture: &str) -> Result<Vec<u8>, Failure> {
    let name = compiler.get_program().to_string_lossy().into_owned();
    let wanted = format!("a C compiler for {architecture}");
    let output =
        compiler.output().map_err(|error| Failure::missing(&name, &wanted, error, format!("install {wanted}")))?;
    if !output.status.success() {
        let found = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::missing(&name, format_args!("it to build for {architecture}"), found, "see what it says"));
    }
    Ok(output.stdout)
}

/// The C compiler for an architecture: `cc` for this machine's, and GCC as distributions name it for others.
pub fn compiler(architecture: &str) -> String {
    match architecture {
        std::env::consts::ARCH => "cc".to_owned(),
        other => format!("{other}-linux-gnu-gcc"),
    }
}

/// The file for pkg-config, which finds the libraries wherever the folder is moved.
pub fn pkg_config(library: &str, folder: &str, target: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../../..\nlibdir=${{prefix}}/lib/{folder}\nincludedir=${{prefix}}/include\n\n\
         Name: {library}\nDescription: Packs and unpacks datatypes; compiled by dtc for {target}\nVersion: {}\n\
         Libs: -L${{libdir}} -l{library}\nCflags: -I${{includedir}}\n",
        env!("CARGO_PKG_VERSION")
    )
}
