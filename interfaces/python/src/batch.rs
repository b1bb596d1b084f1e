//! The class `Batch`.

use crate::acquire;
use crate::array::{Array, Place};
use crate::batch_item::{Action, Item, ItemLists, ItemTables, Kept, Request};
use crate::committed::engine;
use crate::errors::{mismatch, not_moved};
use crate::kept::keep;
use crate::layout::Layout;
use crate::moves::Carried;
use crate::stream::stream;
use crate::tables::{self, Tables};
use dtc_runtime::cuda::{MemoryKind, Stream};
use dtc_runtime::plan::Direction;
use dtc_runtime::{BatchTransfer, PersistentBatch, TabledError, Transfer, TransferError};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What a list of packs or unpacks has of each: the layout, what is read, what is written, and tables if the layout has some.
#[derive(FromPyObject)]
enum Listed<'py> {
    Tabled(Py<Layout>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyDict>),
    Plain(Py<Layout>, Bound<'py, PyAny>, Bound<'py, PyAny>),
}

/// What a list of copies has of each: what is written and its layout, what is read and its layout, and tables if a layout has some.
#[derive(FromPyObject)]
enum ListedCopy<'py> {
    Tabled(Bound<'py, PyAny>, Py<Layout>, Bound<'py, PyAny>, Py<Layout>, Bound<'py, PyDict>),
    Plain(Bound<'py, PyAny>, Py<Layout>, Bound<'py, PyAny>, Py<Layout>),
}

/// An entry of a list as the tuple that it has to be.
fn entry<'py, T: for<'a> FromPyObject<'a, 'py>>(place: &str, entry: &Bound<'py, PyAny>, expected: &str) -> PyResult<T> {
    entry.extract::<T>().map_err(|_| {
        let name = |object: &Bound<'_, PyAny>| object.get_type().to_string();
        let found = match entry.cast::<PyTuple>() {
            Ok(tuple) => format!("a tuple of {}", tuple.iter().map(|part| name(&part)).collect::<Vec<_>>().join(", ")),
            Err(_) => name(entry),
        };
        PyTypeError::new_err(format!(
            "{place}: expected {expected}, and a dict of tables behind for index axes, found {found}"
        ))
    })
}

fn listed(place: &str, direction: Direction, found: &Bound<'_, PyAny>) -> PyResult<Item> {
    let expected = if matches!(direction, Direction::Pack) { "(layout, x, out)" } else { "(layout, buf, out)" };
    let (layout, read, written, tables) = match entry(place, found, expected)? {
        Listed::Tabled(layout, read, written, tables) => (layout, read, written, Some(tables.copy()?)),
        Listed::Plain(layout, read, written) => (layout, read, written, None),
    };
    Request { place, action: Action::Move(direction), layout, read: &read, written: &written, tables }.item()
}

fn listed_copy(place: &str, found: &Bound<'_, PyAny>) -> PyResult<Item> {
    let (written, to, read, layout, tables) = match entry(place, found, "(dst, ld, src, ls)")? {
        ListedCopy::Tabled(written, to, read, from, tables) => (written, to, read, from, Some(tables.copy()?)),
        ListedCopy::Plain(written, to, read, from) => (written, to, read, from, None),
    };
    Request { place, action: Action::Copy(to), layout, read: &read, written: &written, tables }.item()
}

