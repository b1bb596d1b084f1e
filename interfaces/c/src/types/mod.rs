//! Types: how they are made, committed, counted and asked about.

mod blocks;
mod construct;
mod create;
mod element;
mod info;
mod query;

pub use blocks::{dtc_block, dtc_type_from_blocks};
pub use construct::*;
pub use create::*;
pub use element::*;
pub use info::dtc_info;
pub use query::dtc_type_query;

use crate::handle::{self, Handle, Tag};
use crate::memory;
use crate::status::{DTC_ERROR_COMMIT, Failure, Outcome, answer};
use dtc_compiler::datatype::{Constructor, Datatype};
use dtc_compiler::layout::positions::Positions;
use dtc_compiler::layout::segments::SegmentIndex;
use dtc_compiler::lower;
use dtc_compiler::operation::Element;
use dtc_runtime::{Committed, Engine, Policy, is_recording};
use once_cell::race::OnceBox;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

/// `dtc_type_commit`: wait until the kernel for host memory is compiled, whatever the policy.
pub const DTC_COMMIT_EAGER: u64 = 1;

/// A datatype. Immutable once committed; any thread may use it. Counted: `dtc_type_retain`, `dtc_type_release`.
pub struct dtc_type(());

impl Handle for dtc_type {
    type Inside = Type;
    const TAG: Tag = Tag::TYPE;
    const NAME: &'static str = "dtc_type";
}

/// What the handle of a type leads to. Threads that ask for something first make it side by side, and none waits for another: a
/// forked child might wait for ever.
pub(crate) struct Type {
    pub(crate) committed: Committed,
    /// Whether its elements are bfloat16. MPI has no predefined type for them, so the datatype has unsigned integers.
    bfloat: bool,
    /// How far the type has come: [`NEW`], [`COMMITTED`] or [`READY`]. The number says no more than that, so no order is needed.
    state: AtomicU8,
    /// Where packed bytes lie; made by the first call that asks.
    positions: OnceBox<Positions<'static>>,
    /// The pieces of memory by number.
    segments: OnceBox<SegmentIndex>,
    /// The positions with the elements told apart.
    elements: OnceBox<Positions<'static>>,
    /// What a query tells, but for what changes.
    info: OnceBox<dtc_info>,
}

/// The caller has not committed the type.
const NEW: u8 = 0;
/// The caller has committed the type, and no call has used it.
const COMMITTED: u8 = 1;
/// What the first packs need is there.
const READY: u8 = 2;

impl Type {
    pub(crate) fn new(engine: &Engine, datatype: Datatype) -> Type {
        Type {
            committed: engine.prepare(datatype),
            bfloat: false,
            state: AtomicU8::new(NEW),
            positions: OnceBox::new(),
            segments: OnceBox::new(),
            elements: OnceBox::new(),
            info: OnceBox::new(),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.committed.engine()
    }

    pub(crate) fn datatype(&self) -> &Datatype {
        self.committed.datatype()
    }

    /// The element that operations see in a basic type, or in one that is the same with other bounds.
    pub(crate) fn element(&self) -> Option<Element> {
        if self.bfloat {
            return Some(Element::Bf16);
        }
        let mut node = self.datatype();
        while let (Constructor::Dup | Constructor::Resized { .. }, [child]) = (node.constructor(), node.children()) {
            node = child;
        }
        if let Constructor::Named(predefined) = node.constructor() { Element::of(*predefined) } else { None }
    }

    /// The committed type, if a call used it before.
    #[inline]
    pub(crate) fn used(&self) -> Option<&Committed> {
        (self.state.load(Ordering::Relaxed) == READY).then_some(&self.committed)
    }

    /// The type, if it is committed, ready to be used.
    #[inline]
    pub(crate) fn ready(&self) -> Outcome<&Type> {
        match self.state.load(Ordering::Relaxed) {
            READY => Ok(self),
            COMMITTED => self.prepare(),
            _ => {
                let message = "dtc_type: expected a committed type, found one that is not";
                Err(Failure::new(DTC_ERROR_COMMIT, message))
            }
        }
    }

    /// Commits the type. What that takes is done here only where the policy of the engine says so.
    pub(crate) fn commit(&self) -> Outcome {
        if self.engine().policy() == Policy::Eager || is_recording() {
            self.prepare()?;
        } else if self.state.load(Ordering::Relaxed) == NEW {
            self.state.store(COMMITTED, Ordering::Relaxed);
        }
        Ok(())
    }

    #[cold]
    fn prepare(&self) -> Outcome<&Type> {
        let _claim = memory::for_entries(self.datatype().most_entries())?;
        self.committed.commit();
        // The first packs have no claim of their own.
        self.committed.describe();
        self.state.store(READY, Ordering::Relaxed);
        Ok(self)
    }

    /// Where the packed bytes of the layout as described lie, which knows its elements.
    pub(crate) fn elements(&self) -> Outcome<&Positions<'static>> {
        match self.ready()?.elements.get() {
            Some(elements) => Ok(elements),
            None => {
                let _claim = memory::for_entries(self.datatype().most_entries())?;
                let layout = lower(self.datatype());
                Ok(self.elements.get_or_init(|| Box::new(Positions::owning(layout))))
            }
        }
    }

