//! Packs and unpacks of many types as one launch, once or again and again.
#![expect(clippy::disallowed_types, reason = "the lock is only tried")]

use crate::arguments;
use crate::engine::dtc_engine;
use crate::handle::{self, Handle, Tag};
use crate::status::{DTC_ERROR_HANDLE, Failure, Outcome, answer};
use crate::transfer::{self, ordinal};
use crate::types::dtc_type;
use dtc_runtime::cuda::{MemoryKind, Stream};
use dtc_runtime::{Endpoint, Gpu, PersistentBatch, Transfer};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, TryLockError};

/// The call packs: it reads elements and writes packed bytes.
pub const DTC_DIRECTION_PACK: i32 = 0;
/// The call unpacks: it reads packed bytes and writes elements.
pub const DTC_DIRECTION_UNPACK: i32 = 1;

/// Packs and unpacks that are enqueued as one launch. It belongs to one thread at a time.
pub struct dtc_batch(());

/// One pack or unpack of a batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_batch_call {
    /// The type of the elements.
    pub r#type: *const dtc_type,
    /// The address that the type is applied to.
    pub memory: *mut c_void,
    /// Where packed byte `offset` lies.
    pub packed: *mut c_void,
    /// How many elements.
    pub count: i64,
    /// The first packed byte to move.
    pub offset: i64,
    /// How many bytes to move, or less at the end of the packed bytes.
    pub max: i64,
    /// `DTC_DIRECTION_...`.
    pub direction: i32,
    /// 0; anything else is refused, so that a later library can give it a meaning.
    pub reserved: i32,
}

/// What a batch holds.
pub(crate) struct Prepared {
    batch: Mutex<PersistentBatch>,
    gpu: Gpu,
}

impl Handle for dtc_batch {
    type Inside = Prepared;
    const TAG: Tag = Tag::BATCH;
    const NAME: &'static str = "dtc_batch";
}

impl Prepared {
    /// The lock is never waited for, as that of a request.
    fn with<T>(&self, work: impl FnOnce(&mut PersistentBatch) -> Outcome<T>) -> Outcome<T> {
        match self.batch.try_lock() {
            Ok(mut batch) => work(&mut batch),
            Err(TryLockError::Poisoned(batch)) => work(&mut batch.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message = "dtc_batch: expected one thread at a time, found another one inside";
                Err(Failure::new(DTC_ERROR_HANDLE, message))
            }
        }
    }
}

/// Prepares packs and unpacks to be enqueued again and again, as one launch: what an exchange of halos repeats.
///
/// `device`: the GPU that moves the bytes; it must reach all of them.
/// `calls`, `length`: the calls, which run in any order. The types are kept.
/// `batch`: receives the batch, to be freed by `dtc_batch_free`.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not an engine, or not a committed type.
/// `DTC_ERROR_ARGUMENT`: a number is negative, a pointer null, or a direction unknown.
/// `DTC_ERROR_RANGE`: an offset lies behind the packed bytes, or those do not fit 63 bits.
/// `DTC_ERROR_DEVICE`: CUDA is missing or failed.
///
/// # Safety
///
/// `engine` is null or an engine, `calls` leads to as many, each of a type, and `batch` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_batch_prepare(
    engine: *const dtc_engine,
    device: i32,
    calls: *const dtc_batch_call,
    length: i64,
    batch: *mut *mut dtc_batch,
) -> c_int {
    answer(|| {
        arguments::check_pointer("batch", batch)?;
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `calls` has `length` entries, which no thread writes during the call (contract of this function).
        let calls = unsafe { arguments::list("calls", calls, length)? };
        let gpu = engine.gpu(ordinal("device", device)?)?;
        // SAFETY: the type of each call is live (contract of this function), and the caller keeps it until this
        // returns; the batch that is made holds its own reference.
        let calls: Outcome<Vec<Transfer<'_>>> =
            calls.iter().map(|call| unsafe { requested(call, [None; 2]) }).collect();
        let prepared = engine.persistent_batch(&gpu, &calls?)?;
        let made = handle::share(Prepared { batch: Mutex::new(prepared), gpu });
        // SAFETY: `batch` is aligned and not null (checked above), so it is writable (contract of this function).
        unsafe { arguments::give("batch", batch, made) }
    })
}

/// Packs and unpacks many types as one launch, and returns when the bytes are moved. It is ordered after what was enqueued on the legacy
/// default stream of the GPU. A list that comes again costs less the second time.
///
/// `device`: the GPU that moves the bytes; it must reach all of them.
/// `calls`, `length`: the calls, which run in any order.
/// `done`: receives how many packed bytes were moved; may be null.
///
/// Errors are those of `dtc_batch_prepare`.
///
/// # Safety
///
/// `engine` is null or an engine, and `calls` leads to as many, each of a type. The GPU reaches all bytes of all calls, and no call
/// writes what another one reads or writes. `done` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_batch_run(
    engine: *const dtc_engine,
    device: i32,
    calls: *const dtc_batch_call,
    length: i64,
    done: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `calls` has `length` entries, which no thread writes during the call (contract of this function).
        let calls = unsafe { arguments::list("calls", calls, length)? };
        let gpu = engine.gpu(ordinal("device", device)?)?;
        // SAFETY: the type of each call is live, and the caller keeps it until this returns (contract of this function).
        let calls: Outcome<Vec<Transfer<'_>>> =
            calls.iter().map(|call| unsafe { requested(call, [None; 2]) }).collect();
        let stream = Stream::legacy_default(gpu.device());
        // SAFETY: the GPU reaches all bytes of all calls, and no call writes what another one reads or writes (contract of
        // this function), until the stream was waited for below.
        let bytes = unsafe { engine.enqueue_batch(&stream, &calls?)? };
        stream.synchronize()?;
        // SAFETY: `done` is null or writable (contract of this function).
        unsafe { arguments::offer("done", done, bytes as i64) }
    })
}

