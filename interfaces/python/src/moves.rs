//! Packs, unpacks and copies between arrays.

use crate::array::{Array, Place};
use crate::described::{Applied, Described};
use crate::errors::{mismatch, not_moved};
use crate::stream::stream;
use dtc_runtime::plan::Direction;
use dtc_runtime::{Committed, Endpoint, Range, Transfer};
use pyo3::prelude::*;

/// A transfer that another thread may run while this one gives its interpreter up.
struct Carried<'a>(Transfer<'a>);

// SAFETY: a transfer has two addresses and a reference to types that threads share; it belongs to no thread. The caller holds the
// arrays at both addresses until it has run.
unsafe impl Send for Carried<'_> {}

impl<'a> Carried<'a> {
    fn transfer(self) -> Transfer<'a> {
        self.0
    }
}

/// One array of a call, with what it is called and the layout that was applied to it.
pub struct End<'a, 'py> {
    /// What errors call it.
    pub argument: &'a str,
    /// The array.
    pub array: &'a Array<'py>,
    /// The layout, and where it is applied; nothing for packed bytes.
    pub applied: Option<(&'a Described, &'a Committed, Applied)>,
}

impl End<'_, '_> {
    /// The lowest address of a byte of the call, and one past the highest.
    fn addresses(&self) -> (i128, i128) {
        let (begin, (low, high)) = match &self.applied {
            Some((described, _, applied)) => (applied.address, described.span(applied.count)),
            None => (self.array.address, (0, self.array.elements.count() * self.array.item)),
        };
        let begin = begin.addr() as i128;
        (begin + i128::from(low), begin + i128::from(high))
    }

    /// How many elements of the type there are.
    pub fn count(&self) -> u64 {
        self.applied.as_ref().map_or(0, |(_, _, applied)| applied.count)
    }

    /// Whether a byte between the first and the last may be one of the other array's.
    pub fn crosses(&self, other: &End<'_, '_>) -> bool {
        let ((low, high), (other_low, other_high)) = (self.addresses(), other.addresses());
        low < other_high && other_low < high
    }

    fn endpoint(&self, other: Place) -> Endpoint {
        let begin = self.array.endpoint(other);
        match (&self.applied, begin.kind()) {
            (Some((_, _, applied)), Some(kind)) => Endpoint::of_kind(kind, applied.address),
            (Some((_, _, applied)), None) => Endpoint::from(applied.address),
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

/// Packs from memory or unpacks to it. `memory` has a layout, and `packed` has none.
pub fn move_packed(
    direction: Direction,
    memory: &End<'_, '_>,
    packed: &End<'_, '_>,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let Some((_, committed, applied)) = &memory.applied else { return Ok(()) };
    let elements = committed.at(memory.endpoint(packed.array.place), Range::elements(applied.count));
    let end = packed.endpoint(memory.array.place);
    let transfer = match direction {
        Direction::Pack => elements.pack(end),
        Direction::Unpack => elements.unpack(end),
    };
    run(transfer, [memory.array, packed.array], given)
}

/// Copies what the layout of one array packs to where that of the other unpacks.
pub fn copy(from: &End<'_, '_>, to: &End<'_, '_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let (Some((described, one, read)), Some((_, other, written))) = (&from.applied, &to.applied) else { return Ok(()) };
    let source = one.at(from.endpoint(to.array.place), Range::elements(read.count));
    let destination = other.at(to.endpoint(from.array.place), Range::elements(written.count));
    if !from.crosses(to) {
        return run(source.copy_to(destination), [from.array, to.array], given);
    }
    // The bytes may be between each other, as those of two faces of a field are.
    if [from.array.place, to.array.place].iter().any(|place| place.device().is_some()) {
        return check_apart(from, to);
    }
    let mut bytes = vec![0u8; described.bytes() as usize * read.count as usize];
    let between = Endpoint::host(bytes.as_mut_ptr());
    run(source.pack(between), [from.array, to.array], None)?;
    run(destination.unpack(between), [from.array, to.array], None)
}

/// Runs a transfer between two arrays on the host, or enqueues it on a stream. The interpreter is free meanwhile.
fn run(transfer: Transfer<'_>, arrays: [&Array<'_>; 2], given: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let py = arrays[0].object.py();
    let carried = Carried(transfer);
    let on_device = arrays.iter().find_map(|array| array.place.device().map(|ordinal| (array, ordinal)));
    let Some((array, ordinal)) = on_device else {
        // SAFETY: the layouts fit the arrays, which hold their memory and are as long as the packed bytes; the caller has found their
        // bytes apart, and those that are written once (`writes_twice`). Gaps between bytes of an array are in its allocation.
        return py.detach(move || unsafe { carried.transfer().run() }).map(|_| ()).map_err(not_moved);
    };
    let stream = stream(given, array, ordinal)?;
    // SAFETY: as above. Until the stream has run, the frameworks' allocators keep the memory of arrays for work of that stream.
    py.detach(move || unsafe { carried.transfer().enqueue(&stream) }).map(|_| ()).map_err(not_moved)
}
