//! Removing files and folders when a signal ends the process.
//!
//! A handler may remove a file, and not what a folder holds: that is the work of a thread, which the handler tells.
#![cfg_attr(unix, expect(unsafe_code, reason = "signal handlers are installed by calls of the C library"))]

use std::io;
use std::path::Path;

/// The file is removed by signals while this lives. One at a time: a second one takes the first one's place.
pub struct Removal(());

#[cfg(unix)]
mod handler {
    use std::ffi::{CString, c_char, c_int};
    use std::ptr::null_mut;
    use std::sync::Once;
    use std::sync::atomic::{AtomicPtr, Ordering};

    /// What ends a process from outside, and the ends that its own files bring about: `SIGBUS` comes when an input that
    /// is mapped is cut short, `SIGXFSZ` when an output becomes too large.
    const SIGNALS: [c_int; 7] =
        [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGBUS, libc::SIGXCPU, libc::SIGXFSZ];

    /// The name to remove, or null. Names are never freed, as a handler may be reading one: a command has one or two.
    static NAME: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

    pub fn set(name: Option<CString>) {
        NAME.store(name.map_or(null_mut(), CString::into_raw), Ordering::SeqCst);
        install_all();
    }

    pub fn install_all() {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(|| SIGNALS.into_iter().for_each(install));
    }

    fn install(signal: c_int) {
        // SAFETY: a `sigaction` of zeros is a value, and both are alive during the calls. `remove` calls only functions that
        // POSIX lists as safe in handlers. A signal that is ignored, as by nohup, stays so.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut old) != 0 || old.sa_sigaction == libc::SIG_IGN {
                return;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = remove as extern "C" fn(c_int) as usize;
            new.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const new, null_mut());
        }
    }

    extern "C" fn remove(signal: c_int) {
        let name = NAME.swap(null_mut(), Ordering::SeqCst);
        // SAFETY: the name is null or a string that is never freed; `unlink` may be called in handlers.
        unsafe {
            if !name.is_null() {
                libc::unlink(name);
            }
        }
        // Signals of its own files end the process at once: the write that brought them about would go on.
        let outside = ![libc::SIGBUS, libc::SIGXFSZ].contains(&signal);
        if !(outside && super::folders::tell(signal)) {
            // SAFETY: `raise` may be called in handlers. The handler was reset when it was entered, so the signal ends the
            // process as soon as this returns.
            unsafe { libc::raise(signal) };
        }
    }
}

impl Removal {
    /// Has signals that end the process remove this file first.
    #[cfg(unix)]
    pub fn on_signals(path: &Path) -> Removal {
        use std::os::unix::ffi::OsStrExt;
        // Names of files have no zero in them.
        handler::set(std::ffi::CString::new(path.as_os_str().as_bytes()).ok());
        Removal(())
    }

    /// Does nothing on systems without signals.
    #[cfg(not(unix))]
    pub fn on_signals(_: &Path) -> Removal {
        Removal(())
    }
}

/// The folder is removed by signals while this lives, with all that it holds.
pub struct FolderRemoval {
    #[cfg(unix)]
    path: std::path::PathBuf,
}

#[cfg(unix)]
mod folders {
    use std::ffi::c_int;
    use std::io::Read;
    use std::os::fd::IntoRawFd;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::sync::{Mutex, MutexGuard, Once, PoisonError};
    use std::time::Duration;

    /// Tries to remove a folder that compilers, which end by the same signal, still write into; and the time between two.
    const TRIES: u32 = 100;
    const PAUSE: Duration = Duration::from_millis(10);

    /// Where a handler tells the thread that removes folders of a signal; -1 while there is none.
    static TOLD: AtomicI32 = AtomicI32::new(-1);

    /// The folders to remove.
    pub fn list() -> MutexGuard<'static, Vec<PathBuf>> {
        static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread that removes folders.
    pub fn watch() {
        static START: Once = Once::new();
        START.call_once(|| {
            let Ok((mut signals, told)) = std::io::pipe() else { return };
            let wait = move || {
                let mut signal = [0];
                if signals.read_exact(&mut signal).is_ok() {
                    end_by(signal[0].into());
                }
            };
            if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_ok() {
                TOLD.store(told.into_raw_fd(), Ordering::SeqCst);
            }
        });
    }

    /// Tells the thread of a signal, from a handler; whether there is one.
    pub fn tell(signal: c_int) -> bool {
        let (told, signal) = (TOLD.load(Ordering::SeqCst), signal as u8);
        // SAFETY: a byte that is alive. `write` may be called in handlers; the descriptor is never closed.
        told >= 0 && unsafe { libc::write(told, (&raw const signal).cast(), 1) } == 1
    }

    /// Removes the folders, and lets a signal end the process.
    fn end_by(signal: c_int) {
        // Held until the end: no other folder is made.
        let folders = list();
        for folder in folders.iter() {
            for _ in 0..TRIES {
                if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
        // SAFETY: the handler was reset when it was entered, so the signal ends the process.
        unsafe { libc::raise(signal) };
    }
}

impl FolderRemoval {
    /// Makes a folder, which signals that end the process remove first from then on: one that comes while it is made waits.
    #[cfg(unix)]
    pub fn of_made<T>(path: &Path, make: impl FnOnce() -> io::Result<T>) -> io::Result<(T, FolderRemoval)> {
        handler::install_all();
        folders::watch();
        let mut folders = folders::list();
        let made = make()?;
        folders.push(path.to_owned());
        Ok((made, FolderRemoval { path: path.to_owned() }))
    }

    /// Makes a folder alone on systems without signals.
    #[cfg(not(unix))]
    pub fn of_made<T>(_: &Path, make: impl FnOnce() -> io::Result<T>) -> io::Result<(T, FolderRemoval)> {
        Ok((make()?, FolderRemoval {}))
    }
}

#[cfg(unix)]
impl Drop for FolderRemoval {
    fn drop(&mut self) {
        folders::list().retain(|path| *path != self.path);
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        #[cfg(unix)]
        handler::set(None);
    }
}
