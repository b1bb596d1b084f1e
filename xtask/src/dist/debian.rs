//! Packages for Debian: an installation, cut into packages.

use super::release::Release;
use super::target::Target;
use crate::steps::{Outcome, VERSION, output, read, root, run, write};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command's name: `dtc` is that of the device tree compiler.
pub(super) const COMMAND: &str = "datatype-compiler";

/// A package, and what it says of itself.
struct Package {
    name: &'static str,
    section: &'static str,
    /// Packages of dtc that it needs, of this version.
    needs: &'static [&'static str],
    /// What it needs of others, beside the libraries that its programs are linked with.
    more: &'static str,
    summary: &'static str,
    text: &'static str,
}

const PACKAGES: [Package; 4] = [
    Package {
        name: "libdtc0",
        section: "libs",
        needs: &[],
        more: "",
        summary: "compiled MPI derived datatypes, shared library",
        text: "Packs and unpacks MPI derived datatypes by kernels that are compiled for\n each type, on CPUs and on NVIDIA GPUs.",
    },
    Package {
        name: "libdtc-mpi",
        section: "libs",
        needs: &[],
        more: "",
        summary: "compiled datatypes for the MPI of a program, by preloading",
        text: "Preloaded, it packs and sends the derived datatypes of an unchanged MPI\n program, under MPICH and Open MPI. See libdtc_mpi(7).",
    },
    Package {
        name: "libdtc-dev",
        section: "libdevel",
        needs: &["libdtc0"],
        more: "libc6-dev",
        summary: "compiled MPI derived datatypes, headers and guides",
        text: "Headers, the static library, files of pkg-config and CMake, examples in C\n and the guides.",
    },
    Package {
        name: COMMAND,
        section: "devel",
        needs: &[],
        more: "",
        summary: "explains, compiles and measures MPI derived datatypes",
        text: "The command dtc, which is called datatype-compiler here: dtc is the device\n tree compiler.",
    },
];

/// Which package has a file below `/usr`: the first whose row its path begins with. `LIB` is the folder of libraries.
const FILES: [(&str, &str); 12] = [
    ("LIB/libdtc.so.0", "libdtc0"),
    ("LIB/libdtc_mpi.so", "libdtc-mpi"),
    ("share/man/man7/libdtc_mpi", "libdtc-mpi"),
    ("LIB/", "libdtc-dev"),
    ("include/", "libdtc-dev"),
    ("share/doc/dtc/", "libdtc-dev"),
    ("share/dtc/examples/", "libdtc-dev"),
    ("share/dtc/", COMMAND),
    ("bin/", COMMAND),
    ("share/man/man1/", COMMAND),
    ("share/bash-completion/", COMMAND),
    ("share/fish/", COMMAND),
];