/// Packs, unpacks and copies that are run again and again: on a GPU as one launch.
///
/// They may run in any order, so that none should write what another reads or writes. The batch keeps the arrays. Layouts with index axes have a dict of
/// tables behind the arrays, which are read at each run.
///
/// >>> import numpy as np, libdtc
/// >>> field = np.arange(12).reshape(3, 4)
/// >>> faces = [libdtc.layout(field)[0], libdtc.layout(field)[:, 0]]
/// >>> out = [np.empty(4, int), np.empty(3, int)]
/// >>> batch = libdtc.Batch([(face, field, one) for face, one in zip(faces, out)])
/// >>> batch.run()
/// >>> out
/// [array([0, 1, 2, 3]), array([0, 4, 8])]
#[pyclass(module = "libdtc")]
pub struct Batch {
    items: Vec<Item>,
    /// The device that moves the bytes, if one of the arrays is on one.
    device: Option<u32>,
    prepared: Option<PersistentBatch>,
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (packs=Vec::new(), unpacks=Vec::new(), copies=Vec::new()))]
    fn new(
        packs: Vec<Bound<'_, PyAny>>,
        unpacks: Vec<Bound<'_, PyAny>>,
        copies: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Batch> {
        let mut items = Vec::with_capacity(packs.len() + unpacks.len() + copies.len());
        for (at, pack) in packs.iter().enumerate() {
            items.push(listed(&format!("packs[{at}]"), Direction::Pack, pack)?);
        }
        for (at, unpack) in unpacks.iter().enumerate() {
            items.push(listed(&format!("unpacks[{at}]"), Direction::Unpack, unpack)?);
        }
        for (at, copy) in copies.iter().enumerate() {
            items.push(listed_copy(&format!("copies[{at}]"), copy)?);
        }
        let device = items.iter().flat_map(|item| [item.memory.place, item.other.place]).find_map(Place::device);
        let batch = Batch { items, device, prepared: None };
        (0..batch.items.len()).try_for_each(|at| batch.check_reached(at))?;
        Ok(batch)
    }

    /// How many packs, unpacks and copies there are.
    fn __len__(&self) -> usize {
        self.items.len()
    }

    /// Has item `i`, of the packs, then the unpacks, then the copies, read `x`, write `out` and use these tables from now on; what is left out
    /// stays.
    #[pyo3(name = "move", signature = (i, /, x=None, out=None, **tables))]
    fn move_item(
        &mut self,
        py: Python<'_>,
        i: usize,
        x: Option<&Bound<'_, PyAny>>,
        out: Option<&Bound<'_, PyAny>>,
        tables: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let Some(old) = self.items.get(i) else {
            let expected = format!("i: expected an item below {}, found {i}", self.items.len());
            return Err(PyIndexError::new_err(expected));
        };
        let [read, written] = old.read_and_written();
        let read = x.unwrap_or(read.object.bind(py));
        let written = out.unwrap_or(written.object.bind(py));
        let new = old.moved(&format!("item {i}"), [read, written], tables)?.item()?;
        let old = std::mem::replace(&mut self.items[i], new);
        if let Err(error) = self.check_reached(i) {
            self.items[i] = old;
            return Err(error);
        }
        let new = &self.items[i];
        match &mut self.prepared {
            // Records may be as many as the new array has, which a prepared batch does not take.
            Some(_) if new.count != old.count => self.prepared = None,
            Some(prepared) => prepared.move_to(i, new.memory.endpoint(), new.other.endpoint()),
            None => {}
        }
        Ok(())
    }

    /// Runs all of them; on a GPU enqueues them on `stream`, or on the current stream of the framework of the arrays.
    #[pyo3(signature = (stream=None))]
    fn run(&mut self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let stream = self.stream(py, stream)?;
        match self.items.iter().all(Item::is_plain) {
            true => self.run_plain(py, stream.as_ref())?,
            false => self.run_tabled(py, stream.as_ref())?,
        }
        match stream {
            Some(stream) => keep(py, &stream, self.kept().filter_map(|kept| kept.held(py)).collect()),
            None => Ok(()),
        }
    }
}

impl Batch {
    /// Runs items, none of which has tables or copies.
    fn run_plain(&mut self, py: Python<'_>, stream: Option<&Stream>) -> PyResult<()> {
        let Batch { items, prepared, .. } = self;
        let transfers = items.iter().map(Item::plain).collect::<PyResult<Vec<_>>>()?;
        let carried = Carried((transfers, prepared));
        py.detach(move || {
            let (transfers, prepared) = carried.transfer();
            match stream {
                // SAFETY: the layouts fit the arrays, which the batch keeps, and the packed bytes are as many; both ends of each are apart.
                None => transfers.iter().try_for_each(|transfer| unsafe { transfer.run() }.map(|_| ())),
                // SAFETY: as above; `check_reached` found that the device reaches all arrays, which its work alone uses until the stream
                // has run.
                Some(stream) => unsafe { enqueue(&transfers, prepared, stream) },
            }
        })
        .map_err(not_moved)
    }
}

