//! What equal types share: one canonical layout, one program, one kernel.
#![expect(clippy::disallowed_types, reason = "nothing is on a device in a child")]

mod code;
pub(crate) mod tabled;
pub(crate) mod tabled_batch;
mod usage;
mod whole;

use crate::cpu::{Addresses, Program, Run, Thunks};
use crate::device::{DEVICES, DeviceState, DeviceType};
use crate::policy::{Policy, Tier};
use crate::range::Range;
use crate::recorder;
use crate::shape::Shape;
use crate::worker::Job;
use code::CodeSlot;
use dtc_compiler::Shared;
use dtc_compiler::datatype::Datatype;
use dtc_compiler::layout::{Fingerprint, Layout, Point, TypeHash};
use dtc_compiler::plan::{Level, Plan, Target};
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use usage::UsageCounter;
use whole::WholeElements;

/// Moves whole elements, at least one, under the contract of [`CachedType::run`]. Thunks do not look at the last argument.
type DispatchFn = unsafe extern "C" fn(memory: *mut u8, packed: *mut u8, count: u64, cached: &CachedType);

/// The functions that move one whole element, and several, now: each a [`DispatchFn`].
struct Dispatch {
    pack: [AtomicPtr<()>; 2],
    unpack: [AtomicPtr<()>; 2],
}

impl Dispatch {
    fn new(pack: DispatchFn, unpack: DispatchFn) -> Dispatch {
        let both = |function: DispatchFn| [(); 2].map(|()| AtomicPtr::new(function as *mut ()));
        Dispatch { pack: both(pack), unpack: both(unpack) }
    }

    #[inline]
    fn of<const PACK: bool>(&self, count: u64) -> DispatchFn {
        let functions = if PACK { &self.pack } else { &self.unpack };
        // Acquire: a thread that reads the address of a thunk sees its instructions, too.
        let address = functions[usize::from(count != 1)].load(Ordering::Acquire);
        // SAFETY: `new` and `replace` put there addresses of `DispatchFn`s alone.
        unsafe { std::mem::transmute::<*mut (), DispatchFn>(address) }
    }

    /// Puts thunks in the places of the functions before, and [`dispatch_by_tier`] where there is no thunk.
    fn replace<const PACK: bool>(&self, thunks: Option<&Thunks>) {
        let functions = if PACK { &self.pack } else { &self.unpack };
        for (function, thunk) in functions.iter().zip(thunks.map_or([None; 2], Thunks::of::<PACK>)) {
            let address = thunk.map_or(dispatch_by_tier::<PACK> as *mut (), |thunk| thunk.cast_mut().cast());
            function.store(address, Ordering::Release);
        }
    }
}

/// Everything about a byte sequence that does not depend on how it was described.
///
/// Laid out as declared: the fields that a call for whole elements reads come first, in one cache line. The packed bytes of a short
/// type and its rows may fill whole sets of the first-level cache, so every further line would evict one of theirs.
#[repr(C, align(64))]
pub(crate) struct CachedType {
    pub(crate) whole: WholeElements,
    dispatch: Dispatch,
    /// The plan for CPUs, and the microkernels of its steps.
    program: Program,
    pub(crate) shape: Shape,
    code: CodeSlot,
    pub(crate) usage: UsageCounter,
    pub(crate) hash: TypeHash,
    pub(crate) layout: Layout,
    target: Target,
    confirmation: OnceBox<Fingerprint>,
    /// The type on every device that it was used on; made at the first.
    devices: OnceLock<Box<[OnceLock<Arc<DeviceType>>; DEVICES]>>,
}

const _: () = assert!(std::mem::offset_of!(CachedType, dispatch) + size_of::<Dispatch>() <= 64, "one cache line");

impl CachedType {
    /// What a datatype shares with its equals.
    pub(crate) fn new(datatype: &Datatype, shared: Shared, target: Target, policy: Policy) -> CachedType {
        let Shared { hash, layout, plan } = shared;
        let recorded = recorder::recorder().and_then(|recorder| recorder.uses_of(hash, datatype));
        let program = Program::new(plan, &target);
        let threshold = if let Policy::Lazy(threshold) = policy { Some(threshold) } else { None };
        let usage = UsageCounter::new(threshold, recorded);
        let dispatch = match policy {
            Policy::Background => Dispatch::new(dispatch_counted::<true>, dispatch_counted::<false>),
            _ => Dispatch::new(dispatch_by_tier::<true>, dispatch_by_tier::<false>),
        };
        let (true_lb, true_ub) = (layout.true_lb(), layout.true_ub());
        let shape = Shape { size: layout.size(), extent: layout.extent(), true_lb, true_ub };
        CachedType {
            whole: WholeElements::new(&shape, usage.is_exact(), &target),
            dispatch,
            code: CodeSlot::new(&program, &target),
            program,
            shape,
            usage,
            hash,
            layout,
            target,
            confirmation: OnceBox::new(),
            devices: OnceLock::new(),
        }
    }

    /// The fingerprint at this process's own point, which no one outside can aim at.
    pub(crate) fn confirmation(&self, point: &Point) -> Fingerprint {
        *self.confirmation.get_or_init(|| Box::new(self.layout.fingerprint(point)))
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.program.plan()
    }

