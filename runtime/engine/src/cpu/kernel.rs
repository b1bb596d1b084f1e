//! Compiled kernels: machine code at an address, bound to the microkernels and lists it uses.

use super::Addresses;
use super::memory::Code;
use super::program::Program;
use super::thunk::{Call, Calls, Thunk};
#[cfg(feature = "jit")]
use dtc_compiler::codegen::cranelift::Compiler;
use dtc_compiler::codegen::cranelift::{Image, MachineCode, Microkernel};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::strategy::{Strategy, Target};
use dtc_compiler::plan::{Offsets, Plan, Step};
use dtc_microkernels::Level;
#[cfg(feature = "jit")]
use once_cell::race::OnceBox;

/// `fn(memory, packed, count, tables)`: see [`dtc_compiler::codegen::cranelift`].
type KernelFn = unsafe extern "C" fn(*mut u8, *mut u8, u64, *const *const u8);

/// The kernels of one type, in both directions.
pub(crate) struct CpuKernel {
    /// Keeps the instructions in memory.
    _code: Code,
    pack: DirectionCode,
    unpack: DirectionCode,
}

struct DirectionCode {
    entry: KernelFn,
    tables: Box<[*const u8]>,
}

// SAFETY: the table pointers lead into lists of the program, which lives as long as the kernel and never changes.
unsafe impl Send for CpuKernel {}
// SAFETY: the tables and the code are only read.
unsafe impl Sync for CpuKernel {}

/// Compiles the kernels of a program; `None` when this machine or its policy does not allow it.
#[cfg(feature = "jit")]
pub(crate) fn compile(program: &Program, target: &Target) -> Option<CpuKernel> {
    // One process runs on one CPU, so the first target is the only one.
    static COMPILER: OnceBox<Option<Compiler>> = OnceBox::new();
    let compiler = COMPILER.get_or_init(|| Box::new(Compiler::new(target.level).ok())).as_ref()?;
    bind(Image::compile(compiler, program.plan()).ok()?, program, target)
}

/// No kernels: there is no compiler without the feature `jit`.
#[cfg(not(feature = "jit"))]
pub(crate) fn compile(_: &Program, _: &Target) -> Option<CpuKernel> {
    None
}

/// The kernels of a program that were compiled ahead of time; `None` when the bytes are others, or this machine's policy does not
/// allow code to be made.
pub(crate) fn load(bytes: &[u8], program: &Program, target: &Target) -> Option<CpuKernel> {
    bind(Image::from_bytes(bytes, program.plan()).ok()?, program, target)
}

/// Gives kernels an address, and the microkernels and lists that they refer to.
fn bind(image: Image, program: &Program, target: &Target) -> Option<CpuKernel> {
    let plan = program.plan();
    let mut code = Vec::new();
    let mut place = |direction: Direction, mut compiled: MachineCode| {
        relocate(&mut compiled, plan, direction, target)?;
        let start = code.len().next_multiple_of(compiled.alignment.max(16) as usize);
        code.resize(start, 0);
        code.extend_from_slice(&compiled.code);
        let tables: Option<Box<[*const u8]>> = compiled.tables.iter().map(|&id| table(plan.step(id))).collect();
        Some((start, tables?))
    };
    let (pack, pack_tables) = place(Direction::Pack, image.pack)?;
    let (unpack, unpack_tables) = place(Direction::Unpack, image.unpack)?;
    let code = Code::new(&code).ok()?;
    let half = |start: usize, tables| {
        // SAFETY: the compiler placed a function of this signature at the start of each part.
        let entry = unsafe { std::mem::transmute::<*const u8, KernelFn>(code.start().wrapping_add(start)) };
        DirectionCode { entry, tables }
    };
    let (pack, unpack) = (half(pack, pack_tables), half(unpack, unpack_tables));
    Some(CpuKernel { _code: code, pack, unpack })
}

/// Writes the addresses of the microkernels into the code. One element decides how they store and prefetch.
fn relocate(compiled: &mut MachineCode, plan: &Plan, direction: Direction, target: &Target) -> Option<()> {
    let strategy = Strategy::new(plan, target, 1);
    for relocation in &compiled.relocations {
        let address = address(relocation.microkernel, direction, target.level, strategy);
        let at = relocation.offset as usize;
        let address = address.wrapping_add_signed(relocation.addend as isize) as u64;
        compiled.code.get_mut(at..at + 8)?.copy_from_slice(&address.to_ne_bytes());
    }
    Some(())
}

fn address(microkernel: Microkernel, direction: Direction, level: Level, strategy: Strategy<'_>) -> usize {
    use dtc_microkernels::*;
    let (pack, non_temporal, prefetch) =
        (direction == Direction::Pack, strategy.non_temporal(), strategy.prefetches_lists());
    match microkernel {
        Microkernel::Copy => copy as *const () as usize,
        Microkernel::Rows(bytes) if pack => select_pack_rows(level, bytes, non_temporal) as usize,
        Microkernel::Rows(bytes) => select_unpack_rows(level, bytes) as usize,
        Microkernel::Planes(bytes) if pack => select_pack_planes(level, bytes, non_temporal) as usize,
        Microkernel::Planes(bytes) => select_unpack_planes(level, bytes) as usize,
        Microkernel::Tile(bytes) if pack => select_pack_tile(level, bytes) as usize,
        Microkernel::Tile(bytes) => select_unpack_tile(level, bytes) as usize,
        Microkernel::List32(bytes) if pack => select_pack_list32(level, bytes) as usize,
        Microkernel::List32(bytes) => select_unpack_list32(level, bytes, prefetch) as usize,
        Microkernel::List64(bytes) if pack => select_pack_list64(level, bytes) as usize,
        Microkernel::List64(bytes) => select_unpack_list64(level, bytes, prefetch) as usize,
        Microkernel::Runs if pack => select_pack_runs(level) as usize,
        Microkernel::Runs => select_unpack_runs(level) as usize,
    }
}

fn table(step: &Step) -> Option<*const u8> {
    match step {
        Step::List { offsets, .. } | Step::Scatter { offsets, .. } => Some(match offsets {
            Offsets::Narrow(offsets) => offsets.as_ptr().cast(),
            Offsets::Wide(offsets) => offsets.as_ptr().cast(),
        }),
        Step::Runs(table) => Some(table.runs.as_ptr().cast()),
        _ => None,
    }
}

impl CpuKernel {
    /// The calls that move one whole element, and several.
    pub(crate) fn calls<const PACK: bool>(&self) -> Calls {
        let half = if PACK { &self.pack } else { &self.unpack };
        let (function, tables) = (half.entry as usize, half.tables.as_ptr() as u64);
        [Some(Call::new(function, 0, [1, tables])), Call::of_several(function, 0, 1, [tables])]
            .map(|call| call.map(Thunk::Call))
    }

    /// Moves `count` whole elements, at least one.
    ///
    /// # Safety
    ///
    /// Every byte of the elements is readable on one side and writable on the other, the sides do not overlap, and the
    /// program that the kernel was compiled from is alive.
    #[inline]
    pub(crate) unsafe fn run<const PACK: bool>(&self, Addresses { memory, packed }: Addresses, count: u64) {
        let half = if PACK { &self.pack } else { &self.unpack };
        // SAFETY: the compiled function moves `count` elements, every byte of which the contract of `run` covers. Its tables
        // point into the program, which is alive.
        unsafe { (half.entry)(memory, packed, count, half.tables.as_ptr()) }
    }
}
