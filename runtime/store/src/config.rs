//! Where a store lies and how large it may grow.

use dtc_host::environment;
use dtc_host::{Finding, trust};
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Receives the warnings of a store.
pub(super) type Hook = Arc<dyn Fn(&Finding) + Send + Sync>;

/// Settings of a [`Store`](super::Store).
///
/// ```
/// use dtc_store::{Config, Store};
/// let store = Store::open(Config::none().on_finding(|finding| eprintln!("{finding}")));
/// assert!(store.list().is_empty());
/// ```
#[derive(Clone)]
pub struct Config {
    pub(super) sites: Vec<PathBuf>,
    pub(super) directory: Option<PathBuf>,
    pub(super) capacity: u64,
    pub(super) hook: Hook,
    /// Set by tests, which stand in for a network file system.
    pub(super) no_locks: bool,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { sites, directory, capacity, .. } = self;
        let mut debug = f.debug_struct("Config");
        debug.field("sites", sites).field("directory", directory).field("capacity", capacity).finish_non_exhaustive()
    }
}

impl Config {
    /// No directory at all: a store that finds and keeps nothing.
    ///
    /// ```
    /// use dtc_store::{Config, Key, Store};
    /// let store = Store::open(Config::none());
    /// assert!(!store.put(&Key::of(&[b"source"]), b"code"));
    /// ```
    pub fn none() -> Config {
        Config { sites: Vec::new(), directory: None, capacity: 256 << 20, hook: Arc::new(|_| {}), no_locks: false }
    }

    /// What the environment says; nothing in a program with more rights than its user. `DTC_CACHE_SITE` lists directories that are only read, separated by colons;
    /// `DTC_CACHE_DIR` is the one that is written, and `off` stands for no store at all. Where it says nothing, a
    /// directory for this user alone under the system's directory for temporary files.
    ///
    /// ```no_run
    /// use dtc_store::{Config, Store};
    /// let store = Store::open(Config::from_environment());
    /// # drop(store);
    /// ```
    pub fn from_environment() -> Config {
        Config::from_variables(environment::variable(c"DTC_CACHE_SITE"), environment::variable(c"DTC_CACHE_DIR"))
    }

    pub(super) fn from_variables(site: Option<OsString>, directory: Option<OsString>) -> Config {
        // An empty variable is the shell's way to unset one.
        let directory = directory.filter(|directory| !directory.is_empty());
        if directory.as_ref().is_some_and(|directory| directory == "off") {
            return Config::none();
        }
        let mut config = Config::none();
        let sites = site.iter().flat_map(env::split_paths);
        config.sites = sites.filter(|path| !path.as_os_str().is_empty()).collect();
        config.directory = Some(directory.map_or_else(default_directory, PathBuf::from));
        config
    }

    /// Adds a directory that is only read, and looked into after those before it.
    ///
    /// ```
    /// use dtc_store::Config;
    /// let config = Config::none().site("/opt/site/dtc");
    /// # drop(config);
    /// ```
    pub fn site(mut self, path: impl Into<PathBuf>) -> Config {
        self.sites.push(path.into());
        self
    }

    /// The directory that is written; made for this user alone if it is missing.
    ///
    /// ```
    /// use dtc_store::Config;
    /// let config = Config::none().directory("/scratch/me/dtc");
    /// # drop(config);
    /// ```
    pub fn directory(self, path: impl Into<PathBuf>) -> Config {
        Config { directory: Some(path.into()), ..self }
    }

    /// How many bytes the directory that is written may hold. 256 MiB unless said otherwise.
    ///
    /// ```
    /// use dtc_store::Config;
    /// let config = Config::from_environment().capacity(16 << 20);
    /// # drop(config);
    /// ```
    pub fn capacity(self, bytes: u64) -> Config {
        Config { capacity: bytes, ..self }
    }

    /// Receives warnings, each kind of cause once. They are dropped unless said otherwise. It may be called by any
    /// thread that uses the store.
    ///
    /// ```
    /// use dtc_store::Config;
    /// let config = Config::from_environment().on_finding(|finding| eprintln!("dtc: {finding}"));
    /// # drop(config);
    /// ```
    pub fn on_finding(self, hook: impl Fn(&Finding) + Send + Sync + 'static) -> Config {
        Config { hook: Arc::new(hook), ..self }
    }
}

/// `/var/tmp` outlives a restart; `TMPDIR` may not outlive a job.
fn default_directory() -> PathBuf {
    let lasting = Path::new("/var/tmp");
    let temporary = || environment::path(c"TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    let parent = if lasting.is_dir() { lasting.to_owned() } else { temporary() };
    parent.join(format!("dtc-{}", trust::user()))
}