/// A call, checked, between memory of these kinds if the caller named some.
///
/// # Safety
///
/// Its type is null or a type, which lives as long as what is returned.
pub(crate) unsafe fn requested<'a>(
    call: &dtc_batch_call,
    [memory, packed]: [Option<MemoryKind>; 2],
) -> Outcome<Transfer<'a>> {
    // SAFETY: `call.type` is null or a type that lives for `'a` (contract of this function).
    let datatype = &unsafe { handle::borrow(call.r#type)? }.ready()?.committed;
    let limit = ("dtc_batch_call.max", call.max);
    let range = transfer::range("dtc_batch_call.", call.count, call.offset, limit)?;
    let elements = datatype.at(Endpoint::from(call.memory).with_kind(memory), range);
    let packed = Endpoint::from(call.packed).with_kind(packed);
    let transfer = match call.direction {
        DTC_DIRECTION_PACK => elements.pack(packed),
        DTC_DIRECTION_UNPACK => elements.unpack(packed),
        unknown => return Err(Failure::argument("dtc_batch_call.direction", "one of DTC_DIRECTION_", unknown)),
    };
    if transfer.bytes()? > 0 && call.packed.is_null() {
        return Err(Failure::argument("dtc_batch_call.packed", "an address", "null"));
    }
    if call.reserved != 0 {
        return Err(Failure::argument("dtc_batch_call.reserved", 0, call.reserved));
    }
    Ok(transfer)
}

/// Has a call of a batch use other addresses from the next launch on, which costs time in proportion to the calls that changed
/// if they are aligned as before.
///
/// `call`: its place in the list that the batch was prepared from; one behind the list, or of a call that moves nothing, is ignored.
/// `memory`, `packed`: as in `dtc_batch_call`.
///
/// `DTC_ERROR_HANDLE`: not a batch, or another thread uses it.
/// `DTC_ERROR_ARGUMENT`: `call` is negative, or `packed` null.
///
/// # Safety
///
/// `batch` is null or a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_batch_move(
    batch: *mut dtc_batch,
    call: i64,
    memory: *mut c_void,
    packed: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: `batch` is null or a live batch, which the caller keeps during the call (contract of this function).
        let prepared = unsafe { handle::borrow(batch.cast_const())? };
        let call = arguments::length("call", call)?;
        if packed.is_null() {
            return Err(Failure::argument("packed", "an address", "null"));
        }
        prepared.with(|batch| {
            batch.move_to(call as usize, memory, packed);
            Ok(())
        })
    })
}

/// Enqueues a batch on a CUDA stream, and returns at once. A CUDA graph may capture it, and keeps the addresses of this moment.
///
/// `stream`: a `cudaStream_t` or `CUstream` of the device of the batch; null for the legacy default stream.
/// `done`: receives how many packed bytes will be moved; may be null.
///
/// `DTC_ERROR_HANDLE`: not a batch, or another thread uses it.
/// `DTC_ERROR_DEVICE`: CUDA failed.
///
/// # Safety
///
/// `batch` is null or a batch, and the stream one of the primary context of its device. Until the work is done, the GPU reaches all
/// bytes of all calls, and no call writes what another one reads or writes. If addresses changed since the batch was enqueued
/// last, that work is done, or comes before this on the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_batch_enqueue(batch: *mut dtc_batch, stream: *mut c_void, done: *mut i64) -> c_int {
    answer(|| {
        // SAFETY: `batch` is null or a live batch, which the caller keeps during the call (contract of this function).
        let prepared = unsafe { handle::borrow(batch.cast_const())? };
        // SAFETY: `stream` is one of the primary context of the device of the batch, or null for its default stream
        // (contract of this function).
        let stream = unsafe { Stream::borrow(prepared.gpu.device(), stream) };
        // SAFETY: until the work is done the GPU reaches all bytes of all calls, no call writes what another one reads
        // or writes, and earlier work with other addresses is done or comes before this on the stream (contract of this
        // function).
        let bytes = prepared.with(|batch| Ok(unsafe { batch.enqueue(&stream)? }))?;
        // SAFETY: `done` is null or writable (contract of this function).
        unsafe { arguments::offer("done", done, bytes as i64) }
    })
}

/// Frees a batch. Work that was enqueued is done all the same.
///
/// `DTC_ERROR_HANDLE`: not a batch.
///
/// # Safety
///
/// `batch` is null or a batch, which the caller does not use from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_batch_free(batch: *mut dtc_batch) -> c_int {
    // SAFETY: `batch` is null or a live batch, and the caller gives its reference up (contract of this function).
    answer(|| unsafe { handle::release(batch) })
}
