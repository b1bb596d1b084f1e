//! Folders for what a command makes on its way. They are removed when the command ends, by signals that end it, and by the next
//! run of their kind after one that was killed.

use super::signals::FolderRemoval;
use super::unfinished::is_the_same;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Most folders of one kind at a time: names that are tried before the folder for temporary files counts as full.
const MOST_NAMES: u32 = 1000;

/// Names behind the one that was free under which a run looks for what others left.
const SWEPT: u32 = 8;

/// A folder that is locked while its process lives. Dropping removes it with all that it holds.
pub struct Scratch {
    path: PathBuf,
    // The system releases the lock of a process that dies.
    _lock: File,
    _removal: FolderRemoval,
}

impl Scratch {
    /// Makes a folder for this user alone in the folder for temporary files. `kind` says whose it is.
    ///
    /// # Errors
    ///
    /// There is no such folder, or no room in it.
    pub fn temporary(kind: &str) -> io::Result<Scratch> {
        Scratch::within(&std::env::temp_dir(), &format!("dtc-{kind}-{}", user()))
    }

    /// Makes a folder for this user alone, whose name begins with `stem`.
    ///
    /// # Errors
    ///
    /// The folder does not exist, or may not be written.
    pub fn within(folder: &Path, stem: &str) -> io::Result<Scratch> {
        let folder = std::path::absolute(folder)?;
        let name = |number: u32| folder.join(format!("{stem}-{number}.part"));
        for number in 0..MOST_NAMES {
            let path = name(number);
            remove_abandoned(&path);
            match FolderRemoval::of_made(&path, || make(&path)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
                Ok((lock, removal)) => {
                    (number + 1..=number + SWEPT).for_each(|other| remove_abandoned(&name(other)));
                    return Ok(Scratch { path, _lock: lock, _removal: removal });
                }
            }
        }
        Err(io::Error::other(format!("{MOST_NAMES} folders of its name")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes a folder and locks it; one that another run took for abandoned in between exists already.
fn make(path: &Path) -> io::Result<File> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    let lock = File::open(path).map_err(|_| io::ErrorKind::AlreadyExists)?;
    let taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
    if !taken && is_the_same(&lock, path) { Ok(lock) } else { Err(io::ErrorKind::AlreadyExists.into()) }
}

/// Removes a folder of this user whose process has ended. Where folders cannot be locked, none is taken for abandoned.
fn remove_abandoned(path: &Path) {
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata)) {
        return;
    }
    let Ok(folder) = File::open(path) else { return };
    if folder.try_lock().is_ok() && is_the_same(&folder, path) {
        let _ = fs::remove_dir_all(path);
    }
}

#[cfg(target_os = "linux")]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(target_os = "linux"))]
fn user() -> u32 {
    0
}

#[cfg(target_os = "linux")]
fn is_own(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == user()
}

#[cfg(not(target_os = "linux"))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    const FOLDER: &str = "DTC_TEST_SCRATCH";

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn folders_differ_and_vanish() {
        let folder = tempfile::tempdir().unwrap();
        let make = || Scratch::within(folder.path(), "dtc-test").unwrap();
        let (one, other) = (make(), make());
        fs::write(one.path().join("file"), "text").unwrap();
        fs::create_dir(other.path().join("folder")).unwrap();
        assert_eq!(names(folder.path()), ["dtc-test-0.part", "dtc-test-1.part"]);
        drop((one, other));
        assert_eq!(names(folder.path()), [""; 0]);
    }

    /// Runs in a process of its own.
    #[test]
    fn waits_for_its_end() {
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        let scratch = Scratch::within(Path::new(&folder), "dtc-test").unwrap();
        fs::create_dir(scratch.path().join("folder")).unwrap();
        fs::write(scratch.path().join("folder/file"), "text").unwrap();
        println!("\nmade");
        std::thread::sleep(std::time::Duration::from_secs(60));
    }

    fn waiting(folder: &Path) -> Child {
        // Jobs in the background of a script ignore INT, and programs under nohup HUP.
        let mut child = Command::new("env")
            .arg("--default-signal")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "output::scratch::tests::waits_for_its_end"])
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("made")));
        child
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn signals_remove_folders_and_the_next_run_what_was_killed() {
        use std::os::unix::process::ExitStatusExt;
        let folder = tempfile::tempdir().unwrap();
        for (signal, number) in [("HUP", libc::SIGHUP), ("INT", libc::SIGINT), ("TERM", libc::SIGTERM)] {
            let mut child = waiting(folder.path());
            assert_eq!(names(folder.path()).len(), 1);
            let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
            assert!(kill.unwrap().success());
            assert_eq!(child.wait().unwrap().signal(), Some(number), "{signal}");
            assert_eq!(names(folder.path()), [""; 0], "{signal}");
        }
        let mut children = [waiting(folder.path()), waiting(folder.path())];
        children.iter_mut().for_each(|child| child.kill().unwrap());
        assert!(children.iter_mut().all(|child| !child.wait().unwrap().success()));
        assert_eq!(names(folder.path()).len(), 2);
        let next = Scratch::within(folder.path(), "dtc-test").unwrap();
        assert_eq!(fs::read_dir(next.path()).unwrap().count(), 0);
        assert_eq!(names(folder.path()), ["dtc-test-0.part"]);
    }
}
