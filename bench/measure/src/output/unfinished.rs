//! A regular file on its way: it has no name until it is whole, so that a process that is killed leaves nothing.
//!
//! Where the system or file system has no nameless files, the file has a temporary name in the folder of its target. Signals
//! remove it ([`super::signals`]), and so does the next run for the same target: the name follows from the target's, and a
//! file without a lock is abandoned. No crate does this: files of `tempfile` that get a name have one from the start, and a SIGKILL
//! leaves them.

use super::signals::Removal;
use std::fs::{File, Permissions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// Runs for one target at a time; each has a temporary name of its own.
const MOST_NAMES: u32 = 1000;

/// A file that takes its target's place when it is finished, and vanishes when it is dropped.
pub struct Unfinished {
    file: File,
    target: PathBuf,
    temporary: Option<Temporary>,
}

/// The name of a file that has one before it is whole. Dropping removes it.
struct Temporary {
    path: PathBuf,
    renamed: bool,
    _removal: Removal,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // A file that cannot be removed is left behind; the failure that led here is what counts.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Unfinished {
    /// Prepares a file that will be `target`, with these permissions or those that new files have.
    pub fn create(target: &Path, permissions: Option<Permissions>) -> io::Result<Unfinished> {
        let unfinished = match nameless(target) {
            Some(file) => Unfinished { file, target: target.to_owned(), temporary: None },
            None => Unfinished::named(target)?,
        };
        if let Some(permissions) = permissions {
            unfinished.file.set_permissions(permissions)?;
        }
        Ok(unfinished)
    }

    fn named(target: &Path) -> io::Result<Unfinished> {
        let create = |path: &Path| File::options().write(true).create_new(true).open(path);
        let (path, file) = under_a_free_name(target, |path| {
            let file = create(path)?;
            // Another run may have taken it for abandoned in between. Where files cannot be locked, none is.
            let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !taken && is_the_same(&file, path) { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) }
        })?;
        let removal = Removal::on_signals(&path);
        let temporary = Temporary { path, renamed: false, _removal: removal };
        Ok(Unfinished { file, target: target.to_owned(), temporary: Some(temporary) })
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Stores what was written and puts the file in its target's place.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.temporary.is_none() {
            match link(&self.file, &self.target) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => return linked,
            }
            // Only a name can replace a name. Locked, so that no other run takes it for abandoned; where files cannot be locked,
            // none is taken for that.
            let _ = self.file.try_lock();
            let (path, ()) = under_a_free_name(&self.target, |path| link(&self.file, path))?;
            let removal = Removal::on_signals(&path);
            self.temporary = Some(Temporary { path, renamed: false, _removal: removal });
        }
        if let Some(temporary) = &mut self.temporary {
            std::fs::rename(&temporary.path, &self.target)?;
            temporary.renamed = true;
        }
        Ok(())
    }
}

/// Makes a file under the first temporary name for a target that no other run holds.
fn under_a_free_name<T>(target: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    let mut hasher = DefaultHasher::new();
    target.file_name().hash(&mut hasher);
    let hash = hasher.finish();
    for number in 0..MOST_NAMES {
        // Short, as the target's own name may be as long as names can be.
        let path = target.with_file_name(format!(".dtc-{hash:016x}-{number}.part"));
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (path, made)),
        }
        if remove_abandoned(&path) {
            match make(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|made| (path, made)),
            }
        }
    }
    Err(io::Error::other(format!("{MOST_NAMES} unfinished files of its name")))
}

/// Removes what a run left that was killed; says whether it was such a file. Its writer holds it locked while it lives.
fn remove_abandoned(path: &Path) -> bool {
    let is_file = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_file(path) {
        return false;
    }
    let Ok(file) = File::open(path) else { return false };
    // A file is removed only under its lock, which is taken first, so the name stays that of this file.
    file.try_lock().is_ok() && is_the_same(&file, path) && std::fs::remove_file(path).is_ok()
}

/// Whether a name is still that of a file or folder that was opened by it.
#[cfg(unix)]
pub fn is_the_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
pub fn is_the_same(_: &File, path: &Path) -> bool {
    path.exists()
}

/// A file without a name in the folder of the target, where there can be one that can be given a name later.
#[cfg(target_os = "linux")]
fn nameless(target: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !Path::new("/proc/self/fd").is_dir() {
        return None;
    }
    let file = open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666)).ok()?;
    Some(file.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// Gives a nameless file a name that is free.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;
    let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_when_they_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let longest = "n".repeat(255);
        for target in ["new", "old", &longest] {
            for create in [|target: &Path| Unfinished::create(target, None), Unfinished::named] {
                let target = folder.path().join(target);
                let before = std::fs::read(&target).ok();
                drop(create(&target).unwrap());
                let mut unfinished = create(&target).unwrap();
                unfinished.file().write_all(b"half").unwrap();
                assert_eq!(std::fs::read(&target).ok(), before);
                unfinished.file().write_all(b" and half").unwrap();
                unfinished.finish().unwrap();
                assert_eq!(std::fs::read(&target).unwrap(), b"half and half");
            }
        }
        assert_eq!(names(folder.path()), ["new", longest.as_str(), "old"]);
    }

    #[test]
    fn abandoned_files_are_removed_and_live_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let (first, second) = (Unfinished::named(&target).unwrap(), Unfinished::named(&target).unwrap());
        let both = names(folder.path());
        assert_eq!(both.len(), 2);
        first.finish().unwrap();
        second.finish().unwrap();
        assert_eq!(names(folder.path()), ["target"]);
        // As a run leaves it that was killed.
        std::fs::write(folder.path().join(&both[0]), "half").unwrap();
        drop(Unfinished::named(&target).unwrap());
        assert_eq!(names(folder.path()), ["target"]);
        std::fs::write(folder.path().join(&both[0]), "half").unwrap();
        Unfinished::create(&target, None).unwrap().finish().unwrap();
        assert_eq!(names(folder.path()), ["target"]);
    }

    const FOLDER: &str = "DTC_TEST_UNFINISHED_IN";

    /// What the next test starts: a file under a temporary name, until a signal comes. Alone, it does nothing.
    #[test]
    fn waits_for_a_signal() {
        let Ok(folder) = std::env::var(FOLDER) else { return };
        let unfinished = Unfinished::named(&Path::new(&folder).join("target")).unwrap();
        println!("written");
        std::thread::sleep(std::time::Duration::from_secs(60));
        drop(unfinished);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn signals_remove_the_temporary_name() {
        use std::os::unix::process::ExitStatusExt;
        for (signal, number) in
            [("HUP", libc::SIGHUP), ("INT", libc::SIGINT), ("TERM", libc::SIGTERM), ("BUS", libc::SIGBUS)]
        {
            let folder = tempfile::tempdir().unwrap();
            // Jobs in the background of a script ignore INT, and programs under nohup HUP.
            let mut child = Command::new("env")
                .arg("--default-signal")
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "--nocapture", "output::unfinished::tests::waits_for_a_signal"])
                .env(FOLDER, folder.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap().ends_with("written")));
            assert_eq!(names(folder.path()).len(), 1);
            let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
            assert!(kill.unwrap().success());
            assert_eq!(child.wait().unwrap().signal(), Some(number), "{signal}");
            assert_eq!(names(folder.path()), [""; 0], "{signal}");
        }
    }
}
