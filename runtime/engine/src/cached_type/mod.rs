//! What equal types share: one canonical layout, one program, one kernel.
#![expect(clippy::disallowed_types, reason = "nothing is on a device in a child")]

use crate::cpu::{self, Calls, Kernel, Program, Run, Sides, Thunks};
use crate::device::{DEVICES, DeviceState, GpuType};
use crate::memory::Room;
use crate::policy::{Policy, Tier};
use crate::range::Range;
use crate::recorder::{self, Uses};
use crate::shape::Shape;
use crate::worker::Job;
use dtc_compiler::Shared;
use dtc_compiler::datatype::Datatype;
use dtc_compiler::layout::{Fingerprint, Layout, Point, TypeHash};
use dtc_compiler::plan::strategy::Strategy;
use dtc_compiler::plan::{Level, Plan, Target};
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The numbers that calls for whole elements are checked against.
#[repr(C)]
pub(crate) struct Whole {
    /// Packed bytes of an element; more than any call has for a type whose uses are counted.
    size: u64,
    /// Packed bytes of a call for several elements, at most.
    most: u64,
    /// Bytes that an element needs of a buffer before its origin and behind it, in all.
    span: u64,
    /// Bytes of these before the origin.
    before: u32,
    /// Bytes from one element to the next.
    extent: u32,
}

impl Whole {
    fn new(shape: &Shape, is_counted: bool, target: &Target) -> Whole {
        let (low, high) = (shape.true_lb.min(0), shape.true_ub.max(0));
        let (before, extent) = (u32::try_from(low.unsigned_abs()), u32::try_from(shape.extent));
        Whole {
            size: if is_counted { u64::MAX } else { shape.size },
            // The functions for several elements use no non-temporal stores.
            most: if extent.is_ok() { target.non_temporal_bytes } else { 0 },
            span: if before.is_ok() { low.abs_diff(high) } else { u64::MAX },
            before: before.unwrap_or(0),
            extent: extent.unwrap_or(0),
        }
    }

    /// Packed bytes of `count` elements, if [`Entry::elements`] serves a call for them that moves `room` bytes at most, fewer than
    /// `u64::MAX`.
    #[inline]
    pub(crate) fn bytes(&self, count: u64, room: u64) -> Option<u64> {
        let bytes = self.size.checked_mul(count)?;
        let most = if count == 1 { room } else { room.min(self.most) };
        // No bytes are none that could be moved.
        (bytes.wrapping_sub(1) < most).then_some(bytes)
    }

    /// Whether every byte of `count` elements lies in a buffer. False also where that takes more than these numbers to find out.
    #[inline]
    pub(crate) fn fits(&self, count: u64, room: Room) -> bool {
        let (length, origin) = (room.length as u64, room.origin as u64);
        let others = count.wrapping_sub(1).checked_mul(u64::from(self.extent));
        // The first byte has as many places as the buffer is longer than the elements.
        let places = others.and_then(|others| length.checked_sub(self.span.checked_add(others)?));
        places.is_some_and(|places| origin.wrapping_sub(u64::from(self.before)) <= places)
    }
}

/// Moves whole elements, at least one, under the contract of [`Entry::run`]. Thunks do not look at the last argument.
type ElementsFn = unsafe extern "C" fn(memory: *mut u8, packed: *mut u8, count: u64, entry: &Entry);

/// The functions that move one whole element, and several, now: each an [`ElementsFn`].
struct Functions {
    pack: [AtomicPtr<()>; 2],
    unpack: [AtomicPtr<()>; 2],
}

impl Functions {
    fn new(pack: ElementsFn, unpack: ElementsFn) -> Functions {
        let both = |function: ElementsFn| [(); 2].map(|()| AtomicPtr::new(function as *mut ()));
        Functions { pack: both(pack), unpack: both(unpack) }
    }

    #[inline]
    fn of<const PACK: bool>(&self, count: u64) -> ElementsFn {
        let functions = if PACK { &self.pack } else { &self.unpack };
        // Acquire: a thread that reads the address of a thunk sees its instructions, too.
        let address = functions[usize::from(count != 1)].load(Ordering::Acquire);
        // SAFETY: every address that was put there is that of such a function.
        unsafe { std::mem::transmute::<*mut (), ElementsFn>(address) }
    }

