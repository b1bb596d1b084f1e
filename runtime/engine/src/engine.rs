//! Engines commit types, and share one cached type among equal ones.
#![expect(
    clippy::disallowed_types,
    reason = "cache, store and GPUs of an engine are used only in the process that made it"
)]

use crate::bundle::{self, BundledType, LoadedBundles};
use crate::cache::{Cache, Caps};
use crate::cached_type::tabled::{TabledType, TabledTypes};
use crate::cached_type::tabled_batch::TabledBatches;
use crate::cached_type::{CachedType, Specialise};
use crate::cpu;
use crate::descriptions::Descriptions;
use crate::device::{CodeSources, DEVICES, Gpu};
use crate::policy::Policy;
use crate::worker::{Job, Queue};
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::{Datatype, TabledDatatype};
use dtc_compiler::layout::{Layout, Point, TypeHash};
use dtc_compiler::plan::Target;
use dtc_cuda::{CudaError, StagingAllocator};
use dtc_host::fork::Process;
use dtc_host::lock::{Lock, Locked};
use dtc_host::thread;
use dtc_store::{Cause, Config, Finding, Store};
use once_cell::race::OnceBox;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Commits datatypes. Cheap to clone; clones share everything.
///
/// # Example
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, Policy};
///
/// let engine = Engine::builder().policy(Policy::Eager).build();
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let pair = types.contiguous(2, int)?;
/// let pair = types.finish(pair)?;
/// let (once, again) = (engine.commit(&pair), engine.commit(&pair));
/// assert_eq!(once.type_hash(), again.type_hash());
/// assert_eq!(engine.cached_types(), 1);
/// # Ok::<(), dtc_runtime::datatype::DatatypeError>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<EngineState>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("policy", &self.shared.policy).finish_non_exhaustive()
    }
}

/// See [`guard`](crate::EngineBuilder::guard).
pub type Guard = fn(entries: u64, work: &mut dyn FnMut()) -> bool;

/// What an engine is made with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) background_thread: bool,
    pub(crate) caps: Caps,
    pub(crate) store: Option<Config>,
    pub(crate) staging: Option<Arc<dyn StagingAllocator>>,
    pub(crate) guard: Guard,
}

pub(crate) struct EngineState {
    pub(crate) policy: Policy,
    pub(crate) background_thread: bool,
    pub(crate) target: Target,
    pub(crate) guard: Guard,
    cache: Lock<Cache>,
    descriptions: Lock<Descriptions>,
    tabled: TabledTypes,
    pub(crate) tabled_batches: TabledBatches,
    queue: Arc<Queue>,
    process: Process,
    store_config: Option<Config>,
    store: OnceLock<Arc<Store>>,
    /// Opened at the first commit. The thread sanitizer sees a `OnceBox`, and no `OnceLock`.
    bundles: OnceBox<LoadedBundles>,
    staging: Option<Arc<dyn StagingAllocator>>,
    gpus: [OnceLock<Result<Gpu, CudaError>>; DEVICES],
}

impl Drop for EngineState {
    fn drop(&mut self) {
        if !self.forked() {
            self.queue.stop();
            // Compilations keep their GPU and its buffers alive, but the allocator may be dropped right after the engine.
            if self.staging.is_some() {
                self.queue.rest();
            }
        }
    }
}

/// The point at which hits of the cache are confirmed: drawn once per process, so that no input can be prepared to collide.
fn confirmation_point() -> &'static Point {
    static CONFIRMATION: OnceBox<Point> = OnceBox::new();
    CONFIRMATION.get_or_init(|| {
        // The standard library's hasher keys are the operating system's randomness.
        let random = RandomState::new();
        let word = |index: u8| u128::from(random.hash_one(index));
        Box::new(Point::new(word(0) << 64 | word(1), word(2) << 64 | word(3)))
    })
}

