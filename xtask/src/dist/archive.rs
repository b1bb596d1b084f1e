//! Tarballs that depend on nothing but what is in them.

use super::release::Release;
use crate::steps::{Outcome, VERSION, root, run};
use std::path::Path;

/// Writes a tarball of a folder, in which the folder has this name.
pub(super) fn tarball(release: &Release, folder: &Path, name: &str) -> Outcome {
    let mut tar = release.dated("tar");
    tar.args(["--create", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u+rwX,go+rX,go-w", "--use-compress-program=gzip -9n"]);
    // Links lead to files beside them, by names that stay.
    tar.arg(format!("--mtime=@{}", release.epoch)).arg(format!("--transform=flags=r;s,^\\.,{name},"));
    run(tar.arg("--file").arg(release.folder.join(format!("{name}.tar.gz"))).arg("--directory").arg(folder).arg("."))
}

/// Writes the sources of the commit, which packagers build from.
pub(super) fn sources(release: &Release) -> Outcome {
    let name = format!("dtc-{VERSION}");
    let mut git = release.dated("git");
    git.args(["-c", "tar.tar.gz.command=gzip -9n", "archive", "--format=tar.gz", &format!("--prefix={name}/")]);
    run(git.arg("--output").arg(release.folder.join(format!("{name}.tar.gz"))).arg("HEAD").current_dir(root()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    #[test]
    fn a_tarball_depends_on_what_is_in_it_alone() {
        let work = std::env::temp_dir().join(format!("xtask-tarball-{}", std::process::id()));
        let made = |at: &str, mode: &str| -> (PathBuf, Vec<u8>) {
            let (folder, from) = (work.join(at), work.join(at).join("from"));
            fs::create_dir_all(from.join("lib")).unwrap();
            fs::write(from.join("lib/x.so.0"), at.len().to_string()).unwrap();
            crate::steps::point(&from.join("lib/x.so"), "x.so.0").unwrap();
            run(Command::new("chmod").arg(mode).arg(from.join("lib/x.so.0"))).unwrap();
            let release = Release { folder: folder.clone(), stage: folder.clone(), epoch: "86400".to_owned() };
            tarball(&release, &from, "x-1").unwrap();
            let file = folder.join("x-1.tar.gz");
            (file.clone(), fs::read(file).unwrap())
        };
        let ((file, one), (_, other)) = (made("one", "664"), made("two", "644"));
        let listed = crate::steps::output(Command::new("tar").args(["--utc", "-tvzf"]).arg(file)).unwrap();
        fs::remove_dir_all(&work).unwrap();
        assert_eq!(one, other);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let listed: Vec<String> = listed.lines().map(words).collect();
        assert!(listed.contains(&"lrwxr-xr-x 0/0 0 1970-01-02 00:00 x-1/lib/x.so -> x.so.0".to_owned()), "{listed:?}");
        assert!(listed.contains(&"-rw-r--r-- 0/0 1 1970-01-02 00:00 x-1/lib/x.so.0".to_owned()), "{listed:?}");
    }
}