    /// Puts thunks in the places of the functions before, and [`by_program`] where there is no thunk.
    fn replace<const PACK: bool>(&self, thunks: Option<&Thunks>) {
        let functions = if PACK { &self.pack } else { &self.unpack };
        for (function, thunk) in functions.iter().zip(thunks.map_or([None; 2], Thunks::of::<PACK>)) {
            let address = thunk.map_or(by_program::<PACK> as *mut (), |thunk| thunk.cast_mut().cast());
            function.store(address, Ordering::Release);
        }
    }
}

/// Calls for whole elements before thunks are made. By then the calls have cost as much as making thunks does, 8 us.
const CALLS_BEFORE_THUNKS: u32 = 1024;

/// Everything about a byte sequence that does not depend on how it was described.
///
/// Laid out as declared: the fields that a call for whole elements reads come first, in one cache line. The packed bytes of a short
/// type and its rows may fill whole sets of the first-level cache, so every further line would evict one of theirs.
#[repr(C, align(64))]
pub(crate) struct Entry {
    pub(crate) whole: Whole,
    functions: Functions,
    program: Program,
    pub(crate) shape: Shape,
    /// Number of uses after which a lazy kernel is compiled; `None` under another policy.
    due: Option<u32>,
    /// The fewest elements that are moved as one nest, which microkernels move faster than a kernel does that was compiled for one.
    fewest_of_nest: Option<u64>,
    /// Uses of a lazy type; of another, calls for whole elements that were not made by thunks.
    uses: AtomicU32,
    /// What the recorder of the process counts; `None` where there is none.
    pub(crate) recorded: Option<&'static Uses>,
    /// Compiled code, which reads lists of the program; `None` inside if the target has none. A `OnceBox` never blocks: in a forked
    /// child, the thread that it would wait for does not exist.
    kernel: OnceBox<Option<Kernel>>,
    /// The final ones of `functions`: they call the kernel, or a microkernel with lists of the program.
    thunks: OnceBox<Option<Thunks>>,
    /// Set by the thread that makes the thunks. Other threads go on without them, so that a forked child cannot wait forever.
    thunks_claimed: AtomicBool,
    pub(crate) hash: TypeHash,
    pub(crate) layout: Layout,
    target: Target,
    confirmation: OnceBox<Fingerprint>,
    /// The type on every device that it was used on; made at the first.
    devices: OnceLock<Box<[OnceLock<Arc<GpuType>>; DEVICES]>>,
}

const _: () = assert!(std::mem::offset_of!(Entry, functions) + size_of::<Functions>() <= 64, "one cache line");

