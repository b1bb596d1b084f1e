//! What a processor does with a plan: the microkernel of every step, its prefetches and stores, and whether a kernel is compiled.
//!
//! All thresholds of moving bytes on a CPU are in this folder, each with its unit and where it was measured. A plan depends on the
//! layout alone; a [`Strategy`] is a pure function of plan, processor and size of the call.
//!
//! | file | decides |
//! |---|---|
//! | `processor.rs` | what the levels of instructions are good for |
//! | `nest.rs` | how rows are moved, and what is prefetched |
//! | `shuffle.rs` | how short rows are grouped |
//! | `stores.rs` | which stores are non-temporal: they bypass the caches |
//! | `group.rs` | which small bodies of loops are moved word by word |
//! | `pieces.rs` | the words that move them |
//! | `shape.rs` | which nests are tiles, and which are listed: the only decisions that a plan holds |
//! | `straight.rs` | which elements thunks move by straight code |
//! | `permuted.rs` | which elements thunks shuffle |
//! | `several.rs` | how many elements are moved as one nest, though there is a kernel |
//! | `closed.rs` | how functions without microkernels move rows and lists |
//! | `kernel.rs` | whether a kernel is compiled, and what it writes out |
//!
//! Which instructions move one block of a given length is the catalogue of the microkernels
//! (`runtime/microkernels/src/select.rs`).

mod closed;
mod group;
mod kernel;
mod nest;
mod permuted;
mod pieces;
mod processor;
mod several;
pub(super) mod shape;
mod shuffle;
mod stores;
mod straight;

pub(crate) use closed::{
    CLOSED_INLINE_BYTES, CLOSED_LOOP_BYTES, ListMethod, RowsMethod, Vectors, blockwise_bytes, closed_list, closed_rows,
    near_elements,
};
pub use group::{Word, WordGroup};
pub(super) use kernel::decide;
pub use kernel::{Decision, SPECIALISED_DEPTH, SPECIALISED_STEPS};
pub(crate) use kernel::{
    INLINE_BYTES, INLINE_CLOSE_ROWS, INLINE_PIECE_BYTES, INLINE_ROWS, INLINE_STRIDE, INLINE_WORD_BYTES,
    INTERLEAVED_ARRAYS, LOOP_WORDS, MICROKERNEL_ROWS, UNROLLED_LIST_WORDS, UNROLLED_WORDS,
};
pub use nest::{FEW_BYTES, FEW_ROWS, Nest, NestMethod, Prefetch, RowLoop, nest, whole_nest};
pub use permuted::Permutation;
pub use pieces::WIDTHS;
pub(crate) use pieces::{PieceWord, words_of};
pub use processor::{Level, Target};
pub use shuffle::{FARTHEST as LONGEST_SHUFFLED_STRIDE, Group, LONGEST as LONGEST_SHUFFLED_ROW};
pub use stores::{LEAST_NON_TEMPORAL, copies_non_temporally, is_beyond_caches, is_non_temporal};
pub use straight::Straight;

use super::{Direction, Offsets, Plan, Step, StepId};
use std::fmt;

/// Footprint of a plan, in bytes, from which its lists are beyond the first-level cache, and their unpacks prefetch.
const FIRST_LEVEL: u64 = 40 << 10;

/// Most blocks of a list that are gathered. Longer lists were not measured.
const GATHERED_BLOCKS: usize = 1 << 16;

/// Most elements of 16 bytes that a pack transposes in registers. More are faster one by one, on Sapphire Rapids and Zen 3.
const TRANSPOSED_PAIRS: usize = 1 << 14;

/// Fewest packed bytes of elements of 4 and 16 bytes that a pack transposes in registers on a Zen 5. Up to 4 MiB took 0.65 to 0.9 of the
/// time one by one, 9 MiB and more 1.2.
const ZEN_TRANSPOSED_BYTES: usize = 8 << 20;

/// Most words of 8 bytes that a pack transposes in registers on Sapphire Rapids: 6 MiB took 0.73 of the time one by one.
const TRANSPOSED_WORDS: usize = 1 << 19;

/// Most packed bytes of a tile whose rows a pack reads one after the other, all columns of 16 at a time. 64 KiB to 9 MiB took 0.45 to
/// 0.86 of the time that a line of columns at a time takes, 64 MiB 1.4, on a Zen 5 and on Sapphire Rapids.
const WHOLE_ROWS_BYTES: usize = 16 << 20;

/// Whether a pack gathers `count` blocks at 32-bit offsets. A gather takes 64 bytes.
#[inline(always)]
#[must_use]
pub fn is_gathered(level: Level, bytes: usize, count: usize) -> bool {
    level.gathers() && matches!(bytes, 4 | 8) && count >= 64 / bytes && count <= GATHERED_BLOCKS
}

