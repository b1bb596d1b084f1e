//! Moving bytes in host memory: the generic tier and compiled kernels.

mod call;
mod coherence;
mod fragment;
mod kernel;
mod memory;
mod permuted;
mod program;
mod run;
mod straight;
mod thunk;

pub(crate) use kernel::{CpuKernel, compile, load};
pub(crate) use program::Program;
pub(crate) use run::Run;
pub(crate) use thunk::{Calls, Thunks};

use dtc_compiler::plan::Target;
use once_cell::race::OnceBox;

/// The CPU that this process runs on.
pub(crate) fn host() -> &'static Target {
    static HOST: OnceBox<Target> = OnceBox::new();
    HOST.get_or_init(|| {
        Box::new(Target {
            level: dtc_microkernels::detect_level(),
            non_temporal_bytes: dtc_microkernels::non_temporal_threshold() as u64,
        })
    })
}

/// The addresses of the strided memory and of the packed bytes. The direction says which of them is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) memory: *mut u8,
    pub(crate) packed: *mut u8,
}

impl Addresses {
    /// Both addresses further on. The arithmetic wraps, since a result need not lie in the allocation: gaps may be unmapped, and
    /// types may reach below their origin.
    #[inline]
    pub(crate) fn at(self, offset: i64, position: u64) -> Addresses {
        Addresses {
            memory: self.memory.wrapping_offset(offset as isize),
            packed: self.packed.wrapping_add(position as usize),
        }
    }
}
