//! How a GPU moves the bytes of a layout.
//!
//! A [`GpuPlan`] knows a layout, and what the families of kernels find in it. For a [`Direction`](super::Direction) and the alignment and range of a
//! [`Call`] it chooses a [`Variant`]: a kernel of a [`Family`]. Any layout is moved by one launch, in which threads are balanced by bytes and not by blocks,
//! and neighbouring threads touch neighbouring packed bytes.
//!
//! - `families/` has a file for each family, with all that is said of it; `families/mod.rs` has the order in which they are tried.
//! - `tuning/` has the numbers that they compare with, a table for an architecture.
//! - `analysis.rs` is what a plan knows of a layout, `grid.rs` how work is spread over blocks, and `text.rs` what texts of kernels are made from.

mod analysis;
mod call;
mod copies;
mod families;
mod granularity;
mod grid;
mod literals;
mod plan;
mod roofline;
mod runs;
mod shape;
mod sizes;
mod tabled;
mod text;
mod tuning;
mod type_to_type;
mod variant;
mod whole;

pub(crate) use analysis::Analysis;
pub use analysis::Structure;
pub use call::Call;
pub use copies::{Copies, MOST_COPIES};
pub use families::*;
pub use granularity::Granularity;
pub(crate) use granularity::alignment;
pub use grid::Grid;
pub(crate) use grid::{Units, launched};
pub(crate) use literals::{number, signed, word_type};
pub use plan::{GpuPlan, SPECIALISED_DEPTH, SPECIALISED_NODES};
pub(crate) use roofline::GRANULE;
pub use roofline::{DeviceCopy, Footprint, Roofline, Traffic};
pub(crate) use runs::{RunStatistics, is_searched, shortest_run};
pub use shape::LaunchShape;
pub(crate) use sizes::{BANK, BANKS, JOINED, LINE, SCALAR, SECTOR, SLOT, WARP, WIDEST};
pub use tabled::TabledVariant;
pub(crate) use text::{AddressFunction, KernelList, KernelText, LibraryPart, ListedPiece};
pub use tuning::Cut;
pub(crate) use tuning::{
    BoxesTuning, ColumnsTuning, FieldsTuning, GroupsTuning, JoinedTuning, PiecesTuning, Row, SM_90, TilesTuning,
    Tuning, WordsTuning,
};
pub use type_to_type::{CopyCall, CopyFamily, CopyVariant};
pub use variant::Variant;
pub use whole::WholeKernel;
