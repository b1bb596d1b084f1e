//! What equal types share: one canonical layout, one program, one kernel.

use crate::cpu::{self, Both, Kernel, Program, RootShape, Run, Sides};
use crate::engine::Policy;
use crate::gpu::{self, DEVICES, GpuType};
use crate::leaves::{Nest, Single, SingleFn, select_single};
use dtc_compiler::layout::{Fingerprint, Layout, Point, TypeHash};
use dtc_compiler::passes::Report;
use dtc_compiler::plan::{Level, Plan, Target};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Which code moves the bytes of a type.
///
/// ```
/// assert_eq!(dtc_runtime::Tier::Specialised.to_string(), "specialised");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Leaves driven by the plan.
    Generic,
    /// A kernel compiled for the type.
    Specialised,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Generic => "generic",
            Tier::Specialised => "specialised",
        })
    }
}

/// What calls need of a layout, side by side.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) size: u64,
    pub(crate) extent: i64,
    pub(crate) true_lb: i64,
    pub(crate) true_ub: i64,
}

/// What a safe call for one whole element looks at. Laid out as declared.
#[repr(C)]
pub(crate) struct Whole {
    /// Packed bytes of such a call, if nobody counts it; more than any slice has if uses are counted.
    pub(crate) packed: u64,
    /// Bytes that it needs of a buffer before its origin, and in all.
    pub(crate) before: u64,
    pub(crate) span: u64,
}

/// Moves one whole element, under the contract of [`Entry::run`].
type One = SingleFn<Entry>;

/// Everything about a byte sequence that does not depend on how it was described.
///
/// Laid out as declared: what a call for one element of rows looks at comes first, in two cache lines. The packed bytes of a short
/// type and its rows may fill whole sets of the first-level cache, of which each line more pushes others out.
#[repr(C, align(64))]
pub(crate) struct Entry {
    pub(crate) whole: Whole,
    /// What moves one whole element, where calls are short: chosen once, so that they look at nothing.
    one: Both<One>,
    program: Program,
    pub(crate) shape: Shape,
    /// The use after which a lazy kernel is due.
    due: Option<u32>,
    uses: AtomicU32,
    /// Reads lists of the program.
    kernel: OnceLock<Option<Kernel>>,
    pub(crate) hash: TypeHash,
    pub(crate) layout: Layout,
    pub(crate) report: Report,
    target: Target,
    confirmation: OnceLock<Fingerprint>,
    /// The type on every device that it was used on; made at the first.
    devices: OnceLock<Box<[OnceLock<Arc<GpuType>>; DEVICES]>>,
}

const _: () = assert!(std::mem::offset_of!(Entry, program) + Program::CALLED_BYTES <= 128, "two cache lines");

impl Entry {
    pub(crate) fn new(hash: TypeHash, layout: Layout, report: Report, target: Target, policy: Policy) -> Entry {
        let program = Program::new(Plan::new(&layout), &target);
        let due = if let Policy::Lazy(due) = policy { Some(due) } else { None };
        let compiled = policy == Policy::Always || program.plan().decision().specialise();
        let (pack, unpack) =
            (one_of::<true>(&program, compiled, &target), one_of::<false>(&program, compiled, &target));
        let (true_lb, true_ub) = (layout.true_lb(), layout.true_ub());
        let shape = Shape { size: layout.size(), extent: layout.extent(), true_lb, true_ub };
        let whole = Whole {
            packed: if due.is_none() { layout.size() } else { u64::MAX },
            before: true_lb.min(0).unsigned_abs(),
            span: true_lb.min(0).abs_diff(true_ub.max(0)),
        };
        Entry {
            whole,
            shape,
            one: Both { pack, unpack },
            hash,
            layout,
            report,
            kernel: OnceLock::new(),
            program,
            target,
            confirmation: OnceLock::new(),
            due,
            uses: AtomicU32::new(0),
            devices: OnceLock::new(),
        }
    }