    /// The instruction set that calls may use.
    pub(crate) fn level(&self) -> Level {
        self.target.level
    }

    /// The run of memory from a packed byte on.
    pub(crate) fn run_at(&self, position: u64) -> Run {
        self.program.run_at(position)
    }

    /// Compiles the kernel, if the estimate says that the type gains by it, and makes the thunks, if neither has been tried.
    pub(crate) fn specialise(&self) {
        if self.wants_kernel() {
            self.compile();
        } else {
            self.make_thunks();
        }
    }

    /// Takes a kernel that was compiled ahead of time, if the bytes are one of this type.
    pub(crate) fn load_kernel(&self, bytes: &[u8]) {
        self.code.load_kernel(bytes, &self.program, &self.target);
    }

    /// Compiles the kernel, if the plan is not too large, and makes the thunks, if neither has been tried.
    pub(crate) fn compile(&self) {
        if self.plan().decision().allows() {
            self.code.compile_kernel(&self.program, &self.target);
        }
        self.make_thunks();
    }

    /// Has whole elements dispatched to thunks, unless the target has none or every use is counted, which thunks do not do.
    fn make_thunks(&self) {
        if self.usage.is_exact() || !self.code.claim_thunks() {
            return;
        }
        let thunks = self.code.make_thunks(&self.program, &self.target);
        self.dispatch.replace::<true>(thunks);
        self.dispatch.replace::<false>(thunks);
    }

    /// Whether the type would gain by a kernel, and none has been tried.
    pub(crate) fn wants_kernel(&self) -> bool {
        self.plan().decision().specialise() && !self.code.has_tried_kernel()
    }

    pub(crate) fn tier(&self) -> Tier {
        if self.code.kernel().is_some() { Tier::Specialised } else { Tier::Generic }
    }

    /// The type on a device. The first caller creates the device state and schedules compilation under the engine's policy; later
    /// callers share it.
    pub(crate) fn device_type(&self, ordinal: usize, state: impl FnOnce() -> Arc<DeviceState>) -> &Arc<DeviceType> {
        let devices = self.devices.get_or_init(Default::default);
        if let Some(known) = devices[ordinal].get() {
            return known;
        }
        let made = devices[ordinal].get_or_init(|| DeviceType::new(state(), &self.layout, self.shape));
        made.first_use();
        made
    }

    /// Memory that the type holds once its code is made, in bytes. Lists dominate.
    pub(crate) fn bytes(&self) -> usize {
        /// A page for thunks, and one for the kernel.
        const CODE: usize = 8 << 10;
        size_of::<CachedType>() + self.layout.entries() as usize * 32 + CODE
    }

    /// Moves whole elements, for which [`WholeElements::bytes`] has a number.
    ///
    /// # Safety
    ///
    /// As for [`CachedType::run`].
    #[inline]
    pub(crate) unsafe fn dispatch<const PACK: bool>(&self, addresses: Addresses, count: u64) {
        // SAFETY: the contract of `run` covers every byte of the elements, of which there is one at least, and a `DispatchFn` has the
        // same contract.
        unsafe { self.dispatch.of::<PACK>(count)(addresses.memory, addresses.packed, count, self) }
    }

    /// Moves the bytes of a range that ends with the packed bytes or before.
    ///
    /// # Safety
    ///
    /// Every byte of the range is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn run<const PACK: bool>(&self, addresses: Addresses, range: Range) {
        let (count, whole) = (range.count(), range.is_whole(self.shape.size));
        // SAFETY: the bytes that are moved are those of the range; the kernel belongs to the program beside it.
        unsafe {
            match self.code.kernel_for(count) {
                Some(kernel) if whole => kernel.run::<PACK>(addresses, count),
                None if whole => self.program.elements::<PACK>(addresses, count),
                kernel => self.program.range::<PACK>(kernel, addresses, range.offset(), range.length()),
            }
        }
    }
}

/// The background's compiling a cached type for the CPU. It does not keep the type alive.
pub(crate) struct Specialise(pub(crate) Weak<CachedType>);

impl Job for Specialise {
    fn priority(&self) -> u32 {
        // It takes a hundredth of the time that a kernel for a GPU takes.
        u32::MAX
    }

    fn run(&self) {
        if let Some(cached) = self.0.upgrade() {
            cached.specialise();
        }
    }
}

/// Moves whole elements by the kernel if it is there, and by the program until then.
///
/// # Safety
///
/// As for [`CachedType::run`].
unsafe extern "C" fn dispatch_by_tier<const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    count: u64,
    cached: &CachedType,
) {
    let addresses = Addresses { memory, packed };
    // SAFETY: the contract of `run` covers every byte of the elements. The kernel was compiled from `cached.program`, which lives as
    // long.
    unsafe {
        match cached.code.kernel_for(count) {
            Some(kernel) => kernel.run::<PACK>(addresses, count),
            None if count == 1 => cached.program.one::<PACK>(addresses),
            None => cached.program.elements::<PACK>(addresses, count),
        }
    }
}