/// Whether a tile is transposed in registers, in squares of one line, or of a vector for elements of 1 and 2 bytes. Its planes are
/// neighbours.
///
/// Elements of 1 and 2 bytes took 0.15 to 0.4 of the time one by one, 100 to 1,000 rows and columns, on a Zen 4.
/// With AVX2, 8 KiB to 16 MiB on a Zen 3: elements of 4 and 8 bytes took 0.24 to 0.8 of the time one by one; of 16 bytes, packs up to 512 KiB
/// 0.44 to 0.84, packs of 4 MiB and more 1.07 to 1.9, and unpacks 0.45 to 0.8, but for one of 1.14.
#[inline(always)]
#[must_use]
pub fn is_transposed(level: Level, direction: Direction, plane_stride: isize, elements: usize, bytes: usize) -> bool {
    let serves = match bytes {
        1 | 2 => true,
        4 | 8 | 16 if matches!(direction, Direction::Unpack) => true,
        4 | 16 if matches!(level, Level::Zen5) => elements >= ZEN_TRANSPOSED_BYTES / bytes,
        4 => true,
        8 => !matches!(level, Level::Avx512) || elements <= TRANSPOSED_WORDS,
        16 => elements <= TRANSPOSED_PAIRS,
        _ => false,
    };
    level >= Level::Avx2 && serves && plane_stride == bytes as isize
}

/// Whether a pack reads whole rows of a tile that is not transposed in registers.
#[inline(always)]
#[must_use]
pub fn reads_whole_rows(direction: Direction, packed_bytes: usize) -> bool {
    matches!(direction, Direction::Pack) && packed_bytes <= WHOLE_ROWS_BYTES
}

/// Bytes of neighbouring planes from which on an unpack writes all of them before the next rows.
const WIDE: usize = 1 << 10;

/// Whether the squares of a tile that is transposed in registers follow each other along the rows of memory: a transpose is fastest in
/// the order of what it writes. Elements of 16 bytes in 256 rows a multiple of 4 KiB apart took 0.75 of the time for a pack in the
/// order of the packed bytes and 2.9 in the other, 1.0 and 0.2 for an unpack, on a Zen 5. Where planes reach into the next rows, the last
/// plane must be unpacked last.
#[inline(always)]
#[must_use]
pub fn writes_rows_first(direction: Direction, planes: usize, stride: isize, bytes: usize) -> bool {
    matches!(direction, Direction::Unpack) && (WIDE..=stride.unsigned_abs()).contains(&planes.saturating_mul(bytes))
}

/// How one step of a plan is carried out, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStrategy {
    /// The bodies are interpreted, or part of a kernel.
    Loop,
    /// One contiguous piece.
    Copy,
    /// A nest of rows.
    Nest {
        /// What moves it.
        method: NestMethod,
        /// Whether that is a microkernel for a nest of just these numbers.
        whole: bool,
        /// Whether the packed bytes bypass the caches.
        non_temporal: bool,
    },
    /// A nest in cache tiles.
    Tile {
        /// Whether squares are transposed in registers.
        transposed: bool,
    },
    /// Blocks at listed offsets.
    List {
        /// Whether they are gathered.
        gathered: bool,
        /// Whether the lines of blocks ahead are prefetched.
        prefetch: bool,
    },
    /// Runs of differing length.
    Runs,
}

/// How a processor carries out each step of a plan.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::strategy::{Level, Strategy, Target};
/// use dtc_compiler::plan::Plan;
/// let text = "layout lb 0 extent 8000 {\n  %0 = dense 40 x byte\n  %1 = stream 12 x 112 of %0\n  root %1\n}";
/// let plan = Plan::new(&Layout::parse(text)?);
/// let target = Target { level: Level::Zen5, ..Target::default() };
/// assert!(Strategy::new(&plan, &target, 1).to_string().contains("rows of 40 bytes, 1 per iteration, prefetch off"));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Strategy<'a> {
    plan: &'a Plan,
    level: Level,
    non_temporal: bool,
    far: bool,
}

