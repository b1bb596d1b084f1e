//! Committed types.

mod accumulate;
mod ahead;
mod check;
mod commit;
mod copy;
mod external;
mod on_device;
mod pack;
mod parallel;

use crate::cached_type::CachedType;
use crate::described::UncommittedPlan;
use crate::device::UncommittedOnDevices;
use crate::engine::Engine;
use crate::error::PackError;
use crate::policy::{Policy, Tier};
use crate::recorder::recorder;
use crate::shape::Shape;
pub(crate) use accumulate::CheckedReduction;
pub(crate) use check::check_offset;

use ahead::Ahead;
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::{Datatype, Facts, Signature};
use dtc_compiler::external32::External32;
use dtc_compiler::layout::{Layout, TypeHash};
use dtc_compiler::lower;
use dtc_compiler::operation::Element;
use dtc_compiler::plan::{Direction, Plan};
use once_cell::race::OnceBox;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A datatype that can be packed with. Cheap to clone, immutable, shared between threads freely.
///
/// Packing is stateless: any byte range of the packed bytes of a count of elements can be packed or unpacked at any time,
/// in any order, by any thread.
///
/// # Example
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, Range};
///
/// let mut types = TypeBuilder::new();
/// let short = types.named(Predefined::SHORT);
/// let every_other = types.vector(3, 1, 2, short)?;
/// let every_other = Engine::new().commit(&types.finish(every_other)?);
///
/// let memory = [1u8, 1, 0, 0, 2, 2, 0, 0, 3, 3];
/// let mut middle = [0u8; 2];
/// every_other.pack(&memory, Range::elements(1).bytes(2..4), &mut middle)?; // packed bytes 2 and 3
/// assert_eq!(middle, [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Committed {
    /// What [`Inner::cached`] holds, once this handle has seen it; null before. Beside `inner`, so that a call for one element
    /// reads no further cache line on its way to the cached type.
    cached: AtomicPtr<CachedType>,
    inner: Arc<Inner>,
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed").field("facts", self.facts()).field("tier", &self.tier()).finish_non_exhaustive()
    }
}

impl Clone for Committed {
    fn clone(&self) -> Committed {
        Committed { cached: AtomicPtr::new(self.cached.load(Ordering::Acquire)), inner: self.inner.clone() }
    }
}

struct Inner {
    datatype: Datatype,
    /// The state that equal types share; made when the description does not serve any more. No thread waits for another: those that
    /// need it at the same time each make one, and one is kept.
    cached: OnceBox<Arc<CachedType>>,
    /// The type as described, for its first calls.
    described: OnceBox<UncommittedPlan>,
    /// The same on devices.
    on_devices: UncommittedOnDevices,
    ahead: Ahead,
    engine: Engine,
    /// The values of the type; made when they are first converted.
    external32: OnceBox<External32>,
    /// One bit for each element that the signature was found not to contradict.
    elements: AtomicU32,
}

const _: () = assert!(Element::ALL.len() <= 32, "an element needs a bit");

impl Inner {
    fn shared(&self) -> &Arc<CachedType> {
        self.cached.get_or_init(|| {
            let engine = &self.engine.shared;
            Box::new(match (self.ahead.made(), self.described.get()) {
                (Some(shared), Some(described)) => engine.cached_type_made(&self.datatype, described.layout(), shared),
                _ => engine.cached_type_of(&self.datatype),
            })
        })
    }
}

impl Committed {
    pub(crate) fn new(datatype: Datatype, engine: Engine) -> Committed {
        let inner = Inner {
            datatype,
            cached: OnceBox::new(),
            described: OnceBox::new(),
            on_devices: UncommittedOnDevices::default(),
            ahead: Ahead::default(),
            engine,
            external32: OnceBox::new(),
            elements: AtomicU32::new(0),
        };
        Committed { cached: AtomicPtr::new(std::ptr::null_mut()), inner: Arc::new(inner) }
    }

    /// What equal types share, if this handle has seen it.
    #[inline]
    fn known(&self) -> Option<&CachedType> {
        // SAFETY: the pointer is null, or came from the `Arc` in `inner.cached`, which is never replaced and lives as long as
        // `inner`, which `self` holds. Acquired, so that the cached type is seen as it was made.
        unsafe { self.cached.load(Ordering::Acquire).as_ref() }
    }

