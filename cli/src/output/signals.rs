//! Removing a file when a signal ends the process.
#![cfg_attr(unix, expect(unsafe_code, reason = "signal handlers are installed by calls of the C library"))]

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
        static INSTALL: Once = Once::new();
        NAME.store(name.map_or(null_mut(), CString::into_raw), Ordering::SeqCst);
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
        // SAFETY: the name is null or a string that is never freed; `unlink` and `raise` may be called in handlers. The
        // handler was reset when it was entered, so the signal ends the process as soon as this returns.
        unsafe {
            if !name.is_null() {
                libc::unlink(name);
            }
            libc::raise(signal);
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

impl Drop for Removal {
    fn drop(&mut self) {
        #[cfg(unix)]
        handler::set(None);
    }
}