/// # Safety
///
/// The contract of [`PersistentBatch::enqueue`]; `prepared` was prepared from these transfers, if it was.
unsafe fn enqueue(
    transfers: &[Transfer<'_>],
    prepared: &mut Option<PersistentBatch>,
    stream: &Stream,
) -> Result<(), TransferError> {
    let batch = match prepared {
        Some(batch) => batch,
        None => {
            let gpu = engine().gpu(stream.device().info().ordinal)?;
            prepared.insert(engine().persistent_batch(&gpu, transfers)?)
        }
    };
    // SAFETY: the contract of this function.
    unsafe { batch.enqueue(stream) }.map(|_| ()).map_err(TransferError::from)
}

impl Batch {
    /// Runs items. Some of them have tables, or copy.
    fn run_tabled(&self, py: Python<'_>, stream: Option<&Stream>) -> PyResult<()> {
        let numbered = self.items.iter().enumerate();
        let tables = numbered.map(|(at, item)| item.tables(py, at)).collect::<PyResult<Vec<ItemTables<'_>>>>()?;
        let lists: Vec<ItemLists<'_>> = tables.iter().map(|[own, others]| [own.list(), others.list()]).collect();
        let each = self.items.iter().zip(&lists);
        let transfers = each
            .map(|(item, [own, others])| item.transfer([&own[..], &others[..]]))
            .collect::<PyResult<Vec<BatchTransfer<'_>>>>()?;
        let carried = Carried(transfers);
        let moved = py.detach(move || {
            let transfers = carried.transfer();
            match stream {
                // SAFETY: the layouts fit the arrays, which the batch keeps, and the other sides have as many bytes; both sides of each are apart.
                // Tables of the host are copies, whose entries the engine checks; a device skips entries that do not lie below the places.
                None => unsafe { engine().run_tabled_batch(&transfers) },
                // SAFETY: as above. Until the stream has run, the frameworks' allocators keep the memory of arrays for work of that stream, or
                // `keep` holds it.
                Some(stream) => unsafe { engine().enqueue_tabled_batch(stream, &transfers) },
            }
        });
        if let Some(stream) = stream {
            let reached = tables.iter().flatten().flat_map(Tables::reached);
            keep(py, stream, reached.filter(|array| array.is_unordered).map(Array::kept).collect())?;
        }
        moved.map(|_| ()).map_err(|error| match error {
            TabledError::Item { item, error } => {
                tables::item_not_moved(&format!("item {item} "), *error, &self.items[item].described())
            }
            other => tables::not_moved(other, &[]),
        })
    }

    fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.items.iter().flat_map(|item| [&item.memory, &item.other])
    }

    /// The stream of a call, if the batch is one of a device.
    fn stream(&self, py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Stream>> {
        let Some(ordinal) = self.device else { return Ok(None) };
        let Some(on_device) = self.kept().find(|kept| kept.place.device().is_some()) else { return Ok(None) };
        let array = acquire::array("item", on_device.object.bind(py))?;
        stream(given, &array, ordinal).map(Some)
    }

    /// Refuses arrays that the device of the batch does not reach.
    fn check_reached(&self, at: usize) -> PyResult<()> {
        let Some(ordinal) = self.device else { return Ok(()) };
        for kept in [&self.items[at].memory, &self.items[at].other] {
            let is_reached = match kept.place {
                Place::Host => false,
                Place::Reached(MemoryKind::Device(other)) => other == ordinal,
                Place::Reached(_) => true,
            };
            if !is_reached {
                let found = format_args!("{:?}", kept.place);
                return Err(mismatch(
                    format_args!("item {at}"),
                    format_args!("memory that GPU {ordinal} reaches"),
                    found,
                ));
            }
        }
        Ok(())
    }
}
