//! Packs, unpacks and copies between arrays.

use crate::array::{Array, Place};
use crate::committed::{LayoutType, Moved, Ready};
use crate::described::Applied;
use crate::errors::{mismatch, not_moved};
use crate::kept::keep;
use crate::stream::stream;
use crate::tables::{self, Tables};
use dtc_runtime::cuda::Stream;
use dtc_runtime::operation::Reduction;
use dtc_runtime::plan::Direction;
use dtc_runtime::{Endpoint, Range, TabledTransfer, Transfer};
use pyo3::prelude::*;

/// Packed bytes from which on a call on the host gives its interpreter up, which takes 30 ns: fewer are moved in a few microseconds.
const DETACHED_BYTES: i64 = 16 << 10;

/// What runs while its thread gives the interpreter up.
pub struct Carried<T>(pub T);

// SAFETY: `Python::detach` runs its closure on the thread that calls it, so that nothing goes to another one. Its bound keeps values of
// Python out of the closure; what is carried has none, but addresses, references to types and tables, and a stream.
unsafe impl<T> Send for Carried<T> {}

impl<T> Carried<T> {
    /// What is carried.
    pub fn transfer(self) -> T {
        self.0
    }
}

/// A layout applied to an array of a call.
pub struct Part<'a, 'py> {
    /// The layout.
    pub made: &'a LayoutType,
    /// What the engine made of it.
    pub ready: &'a Ready,
    /// The tables of the call for it.
    pub tables: &'a Tables<'py>,
    /// Where its type is applied.
    pub applied: Applied,
    /// Packed bytes of the call.
    pub bytes: i64,
}

/// One array of a call, with what it is called and the layout that was applied to it.
pub struct End<'a, 'py> {
    /// What errors call it.
    pub argument: &'a str,
    /// The array.
    pub array: &'a Array<'py>,
    /// The layout, and where it is applied; nothing for packed bytes.
    pub part: Option<Part<'a, 'py>>,
}

impl End<'_, '_> {
    /// The lowest address of a byte of the call, and one past the highest.
    fn addresses(&self) -> (i128, i128) {
        let (begin, (low, high)) = match &self.part {
            Some(Part { ready, applied, .. }) if applied.count == 1 => (applied.address, ready.span),
            Some(Part { made, applied, .. }) => (applied.address, made.described.span(applied.count)),
            None => (self.array.address, (0, self.array.elements.count() * self.array.item)),
        };
        let begin = begin.addr() as i128;
        (begin + i128::from(low), begin + i128::from(high))
    }

    /// Packed bytes of the call, if it has a layout.
    pub fn bytes(&self) -> i64 {
        self.part.as_ref().map_or(0, |part| part.bytes)
    }

    /// Whether a byte between the first and the last may be one of the other array's.
    pub fn crosses(&self, other: &End<'_, '_>) -> bool {
        let ((low, high), (other_low, other_high)) = (self.addresses(), other.addresses());
        low < other_high && other_low < high
    }

    fn endpoint(&self, other: Place) -> Endpoint {
        let begin = self.array.endpoint(other);
        match (&self.part, begin.kind()) {
            (Some(part), Some(kind)) => Endpoint::of_kind(kind, part.applied.address),
            (Some(part), None) => Endpoint::from(part.applied.address),
            (None, _) => begin,
        }
    }
}

/// Refuses two arrays of a call, one of which is written, that may have bytes in common.
pub fn check_apart(one: &End<'_, '_>, written: &End<'_, '_>) -> PyResult<()> {
    match one.crosses(written) {
        true => Err(mismatch(
            written.argument,
            format_args!("memory apart from that of {}", one.argument),
            "memory between its bytes",
        )),
        false => Ok(()),
    }
}

/// What a call does with packed bytes.
#[derive(Clone, Copy)]
pub enum Movement {
    /// Moves bytes.
    Plain(Direction),
    /// Unpacks with an operation.
    Combined(Reduction),
}

/// Packs from memory or unpacks to it. `memory` has a layout, and `packed` has none.
pub fn move_packed<'py>(
    movement: Movement,
    memory: &End<'_, 'py>,
    packed: &End<'_, 'py>,
    given: Option<&Bound<'py, PyAny>>,
) -> PyResult<()> {
    let Some(part) = &memory.part else { return Ok(()) };
    let (at, end) = (memory.endpoint(packed.array.place), packed.endpoint(memory.array.place));
    let call = Call {
        arrays: [memory.array, packed.array],
        tables: [Some(part.tables), None],
        bytes: part.bytes,
        stream: given,
    };
    match &part.ready.moved {
        Moved::Fixed(committed) => {
            let elements = committed.at(at, Range::elements(part.applied.count));
            call.run(match movement {
                Movement::Plain(Direction::Pack) => elements.pack(end),
                Movement::Plain(Direction::Unpack) => elements.unpack(end),
                Movement::Combined(reduction) => elements.accumulate(reduction, end),
            })
        }
        Moved::Tabled(committed) => {
            let tables = part.tables.list();
            let elements = committed.at(at, &tables).skipping();
            let transfer = match movement {
                Movement::Plain(Direction::Pack) => elements.pack(end),
                Movement::Plain(Direction::Unpack) => elements.unpack(end),
                Movement::Combined(reduction) => elements.accumulate(reduction, end),
            };
            call.run_tabled(transfer, &[part.made])
        }
    }
}