impl Engine {
    pub(crate) fn of(settings: Settings) -> Engine {
        let Settings { policy, background_thread, caps, store: store_config, staging, guard } = settings;
        if !background_thread {
            thread::forbid_threads();
        }
        Engine {
            shared: Arc::new(EngineState {
                policy,
                background_thread,
                target: *cpu::host(),
                guard,
                cache: Lock::new(Cache::new(caps)),
                descriptions: Lock::new(Descriptions::default()),
                tabled: TabledTypes::default(),
                tabled_batches: TabledBatches::default(),
                queue: Arc::default(),
                process: Process::current(),
                store_config,
                store: OnceLock::new(),
                bundles: OnceBox::new(),
                staging,
                gpus: Default::default(),
            }),
        }
    }

    /// When machine code is made.
    ///
    /// ```
    /// use dtc_runtime::{Engine, Policy};
    /// assert_eq!(Engine::new().policy(), Policy::Background);
    /// ```
    pub fn policy(&self) -> Policy {
        self.shared.policy
    }

    /// The CPU that plans are made for.
    ///
    /// ```
    /// println!("{}", dtc_runtime::Engine::new().target().level);
    /// ```
    pub fn target(&self) -> Target {
        self.shared.target
    }

    /// Compiles kernels that wait, and waits for that, until none is left or the time is up; returns how many still wait.
    ///
    /// For hosts that forbid threads: see [`EngineBuilder::background_thread`](crate::EngineBuilder::background_thread). In a forked child nothing waits.
    ///
    /// ```
    /// use std::time::Duration;
    /// assert_eq!(dtc_runtime::Engine::new().compile_pending(Duration::ZERO), 0);
    /// ```
    pub fn compile_pending(&self, budget: Duration) -> usize {
        let EngineState { queue, background_thread, .. } = &*self.shared;
        if self.shared.forked() {
            return 0;
        }
        let mut waiting = queue.waiting();
        if *background_thread && waiting > 0 {
            // As in `compile_now`.
            thread::run_in_thread(|| waiting = queue.compile_pending(budget));
            return waiting;
        }
        queue.compile_pending(budget)
    }

    /// Ends the background work for good: what waits is dropped, and the thread ends when it has done what it does. Types stay as fast as they
    /// are. For hosts that end before their types do; dropping the engine and all of its types ends the thread too.
    ///
    /// ```
    /// use dtc_runtime::datatype::text;
    /// let engine = dtc_runtime::Engine::new();
    /// let column = engine.commit(&text::parse("vector 5 1 7 float")?);
    /// engine.end_background();
    /// assert_eq!(column.facts().size, 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn end_background(&self) {
        if !self.shared.forked() {
            self.shared.queue.stop();
        }
    }

    /// Loads a bundle: the directory that `dtc build` made, or the file `kernels.dtc` in it. Types that are committed from then on have
    /// its kernels at once, and nothing is compiled for them. Bundles are searched in the order in which they were loaded; those that
    /// `DTC_BUNDLES` lists come first. Unless the policy is [`Policy::Off`].
    ///
    /// # Errors
    ///
    /// The bundle is absent or damaged, another version of dtc made it, or another user could have written it. Nothing has changed
    /// then. In a forked child, no bundle is loaded.
    ///
    /// ```
    /// let error = dtc_runtime::Engine::new().load_bundle("/nonexistent".as_ref()).unwrap_err();
    /// assert!(error.to_string().contains("expected a bundle, found none"));
    /// ```
    pub fn load_bundle(&self, path: &Path) -> Result<(), Finding> {
        if self.shared.forked() {
            return Err(Cause::System("a forked child".to_owned()).at(path));
        }
        self.shared.bundles().load(path)
    }

    /// How many different types the cache holds, in use or not; none in a forked child, which does without the cache.
    ///
    /// ```
    /// assert_eq!(dtc_runtime::Engine::new().cached_types(), 0);
    /// ```
    pub fn cached_types(&self) -> usize {
        if self.shared.forked() { 0 } else { self.cache().len() }
    }

    /// A GPU, by its ordinal in CUDA. Opened at the first use and kept. A type is prepared for it at its first use there, or
    /// by [`Committed::prepare`](crate::Committed::prepare).
    ///
    /// # Errors
    ///
    /// There is no driver, or no such device: [`CudaError::is_absence`] tells.
    ///
    /// ```
    /// match dtc_runtime::Engine::new().gpu(0) {
    ///     Ok(gpu) => println!("{}", gpu.device().info().name),
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    pub fn gpu(&self, ordinal: u32) -> Result<Gpu, CudaError> {
        self.shared.gpu(ordinal)
    }

    fn cache(&self) -> Locked<'_, Cache> {
        self.shared.cache()
    }
}

