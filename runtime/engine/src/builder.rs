//! What an engine is made with, and the defaults.

use crate::cache::Caps;
use crate::engine::{Engine, Guard, Settings};
use crate::policy::Policy;
use dtc_cuda::StagingAllocator;
use dtc_store::Config;
use std::sync::Arc;

/// Settings of an [`Engine`].
///
/// ```
/// use dtc_runtime::{Engine, Policy};
/// let engine = Engine::builder().policy(Policy::Eager).cache_caps(100, 1 << 20).build();
/// assert_eq!(engine.cached_types(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct EngineBuilder {
    settings: Settings,
}

impl EngineBuilder {
    /// Sets when machine code is made. Default: [`Policy::Background`].
    ///
    /// ```
    /// use dtc_runtime::{Engine, Policy};
    /// let engine = Engine::builder().policy(Policy::Off).build();
    /// assert_eq!(engine.policy(), Policy::Off);
    /// ```
    pub fn policy(mut self, policy: Policy) -> EngineBuilder {
        self.settings.policy = policy;
        self
    }

    /// Whether the engine may start a thread. Without one, [`Engine::compile_pending`] does the background work.
    ///
    /// ```
    /// use dtc_runtime::Engine;
    /// let engine = Engine::builder().background_thread(false).build();
    /// assert_eq!(engine.compile_pending(std::time::Duration::from_millis(1)), 0);
    /// ```
    pub fn background_thread(mut self, allowed: bool) -> EngineBuilder {
        self.settings.background_thread = allowed;
        self
    }

    /// Sets how many unused types the cache keeps, and how many bytes of them. Default: 1,024 types and 64 MiB.
    ///
    /// ```
    /// use dtc_runtime::datatype::text;
    /// use dtc_runtime::{Engine, Policy};
    /// let engine = Engine::builder().policy(Policy::Off).cache_caps(16, 1 << 20).build();
    /// for blocks in 2..1000 {
    ///     let datatype = text::parse(&format!("vector {blocks} 1 2 double")).unwrap();
    ///     engine.commit(&datatype).type_hash();
    /// }
    /// assert!((1..50).contains(&engine.cached_types()));
    /// ```
    pub fn cache_caps(mut self, types: usize, bytes: usize) -> EngineBuilder {
        self.settings.caps = Caps { types, bytes };
        self
    }

    /// Sets where compiled GPU code is kept. Default: [`Config::from_environment`].
    ///
    /// ```
    /// use dtc_runtime::{Engine, store::Config};
    /// /// An engine that neither reads nor writes files: each process compiles its own kernels.
    /// fn without_files() -> Engine {
    ///     Engine::builder().store(Config::none()).build()
    /// }
    /// assert_eq!(without_files().cached_types(), 0);
    /// ```
    pub fn store(mut self, config: Config) -> EngineBuilder {
        self.settings.store = Some(config);
        self
    }

    /// Sets the allocator of the pinned buffers that transfers go through. Default: CUDA. An engine with an allocator of its own
    /// waits for compilations when its last clone is dropped, so that no buffer is freed later.
    ///
    /// See [`StagingAllocator`] for an example.
    pub fn staging(mut self, allocator: Arc<dyn StagingAllocator>) -> EngineBuilder {
        self.settings.staging = Some(allocator);
        self
    }

    /// Sets the function that decides whether a pack or an unpack may make the canonical form of its type: for hosts that must
    /// not run out of memory. Its arguments are the number of nodes and list entries of the description, and the work. It returns
    /// `false` if it has not done the work; the call then moves the type as it was described. Default: the work is done at once.
    ///
    /// ```
    /// use dtc_runtime::datatype::text;
    /// use dtc_runtime::{Engine, Range};
    /// let engine = Engine::builder().guard(|_entries, _work| false).build();
    /// let committed = engine.commit(&text::parse("vector 1000 1 2 double").unwrap());
    /// for _ in 0..100 {
    ///     assert_eq!(committed.pack(&[1.0; 1999], Range::elements(1), &mut [0.0; 1000]), Ok(8000));
    /// }
    /// assert_eq!(engine.cached_types(), 0);
    /// ```
    pub fn guard(mut self, guard: Guard) -> EngineBuilder {
        self.settings.guard = guard;
        self
    }

    /// The engine with these settings.
    ///
    /// See [`EngineBuilder`] for an example.
    pub fn build(self) -> Engine {
        Engine::of(self.settings)
    }
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::new()
    }
}

impl Engine {
    /// An engine with the default settings.
    ///
    /// ```
    /// assert_eq!(dtc_runtime::Engine::new().cached_types(), 0);
    /// ```
    pub fn new() -> Engine {
        Engine::builder().build()
    }

    /// The default settings, to be changed before an engine is built.
    ///
    /// See [`EngineBuilder`] for an example.
    pub fn builder() -> EngineBuilder {
        let caps = Caps { types: 1024, bytes: 64 << 20 };
        let guard = |_, work: &mut dyn FnMut()| {
            work();
            true
        };
        let policy = Policy::default();
        EngineBuilder {
            settings: Settings { policy, background_thread: true, caps, store: None, staging: None, guard },
        }
    }
}