/// Copies what the layout of one array packs to where that of the other unpacks.
pub fn copy<'py>(from: &End<'_, 'py>, to: &End<'_, 'py>, given: Option<&Bound<'py, PyAny>>) -> PyResult<()> {
    let (Some(read), Some(written)) = (&from.part, &to.part) else { return Ok(()) };
    if from.crosses(to) {
        return copy_within(from, to);
    }
    let tables = [Some(read.tables), Some(written.tables)];
    let call = Call { arrays: [from.array, to.array], tables, bytes: read.bytes, stream: given };
    let (source, destination) = (from.endpoint(to.array.place), to.endpoint(from.array.place));
    if let (Moved::Fixed(one), Moved::Fixed(other)) = (&read.ready.moved, &written.ready.moved) {
        let destination = other.at(destination, Range::elements(written.applied.count));
        return call.run(one.at(source, Range::elements(read.applied.count)).copy_to(destination));
    }
    if (read.applied.count, written.applied.count) != (1, 1) {
        return Err(mismatch("ls", "layouts of arrays beside one with index axes", "one of records"));
    }
    let (one, other) = (read.made.tabled()?, written.made.tabled()?);
    let (tables, others) = (read.tables.list(), written.tables.list());
    let destination = other.at(destination, &others).skipping();
    let names = [read.made, written.made];
    call.run_tabled(one.at(source, &tables).skipping().copy_to(destination), &names)
}

/// Copies between parts of one array whose bytes may be between each other, as those of two faces of a field are.
fn copy_within<'py>(from: &End<'_, 'py>, to: &End<'_, 'py>) -> PyResult<()> {
    let (Some(read), Some(written)) = (&from.part, &to.part) else { return Ok(()) };
    let on_host = [from.array.place, to.array.place].iter().all(|place| place.device().is_none());
    let (true, Moved::Fixed(one), Moved::Fixed(other)) = (on_host, &read.ready.moved, &written.ready.moved) else {
        return check_apart(from, to);
    };
    let mut bytes = vec![0u8; read.bytes as usize];
    let between = Endpoint::host(bytes.as_mut_ptr());
    let call = Call { arrays: [from.array, to.array], tables: [None, None], bytes: read.bytes, stream: None };
    let source = one.at(from.endpoint(to.array.place), Range::elements(read.applied.count));
    call.run(source.pack(between))?;
    let destination = other.at(to.endpoint(from.array.place), Range::elements(written.applied.count));
    call.run(destination.unpack(between))
}

/// What a transfer needs beside itself.
struct Call<'a, 'py> {
    arrays: [&'a Array<'py>; 2],
    tables: [Option<&'a Tables<'py>>; 2],
    bytes: i64,
    stream: Option<&'a Bound<'py, PyAny>>,
}

impl Call<'_, '_> {
    /// The stream that the call goes on, if one of its arrays is on a device.
    fn device_stream(&self) -> PyResult<Option<Stream>> {
        let on_device = self.arrays.iter().find_map(|array| array.place.device().map(|ordinal| (array, ordinal)));
        on_device.map(|(array, ordinal)| stream(self.stream, array, ordinal)).transpose()
    }

    /// Runs what moves bytes of the host; the interpreter is free meanwhile, unless it is done soon.
    fn on_host<R: Send>(&self, moved: impl FnOnce() -> R) -> R {
        match self.bytes < DETACHED_BYTES {
            true => moved(),
            false => self.detached(moved),
        }
    }

    /// Runs what may wait for a lock of a driver, or compile a kernel; the interpreter is free meanwhile.
    fn detached<R: Send>(&self, moved: impl FnOnce() -> R) -> R {
        let carried = Carried(moved);
        self.arrays[0].object.py().detach(move || carried.transfer()())
    }

    /// Runs a transfer between two arrays on the host, or enqueues it on a stream.
    fn run(&self, transfer: Transfer<'_>) -> PyResult<()> {
        let moved = match self.device_stream()? {
            // SAFETY: the layouts fit the arrays, which hold their memory and are as long as the packed bytes; the caller has found their
            // bytes apart, and those that are written once (`writes_twice`). Gaps between bytes of an array are in its allocation.
            None => self.on_host(|| unsafe { transfer.run() }),
            // SAFETY: as above. Until the stream has run, the frameworks' allocators keep the memory of arrays for work of that stream, or
            // `keep` holds it.
            Some(stream) => self.enqueued(&stream, || unsafe { transfer.enqueue(&stream) })?,
        };
        moved.map(|_| ()).map_err(not_moved)
    }

    /// Enqueues on a stream, which uses the memory of the arrays until it has run.
    fn enqueued<R: Send>(&self, stream: &Stream, enqueue: impl FnOnce() -> R) -> PyResult<R> {
        let moved = self.detached(enqueue);
        let tables = self.tables.into_iter().flatten().flat_map(Tables::reached);
        let unordered = self.arrays.into_iter().chain(tables).filter(|array| array.is_unordered);
        keep(self.arrays[0].object.py(), stream, unordered.map(Array::kept).collect())?;
        Ok(moved)
    }

    /// The same of a transfer with index tables. `layouts`: those that it was made of.
    fn run_tabled(&self, transfer: TabledTransfer<'_>, layouts: &[&LayoutType]) -> PyResult<()> {
        let moved = match self.device_stream()? {
            // SAFETY: as in `run`. Tables of the host are copies, whose entries the engine checks; entries on a device that do not lie below
            // the places are skipped there. Where a table names a place twice, one of both stays.
            None => self.on_host(|| unsafe { transfer.run() }),
            // SAFETY: as above.
            Some(stream) => self.enqueued(&stream, || unsafe { transfer.enqueue(&stream) })?,
        };
        moved.map(|_| ()).map_err(|error| {
            let described: Vec<_> = layouts.iter().map(|layout| &layout.described).collect();
            tables::not_moved(error, &described)
        })
    }
}
