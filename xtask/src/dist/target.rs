//! The targets of a release, and how cargo and the tools of the system build for them.

use super::release::Release;
use crate::steps::{Outcome, root, run};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a release is built for.
pub(super) struct Target {
    /// What cargo calls it.
    triple: &'static str,
    /// Its processors.
    pub(super) processor: &'static str,
    /// What Debian calls its folders, and its compilers where they are cross compilers.
    pub(super) multiarch: &'static str,
    /// What Debian's packages call it.
    pub(super) debian: &'static str,
}

const TARGETS: [Target; 2] = [
    Target { triple: "x86_64-unknown-linux-gnu", processor: "x86_64", multiarch: "x86_64-linux-gnu", debian: "amd64" },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        processor: "aarch64",
        multiarch: "aarch64-linux-gnu",
        debian: "arm64",
    },
];

/// Tools of the system that installations use, and the variables that name others.
const TOOLS: [(&str, &str); 5] = [("CC", "gcc"), ("LD", "ld"), ("AR", "ar"), ("NM", "nm"), ("OBJCOPY", "objcopy")];

/// Where cargo builds.
pub(super) fn build_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target))
}

impl Target {
    pub(super) fn named(triple: &str) -> Outcome<&'static Target> {
        let found = TARGETS.iter().find(|target| target.triple == triple);
        let known = TARGETS.map(|target| target.triple).join(" or ");
        found.ok_or_else(|| format!("--target: expected {known}, found {triple}"))
    }

    pub(super) fn of_this_machine() -> Outcome<&'static Target> {
        Target::named(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
    }

    fn is_foreign(&self) -> bool {
        self.processor != std::env::consts::ARCH
    }

    /// A command that builds for the target. The folders of this machine are not named in what it builds.
    fn builder(&self, release: &Release, program: impl Into<OsString>) -> Command {
        let mut command = release.dated(program);
        let mut flags = std::env::var("RUSTFLAGS").unwrap_or_default();
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
        for (folder, name) in home.iter().map(|home| (home.as_path(), "/cargo")).chain([(root(), "/dtc")]) {
            flags += &format!(" --remap-path-prefix={}={name}", folder.display());
        }
        command.env("RUSTFLAGS", flags.trim_start());
        let linker = format!("CARGO_TARGET_{}_LINKER", self.triple.to_uppercase().replace('-', "_"));
        if self.is_foreign() && std::env::var_os(&linker).is_none() {
            command.env(linker, format!("{}-gcc", self.multiarch));
        }
        command
    }

    /// Builds a package in the release profile; where the file is that it is built for.
    pub(super) fn build(&self, release: &Release, package: &str, file: &str) -> Outcome<PathBuf> {
        let mut cargo = self.builder(release, std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        run(cargo.args(["build", "--release", "--locked", "--package", package, "--target", self.triple]))?;
        Ok(build_folder().join(self.triple).join("release").join(file))
    }

    /// This program, with the tools for the target.
    pub(super) fn xtask(&self, release: &Release) -> Outcome<Command> {
        let program = std::env::current_exe().map_err(|error| format!("xtask: {error}"))?;
        let mut command = release.dated(program);
        if self.is_foreign() {
            command.envs(TOOLS.map(|(variable, tool)| (variable, format!("{}-{tool}", self.multiarch))));
        }
        Ok(command)
    }

    /// Arguments of an installation that say how programs of the target are run.
    pub(super) fn runner(&self) -> Vec<String> {
        let emulator = format!("qemu-{} -L /usr/{}", self.processor, self.multiarch);
        if self.is_foreign() { vec!["--runner".to_owned(), emulator] } else { Vec::new() }
    }

    /// Builds the wheel of Python, if maturin is installed.
    pub(super) fn wheel(&self, release: &Release) -> Outcome {
        let maturin = std::env::var_os("MATURIN").unwrap_or_else(|| "maturin".into());
        if Command::new(&maturin).arg("--version").output().is_err() {
            println!("skipped: the wheel for {}: needs maturin, or MATURIN", self.processor);
            return Ok(());
        }
        let mut build = self.builder(release, maturin);
        build.args(["build", "--quiet", "--release", "--locked", "--target", self.triple]);
        run(build.args(["--manifest-path", "interfaces/python/Cargo.toml", "--out"]).arg(&release.folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_by_name() {
        assert_eq!(Target::named("aarch64-unknown-linux-gnu").map(|target| target.debian), Ok("arm64"));
        let error = Target::named("riscv64gc-unknown-linux-gnu").map(|target| target.debian).unwrap_err();
        assert!(error.ends_with("aarch64-unknown-linux-gnu, found riscv64gc-unknown-linux-gnu"), "{error}");
    }

    #[test]
    fn programs_of_other_processors_have_a_runner() {
        let foreign: Vec<_> = TARGETS.iter().filter(|target| !target.runner().is_empty()).collect();
        assert!(foreign.iter().all(|target| target.processor != std::env::consts::ARCH));
    }
}