    /// What equal types share. Made now if it is not there yet.
    #[inline]
    pub(crate) fn cached(&self) -> &CachedType {
        match self.known() {
            Some(cached) => cached,
            None => self.shared(),
        }
    }

    #[cold]
    pub(crate) fn shared(&self) -> &Arc<CachedType> {
        let cached = self.inner.shared();
        self.cached.store(Arc::as_ptr(cached).cast_mut(), Ordering::Release);
        cached
    }

    /// What equal types share, if any handle of the type has asked for it.
    fn found(&self) -> Option<&CachedType> {
        self.known().or_else(|| self.inner.cached.get().map(|_| &**self.shared()))
    }

    /// The type as it was described.
    fn described(&self) -> &UncommittedPlan {
        self.inner.described.get_or_init(|| Box::new(UncommittedPlan::new(lower(&self.inner.datatype))))
    }

    /// The cached type, if there is one, or the description, if it serves a call that moves `take` bytes; otherwise the cached type, made now
    /// unless the guard of the engine is against it.
    #[cold]
    fn first(&self, take: u64) -> First<'_> {
        if let Some(cached) = self.found() {
            return First::Cached(cached);
        }
        let engine = &self.engine().shared;
        // Calls that are counted are counted where equal types count theirs.
        let is_counted = matches!(engine.policy, Policy::Lazy(_)) || recorder().is_some();
        if !is_counted && self.described().admits(take) {
            return First::Described(self.described());
        }
        let make = &mut || {
            self.shared();
        };
        match (engine.guard)(self.inner.datatype.most_entries(), make) {
            true => First::Cached(self.shared()),
            false => First::Described(self.described()),
        }
    }

    /// Makes what the first packs and unpacks need, so that they allocate no memory.
    ///
    /// ```
    /// use dtc_runtime::datatype::text;
    /// let committed = dtc_runtime::Engine::new().commit(&text::parse("vector 3 1 2 int")?);
    /// committed.describe();
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    pub fn describe(&self) {
        if self.found().is_none() {
            self.described().prepare();
        }
    }

    /// A layout of the type: the canonical one if it is there, otherwise the one as described. Both mean the same bytes.
    pub(crate) fn any_layout(&self) -> &Layout {
        match self.found() {
            Some(cached) => &cached.layout,
            None => self.described().layout(),
        }
    }

    /// Size, extent and bounds of the bytes, from a layout of the type.
    fn shape(&self) -> &Shape {
        match self.found() {
            Some(cached) => &cached.shape,
            None => self.described().shape(),
        }
    }

    /// The engine that the type belongs to.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The type as described.
    pub fn datatype(&self) -> &Datatype {
        &self.inner.datatype
    }

    /// Does what the policy of the engine wants at commit: [`Engine::prepare`] has done nothing yet.
    ///
    /// See [`Engine::prepare`] for an example.
    pub fn commit(&self) {
        if matches!(self.engine().policy(), Policy::Eager | Policy::Always) {
            self.engine().shared.compile_now(self.shared());
        } else if recorder().is_some() {
            // The recorder knows types by their hashes.
            self.shared();
        }
    }

    /// The values of the type, which its layout does not tell.
    pub(crate) fn external32(&self) -> &External32 {
        self.inner.external32.get_or_init(|| Box::new(External32::new(&self.inner.datatype)))
    }

    /// Size and bounds as described.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// assert_eq!((every_other.facts().size, every_other.facts().extent()), (12, 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn facts(&self) -> &Facts {
        self.inner.datatype.facts()
    }

    /// The sequence of basic elements as described. Takes time linear in the nodes of the type.
    ///
    /// ```
    /// use dtc_runtime::datatype::text;
    /// let every_other = dtc_runtime::Engine::new().commit(&text::parse("vector 3 1 2 int")?);
    /// assert_eq!(every_other.signature().elements(), 3);
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    pub fn signature(&self) -> Signature {
        self.inner.datatype.signature()
    }

    /// The canonical layout.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// assert!(every_other.layout().to_string().contains("stream 3 x 8"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.cached().layout
    }

    /// The stages of the compiler for this type as it was described, made anew: equal types share canonical layout, hash and plan
    /// alone.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// assert_eq!(every_other.pipeline().report().fired()[0], ("erase-kinds", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::new(self.inner.datatype.clone())
    }

    /// How the bytes are moved.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// assert!(every_other.plan().to_string().contains("rows 3 x 8 of 4 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn plan(&self) -> &Plan {
        self.cached().plan()
    }

    /// The identity that all equal types share.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// assert_eq!(every_other.type_hash(), every_other.layout().type_hash());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn type_hash(&self) -> TypeHash {
        self.cached().hash
    }

    /// Which code a pack would run now.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Engine, Tier};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// // One microkernel does it all, so there is nothing to compile.
    /// assert_eq!(Engine::new().commit(&types.finish(int)?).tier(), Tier::Generic);
    /// # Ok::<(), dtc_runtime::datatype::DatatypeError>(())
    /// ```
    pub fn tier(&self) -> Tier {
        self.found().map_or(Tier::Generic, CachedType::tier)
    }

    /// Compiles the kernel now, if one would pay, and makes the thunks (see [`Policy`](crate::Policy)), if they are not there yet;
    /// returns the tier that serves from here on.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// every_other.specialise();
    /// let mut packed = [0; 12];
    /// assert_eq!(every_other.pack(&[7; 20], Range::elements(1), &mut packed)?, 12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn specialise(&self) -> Tier {
        self.engine().shared.compile_now(self.shared());
        self.cached().tier()
    }

    /// Packed bytes of a count of elements.
    ///
    /// # Errors
    ///
    /// [`PackError::Count`] when they do not fit 64 bits.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// assert_eq!(every_other.packed_size(10)?, 120);
    /// assert!(every_other.packed_size(u64::MAX).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn packed_size(&self, count: u64) -> Result<usize, PackError> {
        let size = self.facts().size;
        match size.checked_mul(count) {
            Some(total) if i64::try_from(total).is_ok() => Ok(total as usize),
            _ => Err(PackError::Count { count, most: i64::MAX as u64 / size }),
        }
    }

    /// The lowest displacement of a byte of `count` elements, and one past the highest; nothing if there are no bytes.
    ///
    /// Derived from the layout itself, whatever the description claims of its bounds.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let backwards = types.resized(0, -8, int)?;
    /// let backwards = dtc_runtime::Engine::new().commit(&types.finish(backwards)?);
    /// assert_eq!(backwards.span(3), Some((-16, 4)));
    /// # Ok::<(), dtc_runtime::datatype::DatatypeError>(())
    /// ```
    #[inline]
    pub fn span(&self, count: u64) -> Option<(i128, i128)> {
        let shape = self.shape();
        if count == 0 || shape.size == 0 {
            return None;
        }
        let last = i128::from(count - 1) * i128::from(shape.extent);
        Some((i128::from(shape.true_lb) + last.min(0), i128::from(shape.true_ub) + last.max(0)))
    }

    /// Counts a call where a lazy kernel may wait for it.
    #[inline]
    pub(crate) fn count_use(&self) {
        if self.cached().usage.is_lazy() {
            self.count_lazy_use();
        }
    }

    /// Tells the recorder of the process, if it has one, of a call that has moved these bytes.
    #[inline]
    pub(crate) fn record(&self, direction: Direction, bytes: u64) {
        if bytes > 0
            && let Some(uses) = self.known().and_then(|cached| cached.usage.recorded())
            && let Some(recorder) = recorder()
        {
            recorder.count(uses, direction, bytes);
        }
    }

    /// Counts a call; the one that a lazy kernel waits for asks for it.
    #[cold]
    fn count_lazy_use(&self) {
        if self.cached().usage.count_use() {
            self.engine().shared.enqueue(self.shared());
        }
    }
}

/// What moves the bytes of a call.
enum First<'a> {
    Cached(&'a CachedType),
    Described(&'a UncommittedPlan),
}
