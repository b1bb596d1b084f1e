//! The class `Batch`.

use crate::acquire;
use crate::array::{Array, Held, Place};
use crate::committed::{Moved, engine};
use crate::errors::{mismatch, not_moved};
use crate::layout::Layout;
use crate::moves::{Carried, End, check_apart};
use crate::stream::stream;
use crate::tables::Tables;
use dtc_runtime::cuda::{MemoryKind, Stream};
use dtc_runtime::plan::Direction;
use dtc_runtime::{Endpoint, PersistentBatch, Range, Transfer, TransferError};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

/// What a list of packs or unpacks has of each: the layout, what is read, and what is written.
type Listed<'py> = (Py<Layout>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// An array that a batch keeps.
struct Kept {
    object: Py<PyAny>,
    /// What keeps the elements where they are, where the object does not.
    _held: Py<PyAny>,
    /// The address of the first element, or where the layout's type is applied.
    address: usize,
    place: Place,
}

impl Kept {
    fn endpoint(&self) -> Endpoint {
        let address = std::ptr::with_exposed_provenance_mut::<u8>(self.address);
        match self.place {
            Place::Host => Endpoint::host(address),
            Place::Reached(kind) => Endpoint::of_kind(kind, address),
        }
    }
}

/// A pack or an unpack.
struct Item {
    direction: Direction,
    layout: Py<Layout>,
    memory: Kept,
    packed: Kept,
    count: u64,
}

