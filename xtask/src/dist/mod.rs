//! Makes the files of a release: for each target a tarball, packages for Debian and the wheel of Python, beside them the sources and the
//! sums of all.

mod archive;
mod debian;
mod release;
mod target;

use crate::steps::{Outcome, VERSION, output, read, root, run, write};
use release::Release;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use target::Target;

/// Prefix that the tarballs are made for. All but man pages finds its files from where it is.
const PREFIX: &str = "usr/local";

/// Makes the release in a folder, for the targets that are named, or for this machine's.
pub fn dist(folder: Option<PathBuf>, targets: &[String]) -> Outcome {
    let built = target::build_folder();
    let folder = folder.unwrap_or_else(|| built.join("dist"));
    let folder = std::path::absolute(&folder).map_err(|error| format!("--out: {}: {error}", folder.display()))?;
    let targets = match targets {
        [] => vec![Target::of_this_machine()?],
        named => named.iter().map(|triple| Target::named(triple)).collect::<Outcome<_>>()?,
    };
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let release = Release { folder, stage: built.join("dist-stage"), epoch: epoch()? };
    archive::sources(&release)?;
    for target in &targets {
        binaries(&release, target)?;
    }
    sums(&release.folder)
}

/// The date of the release: `SOURCE_DATE_EPOCH`, or that of the commit.
fn epoch() -> Outcome<String> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given
            .parse()
            .map(|seconds: u64| seconds.to_string())
            .map_err(|_| format!("SOURCE_DATE_EPOCH: expected seconds since 1970, found {given}"));
    }
    let date = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()));
    date.map(|date| date.trim().to_owned())
        .map_err(|error| format!("the date of the release: expected a checkout or SOURCE_DATE_EPOCH, found {error}"))
}

/// The files for a target.
fn binaries(release: &Release, target: &Target) -> Outcome {
    let archive = target.build(release, "dtc-mpi", "libdtc_mpi.a")?;
    let command = target.build(release, "dtc-cli", "dtc")?;
    let yaksa = target.build(release, "dtc-yaksa", "libyaksa.so")?;
    let installed = |stage: &Path, prefix: &str, more: &[&str]| -> Outcome {
        let mut install = target.xtask(release)?;
        install.args(["install", "--prefix", &format!("/{prefix}")]).args(more).arg("--archive").arg(&archive);
        install.arg("--command").arg(&command).args(target.runner());
        run(install.env("DESTDIR", stage))
    };

    let stage = release.empty(&format!("tarball-{}", target.processor))?;
    installed(&stage, PREFIX, &[])?;
    let mut install = target.xtask(release)?;
    install.args(["install-yaksa", "--prefix", &format!("/{PREFIX}"), "--library"]).arg(&yaksa);
    run(install.env("DESTDIR", &stage))?;
    archive::tarball(release, &stage.join(PREFIX), &format!("dtc-{VERSION}-{}", target.multiarch))?;

    let stage = release.empty(&format!("debian-{}", target.processor))?;
    let libraries = format!("lib/{}", target.multiarch);
    installed(&stage, "usr", &["--libdir", &libraries, "--program-name", debian::COMMAND])?;
    debian::packages(release, target, &stage)?;
    target.wheel(release)
}

/// Writes `SHA256SUMS`, in the order of the names.
fn sums(folder: &Path) -> Outcome {
    let place = folder.join("SHA256SUMS");
    let mut names: Vec<OsString> = fs::read_dir(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| name != "SHA256SUMS")
        .collect();
    names.sort();
    write(&place, &output(Command::new("sha256sum").args(names).current_dir(folder))?)?;
    print!("{}", read(&place)?);
    Ok(())
}
