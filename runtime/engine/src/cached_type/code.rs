//! The machine code of a type: its kernel and its thunks.

use crate::cpu::{self, Calls, CpuKernel, Program, Thunks};
use dtc_compiler::plan::Target;
use dtc_compiler::plan::strategy::Strategy;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the machine code of a type is kept once it is made. It reads lists of the type's program.
///
/// A `OnceBox` never blocks: in a forked child, the thread that it would wait for does not exist.
pub(super) struct CodeSlot {
    /// The minimum of elements that are moved as one nest, which microkernels move faster than a kernel does that was compiled for
    /// one element.
    min_nest_elements: Option<u64>,
    /// `None` inside if the target has no kernel for the type.
    kernel: OnceBox<Option<CpuKernel>>,
    /// They call the kernel, or a microkernel with lists of the program.
    thunks: OnceBox<Option<Thunks>>,
    /// Set by the thread that makes the thunks. Other threads go on without them, so that a forked child cannot wait forever.
    thunks_claimed: AtomicBool,
}

impl CodeSlot {
    /// No code yet, for a program on this target.
    pub(super) fn new(program: &Program, target: &Target) -> CodeSlot {
        CodeSlot {
            min_nest_elements: Strategy::new(program.plan(), target, 1).fewest_of_nest(),
            kernel: OnceBox::new(),
            thunks: OnceBox::new(),
            thunks_claimed: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(super) fn kernel(&self) -> Option<&CpuKernel> {
        self.kernel.get().and_then(Option::as_ref)
    }

    /// The kernel, if it serves whole elements of a count.
    #[inline]
    pub(super) fn kernel_for(&self, count: u64) -> Option<&CpuKernel> {
        if self.min_nest_elements.is_some_and(|min| count >= min) { None } else { self.kernel() }
    }

    /// Whether a kernel is there, or none can be had.
    pub(super) fn has_tried_kernel(&self) -> bool {
        self.kernel.get().is_some()
    }

    /// Takes a kernel that was compiled ahead of time, if the bytes are one of the program.
    pub(super) fn load_kernel(&self, bytes: &[u8], program: &Program, target: &Target) {
        if let Some(kernel) = cpu::load(bytes, program, target) {
            self.kernel.get_or_init(|| Box::new(Some(kernel)));
        }
    }

    /// Compiles the kernel, unless that was tried before.
    pub(super) fn compile_kernel(&self, program: &Program, target: &Target) {
        self.kernel.get_or_init(|| Box::new(cpu::compile(program, target)));
    }

    /// True for the first thread that wants to make the thunks.
    pub(super) fn claim_thunks(&self) -> bool {
        !self.thunks_claimed.swap(true, Ordering::Relaxed)
    }

    /// Makes the thunks, after [`CodeSlot::claim_thunks`]; `None` if the target has none for the type.
    pub(super) fn make_thunks(&self, program: &Program, target: &Target) -> Option<&Thunks> {
        let new = || Thunks::new(self.thunk_calls::<true>(program, target), self.thunk_calls::<false>(program, target));
        self.thunks.get_or_init(|| Box::new(new())).as_ref()
    }

    /// What thunks of a direction do: straight code where that is faster, or calls of the kernel or of a microkernel.
    fn thunk_calls<const PACK: bool>(&self, program: &Program, target: &Target) -> Calls {
        let calls = match self.kernel() {
            Some(kernel) => {
                let [one, several] = kernel.calls::<PACK>();
                [one, several.filter(|_| self.min_nest_elements.is_none())]
            }
            None => program.calls::<PACK>(target.level),
        };
        let mut calls = calls.into_iter();
        program.without_call::<PACK>(target).map(|code| code.or(calls.next().flatten()))
    }

    /// Whether thunks were made.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(super) fn has_thunks(&self) -> bool {
        matches!(self.thunks.get(), Some(Some(_)))
    }
}
