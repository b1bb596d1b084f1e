//! CUDA C++ of the kernels that dtc makes for GPUs.
//!
//! A file of `kernels/` is a template, and one way of moving bytes; `library/` has what templates call. The compiler fills in word sizes, shapes and the functions that tell where a
//! packed word lies in memory, and puts the [`PRELUDE`] before them. The text needs no CUDA header and no file.
//!
//! Every kernel has the parameters
//!
//! ```text
//! (u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, u32 blocks, Bounds call)
//! ```
//!
//! and moves packed bytes `first .. first + bytes`: `memory` is address 0 of element 0, `packed` is where packed byte
//! `first` lies, `tables` holds the lists of the type, `blocks` is how many blocks the work has, of which every block of the
//! grid takes its share, and `call` is what the elements span in memory. The generic kernels have an interpreter's program, or
//! columns, which begin with these bounds, in its place. Copies from type to type have a target there, and its element 0 at `packed`; kernels of types
//! with index tables have the numbers of the call there.
#![warn(missing_debug_implementations)]

mod machine_code;

pub use machine_code::{GENERIC_MACHINE_CODE, MachineCode, NOTHING_MACHINE_CODE};

/// Types that every kernel uses.
pub const PRELUDE: &str = include_str!("../library/prelude.cu");

/// A function that loads bytes at any address.
pub const LOAD_BYTES: &str = include_str!("../library/load_bytes.cu");

/// A function that stores bytes at any address.
pub const STORE_BYTES: &str = include_str!("../library/store_bytes.cu");

/// A function that stores bytes inside one aligned word.
pub const STORE_PART: &str = include_str!("../library/store_part.cu");

/// A function that shifts a word of 16 bytes out of two.
pub const FUNNEL: &str = include_str!("../library/funnel.cu");

/// Functions that put a word of 16 bytes together from parts, behind [`FUNNEL`].
pub const JOIN: &str = include_str!("../library/join.cu");

/// Functions that bring memory to shared memory so that its words lie in all banks.
pub const STAGED: &str = include_str!("../library/staged.cu");

/// A function that brings a line of memory to the L2 cache.
pub const PREFETCH: &str = include_str!("../library/prefetch.cu");

/// A function that does so where the runs of a warp begin or end inside of sectors, behind [`PREFETCH`].
pub const PREFETCH_ENDS: &str = include_str!("../library/prefetch_ends.cu");

/// Functions that combine an element of memory with a packed one. They need the names of operations and elements before them.
pub const COMBINE: &str = include_str!("../library/combine.cu");

/// Functions that load and store an element at any address, behind [`COMBINE`].
pub const LOAD_VALUE: &str = include_str!("../library/load_value.cu");

/// What a copy from type to type needs to know of the other side.
pub const COPY_TARGET: &str = include_str!("../library/copy_target.cu");

/// The interpreter of the generic kernels.
pub const INTERPRETER: &str = include_str!("../library/interpreter.cu");

/// The same for layouts with index tables, behind [`INTERPRETER`] and [`BEYOND`].
pub const INTERPRETER_TABLED: &str = include_str!("../library/interpreter_tabled.cu");

/// A function that notes an entry of an index table beyond its places.
pub const BEYOND: &str = include_str!("../library/beyond.cu");

/// The generic kernels as PTX of NVRTC 11.8 for compute_70, which every driver from CUDA 11.8 on compiles for its device, in
/// seconds: for devices that [`GENERIC_MACHINE_CODE`] does not serve. The first line tells the hash of the text they were
/// compiled from.
///
/// ```
/// assert!(dtc_templates::GENERIC_PTX.contains(".target sm_70"));
/// ```
pub const GENERIC_PTX: &str = include_str!("../generic.ptx");

/// A kernel that does nothing, `dtc_nothing`: the text of [`NOTHING_MACHINE_CODE`].
///
/// ```
/// assert!(dtc_templates::NOTHING.contains("dtc_nothing"));
/// ```
pub const NOTHING: &str = include_str!("../library/nothing.cu");

/// The same as PTX, for every device.
///
/// ```
/// assert!(dtc_templates::NOTHING_PTX.contains(".target sm_70"));
/// ```
pub const NOTHING_PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry dtc_nothing() { ret; }\n";

/// A template by its name.
///
/// ```
/// let words = dtc_templates::KERNELS.iter().find(|kernel| kernel.name == "words").unwrap();
/// assert!(words.text.contains("move_block"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// The name that plans use.
    pub name: &'static str,
    /// CUDA C++ with the placeholders of minijinja.
    pub text: &'static str,
}

// `KERNELS`, written by `build.rs`.
include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
