//! Layouts as types of the engine.

use crate::described::{Base, Described, refused};
use dtc_runtime::datatype::{Datatype, DatatypeError, Predefined, TabledDatatype, TypeBuilder, TypeId};
use dtc_runtime::{Committed, CommittedTabled, Engine};
use once_cell::race::OnceBox;
use pyo3::prelude::*;

/// The engine of the process.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceBox<Engine> = OnceBox::new();
    ENGINE.get_or_init(|| Box::new(Engine::new()))
}

/// A layout, and what the engine makes of it at the first use.
pub struct LayoutType {
    /// What it is.
    pub described: Described,
    ready: OnceBox<Ready>,
    tabled: OnceBox<CommittedTabled>,
}

/// A layout that is ready to be moved.
pub struct Ready {
    /// The committed type.
    pub moved: Moved,
    /// The layout's `span` of one element of the type.
    pub span: (i64, i64),
    /// Whether the layout `writes_twice`.
    pub writes_twice: bool,
}

/// A committed type.
pub enum Moved {
    /// All of whose places the layout knows.
    Fixed(Committed),
    /// Some of whose places come with the call.
    Tabled(CommittedTabled),
}

impl From<Described> for LayoutType {
    fn from(described: Described) -> LayoutType {
        LayoutType { described, ready: OnceBox::new(), tabled: OnceBox::new() }
    }
}

impl LayoutType {
    /// The layout, made ready.
    #[inline]
    pub fn ready(&self) -> PyResult<&Ready> {
        match self.ready.get() {
            Some(ready) => Ok(ready),
            None => self.ready.get_or_try_init(|| Ready::of(&self.described).map(Box::new)),
        }
    }

    /// The committed type as one with index tables, for copies from or to a layout that has some.
    pub fn tabled(&self) -> PyResult<&CommittedTabled> {
        self.tabled.get_or_try_init(|| as_tabled(&self.described).map(Box::new))
    }
}

impl Ready {
    fn of(described: &Described) -> PyResult<Ready> {
        let moved = match described.has_tables() {
            false => Moved::Fixed(engine().commit(&datatype(described).map_err(refused)?)),
            true => Moved::Tabled(as_tabled(described)?),
        };
        Ok(Ready { moved, span: described.span(1), writes_twice: described.writes_twice() })
    }
}

fn as_tabled(described: &Described) -> PyResult<CommittedTabled> {
    Ok(engine().commit_tabled(&tabled_datatype(described)?))
}

/// The datatype of a layout, with its index tables if it has any.
pub fn tabled_datatype(described: &Described) -> PyResult<TabledDatatype> {
    if let Base::Tabled(loaded) = &described.whole.base {
        return Ok(loaded.datatype().clone());
    }
    let datatype = match described.tabled.is_empty() {
        true => datatype(described).map(TabledDatatype::from),
        false => {
            let mut types = TypeBuilder::new();
            build(described, &mut types).and_then(|made| types.finish_tabled(made))
        }
    };
    datatype.map_err(refused)
}

/// The datatype, applied to the first byte of the first element that is packed.
fn datatype(described: &Described) -> Result<Datatype, DatatypeError> {
    if let Base::Memory(datatype) = &described.whole.base {
        return Ok(datatype.clone());
    }
    let mut types = TypeBuilder::new();
    let made = build(described, &mut types)?;
    types.finish(made)
}

fn build(described: &Described, types: &mut TypeBuilder) -> Result<TypeId, DatatypeError> {
    let Described { whole, runs, view, tabled, .. } = described;
    let byte = types.named(Predefined::BYTE);
    let mut made = match runs.as_slice() {
        &[(0, bytes)] => types.contiguous(bytes, byte)?,
        several => {
            let (offsets, lengths): (Vec<i64>, Vec<i64>) = several.iter().copied().unzip();
            types.hindexed(&lengths, &offsets, byte)?
        }
    };
    if matches!(whole.base, Base::Records) {
        made = types.resized(0, whole.element.bytes, made)?;
    }
    for (axis, (&count, &stride)) in view.shape.iter().zip(&view.strides).enumerate().rev() {
        if let Some(by) = tabled.iter().find(|tabled| tabled.axis == axis) {
            let number = described.tables().iter().position(|table| **table == by.table).unwrap_or(0);
            made = types.table(number as i64, by.places, by.table.most, stride, made)?;
        } else if count != 1 {
            made = types.hvector(count, 1, stride, made)?;
        }
    }
    Ok(made)
}
