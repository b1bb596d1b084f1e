//! Packs and unpacks of many types in one launch.
//!
//! [`kernel`] holds the compiled kernels, one for each collection of types and alignments; [`prepared`] holds batches as they
//! were launched, which costs nothing but a comparison when they come again.

mod item;
mod kernel;
mod prepared;

pub(crate) use item::BatchItem;
pub(crate) use kernel::BatchKernel;
pub(crate) use prepared::{Batches, Prepared, item_table, launch_items, placed};