/// As [`dispatch_by_tier`], and counts the call: one of them makes the thunks, unless a kernel is still to come.
///
/// # Safety
///
/// As for [`CachedType::run`].
unsafe extern "C" fn dispatch_counted<const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    count: u64,
    cached: &CachedType,
) {
    if cached.usage.count_call() && !cached.wants_kernel() {
        cached.make_thunks();
    }
    // SAFETY: `dispatch_by_tier` moves the same elements under the same contract.
    unsafe { dispatch_by_tier::<PACK>(memory, packed, count, cached) }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::usage::CALLS_BEFORE_THUNKS;
    use super::*;
    use crate::committed::Committed;
    use crate::engine::Engine;
    use dtc_compiler::datatype::{DatatypeError, Predefined, TypeBuilder, TypeId};

    type Build = fn(&mut TypeBuilder, TypeId) -> Result<TypeId, DatatypeError>;

    const ROWS: Build = |types, double| types.vector(12, 5, 9, double);

    /// A type that gains by a kernel.
    const RECORDS: Build = |types, double| {
        let record = types.structure(&[1, 1], &[0, 12], &[double, double])?;
        let record = types.resized(0, 64, record)?;
        types.contiguous(20, record)
    };

    fn commit(engine: &Engine, build: Build) -> Committed {
        let mut types = TypeBuilder::new();
        let double = types.named(Predefined::DOUBLE);
        let built = build(&mut types, double).unwrap();
        engine.commit(&types.finish(built).unwrap())
    }

    fn engine(policy: Policy) -> Engine {
        Engine::builder().policy(policy).background_thread(false).build()
    }

    fn has_thunks(committed: &Committed) -> bool {
        committed.cached().code.has_thunks()
    }

    /// Packs one element so often, and says after how many calls there were thunks.
    fn pack(committed: &Committed, calls: usize) -> Option<usize> {
        let source = vec![1u8; committed.span(1).unwrap().1 as usize];
        let mut packed = vec![0u8; committed.facts().size as usize];
        let mut since = None;
        for call in 0..calls {
            if has_thunks(committed) {
                since = since.or(Some(call));
            }
            packed.fill(0);
            assert_eq!(committed.pack(&source, Range::elements(1), &mut packed), Ok(packed.len()));
            assert!(packed.iter().all(|&byte| byte == 1));
        }
        since
    }

    #[test]
    fn thunks_are_made_when_a_type_is_used_often() {
        let rows = commit(&engine(Policy::Background), ROWS);
        assert_eq!(pack(&rows, 2000), Some(CALLS_BEFORE_THUNKS as usize + 1));
    }

    #[test]
    fn policies_decide_over_thunks_as_over_kernels() {
        for build in [ROWS, RECORDS] {
            assert_eq!(pack(&commit(&engine(Policy::Eager), build), 1), Some(0));
            assert_eq!(pack(&commit(&engine(Policy::Always), build), 1), Some(0));
            assert_eq!(pack(&commit(&engine(Policy::Off), build), 2000), None);
            let lazy = engine(Policy::Lazy(5));
            let committed = commit(&lazy, build);
            assert_eq!(pack(&committed, 2000), None);
            lazy.compile_pending(std::time::Duration::MAX);
            assert_eq!(pack(&committed, 2000), None);
        }
    }

    #[test]
    fn whatever_one_microkernel_moves_has_thunks() {
        let builds: [Build; 9] = [
            |types, double| types.contiguous(70, double),
            ROWS,
            |types, double| types.vector(96, 1, 9, double),
            |types, double| types.vector(6, 5, 9, double).and_then(|rows| types.hvector(40, 1, 800, rows)),
            |types, double| types.vector(16, 1, 40, double).and_then(|rows| types.hvector(16, 1, 8000, rows)),
            |types, double| types.vector(4, 1, -1, double).and_then(|row| types.hvector(37, 1, 200, row)),
            |types, double| types.indexed_block(2, &(0..90).map(|at| at * at).collect::<Vec<_>>(), double),
            |types, double| types.indexed_block(2, &(0..90).map(|at| (at * at) << 20).collect::<Vec<_>>(), double),
            |types, double| {
                let lengths: Vec<i64> = (0..90).map(|at| 1 + at * at % 31 % 7).collect();
                types.indexed(&lengths, &(0..90).map(|at| at * 9 + at % 2).collect::<Vec<_>>(), double)
            },
        ];
        for (at, build) in builds.into_iter().enumerate() {
            let committed = commit(&engine(Policy::Eager), build);
            assert!(committed.cached().code.kernel().is_none(), "type {at}:\n{}", committed.plan());
            assert!(has_thunks(&committed), "type {at}:\n{}", committed.plan());
        }
    }

    #[test]
    fn thunks_wait_for_the_kernel() {
        let engine = engine(Policy::Background);
        let committed = commit(&engine, RECORDS);
        assert!(committed.cached().wants_kernel());
        assert_eq!(pack(&committed, 2000), None);
        engine.compile_pending(std::time::Duration::MAX);
        assert_eq!(pack(&committed, 1), Some(0));
    }
}