    /// Makes what look-ups need, if none has asked for it.
    pub(crate) fn prepare_look_ups(&self) -> Outcome {
        if self.positions.get().is_none() || self.segments.get().is_none() {
            // The canonical layout has at most a few entries for each one of the description.
            let _claim = memory::for_entries(self.committed.layout().entries())?;
            let _ = (self.positions(), self.segments());
        }
        Ok(())
    }

    /// Where packed bytes lie.
    pub(crate) fn positions(&self) -> &Positions<'static> {
        self.positions.get_or_init(|| Box::new(Positions::owning(self.committed.layout().clone())))
    }

    /// The pieces of memory by number.
    pub(crate) fn segments(&self) -> &SegmentIndex {
        self.segments.get_or_init(|| Box::new(SegmentIndex::new(self.committed.layout())))
    }
}

/// Hands a new type to the caller.
///
/// # Safety
///
/// `place` is null, misaligned, or writable.
unsafe fn give(made: Type, place: *mut *mut dtc_type) -> Outcome {
    crate::arguments::check_pointer("type", place)?;
    // SAFETY: `place` is aligned and not null (checked above), so it is writable (contract of this function).
    unsafe { crate::arguments::give("type", place, handle::share(made)) }
}

/// Makes a type usable for moving bytes. With `DTC_POLICY_EAGER` its canonical form, its plan and its kernel are made here; otherwise
/// once its use has repaid them, or when a call asks for them. Never waits for a compiler, unless
/// the policy of the engine or `hints` say so. A type that is committed already stays as it is; a child of another type
/// need not be committed. (MPI 4.1, 5.1.9)
///
/// `hints`: 0, or `DTC_COMMIT_EAGER`.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_ARGUMENT`: an unknown hint.
///
/// # Safety
///
/// `type` is null or a type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_commit(r#type: *mut dtc_type, hints: u64) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let requested = unsafe { handle::borrow(r#type)? };
        if hints & !DTC_COMMIT_EAGER != 0 {
            return Err(Failure::argument("hints", "0 or DTC_COMMIT_EAGER", hints));
        }
        requested.commit()?;
        if hints == DTC_COMMIT_EAGER {
            let _claim = memory::for_a_kernel(0)?;
            requested.ready()?.committed.specialise();
        }
        Ok(())
    })
}

/// Counts one more reference to a type.
///
/// `DTC_ERROR_HANDLE`: not a type.
///
/// # Safety
///
/// `type` is null or a type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_retain(r#type: *mut dtc_type) -> c_int {
    // SAFETY: `type` is null or a live type (contract of this function).
    answer(|| unsafe { handle::retain(r#type) })
}

/// Counts one reference less; the last one frees the type. Types made of it and requests under way keep what they need.
///
/// `DTC_ERROR_HANDLE`: not a type.
///
/// # Safety
///
/// `type` is null or a type, and the caller does not use this reference any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_release(r#type: *mut dtc_type) -> c_int {
    // SAFETY: `type` is null or a live type, and the caller gives its reference up (contract of this function).
    answer(|| unsafe { handle::release(r#type) })
}