    /// The fingerprint at this process's own point, which no one outside can aim at.
    pub(crate) fn confirmation(&self, point: &Point) -> Fingerprint {
        *self.confirmation.get_or_init(|| self.layout.fingerprint(point))
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

    /// Compiles the kernel, if it pays and has not been tried.
    pub(crate) fn specialise(&self) {
        if self.wants_kernel() {
            self.compile();
        }
    }

    /// Compiles the kernel, if the plan is not too large and it has not been tried.
    pub(crate) fn compile(&self) {
        if self.plan().decision().allows() {
            self.kernel.get_or_init(|| cpu::compile(&self.program, &self.target));
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

    pub(crate) fn tier(&self) -> Tier {
        if self.kernel().is_some() { Tier::Specialised } else { Tier::Generic }
    }

    /// The type on a device. Whoever asks first has its kernels compiled as the policy says; by then others find it.
    pub(crate) fn on_device(&self, ordinal: usize, gpu: impl FnOnce() -> Arc<gpu::Shared>) -> &Arc<GpuType> {
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

    /// Counts a use; true when it is the one after which a lazy kernel is due.
    pub(crate) fn used(&self) -> bool {
        self.due.is_some_and(|due| {
            // Saturates far from wrapping: it is not counted on after it was due.
            self.uses.load(Ordering::Relaxed) <= due && self.uses.fetch_add(1, Ordering::Relaxed) == due
        })
    }

    /// Memory that the entry holds, in bytes: lists dominate.
    pub(crate) fn bytes(&self) -> usize {
        let list_entries = self.layout.entries() as usize;
        size_of::<Entry>() + list_entries * 32 + self.kernel().map_or(0, Kernel::code_bytes)
    }

    /// Moves one whole element.
    ///
    /// # Safety
    ///
    /// As for [`Entry::run`].
    #[inline]
    pub(crate) unsafe fn one<const PACK: bool>(&self, sides: Sides) {
        // SAFETY: the caller's promise.
        unsafe { self.one.of::<PACK>()(self, sides.memory, sides.packed) }
    }

    /// Moves `take` bytes from packed byte `skip` on of `count` elements.
    ///
    /// # Safety
    ///
    /// Every byte of the range is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn run<const PACK: bool>(&self, sides: Sides, count: u64, skip: u64, take: u64) {
        let whole = skip == 0 && take == count.wrapping_mul(self.shape.size);
        // SAFETY: the caller's promise; the kernel belongs to the program beside it.
        unsafe {
            match self.kernel() {
                Some(kernel) if whole => kernel.run::<PACK>(sides, count),
                None if whole => self.program.elements::<PACK>(sides, count),
                kernel => self.program.range::<PACK>(kernel, sides, skip, take),
            }
        }
    }
}

/// What moves one element of a program, which a kernel may come to serve.
fn one_of<const PACK: bool>(program: &Program, compiled: bool, target: &Target) -> One {
    if compiled {
        return one_by_kernel::<PACK>;
    }
    let streaming = cpu::is_streaming(program.plan(), target);
    let single = select_single::<Entry, PACK>(target.level, program.nest(), streaming);
    single.unwrap_or(match program.shape() {
        RootShape::Rows => one_rows::<PACK>,
        RootShape::Planes => one_planes::<PACK>,
        RootShape::Other => one_of_any::<PACK>,
    })
}

/// The root of its program.
impl Single for Entry {
    #[inline(always)]
    fn offset(&self) -> isize {
        self.program.offset() as isize
    }

    #[inline(always)]
    fn nest(&self) -> &Nest {
        self.program.nest()
    }
}

/// # Safety
///
/// As for [`Entry::run`].
unsafe fn one_by_kernel<const PACK: bool>(entry: &Entry, memory: *mut u8, packed: *mut u8) {
    let sides = Sides { memory, packed };
    // SAFETY: the caller's promise; the kernel belongs to the program beside it.
    unsafe {
        match entry.kernel() {
            Some(kernel) => kernel.run::<PACK>(sides, 1),
            None => entry.program.one::<PACK>(sides),
        }
    }
}

/// # Safety
///
/// As for [`Entry::run`].
unsafe fn one_rows<const PACK: bool>(entry: &Entry, memory: *mut u8, packed: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { entry.program.one_rows::<PACK>(Sides { memory, packed }) }
}

/// # Safety
///
/// As for [`Entry::run`].
unsafe fn one_planes<const PACK: bool>(entry: &Entry, memory: *mut u8, packed: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { entry.program.one_planes::<PACK>(Sides { memory, packed }) }
}

/// # Safety
///
/// As for [`Entry::run`].
unsafe fn one_of_any<const PACK: bool>(entry: &Entry, memory: *mut u8, packed: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { entry.program.one::<PACK>(Sides { memory, packed }) }
}