impl EngineState {
    fn cache(&self) -> Locked<'_, Cache> {
        // Whatever was interrupted, the cache only forgets.
        self.cache.lock()
    }

    /// What a datatype shares with its equals. Makes the canonical form and the plan, unless they are in the cache.
    pub(crate) fn cached_type_of(&self, datatype: &Datatype) -> Arc<CachedType> {
        let pipeline = Pipeline::new(datatype.clone());
        let Some(sample) = self.sample(pipeline.lowered()) else { return self.cached_type_by_hash(datatype, pipeline) };
        if let Some(cached) = self.described(sample, pipeline.lowered()) {
            return cached;
        }
        let lowered = pipeline.lowered().clone();
        let cached = self.cached_type_by_hash(datatype, pipeline);
        self.descriptions.lock().insert(sample, lowered, &cached);
        cached
    }

    /// What tells a long description from others; nothing for short ones, and in a forked child.
    fn sample(&self, lowered: &Layout) -> Option<u64> {
        if self.forked() {
            return None;
        }
        let seed = self.descriptions.lock().seed(lowered)?;
        Some(lowered.sample(&seed))
    }

    /// What equal types with index tables share; nothing is shared in a forked child.
    pub(crate) fn tabled_type_of(&self, datatype: &TabledDatatype) -> Arc<TabledType> {
        if self.forked() { Arc::new(TabledType::of(datatype)) } else { self.tabled.get(datatype) }
    }

    /// The cached type of a description that was committed before.
    fn described(&self, sample: u64, lowered: &Layout) -> Option<Arc<CachedType>> {
        let candidates = self.descriptions.lock().candidates(sample);
        let (_, cached) = candidates.iter().find(|(known, _)| known.is_written_like(lowered))?;
        let cached = cached.upgrade()?;
        // The cache notes that it was asked for.
        self.cache().get(&cached.hash);
        Some(cached)
    }

    /// What a datatype shares with its equals, from what the background made of it. `lowered`: the layout as described.
    pub(crate) fn cached_type_made(
        &self,
        datatype: &Datatype,
        lowered: &Layout,
        shared: &dtc_compiler::Shared,
    ) -> Arc<CachedType> {
        let cached = self.known(lowered, &shared.hash).unwrap_or_else(|| self.add(datatype, shared.clone(), None));
        if let Some(sample) = self.sample(lowered) {
            self.descriptions.lock().insert(sample, lowered.clone(), &cached);
        }
        cached
    }

    /// What a datatype shares with its equals, found by the hash of its bytes.
    fn cached_type_by_hash(&self, datatype: &Datatype, pipeline: Pipeline) -> Arc<CachedType> {
        let lowered = pipeline.lowered();
        let bundled = if self.forked() { None } else { self.bundled(lowered) };
        // The hash is a property of the bytes, so a known type needs no passes.
        let hash = bundled.as_ref().map_or_else(|| pipeline.hash(), |found| found.shared.hash);
        self.known(lowered, &hash).unwrap_or_else(|| match bundled {
            Some(BundledType { shared, digest }) => self.add(datatype, shared, Some(digest)),
            None => self.add(datatype, pipeline.into_shared(), None),
        })
    }

    /// The cached type of a hash in the cache, if it is one of these bytes.
    fn known(&self, lowered: &Layout, hash: &TypeHash) -> Option<Arc<CachedType>> {
        let known = if self.forked() { None } else { self.cache().get(hash) };
        known.filter(|cached| {
            let known = &cached.layout;
            (known.size(), known.extent(), known.true_lb(), known.true_ub())
                == (lowered.size(), lowered.extent(), lowered.true_lb(), lowered.true_ub())
                && cached.confirmation(confirmation_point()) == lowered.fingerprint(confirmation_point())
        })
    }

    /// A new cached type, in the cache. `digest`: that of its layout, where it is known.
    fn add(&self, datatype: &Datatype, shared: dtc_compiler::Shared, digest: Option<[u8; 32]>) -> Arc<CachedType> {
        let cached = Arc::new(CachedType::new(datatype, shared, self.target, self.policy));
        if !self.forked() {
            self.load(&cached, digest);
            self.cache().insert(&cached);
        }
        if self.policy == Policy::Background {
            self.enqueue(&cached);
        }
        cached
    }

    fn config(&self) -> Config {
        self.store_config.clone().unwrap_or_else(Config::from_environment)
    }

    fn bundles(&self) -> &LoadedBundles {
        self.bundles.get_or_init(|| Box::new(LoadedBundles::open(&self.config())))
    }

    /// Whether there are bundles that the policy allows.
    pub(crate) fn has_bundles(&self) -> bool {
        self.policy != Policy::Off && !self.bundles().kernels().is_empty()
    }

    /// What bundles have of a type that was lowered to this layout.
    fn bundled(&self, lowered: &Layout) -> Option<BundledType> {
        if self.has_bundles() { self.bundles().find(lowered) } else { None }
    }

    /// Takes the kernel of a cached type from a bundle, if one has it. `digest`: that of its layout, where it is known.
    fn load(&self, cached: &CachedType, digest: Option<[u8; 32]>) {
        if !cached.wants_kernel() || !self.has_bundles() {
            return;
        }
        let digest = digest.unwrap_or_else(|| cached.layout.digest());
        if let Some(found) = bundle::cpu_kernel(self.bundles().kernels(), &digest, self.target.level) {
            cached.load_kernel(&found);
        }
    }

    /// Whether this is a child of the process that made the engine. It must not wait for a lock that a thread of its
    /// parent may have held, and it has no background thread.
    fn forked(&self) -> bool {
        !self.process.is_current()
    }

    /// A GPU, opened at the first use.
    pub(crate) fn gpu(&self, ordinal: u32) -> Result<Gpu, CudaError> {
        if self.forked() {
            return Err(CudaError::Forked);
        }
        let slot = self.gpus.get(ordinal as usize).ok_or(CudaError::Ordinal { ordinal, count: DEVICES as u32 })?;
        let opened = slot.get_or_init(|| {
            let store = self.store.get_or_init(|| Arc::new(Store::open(self.config())));
            let kept = CodeSources { bundles: self.bundles().kernels().clone(), store: store.clone() };
            let (queue, staging) = (self.queue.clone(), self.staging.clone());
            Gpu::open(ordinal, self.policy, self.background_thread, queue, kept, staging)
        });
        opened.clone()
    }

    /// Compiles a type under the policy, and waits. Cranelift needs more stack than callers must have, so it runs in a thread of
    /// its own if the engine may start one; if that fails, the generic tier keeps serving.
    pub(crate) fn compile_now(&self, cached: &CachedType) {
        let compile = || if self.policy == Policy::Always { cached.compile() } else { cached.specialise() };
        let compiles = cached.wants_kernel() || self.policy == Policy::Always;
        if compiles && self.background_thread { thread::run_in_thread(compile) } else { compile() }
    }

    /// Hands work that no call waits for to the background.
    pub(crate) fn later(&self, job: impl Job + 'static) {
        if !self.forked() {
            self.queue.push(job, self.background_thread);
        }
    }

    /// Hands a cached type to the background, if a kernel would pay.
    pub(crate) fn enqueue(&self, cached: &Arc<CachedType>) {
        if cached.wants_kernel() && !self.forked() {
            self.queue.push(Specialise(Arc::downgrade(cached)), self.background_thread);
        }
    }
}