impl Entry {
    /// The entry of a datatype and its equals.
    pub(crate) fn new(datatype: &Datatype, shared: Shared, target: Target, policy: Policy) -> Entry {
        let Shared { hash, layout, plan } = shared;
        let recorded = recorder::recorder().and_then(|recorder| recorder.uses_of(hash, datatype));
        let fewest_of_nest = Strategy::new(&plan, &target, 1).fewest_of_nest();
        let program = Program::new(plan, &target);
        let due = if let Policy::Lazy(due) = policy { Some(due) } else { None };
        let functions = match policy {
            Policy::Background => Functions::new(counted::<true>, counted::<false>),
            _ => Functions::new(by_program::<true>, by_program::<false>),
        };
        let (true_lb, true_ub) = (layout.true_lb(), layout.true_ub());
        let shape = Shape { size: layout.size(), extent: layout.extent(), true_lb, true_ub };
        let whole = Whole::new(&shape, due.is_some() || recorded.is_some(), &target);
        Entry {
            whole,
            shape,
            functions,
            hash,
            layout,
            kernel: OnceBox::new(),
            thunks: OnceBox::new(),
            thunks_claimed: AtomicBool::new(false),
            program,
            target,
            confirmation: OnceBox::new(),
            due,
            fewest_of_nest,
            uses: AtomicU32::new(0),
            recorded,
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

    /// Compiles the kernel, if it pays, and makes the thunks, if neither has been tried.
    pub(crate) fn specialise(&self) {
        if self.wants_kernel() {
            self.compile();
        } else {
            self.make_thunks();
        }
    }

    /// Takes a kernel that was compiled ahead of time, if the bytes are one of this type.
    pub(crate) fn load(&self, bytes: &[u8]) {
        if let Some(kernel) = cpu::load(bytes, &self.program, &self.target) {
            self.kernel.get_or_init(|| Box::new(Some(kernel)));
        }
    }

    /// Compiles the kernel, if the plan is not too large, and makes the thunks, if neither has been tried.
    pub(crate) fn compile(&self) {
        if self.plan().decision().allows() {
            self.kernel.get_or_init(|| Box::new(cpu::compile(&self.program, &self.target)));
        }
        self.make_thunks();
    }

    /// Installs the entry points for whole elements, unless the target has none or a kernel is still to be compiled.
    fn make_thunks(&self) {
        // Thunks do not count.
        if self.is_counted() || self.thunks_claimed.swap(true, Ordering::Relaxed) {
            return;
        }
        let made = self
            .thunks
            .get_or_init(|| Box::new(Thunks::new(self.calls_of_thunks::<true>(), self.calls_of_thunks::<false>())));
        self.functions.replace::<true>(made.as_ref());
        self.functions.replace::<false>(made.as_ref());
    }

    /// What thunks of a direction do: straight code where that is faster, or calls of the kernel or of a microkernel.
    fn calls_of_thunks<const PACK: bool>(&self) -> Calls {
        let calls = match self.kernel() {
            Some(kernel) => {
                let [one, several] = kernel.calls::<PACK>();
                [one, several.filter(|_| self.fewest_of_nest.is_none())]
            }
            None => self.program.calls::<PACK>(self.target.level),
        };
        let mut calls = calls.into_iter();
        self.program.without_call::<PACK>(&self.target).map(|code| code.or(calls.next().flatten()))
    }

    /// Counts a call for whole elements that was not made by a thunk.
    #[inline]
    fn count_call(&self) {
        // Beyond the threshold the counter is only read, so that calls that wait for a kernel share its cache line.
        let counted = self.uses.load(Ordering::Relaxed) <= CALLS_BEFORE_THUNKS
            && self.uses.fetch_add(1, Ordering::Relaxed) == CALLS_BEFORE_THUNKS;
        if counted && !self.wants_kernel() {
            self.make_thunks();
        }
    }

    /// Whether a kernel would pay and has not been tried.
    pub(crate) fn wants_kernel(&self) -> bool {
        self.plan().decision().specialise() && self.kernel.get().is_none()
    }

    #[inline]
    pub(crate) fn kernel(&self) -> Option<&Kernel> {
        self.kernel.get().and_then(Option::as_ref)
    }

    /// The kernel, if it serves whole elements of a count.
    #[inline]
    fn kernel_for(&self, count: u64) -> Option<&Kernel> {
        if self.fewest_of_nest.is_some_and(|fewest| count >= fewest) { None } else { self.kernel() }
    }

    pub(crate) fn tier(&self) -> Tier {
        if self.kernel().is_some() { Tier::Specialised } else { Tier::Generic }
    }

    /// The type on a device. The first caller creates the device state and schedules compilation under the engine's policy; later
    /// callers share it.
    pub(crate) fn on_device(&self, ordinal: usize, gpu: impl FnOnce() -> Arc<DeviceState>) -> &Arc<GpuType> {
        let devices = self.devices.get_or_init(Default::default);
        if let Some(known) = devices[ordinal].get() {
            return known;
        }
        let made = devices[ordinal].get_or_init(|| GpuType::new(gpu(), &self.layout, self.shape));
        made.first_use();
        made
    }

    /// Whether uses are counted, because the kernel comes after some of them.
    #[inline]
    pub(crate) fn is_lazy(&self) -> bool {
        self.due.is_some()
    }

    /// Whether every use is counted, for a lazy kernel or by the recorder.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.is_lazy() || self.recorded.is_some()
    }

    /// Counts a use. Returns true for the one that reaches the threshold of a lazy kernel.
    pub(crate) fn used(&self) -> bool {
        self.due.is_some_and(|due| {
            // The counter stops soon after the threshold, so it cannot wrap.
            self.uses.load(Ordering::Relaxed) <= due && self.uses.fetch_add(1, Ordering::Relaxed) == due
        })
    }

    /// Memory that the entry holds once its code is made, in bytes. Lists dominate.
    pub(crate) fn bytes(&self) -> usize {
        /// A page for thunks, and one for the kernel.
        const CODE: usize = 8 << 10;
        size_of::<Entry>() + self.layout.entries() as usize * 32 + CODE
    }

    /// Moves whole elements, for which [`Whole::bytes`] has a number.
    ///
    /// # Safety
    ///
    /// As for [`Entry::run`].
    #[inline]
    pub(crate) unsafe fn elements<const PACK: bool>(&self, sides: Sides, count: u64) {
        // SAFETY: the contract of `run` covers every byte of the elements, of which there is one at least, and `functions` holds only
        // an `ElementsFn`, which has the same contract.
        unsafe { self.functions.of::<PACK>(count)(sides.memory, sides.packed, count, self) }
    }

    /// Moves the bytes of a range that ends with the packed bytes or before.
    ///
    /// # Safety
    ///
    /// Every byte of the range is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn run<const PACK: bool>(&self, sides: Sides, range: Range) {
        let (count, whole) = (range.count(), range.is_whole(self.shape.size));
        // SAFETY: the bytes that are moved are those of the range; the kernel belongs to the program beside it.
        unsafe {
            match self.kernel_for(count) {
                Some(kernel) if whole => kernel.run::<PACK>(sides, count),
                None if whole => self.program.elements::<PACK>(sides, count),
                kernel => self.program.range::<PACK>(kernel, sides, range.offset(), range.length()),
            }
        }
    }
}

