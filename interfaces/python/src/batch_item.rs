//! What a batch has of each pack, unpack and copy.

use crate::acquire;
use crate::array::{Array, Held, Place};
use crate::committed::Moved;
use crate::described::Described;
use crate::errors::mismatch;
use crate::layout::Layout;
use crate::moves::{End, check_apart};
use crate::tables::{Tables, check_names};
use dtc_runtime::plan::Direction;
use dtc_runtime::{BatchTransfer, Endpoint, IndexTable, Range, Transfer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView};
use smallvec::SmallVec;

/// An array that a batch keeps.
pub struct Kept {
    /// The object.
    pub object: Py<PyAny>,
    /// What keeps the elements where they are, where the object does not.
    held: Py<PyAny>,
    is_unordered: bool,
    /// The address of the first element, or where the layout's type is applied.
    address: usize,
    /// The memory that it is in.
    pub place: Place,
}

impl Kept {
    /// Where the runtime finds it.
    pub fn endpoint(&self) -> Endpoint {
        let address = std::ptr::with_exposed_provenance_mut::<u8>(self.address);
        match self.place {
            Place::Host => Endpoint::host(address),
            Place::Reached(kind) => Endpoint::of_kind(kind, address),
        }
    }

    /// What has to be held until a stream has run that uses the memory, if its framework does not know of the stream.
    pub fn held(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.is_unordered.then(|| self.held.clone_ref(py))
    }
}

/// What is done.
pub enum Action {
    /// A pack or an unpack.
    Move(Direction),
    /// A copy to where this layout unpacks.
    Copy(Py<Layout>),
}

impl Action {
    fn copied(&self, py: Python<'_>) -> Action {
        match self {
            Action::Move(direction) => Action::Move(*direction),
            Action::Copy(layout) => Action::Copy(layout.clone_ref(py)),
        }
    }
}

/// A pack, an unpack or a copy, checked but for its tables, which are read when it runs.
pub struct Item {
    action: Action,
    /// The layout of the memory; of a copy, of what is read.
    layout: Py<Layout>,
    /// The arguments that are tables.
    tables: Option<Py<PyDict>>,
    /// The elements; of a copy, those that are read.
    pub memory: Kept,
    /// The packed bytes; of a copy, the elements that are written.
    pub other: Kept,
    /// Elements of the layout's type.
    pub count: u64,
    bytes: i64,
}

/// The tables of both layouts of an item.
pub type ItemTables<'py> = [Tables<'py>; 2];

/// The same as the engine takes them.
pub type ItemLists<'a> = [SmallVec<[IndexTable<'a>; 1]>; 2];

/// A request for an item. `place`: what errors call it; `read`, `written`: its arrays.
pub struct Request<'a, 'py> {
    /// What errors call it.
    pub place: &'a str,
    /// What is done.
    pub action: Action,
    /// The layout of the memory; of a copy, of what is read.
    pub layout: Py<Layout>,
    /// What is read.
    pub read: &'a Bound<'py, PyAny>,
    /// What is written.
    pub written: &'a Bound<'py, PyAny>,
    /// The arguments that are tables.
    pub tables: Option<Bound<'py, PyDict>>,
}

impl Request<'_, '_> {
    /// The item, if layouts, arrays and tables fit each other.
    pub fn item(self) -> PyResult<Item> {
        let Request { place, action, layout, read, written, tables } = self;
        let (reads, writes) = (format!("{place} x"), format!("{place} out"));
        let (read, written) = (acquire::array(&reads, read)?, acquire::array_to_write(&writes, written, None)?);
        let found = layout.get();
        let of_written = if let Action::Copy(layout) = &action { layout.get() } else { found };
        check_names(&[found.described(), of_written.described()], tables.as_ref())?;
        let (own, others) =
            (Tables::of(found.described(), tables.as_ref())?, Tables::of(of_written.described(), tables.as_ref())?);
        let (memory, other) = match action {
            Action::Move(Direction::Pack) => {
                let memory = found.end(&reads, &read, &own)?;
                let packed = found.packed(&writes, &written, memory.bytes())?;
                check_apart(&memory, &packed)?;
                (memory, packed)
            }
            Action::Move(Direction::Unpack) => {
                found.check_written(&writes)?;
                let memory = found.end(&writes, &written, &own)?;
                let packed = found.packed(&reads, &read, memory.bytes())?;
                check_apart(&packed, &memory)?;
                (memory, packed)
            }
            Action::Copy(_) => {
                of_written.check_written(&writes)?;
                let (from, to) = (found.end(&reads, &read, &own)?, of_written.end(&writes, &written, &others)?);
                if from.bytes() != to.bytes() {
                    let expected = format_args!("the {} packed bytes of what is read", from.bytes());
                    return Err(mismatch(&writes, expected, to.bytes()));
                }
                check_apart(&from, &to)?;
                (from, to)
            }
        };
        let count = |end: &End<'_, '_>| end.part.as_ref().map_or(1, |part| part.applied.count);
        if matches!(action, Action::Copy(_)) && (count(&memory), count(&other)) != (1, 1) {
            return Err(mismatch(place, "layouts of arrays, in a copy", "one of records"));
        }
        let (count, bytes) = (count(&memory), memory.bytes());
        let (memory, other) = (kept(&memory)?, kept(&other)?);
        let tables = tables.map(Bound::unbind);
        Ok(Item { action, layout, tables, memory, other, count, bytes })
    }
}

