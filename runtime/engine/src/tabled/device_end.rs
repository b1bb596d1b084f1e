//! An end of a call that has tables, as a device sees it.

use super::table::IndexTable;
use crate::cached_type::tabled::TabledType;
use std::sync::Arc;

/// Elements as a device sees them.
#[derive(Clone, Copy)]
pub(super) struct DeviceEnd<'a> {
    pub(super) shared: &'a Arc<TabledType>,
    pub(super) tables: &'a [IndexTable<'a>],
    pub(super) address: u64,
    /// The first packed byte.
    pub(super) first: u64,
}

/// The other end.
#[derive(Clone, Copy)]
pub(super) enum Packed<'a> {
    /// The address of the first packed byte that is moved.
    Bytes(u64),
    /// Elements of another type.
    Elements(DeviceEnd<'a>),
}