/// Debian's package of a library that programs are linked with.
const LIBRARIES: [(&str, &str); 6] = [
    ("libc.so.6", "libc6"),
    ("libm.so.6", "libc6"),
    ("libdl.so.2", "libc6"),
    ("libpthread.so.0", "libc6"),
    ("ld-linux-", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
];

/// The package and the place of an installed file, by its path below `/usr`.
fn owner(path: &str, libraries: &str) -> Outcome<(&'static str, String)> {
    // Debian's zsh looks there.
    if let Some(name) = path.strip_prefix("share/zsh/site-functions/") {
        return Ok((COMMAND, format!("share/zsh/vendor-completions/{name}")));
    }
    let owned = |row: &str| match row.strip_prefix("LIB/") {
        Some(rest) => path.strip_prefix(libraries).is_some_and(|below| below[1..].starts_with(rest)),
        None => path.starts_with(row),
    };
    let row = FILES.iter().find(|(row, _)| owned(row));
    row.map(|&(_, package)| (package, path.to_owned()))
        .ok_or_else(|| format!("{path}: expected a package of Debian that has it, found none"))
}

/// Makes the packages of an installation with the prefix `/usr`.
pub(super) fn packages(release: &Release, target: &Target, stage: &Path) -> Outcome {
    let installed = stage.join("usr");
    let roots = release.empty(&format!("packages-{}", target.processor))?;
    let mut paths = Vec::new();
    collect(&installed, &installed, &mut paths)?;
    for path in paths {
        let (package, place) = owner(&path, &format!("lib/{}", target.multiarch))?;
        let to = roots.join(package).join("usr").join(place);
        let moved =
            fs::create_dir_all(to.parent().unwrap_or(&roots)).and_then(|()| fs::rename(installed.join(&path), &to));
        moved.map_err(|error| format!("{}: {error}", to.display()))?;
    }
    for package in &PACKAGES {
        let root = roots.join(package.name);
        let [control, documents] = [root.join("DEBIAN"), root.join("usr/share/doc").join(package.name)];
        for folder in [&control, &documents] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        write(&documents.join("copyright"), &copyright()?)?;
        write(&control.join("control"), &said(package, target, &needed(&root)?))?;
        if package.section == "libs" {
            write(&control.join("triggers"), "activate-noawait ldconfig\n")?;
        }
        // Whatever umask this runs under.
        run(Command::new("chmod").args(["--recursive", "u+rwX,go+rX,go-w"]).arg(&root))?;
        let file = release.folder.join(format!("{}_{VERSION}_{}.deb", package.name, target.debian));
        let mut build = release.dated("dpkg-deb");
        run(build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(file))?;
    }
    Ok(())
}

/// Files and links below a folder, by their paths from `root`.
fn collect(root: &Path, folder: &Path, paths: &mut Vec<String>) -> Outcome {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        match path.strip_prefix(root) {
            _ if path.is_dir() && !path.is_symlink() => collect(root, &path, paths)?,
            Ok(below) => paths.push(below.display().to_string()),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
    }
    Ok(())
}

/// The file `control` of a package.
fn said(package: &Package, target: &Target, libraries: &BTreeSet<String>) -> String {
    let mut needs: Vec<String> = package.needs.iter().map(|name| format!("{name} (= {VERSION})")).collect();
    needs.extend(libraries.iter().cloned());
    needs.extend((!package.more.is_empty()).then(|| package.more.to_owned()));
    let Package { name, section, summary, text, .. } = package;
    let (architecture, needs) = (target.debian, needs.join(", "));
    format!(
        "Package: {name}\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: The dtc developers\nSection: {section}\n\
         Priority: optional\nMulti-Arch: {}\nDepends: {needs}\nDescription: {summary}\n {text}\n",
        match *name {
            COMMAND => "foreign",
            // The others have pages that name folders of their architecture.
            "libdtc0" => "same",
            _ => "no",
        }
    )
}

/// Debian's packages of the libraries that the programs below a folder are linked with, and the version of the C library that they need.
fn needed(root: &Path) -> Outcome<BTreeSet<String>> {
    let (mut needed, mut version) = (BTreeSet::new(), (0, 0));
    let mut paths = Vec::new();
    collect(root, root, &mut paths)?;
    for path in paths.iter().map(|path| root.join(path)).filter(is_linked) {
        let said = output(Command::new("readelf").args(["--dynamic", "--version-info", "--wide"]).arg(&path))?;
        for library in said.lines().filter_map(|line| line.split_once("Shared library: [")?.1.split(']').next()) {
            let row = LIBRARIES.iter().find(|(name, _)| library.starts_with(name));
            let (_, package) = row.ok_or_else(|| {
                format!("{}: expected libraries of a package that is known, found {library}", path.display())
            })?;
            needed.insert((*package).to_owned());
        }
        version = version.max(newest(&said));
    }
    if needed.remove("libc6") {
        needed.insert(format!("libc6 (>= {}.{})", version.0, version.1));
    }
    Ok(needed)
}

/// Whether a file is a program or a shared library, and no link to one.
fn is_linked(path: &PathBuf) -> bool {
    let elf = || fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
    !path.is_symlink() && elf()
}

/// The newest version of the C library that a listing of `readelf` names.
fn newest(said: &str) -> (u32, u32) {
    let versions = said.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
        let mut parts = version.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    versions.max().unwrap_or_default()
}

/// The licences of dtc and of what is in it.
fn copyright() -> Outcome<String> {
    let [mit, apache, notices] =
        ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES"].map(|name| read(&root().join(name)));
    Ok(format!(
        "dtc, the datatype compiler: MIT or Apache-2.0, at your choice.\n\n{}\n\n{}\n\n{}",
        mit?, apache?, notices?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_one_package() {
        let owner = |path| owner(path, "lib/x86_64-linux-gnu").map(|(package, _)| package);
        for (path, package) in [
            ("lib/x86_64-linux-gnu/libdtc.so.0.1.0", "libdtc0"),
            ("lib/x86_64-linux-gnu/libdtc.so", "libdtc-dev"),
            ("lib/x86_64-linux-gnu/libdtc_mpi.so.0", "libdtc-mpi"),
            ("lib/x86_64-linux-gnu/pkgconfig/dtc.pc", "libdtc-dev"),
            ("share/dtc/examples/a.c", "libdtc-dev"),
            ("share/dtc/type-description.schema.json", COMMAND),
            ("share/zsh/site-functions/_datatype-compiler", COMMAND),
        ] {
            assert_eq!(owner(path), Ok(package), "{path}");
        }
        assert!(owner("share/lua/x").unwrap_err().starts_with("share/lua/x: expected a package"));
        assert!(FILES.iter().all(|(_, name)| PACKAGES.iter().any(|package| package.name == *name)));
    }

    #[test]
    fn the_newest_version_of_the_c_library_is_compared_by_numbers() {
        assert_eq!(newest("Name: GLIBC_2.9  Flags\nName: GLIBC_2.34 x GLIBC_2.2.5\nGLIBC_PRIVATE"), (2, 34));
    }

    #[test]
    fn a_package_says_what_it_needs() {
        let libraries = BTreeSet::from(["libc6 (>= 2.34)".to_owned()]);
        let said = said(&PACKAGES[2], Target::named("aarch64-unknown-linux-gnu").unwrap(), &libraries);
        assert!(said.contains(&format!("\nDepends: libdtc0 (= {VERSION}), libc6 (>= 2.34), libc6-dev\n")), "{said}");
        assert!(said.contains("\nArchitecture: arm64\n") && said.contains("\nMulti-Arch: no\n"), "{said}");
    }
}