impl<'a> Strategy<'a> {
    /// The strategy for calls of `count` elements.
    pub fn new(plan: &'a Plan, target: &Target, count: u64) -> Strategy<'a> {
        Strategy {
            plan,
            level: target.level,
            non_temporal: is_beyond_caches(plan.size().saturating_mul(count), target.non_temporal_bytes),
            far: plan.footprint() > FIRST_LEVEL,
        }
    }

    /// Whether packs go by non-temporal stores where a microkernel can.
    pub fn non_temporal(&self) -> bool {
        self.non_temporal
    }

    /// Whether unpacks of lists prefetch: they are beyond the first-level cache, and the processor gains by it.
    pub fn prefetches_lists(&self) -> bool {
        self.far && self.level.prefetches()
    }

    /// How a step is carried out, which is one of the plan or what [`Plan::repeated`] makes of its root.
    pub fn step(&self, step: &Step, direction: Direction) -> StepStrategy {
        match *step {
            Step::Nothing | Step::Repeat { .. } | Step::Scatter { .. } | Step::Sequence { .. } => StepStrategy::Loop,
            Step::Copy { .. } => StepStrategy::Copy,
            Step::Rows { rows, stride, bytes } => self.nest(direction, [1, rows, bytes], [0, stride]),
            Step::Planes { planes, plane_stride, rows, stride, bytes } => {
                self.nest(direction, [planes, rows, bytes], [plane_stride, stride])
            }
            Step::Tile { planes, plane_stride, rows, bytes, .. } => {
                let elements = planes.saturating_mul(rows) as usize;
                let transposed = is_transposed(self.level, direction, plane_stride as isize, elements, bytes as usize);
                StepStrategy::Tile { transposed }
            }
            Step::List { ref offsets, bytes } => {
                let pack = direction == Direction::Pack;
                let narrow = matches!(offsets, Offsets::Narrow(_));
                StepStrategy::List {
                    gathered: pack && narrow && is_gathered(self.level, bytes as usize, offsets.len()),
                    prefetch: !pack && self.prefetches_lists(),
                }
            }
            Step::Runs(_) => StepStrategy::Runs,
        }
    }

    fn nest(
        &self,
        direction: Direction,
        [planes, rows, bytes]: [u64; 3],
        [plane_stride, stride]: [i64; 2],
    ) -> StepStrategy {
        let non_temporal = self.non_temporal && direction == Direction::Pack && is_non_temporal(self.level, bytes);
        let numbers = Nest {
            bytes: bytes as usize,
            rows: rows as usize,
            stride: stride as isize,
            planes: planes as usize,
            plane_stride: plane_stride as isize,
        };
        let whole = whole_nest(self.level, direction, &numbers);
        let method = whole.unwrap_or_else(|| nest(self.level, direction, &numbers));
        StepStrategy::Nest { method, whole: whole.is_some(), non_temporal }
    }

    fn write_step(&self, f: &mut fmt::Formatter<'_>, direction: Direction, id: StepId, step: &Step) -> fmt::Result {
        let strategy = self.step(step, direction);
        if strategy == StepStrategy::Loop {
            return Ok(());
        }
        write!(f, "\n  #{} {direction}: ", id.index())?;
        match (step, strategy) {
            (
                Step::Rows { bytes, .. } | Step::Planes { bytes, .. },
                StepStrategy::Nest { method, non_temporal, .. },
            ) => {
                write!(f, "rows of {bytes} bytes, {method}")?;
                f.write_str(if non_temporal { ", non-temporal stores" } else { "" })
            }
            (Step::Tile { bytes, .. }, StepStrategy::Tile { transposed }) => {
                let how = if transposed { "transposed in registers" } else { "one by one" };
                write!(f, "tile of {bytes} bytes, {how}")
            }
            (Step::List { bytes, .. }, StepStrategy::List { gathered, prefetch }) => {
                let how = if gathered { "gathered" } else { "one by one" };
                write!(f, "list of {bytes} bytes, {how}, prefetch {}", if prefetch { "on" } else { "off" })
            }
            (Step::Copy { bytes }, _) => write!(f, "copy of {bytes} bytes"),
            _ => f.write_str("runs"),
        }
    }
}

impl fmt::Display for Strategy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stores = if self.non_temporal { "beyond the caches" } else { "within the caches" };
        write!(f, "strategy for {}, packed bytes {stores}", self.level)?;
        for (index, step) in self.plan.steps().iter().enumerate() {
            for direction in [Direction::Pack, Direction::Unpack] {
                self.write_step(f, direction, StepId::new(index), step)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for NestMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NestMethod::Rows(RowLoop { library: true, .. }) => f.write_str("by the C library"),
            NestMethod::Rows(RowLoop { unrolled, prefetch, .. }) => {
                write!(f, "{unrolled} per iteration, prefetch ")?;
                match prefetch {
                    Prefetch::Off => f.write_str("off"),
                    Prefetch::Ahead(bytes) => write!(f, "{bytes} bytes ahead"),
                    Prefetch::NextRow => f.write_str("of the next row"),
                }
            }
            NestMethod::Planes(rows) => write!(f, "{rows} per iteration, prefetch off"),
            NestMethod::Shuffled(Group { vectors, rows }) => {
                write!(f, "shuffled, {rows} of {vectors} vectors at a time")
            }
            NestMethod::EveryOtherWord => f.write_str("every other word, shuffled"),
            NestMethod::Reversed => f.write_str("turned round in registers"),
            NestMethod::Overhanging => f.write_str("as whole vectors"),
            NestMethod::Transposed => f.write_str("transposed in registers"),
            NestMethod::Pairs => f.write_str("in pairs"),
            NestMethod::Sixteens => f.write_str("16 per iteration, prefetch off"),
            NestMethod::SixtyFours => f.write_str("64 per iteration, prefetch off"),
            NestMethod::Gathered => f.write_str("gathered"),
        }
    }
}
