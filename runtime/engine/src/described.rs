//! Types as they were described: ready in less than a microsecond, for types that are moved once or a few times.

use crate::cpu::{self, Program, Sides};
use crate::entry::Shape;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Plan;
use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds that a type may take as described, by the estimate of its plan, before it is committed. Committing a small type takes
/// about as long.
const BUDGET: u64 = 8_000;

/// Nanoseconds that every call is counted with, beside its bytes. A short type reaches the budget after 30 calls.
const CALL: u64 = 250;

/// A layout that is moved without having been brought into its canonical form.
///
/// Its plan is made from the layout as it is, node by node. It has neither a hash nor an entry in a cache. The same interpreter
/// runs it, so the same bytes are moved, in more steps where the description has more than it needs. Calls are counted by what they
/// cost, and refused from the one on that committing the type is worth it.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_runtime::Described;
/// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 2 x byte\n  %1 = stream 2 x 4 of %0\n  root %1\n}")?;
/// let described = Described::new(layout);
/// let (memory, mut packed) = (*b"abcdefgh", [0; 4]);
/// // SAFETY: both sides are as long as the type.
/// let moved = unsafe { described.pack_raw(memory.as_ptr(), 1, 0, packed.as_mut_ptr(), 4) };
/// assert_eq!((moved, &packed), (Some(4), b"abef"));
/// # Ok::<(), dtc_compiler::layout::ParseError>(())
/// ```
pub struct Described {
    program: Program,
    layout: Layout,
    shape: Shape,
    /// Estimate for one element, in nanoseconds.
    element: u64,
    /// Estimate for the calls so far, in nanoseconds. Calls of several threads at once may count as one.
    spent: AtomicU64,
}

impl Described {
    /// Prepares a layout as it is.
    ///
    /// See [`Described`] for an example.
    pub fn new(layout: Layout) -> Described {
        let plan = Plan::as_described(&layout);
        let element = plan.decision().generic_nanoseconds();
        let (true_lb, true_ub) = (layout.true_lb(), layout.true_ub());
        let shape = Shape { size: layout.size(), extent: layout.extent(), true_lb, true_ub };
        Described { program: Program::new(plan, cpu::host()), layout, shape, element, spent: AtomicU64::new(0) }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Counts a call that moves `take` bytes. False from the call on that would exceed the budget.
    pub(crate) fn admits(&self, take: u64) -> bool {
        let elements = take.checked_div(self.shape.size).unwrap_or(0).saturating_add(1);
        let cost = self.element.saturating_mul(elements).saturating_add(CALL);
        // Two threads may both store their own sum: the budget is a bound for the sake of speed, not an exact number.
        let spent = self.spent.load(Ordering::Relaxed).saturating_add(cost);
        self.spent.store(spent, Ordering::Relaxed);
        spent <= BUDGET
    }

    /// Moves `take` bytes from packed byte `skip` on of `count` elements.
    ///
    /// # Safety
    ///
    /// Every byte of the range is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn run<const PACK: bool>(&self, sides: Sides, count: u64, skip: u64, take: u64) {
        // SAFETY: the caller's promise is the one asked for.
        unsafe {
            if skip == 0 && take == count.wrapping_mul(self.shape.size) {
                self.program.elements::<PACK>(sides, count);
            } else {
                self.program.range::<PACK>(None, sides, skip, take);
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Described::run`], for the range that the arguments name.
    unsafe fn raw<const PACK: bool>(&self, sides: Sides, count: u64, offset: u64, max: u64) -> Option<u64> {
        let take = max.min(count.wrapping_mul(self.shape.size).saturating_sub(offset));
        if !self.admits(take) {
            return None;
        }
        if take > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.run::<PACK>(sides, count, offset, take) };
        }
        Some(take)
    }

    /// Packs like [`Committed::pack_raw`](crate::Committed::pack_raw), or moves nothing and says so with `None` once committing the
    /// type is worth it.
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_raw`](crate::Committed::pack_raw).
    ///
    /// See [`Described`] for an example.
    pub unsafe fn pack_raw(
        &self,
        source: *const u8,
        count: u64,
        offset: u64,
        packed: *mut u8,
        max: u64,
    ) -> Option<u64> {
        // SAFETY: the caller's promise; `memory` is only read.
        unsafe { self.raw::<true>(Sides { memory: source.cast_mut(), packed }, count, offset, max) }
    }

    /// Unpacks like [`Committed::unpack_raw`](crate::Committed::unpack_raw), or moves nothing and says so with `None` once committing
    /// the type is worth it.
    ///
    /// # Safety
    ///
    /// As for [`Committed::unpack_raw`](crate::Committed::unpack_raw).
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_runtime::Described;
    /// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 2 x byte\n  %1 = stream 2 x 4 of %0\n  root %1\n}")?;
    /// let described = Described::new(layout);
    /// let mut memory = [b'.'; 8];
    /// // SAFETY: both sides are as long as the type.
    /// let mut unpack = || unsafe { described.unpack_raw(b"abef".as_ptr(), 4, memory.as_mut_ptr(), 1, 0) };
    /// assert_eq!((0..100).take_while(|_| unpack() == Some(4)).count(), 30);
    /// assert_eq!(&memory, b"ab..ef..");
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        length: u64,
        destination: *mut u8,
        count: u64,
        offset: u64,
    ) -> Option<u64> {
        // SAFETY: the caller's promise; `packed` is only read.
        unsafe { self.raw::<false>(Sides { memory: destination, packed: packed.cast_mut() }, count, offset, length) }
    }
}