/// The background's compiling an entry for the CPU. It does not keep the entry alive.
pub(crate) struct Specialise(pub(crate) Weak<Entry>);

impl Job for Specialise {
    fn heat(&self) -> u32 {
        // It takes a hundredth of the time that a kernel for a GPU takes.
        u32::MAX
    }

    fn run(&self) {
        if let Some(entry) = self.0.upgrade() {
            entry.specialise();
        }
    }
}

/// # Safety
///
/// As for [`Entry::run`].
unsafe extern "C" fn by_program<const PACK: bool>(memory: *mut u8, packed: *mut u8, count: u64, entry: &Entry) {
    let sides = Sides { memory, packed };
    // SAFETY: the contract of `run` covers every byte of the elements. The kernel was compiled from `entry.program`, which lives as
    // long.
    unsafe {
        match entry.kernel_for(count) {
            Some(kernel) => kernel.run::<PACK>(sides, count),
            None if count == 1 => entry.program.one::<PACK>(sides),
            None => entry.program.elements::<PACK>(sides, count),
        }
    }
}

/// # Safety
///
/// As for [`Entry::run`].
unsafe extern "C" fn counted<const PACK: bool>(memory: *mut u8, packed: *mut u8, count: u64, entry: &Entry) {
    entry.count_call();
    // SAFETY: `by_program` moves the same elements under the same contract.
    unsafe { by_program::<PACK>(memory, packed, count, entry) }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
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
        matches!(committed.entry().thunks.get(), Some(Some(_)))
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
            assert!(committed.entry().kernel().is_none(), "type {at}:\n{}", committed.plan());
            assert!(has_thunks(&committed), "type {at}:\n{}", committed.plan());
        }
    }

    #[test]
    fn thunks_wait_for_the_kernel() {
        let engine = engine(Policy::Background);
        let committed = commit(&engine, RECORDS);
        assert!(committed.entry().wants_kernel());
        assert_eq!(pack(&committed, 2000), None);
        engine.compile_pending(std::time::Duration::MAX);
        assert_eq!(pack(&committed, 1), Some(0));
    }
}
