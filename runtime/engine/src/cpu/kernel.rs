//! Compiled kernels: machine code at an address, bound to the leaves and lists it uses.

use super::Sides;
use super::memory::Code;
use super::program::{Program, is_far, is_streaming};
use super::thunk::Call;
use dtc_compiler::codegen::cranelift::{Compiler, Leaf, MachineCode};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::{Offsets, Step, Target};
use dtc_microkernels::Level;
use once_cell::race::OnceBox;

/// `fn(memory, packed, count, tables)`: see [`dtc_compiler::codegen::cranelift`].
type Entry = unsafe extern "C" fn(*mut u8, *mut u8, u64, *const *const u8);

/// The kernels of one type, in both directions.
pub(crate) struct Kernel {
    /// Keeps the instructions in memory.
    _code: Code,
    pack: Half,
    unpack: Half,
}

struct Half {
    entry: Entry,
    tables: Box<[*const u8]>,
}

// SAFETY: the table pointers lead into lists of the program, which lives as long as the kernel and never changes.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// Compiles the kernels of a program; `None` when this machine or its policy does not allow it.
pub(crate) fn compile(program: &Program, target: &Target) -> Option<Kernel> {
    // One process runs on one CPU, so the first target is the only one.
    static COMPILER: OnceBox<Option<Compiler>> = OnceBox::new();
    let compiler = COMPILER.get_or_init(|| Box::new(Compiler::new(target.level).ok())).as_ref()?;
    let plan = program.plan();
    let footprint = Footprint { streaming: is_streaming(plan, target), far: is_far(plan) };
    let mut code = Vec::new();
    let mut place = |direction: Direction| {
        let mut compiled = compiler.compile(plan, direction).ok()?;
        relocate(&mut compiled, direction, target.level, footprint)?;
        let start = code.len().next_multiple_of(compiled.alignment.max(16) as usize);
        code.resize(start, 0);
        code.extend_from_slice(&compiled.code);
        let tables: Option<Box<[*const u8]>> = compiled.tables.iter().map(|&id| table(plan.step(id))).collect();
        Some((start, tables?))
    };
    let (pack, pack_tables) = place(Direction::Pack)?;
    let (unpack, unpack_tables) = place(Direction::Unpack)?;
    let code = Code::new(&code).ok()?;
    let half = |start: usize, tables| {
        // SAFETY: the compiler placed a function of this signature at the start of each part.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(code.start().wrapping_add(start)) };
        Half { entry, tables }
    };
    let (pack, unpack) = (half(pack, pack_tables), half(unpack, unpack_tables));
    Some(Kernel { _code: code, pack, unpack })
}

/// Which caches the bytes of a plan are beyond.
#[derive(Clone, Copy)]
struct Footprint {
    /// The last level.
    streaming: bool,
    /// The first level.
    far: bool,
}

/// Writes the addresses of the leaves into the code.
fn relocate(compiled: &mut MachineCode, direction: Direction, level: Level, footprint: Footprint) -> Option<()> {
    for relocation in &compiled.relocations {
        let address =
            address(relocation.leaf, direction, level, footprint).wrapping_add_signed(relocation.addend as isize);
        let at = relocation.offset as usize;
        compiled.code.get_mut(at..at + 8)?.copy_from_slice(&(address as u64).to_ne_bytes());
    }
    Some(())
}

fn address(leaf: Leaf, direction: Direction, level: Level, Footprint { streaming, far }: Footprint) -> usize {
    let pack = direction == Direction::Pack;
    match leaf {
        Leaf::Copy => dtc_microkernels::copy as *const () as usize,
        Leaf::Rows(bytes) if pack => dtc_microkernels::select_pack_rows(level, bytes, streaming) as usize,
        Leaf::Rows(bytes) => dtc_microkernels::select_unpack_rows(level, bytes) as usize,
        Leaf::Planes(bytes) if pack => dtc_microkernels::select_pack_planes(level, bytes, streaming) as usize,
        Leaf::Planes(bytes) => dtc_microkernels::select_unpack_planes(level, bytes) as usize,
        Leaf::Tile(bytes) if pack => dtc_microkernels::select_pack_tile(level, bytes) as usize,
        Leaf::Tile(bytes) => dtc_microkernels::select_unpack_tile(level, bytes) as usize,
        Leaf::List32(bytes) if pack => dtc_microkernels::select_pack_list32(level, bytes) as usize,
        Leaf::List32(bytes) => dtc_microkernels::select_unpack_list32(level, bytes, far) as usize,
        Leaf::List64(bytes) if pack => dtc_microkernels::select_pack_list64(level, bytes) as usize,
        Leaf::List64(bytes) => dtc_microkernels::select_unpack_list64(level, bytes, far) as usize,
        Leaf::Runs if pack => dtc_microkernels::select_pack_runs(level) as usize,
        Leaf::Runs => dtc_microkernels::select_unpack_runs(level) as usize,
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

impl Kernel {
    /// The call that moves one whole element.
    pub(crate) fn call<const PACK: bool>(&self) -> Call {
        let half = if PACK { &self.pack } else { &self.unpack };
        Call::new(half.entry as usize, 0, [1, half.tables.as_ptr() as u64])
    }

    /// Moves `count` whole elements, at least one.
    ///
    /// # Safety
    ///
    /// Every byte of the elements is readable on one side and writable on the other, the sides do not overlap, and the
    /// program that the kernel was compiled from is alive.
    #[inline]
    pub(crate) unsafe fn run<const PACK: bool>(&self, Sides { memory, packed }: Sides, count: u64) {
        let half = if PACK { &self.pack } else { &self.unpack };
        // SAFETY: the caller's promise is the contract of the compiled function.
        unsafe { (half.entry)(memory, packed, count, half.tables.as_ptr()) }
    }
}
