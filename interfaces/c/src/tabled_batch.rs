//! Batches in which types with index tables are.

use crate::arguments;
use crate::batch::{DTC_DIRECTION_PACK, DTC_DIRECTION_UNPACK, dtc_batch_call, requested};
use crate::engine::dtc_engine;
use crate::handle;
use crate::status::{Failure, Outcome, answer};
use crate::tabled::{Side, dtc_tabled_elements};
use crate::transfer::dtc_transfer;
use dtc_runtime::cuda::MemoryKind;
use dtc_runtime::{BatchTransfer, Endpoint};
use std::ffi::{c_int, c_void};

/// The call copies: it reads elements and writes elements of another type. For `dtc_tabled_batch` alone.
pub const DTC_DIRECTION_COPY: i32 = 2;

/// One pack, unpack or copy of `dtc_tabled_batch`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_tabled_call {
    /// The elements that are packed, unpacked or copied, and their tables.
    pub elements: *const dtc_tabled_elements,
    /// The elements that a copy writes; null for others.
    pub destination: *const dtc_tabled_elements,
    /// Where the first of the packed bytes lies; null for a copy.
    pub packed: *mut c_void,
    /// How many bytes at most.
    pub bytes: i64,
    /// `DTC_DIRECTION_...`.
    pub direction: i32,
    /// 0; anything else is refused, so that a later library can give it a meaning.
    pub reserved: i32,
}

/// Both sides of a call, and what is done with them.
struct Sides<'a> {
    elements: Side<'a>,
    destination: Option<Side<'a>>,
    call: dtc_tabled_call,
}

impl<'a> Sides<'a> {
    /// # Safety
    ///
    /// The elements of the call are null or readable, and as [`Side::read`] asks for.
    unsafe fn read(call: &dtc_tabled_call) -> Outcome<Sides<'a>> {
        let copies = match call.direction {
            DTC_DIRECTION_PACK | DTC_DIRECTION_UNPACK => false,
            DTC_DIRECTION_COPY => true,
            unknown => return Err(Failure::argument("dtc_tabled_call.direction", "one of DTC_DIRECTION_", unknown)),
        };
        if call.reserved != 0 {
            return Err(Failure::argument("dtc_tabled_call.reserved", 0, call.reserved));
        }
        if copies != call.packed.is_null() {
            let (expected, found) = if copies { ("null, for a copy", "an address") } else { ("an address", "null") };
            return Err(Failure::argument("dtc_tabled_call.packed", expected, found));
        }
        if !copies && !call.destination.is_null() {
            return Err(Failure::argument("dtc_tabled_call.destination", "null, for what is no copy", "a pointer"));
        }
        // SAFETY: the contract of this function.
        let elements = unsafe { Side::read("dtc_tabled_call.elements", call.elements, call.bytes)? };
        // SAFETY: as above.
        let destination = copies
            .then(|| unsafe { Side::read("dtc_tabled_call.destination", call.destination, call.bytes) })
            .transpose()?;
        if let Some(destination) = &destination {
            destination.check_silent()?;
        }
        Ok(Sides { elements, destination, call: *call })
    }

    /// The transfer, between memory of these kinds if the caller named some.
    fn transfer(&self, [memory, other]: [Option<MemoryKind>; 2]) -> BatchTransfer<'_> {
        let elements = self.elements.at(memory);
        let packed = Endpoint::from(self.call.packed).with_kind(other);
        let transfer = match &self.destination {
            Some(destination) => elements.copy_to(destination.at(other)),
            None if self.call.direction == DTC_DIRECTION_UNPACK => elements.unpack(packed),
            None => elements.pack(packed),
        };
        self.elements.reporting(transfer).into()
    }
}

/// Packs, unpacks and copies many types with index tables, and packs and unpacks others, in any order: on a GPU by one launch once the kernel of the
/// batch is compiled, which a CUDA graph may capture; in host memory one after the other.
///
/// `calls`, `length`: those of types with index tables; read before the function returns.
/// `others`, `other_length`: those of other types, as for `dtc_batch_run`; null and 0 if there are none.
/// `done`: receives how many bytes were moved, or will be; may be null.
/// `transfer`: where the bytes of all calls lie, and the stream; null if the library shall find out. All multiprocessors take part.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not an engine, not such a type, or not a committed type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, a number negative, a direction unknown, or the tables do not fit the type: the message names call, table and
/// entry. Calls of `others` follow those of `calls`.
/// `DTC_ERROR_RANGE`: an offset lies behind the packed bytes, or the sides of a copy have different numbers of bytes.
/// `DTC_ERROR_MEMORY`, `DTC_ERROR_DEVICE`: as for `dtc_pack`.
///
/// # Safety
///
/// `engine` is null or an engine. Each call is as `dtc_tabled_pack`, `dtc_tabled_unpack`, `dtc_tabled_copy` or `dtc_batch_run` ask for, with
/// `DTC_TRANSFER_ENQUEUE` until the work is done, and none writes what another one reads or writes. `done` is null or writable, and `transfer` is
/// null or leads to its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_batch(
    engine: *const dtc_engine,
    calls: *const dtc_tabled_call,
    length: i64,
    others: *const dtc_batch_call,
    other_length: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call; the lists have as many entries, which no thread writes
        // meanwhile; `transfer` is null or leads to its size (contract of this function).
        let (engine, calls, others, options) = unsafe {
            let calls = arguments::list("calls", calls, length)?;
            let others = arguments::list("others", others, other_length)?;
            (handle::borrow(engine)?, calls, others, arguments::read(transfer)?)
        };
        let kinds = options.kinds()?;
        options.multiprocessors()?;
        // SAFETY: the elements of each call and their tables are readable, and their types live, until this returns (contract of this function).
        let sides: Outcome<Vec<Sides<'_>>> = calls.iter().map(|call| unsafe { Sides::read(call) }).collect();
        let sides = sides?;
        // SAFETY: the type of each call is live until this returns (contract of this function).
        let others = others.iter().map(|call| Ok(unsafe { requested(call, kinds)? }.into()));
        let transfers: Outcome<Vec<BatchTransfer<'_>>> =
            sides.iter().map(|sides| Ok(sides.transfer(kinds))).chain(others).collect();
        // SAFETY: each transfer is as its contract asks for, and none writes what another one reads or writes, until the work is done. The stream is
        // one of the primary context of its device (contract of this function).
        let bytes = unsafe {
            match options.stream(engine)? {
                Some(stream) => engine.enqueue_tabled_batch(&stream, &transfers?)?,
                None => engine.run_tabled_batch(&transfers?)?,
            }
        };
        // SAFETY: `done` is null or writable (contract of this function).
        unsafe { arguments::offer("done", done, bytes as i64) }
    })
}
