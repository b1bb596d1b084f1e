//! Types as they were described: ready in less than a microsecond, for types that are moved once or a few times.

use crate::cpu::{self, Addresses, Program};
use crate::range::Range;
use crate::shape::Shape;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Plan;
use once_cell::race::OnceBox;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time that a type is moved as described before it is committed, in nanoseconds, by the estimate of its plan. Committing a small
/// type takes about as long.
const BUDGET: u64 = 8_000;

/// Fixed cost of a call, in nanoseconds, beside its bytes. A short type reaches the budget after 30 calls.
const CALL: u64 = 250;

/// A layout that is moved without having been brought into its canonical form.
///
/// Its plan is made from the layout as it is, node by node. It has neither a hash nor an entry in a cache. The same interpreter
/// runs it, so the same bytes are moved, in more steps where the description has more than it needs. Each call adds its cost to
/// a sum. Calls are refused once the sum exceeds the cost of committing the type.
///
/// # Example
///
/// ```
/// use dtc_runtime::layout::Layout;
/// use dtc_runtime::{UncommittedPlan, Range};
/// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 2 x byte\n  %1 = stream 2 x 4 of %0\n  root %1\n}")?;
/// let described = UncommittedPlan::new(layout);
/// let (memory, mut packed) = (*b"abcdefgh", [0; 4]);
/// // SAFETY: both ends are as long as the type.
/// let moved = unsafe { described.pack(memory.as_ptr(), Range::elements(1), packed.as_mut_ptr()) };
/// assert_eq!((moved, &packed), (Some(4), b"abef"));
/// # Ok::<(), dtc_runtime::TextError>(())
/// ```
pub struct UncommittedPlan {
    layout: Layout,
    shape: Shape,
    /// Made at the first call in memory of the host: on a device the layout alone is needed.
    on_host: OnceBox<OnHost>,
    /// Estimate for the calls so far, in nanoseconds. Calls of several threads at once may count as one.
    spent: AtomicU64,
}

/// What moves it in memory of the host.
struct OnHost {
    program: Program,
    /// Estimate for one element, in nanoseconds.
    element: u64,
}

impl fmt::Debug for UncommittedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncommittedPlan")
            .field("layout", &self.layout)
            .field("spent", &self.spent)
            .finish_non_exhaustive()
    }
}

impl UncommittedPlan {
    /// Prepares a layout as it is.
    ///
    /// See [`UncommittedPlan`] for an example.
    pub fn new(layout: Layout) -> UncommittedPlan {
        let (true_lb, true_ub) = (layout.true_lb(), layout.true_ub());
        let shape = Shape { size: layout.size(), extent: layout.extent(), true_lb, true_ub };
        UncommittedPlan { layout, shape, on_host: OnceBox::new(), spent: AtomicU64::new(0) }
    }

    /// Makes what calls in memory of the host need.
    pub(crate) fn prepare(&self) {
        self.on_host();
    }

    fn on_host(&self) -> &OnHost {
        self.on_host.get_or_init(|| {
            let plan = Plan::as_described(&self.layout);
            let element = plan.decision().generic_nanoseconds();
            Box::new(OnHost { program: Program::new(plan, cpu::host()), element })
        })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Counts a call that moves this many bytes. False from the call on that would exceed the budget.
    pub(crate) fn admits(&self, bytes: u64) -> bool {
        let elements = bytes.checked_div(self.shape.size).unwrap_or(0).saturating_add(1);
        let cost = self.on_host().element.saturating_mul(elements).saturating_add(CALL);
        // Two threads may both store their own sum: the budget is a bound for the sake of speed, not an exact number.
        let spent = self.spent.load(Ordering::Relaxed).saturating_add(cost);
        self.spent.store(spent, Ordering::Relaxed);
        spent <= BUDGET
    }

    /// Moves the bytes of a range that ends with the packed bytes or before.
    ///
    /// # Safety
    ///
    /// Every byte of the range is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn run<const PACK: bool>(&self, addresses: Addresses, range: Range) {
        let OnHost { program, .. } = self.on_host();
        // SAFETY: the bytes that are moved are those of the range.
        unsafe {
            if range.is_whole(self.shape.size) {
                program.elements::<PACK>(addresses, range.count());
            } else {
                program.range::<PACK>(None, addresses, range.offset(), range.length());
            }
        }
    }

    /// # Safety
    ///
    /// As for [`UncommittedPlan::run`], for the part of the range that there is.
    unsafe fn admitted<const PACK: bool>(&self, addresses: Addresses, range: Range) -> Option<usize> {
        let range = range.within(range.count().wrapping_mul(self.shape.size));
        let length = range.length();
        if !self.admits(length) {
            return None;
        }
        if length > 0 {
            // SAFETY: `within` ends the range with the packed bytes, and the contract of `run` holds for the bytes up to there.
            unsafe { self.run::<PACK>(addresses, range) };
        }
        Some(length as usize)
    }

    /// Packs bytes of elements at any address of the host; returns how many. Moves nothing and returns `None` once committing
    /// the type is worth it.
    ///
    /// # Safety
    ///
    /// Clauses 1 to 4 of the contract of [`Transfer`](crate::Transfer).
    ///
    /// See [`UncommittedPlan`] for an example.
    pub unsafe fn pack(&self, memory: *const u8, range: Range, packed: *mut u8) -> Option<usize> {
        // SAFETY: clauses 1 and 2 are what is asked for; `memory` is only read.
        unsafe { self.admitted::<true>(Addresses { memory: memory.cast_mut(), packed }, range) }
    }

    /// Unpacks bytes into elements at any address of the host; the counterpart of [`UncommittedPlan::pack`].
    ///
    /// # Safety
    ///
    /// As for [`UncommittedPlan::pack`].
    ///
    /// ```
    /// use dtc_runtime::layout::Layout;
    /// use dtc_runtime::{UncommittedPlan, Range};
    /// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 2 x byte\n  %1 = stream 2 x 4 of %0\n  root %1\n}")?;
    /// let described = UncommittedPlan::new(layout);
    /// let mut memory = [b'.'; 8];
    /// // SAFETY: both ends are as long as the type.
    /// let mut unpack = || unsafe { described.unpack(b"abef".as_ptr(), Range::elements(1), memory.as_mut_ptr()) };
    /// assert_eq!((0..100).take_while(|_| unpack() == Some(4)).count(), 30);
    /// assert_eq!(&memory, b"ab..ef..");
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    pub unsafe fn unpack(&self, packed: *const u8, range: Range, memory: *mut u8) -> Option<usize> {
        // SAFETY: clauses 1 to 4 hold for the range (contract of `pack`), which is what `admitted` asks for; `packed` is only
        // read.
        unsafe { self.admitted::<false>(Addresses { memory, packed: packed.cast_mut() }, range) }
    }
}