impl Item {
    /// Whether it is a pack or unpack without tables.
    pub fn is_plain(&self) -> bool {
        matches!(self.action, Action::Move(_)) && !self.layout.get().described().has_tables()
    }

    /// What it reads, and what it writes.
    pub fn read_and_written(&self) -> [&Kept; 2] {
        match self.action {
            Action::Move(Direction::Unpack) => [&self.other, &self.memory],
            _ => [&self.memory, &self.other],
        }
    }

    /// Its layouts.
    pub fn described(&self) -> Vec<&Described> {
        match &self.action {
            Action::Move(_) => vec![self.layout.get().described()],
            Action::Copy(written) => vec![self.layout.get().described(), written.get().described()],
        }
    }

    /// The request for the same with other arrays and tables.
    pub fn moved<'a, 'py>(
        &self,
        place: &'a str,
        [read, written]: [&'a Bound<'py, PyAny>; 2],
        tables: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Request<'a, 'py>> {
        let py = read.py();
        let tables = match (&self.tables, tables) {
            (Some(old), Some(new)) => {
                let all = old.bind(py).copy()?;
                all.update(new.as_mapping())?;
                Some(all)
            }
            (Some(old), None) => Some(old.bind(py).clone()),
            (None, new) => new.cloned(),
        };
        let (action, layout) = (self.action.copied(py), self.layout.clone_ref(py));
        Ok(Request { place, action, layout, read, written, tables })
    }

    /// What the tables hold now. They list as many elements as the arrays have.
    pub fn tables<'py>(&self, py: Python<'py>, place: usize) -> PyResult<ItemTables<'py>> {
        let arguments = self.tables.as_ref().map(|tables| tables.bind(py));
        let mut found = ItemTables::default();
        for (described, found) in self.described().into_iter().zip(&mut found) {
            *found = Tables::of(described, arguments)?;
            let bytes = if described.has_tables() { described.packed(&found.lengths()).0 } else { self.bytes };
            if bytes != self.bytes {
                let expected = format_args!("tables for {} packed bytes, as before", self.bytes);
                return Err(mismatch(format_args!("item {place}"), expected, bytes));
            }
        }
        Ok(found)
    }

    /// The transfer of a pack or unpack without tables.
    pub fn plain(&self) -> PyResult<Transfer<'_>> {
        let (Moved::Fixed(committed), Action::Move(direction)) = (&self.layout.get().made.ready()?.moved, &self.action)
        else {
            return Err(mismatch("item", "a pack or unpack without tables", "another"));
        };
        let elements = committed.at(self.memory.endpoint(), Range::elements(self.count));
        Ok(match direction {
            Direction::Pack => elements.pack(self.other.endpoint()),
            Direction::Unpack => elements.unpack(self.other.endpoint()),
        })
    }

    /// The transfer with its tables.
    pub fn transfer<'a>(&'a self, [own, others]: [&'a [IndexTable<'a>]; 2]) -> PyResult<BatchTransfer<'a>> {
        if self.is_plain() {
            return Ok(self.plain()?.into());
        }
        let (memory, other) = (self.memory.endpoint(), self.other.endpoint());
        let elements = self.layout.get().made.tabled()?.at(memory, own).skipping();
        Ok(match &self.action {
            Action::Move(Direction::Pack) => elements.pack(other).into(),
            Action::Move(Direction::Unpack) => elements.unpack(other).into(),
            Action::Copy(written) => elements.copy_to(written.get().made.tabled()?.at(other, others).skipping()).into(),
        })
    }
}

fn kept(end: &End<'_, '_>) -> PyResult<Kept> {
    let array: &Array<'_> = end.array;
    let held = match &array.held {
        // A `bytearray` moves its bytes when it grows, which it refuses while a view of it is there. Arrays do not grow.
        Held::Buffer(_) if array.dtype.is_none() => PyMemoryView::from(&array.object)?.into_any().unbind(),
        _ => array.kept(),
    };
    let address = end.part.as_ref().map_or(array.address, |part| part.applied.address);
    let place = array.place;
    Ok(Kept {
        object: array.object.clone().unbind(),
        held,
        is_unordered: array.is_unordered,
        address: address.expose_provenance(),
        place,
    })
}
