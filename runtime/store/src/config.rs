//! Settings of a store: its directories and their capacity.

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
    pub(super) bundles: Vec<PathBuf>,
    pub(super) sites: Vec<PathBuf>,
    pub(super) directory: Option<PathBuf>,
    pub(super) capacity: u64,
    pub(super) hook: Hook,
    /// Set by tests, to imitate a network file system.
    pub(super) no_locks: bool,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { bundles, sites, directory, capacity, .. } = self;
        let mut debug = f.debug_struct("Config");
        debug
            .field("bundles", bundles)
            .field("sites", sites)
            .field("directory", directory)
            .field("capacity", capacity)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Settings without a directory: the store finds and keeps nothing.
    ///
    /// ```
    /// use dtc_store::{Config, Key, Store};
    /// let store = Store::open(Config::none());
    /// assert!(!store.put(&Key::of(&[b"source"]), b"code"));
    /// ```
    pub fn none() -> Config {
        let (bundles, sites) = (Vec::new(), Vec::new());
        Config { bundles, sites, directory: None, capacity: 256 << 20, hook: Arc::new(|_| {}), no_locks: false }
    }

    /// Settings from the environment. `DTC_CACHE_SITE` lists read-only directories, separated by colons.
    /// `DTC_CACHE_DIR` is the directory that is written; `off` disables the store. Its default is a directory for this
    /// user alone in the system's directory for temporary files. `DTC_BUNDLES` lists bundles, separated by colons. A program with
    /// more rights than its user ignores these variables.
    ///
    /// ```no_run
    /// use dtc_store::{Config, Store};
    /// let store = Store::open(Config::from_environment());
    /// println!("{} entries", store.list().len());
    /// ```
    pub fn from_environment() -> Config {
        let config =
            Config::from_variables(environment::variable(c"DTC_CACHE_SITE"), environment::variable(c"DTC_CACHE_DIR"));
        let bundles = environment::variable(c"DTC_BUNDLES");
        let bundles = bundles.iter().flat_map(env::split_paths).filter(|path| !path.as_os_str().is_empty());
        Config { bundles: bundles.collect(), ..config }
    }

    /// The same settings without directories: the store finds and keeps nothing, and bundles stay.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// let store = Store::open(Config::from_environment().without_directories());
    /// assert!(store.directories().is_empty());
    /// ```
    pub fn without_directories(self) -> Config {
        Config { sites: Vec::new(), directory: None, ..self }
    }

    /// Adds a bundle, which is searched after those added before.
    ///
    /// ```
    /// use dtc_store::{Bundles, Config};
    /// let config = Config::none().bundle("/nonexistent").on_finding(|finding| eprintln!("dtc: {finding}"));
    /// assert!(Bundles::open(&config, "0.1.0").is_empty());
    /// ```
    pub fn bundle(mut self, path: impl Into<PathBuf>) -> Config {
        self.bundles.push(path.into());
        self
    }

    /// The bundles, in the order of search.
    ///
    /// ```
    /// use dtc_store::Config;
    /// assert_eq!(Config::none().bundle("/opt/site/halo").bundles()[0].as_os_str(), "/opt/site/halo");
    /// ```
    pub fn bundles(&self) -> &[PathBuf] {
        &self.bundles
    }

    pub(super) fn from_variables(site: Option<OsString>, directory: Option<OsString>) -> Config {
        // An empty variable counts as unset.
        let directory = directory.filter(|directory| !directory.is_empty());
        if directory.as_ref().is_some_and(|directory| directory.eq_ignore_ascii_case("off")) {
            return Config::none();
        }
        let mut config = Config::none();
        let sites = site.iter().flat_map(env::split_paths);
        config.sites = sites.filter(|path| !path.as_os_str().is_empty()).collect();
        config.directory = Some(directory.map_or_else(default_directory, PathBuf::from));
        config
    }

    /// Adds a read-only directory, which is searched after those added before.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// let store = Store::open(Config::none().site("/opt/site/dtc"));
    /// assert!(!store.directories()[0].writable);
    /// ```
    pub fn site(mut self, path: impl Into<PathBuf>) -> Config {
        self.sites.push(path.into());
        self
    }

    /// Sets the directory that is written. The store creates it for this user alone if it is missing.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// let folder = tempfile::tempdir()?;
    /// let store = Store::open(Config::none().directory(folder.path()));
    /// assert!(store.directories()[0].writable);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn directory(self, path: impl Into<PathBuf>) -> Config {
        Config { directory: Some(path.into()), ..self }
    }

    /// Sets the bytes that the written directory may hold; 256 MiB by default.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// let store = Store::open(Config::none().capacity(16 << 20));
    /// assert_eq!(store.capacity(), 16 << 20);
    /// ```
    pub fn capacity(self, bytes: u64) -> Config {
        Config { capacity: bytes, ..self }
    }

    /// Sets the receiver of warnings, which gets each kind of cause once; by default they are dropped. Any thread that
    /// uses the store may call it.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// let config = Config::none().directory("/dev/null").on_finding(|finding| eprintln!("dtc: {finding}"));
    /// assert!(Store::open(config).directories()[0].finding.is_some());
    /// ```
    pub fn on_finding(self, hook: impl Fn(&Finding) + Send + Sync + 'static) -> Config {
        Config { hook: Arc::new(hook), ..self }
    }
}

/// The default is in `/var/tmp`, which outlives a restart; `TMPDIR` may not outlive a job.
fn default_directory() -> PathBuf {
    let lasting = Path::new("/var/tmp");
    let temporary = || environment::path(c"TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    let parent = if lasting.is_dir() { lasting.to_owned() } else { temporary() };
    parent.join(format!("dtc-{}", trust::user()))
}