/// Packs and unpacks that are run again and again: on a GPU as one launch.
///
/// They may run in any order, so that none should write what another reads or writes. The batch keeps the arrays.
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
    #[pyo3(signature = (packs=Vec::new(), unpacks=Vec::new()))]
    fn new(packs: Vec<Listed<'_>>, unpacks: Vec<Listed<'_>>) -> PyResult<Batch> {
        let mut items = Vec::with_capacity(packs.len() + unpacks.len());
        for (at, (layout, read, written)) in packs.into_iter().enumerate() {
            items.push(item(&format!("packs[{at}]"), Direction::Pack, layout, [&read, &written])?);
        }
        for (at, (layout, read, written)) in unpacks.into_iter().enumerate() {
            items.push(item(&format!("unpacks[{at}]"), Direction::Unpack, layout, [&read, &written])?);
        }
        let device = items.iter().flat_map(|item| [item.memory.place, item.packed.place]).find_map(Place::device);
        let batch = Batch { items, device, prepared: None };
        (0..batch.items.len()).try_for_each(|at| batch.check_reached(at))?;
        Ok(batch)
    }

    /// How many packs and unpacks there are.
    fn __len__(&self) -> usize {
        self.items.len()
    }

    /// Has item `i`, of the packs and then of the unpacks, read `x` and write `out` from now on; what is left out stays.
    #[pyo3(name = "move", signature = (i, x=None, out=None))]
    fn move_item(
        &mut self,
        py: Python<'_>,
        i: usize,
        x: Option<&Bound<'_, PyAny>>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let Some(old) = self.items.get(i) else {
            let expected = format!("i: expected an item below {}, found {i}", self.items.len());
            return Err(PyIndexError::new_err(expected));
        };
        let (read, written) = match old.direction {
            Direction::Pack => (&old.memory, &old.packed),
            Direction::Unpack => (&old.packed, &old.memory),
        };
        let read = x.unwrap_or(read.object.bind(py));
        let written = out.unwrap_or(written.object.bind(py));
        let new = item(&format!("item {i}"), old.direction, old.layout.clone_ref(py), [read, written])?;
        let old = std::mem::replace(&mut self.items[i], new);
        if let Err(error) = self.check_reached(i) {
            self.items[i] = old;
            return Err(error);
        }
        let new = &self.items[i];
        match &mut self.prepared {
            // Records may be as many as the new array has, which a prepared batch does not take.
            Some(_) if new.count != old.count => self.prepared = None,
            Some(prepared) => prepared.move_to(i, new.memory.endpoint(), new.packed.endpoint()),
            None => {}
        }
        Ok(())
    }

    /// Runs all of them; on a GPU enqueues them on `stream`, or on the current stream of the framework of the arrays.
    #[pyo3(signature = (stream=None))]
    fn run(&mut self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let stream = self.stream(py, stream)?;
        let Batch { items, prepared, .. } = self;
        let transfers = items.iter().map(Item::transfer).collect::<PyResult<Vec<_>>>()?;
        let carried = Carried((transfers, prepared));
        py.detach(move || {
            let (transfers, prepared) = carried.transfer();
            match stream {
                // SAFETY: the layouts fit the arrays, which the batch keeps, and the packed bytes are as many; both ends of each are apart.
                None => transfers.iter().try_for_each(|transfer| unsafe { transfer.run() }.map(|_| ())),
                // SAFETY: as above; `check_reached` found that the device reaches all arrays, which its work alone uses until the stream
                // has run.
                Some(stream) => unsafe { enqueue(&transfers, prepared, &stream) },
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
    /// The stream of a call, if the batch is one of a device.
    fn stream(&self, py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Stream>> {
        let Some(ordinal) = self.device else { return Ok(None) };
        let kept = self.items.iter().flat_map(|item| [&item.memory, &item.packed]);
        let Some(on_device) = kept.into_iter().find(|kept| kept.place.device().is_some()) else { return Ok(None) };
        let array = acquire::array("item", on_device.object.bind(py))?;
        stream(given, &array, ordinal).map(Some)
    }

    /// Refuses arrays that the device of the batch does not reach.
    fn check_reached(&self, at: usize) -> PyResult<()> {
        let Some(ordinal) = self.device else { return Ok(()) };
        for kept in [&self.items[at].memory, &self.items[at].packed] {
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

impl Item {
    fn transfer(&self) -> PyResult<Transfer<'_>> {
        let Moved::Fixed(committed) = &self.layout.get().made.ready()?.moved else {
            return Err(mismatch("layout", "one without index axes", "one with some"));
        };
        let elements = committed.at(self.memory.endpoint(), Range::elements(self.count));
        Ok(match self.direction {
            Direction::Pack => elements.pack(self.packed.endpoint()),
            Direction::Unpack => elements.unpack(self.packed.endpoint()),
        })
    }
}

/// A pack or an unpack, checked. `place`: what errors call it; `arrays`: what it reads, and what it writes.
fn item(place: &str, direction: Direction, layout: Py<Layout>, arrays: [&Bound<'_, PyAny>; 2]) -> PyResult<Item> {
    let (reads, writes) = (format!("{place} x"), format!("{place} out"));
    let (read, written) = (acquire::array(&reads, arrays[0])?, acquire::array_to_write(&writes, arrays[1], None)?);
    let tables = Tables::default();
    let found = layout.get();
    if !found.described().tabled.is_empty() {
        return Err(mismatch(place, "a layout without index axes", "one with some"));
    }
    let (memory, packed) = match direction {
        Direction::Pack => {
            let memory = found.end(&reads, &read, &tables)?;
            let packed = found.packed(&writes, &written, memory.bytes())?;
            check_apart(&memory, &packed)?;
            (memory, packed)
        }
        Direction::Unpack => {
            found.check_written(&writes)?;
            let memory = found.end(&writes, &written, &tables)?;
            let packed = found.packed(&reads, &read, memory.bytes())?;
            check_apart(&packed, &memory)?;
            (memory, packed)
        }
    };
    let count = memory.part.as_ref().map_or(0, |part| part.applied.count);
    let (memory, packed) = (kept(&memory)?, kept(&packed)?);
    Ok(Item { direction, layout, memory, packed, count })
}

fn kept(end: &End<'_, '_>) -> PyResult<Kept> {
    let array: &Array<'_> = end.array;
    let held = match &array.held {
        // A `bytearray` moves its bytes when it grows, which it refuses while a view of it is there. Arrays do not grow.
        Held::Buffer(_) if array.dtype.is_none() => PyMemoryView::from(&array.object)?.into_any(),
        Held::Buffer(_) => array.object.clone(),
        Held::Object(held) => held.clone(),
    };
    let address = end.part.as_ref().map_or(array.address, |part| part.applied.address);
    let place = array.place;
    Ok(Kept {
        object: array.object.clone().unbind(),
        _held: held.unbind(),
        address: address.expose_provenance(),
        place,
    })
}
