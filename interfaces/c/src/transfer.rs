//! Packing and unpacking: blocking, started, and enqueued on a stream.

use crate::arguments::{self, Growing};
use crate::handle;
use crate::request::{self, dtc_request};
use crate::status::{DTC_OK, Failure, Outcome, answer};
use crate::types::dtc_type;
use dtc_runtime::cuda::{MemoryKind, Stream, is_in_use};
use dtc_runtime::{Committed, Elements, Endpoint, Engine, Multiprocessors, Range, Transfer, TransferError};
use std::ffi::{c_int, c_void};

/// The library asks CUDA, if the process uses it, where the bytes lie.
pub const DTC_MEMORY_UNKNOWN: i32 = 0;
/// Memory of the host that CUDA does not know.
pub const DTC_MEMORY_HOST: i32 = 1;
/// Memory of the host that was allocated or registered with CUDA.
pub const DTC_MEMORY_PINNED: i32 = 2;
/// Managed memory of CUDA, which moves.
pub const DTC_MEMORY_MANAGED: i32 = 3;
/// Memory of a GPU, of another process too, once it is mapped here.
pub const DTC_MEMORY_DEVICE: i32 = 4;

/// The call returns when the work is on the stream. Later work of the stream finds the bytes moved, and a CUDA graph may
/// capture the call.
pub const DTC_TRANSFER_ENQUEUE: u32 = 1;

/// Where the bytes of a call lie, and where it is done. `DTC_TRANSFER_INIT` sets `size`, and every other field to 0: the
/// library finds out. A null pointer means the same.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_transfer {
    /// `sizeof(dtc_transfer)`.
    pub size: i64,
    /// Where the elements lie: `DTC_MEMORY_...`. In `dtc_copy`, where those of the source lie.
    pub memory: i32,
    /// The GPU of those, for `DTC_MEMORY_DEVICE`.
    pub memory_device: i32,
    /// Where the packed bytes lie. In `dtc_copy`, where the elements of the destination lie.
    pub packed: i32,
    /// The GPU of those, for `DTC_MEMORY_DEVICE`.
    pub packed_device: i32,
    /// With `DTC_TRANSFER_ENQUEUE`: the `cudaStream_t` or `CUstream`; null for the legacy default stream.
    pub stream: *mut c_void,
    /// With `DTC_TRANSFER_ENQUEUE`: the GPU of the stream.
    pub stream_device: i32,
    /// 0 or `DTC_TRANSFER_ENQUEUE`.
    pub flags: u32,
    /// How many multiprocessors of a GPU the kernel of a pack or an unpack may occupy; 0 for all that are free. -1 for none:
    /// copy engines move nests of rows, if the call moves whole elements; others still take a kernel.
    pub multiprocessors: i32,
    /// 0; anything else is refused, so that a later library can give it a meaning.
    pub reserved: i32,
}

impl Default for dtc_transfer {
    fn default() -> dtc_transfer {
        <dtc_transfer as Growing>::DEFAULT
    }
}

// SAFETY: `repr(C)`, begins with an `i64`, and any bytes are a value.
unsafe impl Growing for dtc_transfer {
    const DEFAULT: dtc_transfer = dtc_transfer {
        size: size_of::<dtc_transfer>() as i64,
        memory: DTC_MEMORY_UNKNOWN,
        memory_device: 0,
        packed: DTC_MEMORY_UNKNOWN,
        packed_device: 0,
        stream: std::ptr::null_mut(),
        stream_device: 0,
        flags: 0,
        multiprocessors: 0,
        reserved: 0,
    };
    const NAME: &'static str = "dtc_transfer";
}

impl dtc_transfer {
    /// What the caller says of the two sides. Every call asks this, so it also refuses what no version has given a meaning.
    #[inline(always)]
    pub(crate) fn kinds(&self) -> Outcome<[Option<MemoryKind>; 2]> {
        if self.reserved != 0 {
            return Err(Failure::argument("dtc_transfer.reserved", 0, self.reserved));
        }
        let known = |field: &'static str, kind: i32, device: i32| kind_of_memory(("dtc_transfer", field), kind, device);
        Ok([known("memory", self.memory, self.memory_device)?, known("packed", self.packed, self.packed_device)?])
    }

    /// What of a GPU the call may occupy.
    #[inline(always)]
    pub(crate) fn multiprocessors(&self) -> Outcome<Multiprocessors> {
        match self.multiprocessors {
            0 => Ok(Multiprocessors::All),
            -1 => Ok(Multiprocessors::None),
            most => match u32::try_from(most) {
                Ok(most) => Ok(Multiprocessors::AtMost(most)),
                Err(_) => Err(Failure::argument("dtc_transfer.multiprocessors", "at least -1", most)),
            },
        }
    }

    /// The stream to enqueue on, if the call is not to wait.
    ///
    /// # Safety
    ///
    /// The stream is one of the device's primary context, or one of CUDA's special handles.
    #[inline(always)]
    pub(crate) unsafe fn stream(&self, engine: &Engine) -> Outcome<Option<Stream>> {
        match self.flags {
            0 => Ok(None),
            DTC_TRANSFER_ENQUEUE => {
                let gpu = engine.gpu(ordinal("dtc_transfer.stream_device", self.stream_device)?)?;
                // SAFETY: `self.stream` is a stream of the primary context of this device, or a special handle of CUDA
                // (contract of this function).
                Ok(Some(unsafe { Stream::borrow(gpu.device(), self.stream) }))
            }
            unknown => {
                let found = format_args!("{unknown:#x}");
                Err(Failure::argument("dtc_transfer.flags", "0 or DTC_TRANSFER_ENQUEUE", found))
            }
        }
    }
}

/// The kind of memory that a caller names in a field of a struct, or none if the library shall find out.
#[inline(always)]
pub(crate) fn kind_of_memory(
    (of, field): (&'static str, &'static str),
    kind: i32,
    device: i32,
) -> Outcome<Option<MemoryKind>> {
    // Only an error needs the name.
    let place = |suffix: &str| format!("{of}.{field}{suffix}");
    Ok(match kind {
        DTC_MEMORY_UNKNOWN => None,
        DTC_MEMORY_HOST => Some(MemoryKind::Pageable),
        DTC_MEMORY_PINNED => Some(MemoryKind::Pinned),
        DTC_MEMORY_MANAGED => Some(MemoryKind::Managed),
        DTC_MEMORY_DEVICE => Some(MemoryKind::Device(ordinal(&place("_device"), device)?)),
        unknown => return Err(Failure::argument(&place(""), "one of DTC_MEMORY_", unknown)),
    })
}

/// Whether a transfer says that both sides lie in host memory and nothing else, or leaves everything open and the process does not use
/// CUDA.
///
/// # Safety
///
/// `transfer` is null, misaligned, or leads to its size.
#[inline(always)]
unsafe fn is_plain(transfer: *const dtc_transfer) -> bool {
    if transfer.is_null() {
        return !is_in_use();
    }
    // SAFETY: a transfer that is aligned leads to its size (contract of this function); with that of this version, it has all
    // fields.
    unsafe {
        transfer.is_aligned() && transfer.cast::<i64>().read() >= dtc_transfer::FIRST as i64 && {
            let dtc_transfer { memory, packed, flags, multiprocessors, reserved, .. } = *transfer;
            (memory, packed, flags, multiprocessors, reserved) == (DTC_MEMORY_HOST, DTC_MEMORY_HOST, 0, 0, 0)
        }
    }
}

/// The type of a call that may be one for whole elements in host memory, which pays for nothing else: every other call, and every wrong
/// one, is a [`Call`].
///
/// # Safety
///
/// `requested` is null or a type that the caller keeps for `'a`; `transfer` is null or leads to its size.
#[inline(always)]
unsafe fn plain<'a>(
    requested: *const dtc_type,
    offset: i64,
    done: *const i64,
    transfer: *const dtc_transfer,
) -> Option<&'a Committed> {
    // SAFETY: `requested` is null or a type that the caller keeps for `'a`; `transfer` is null or leads to its size (contract of this
    // function).
    unsafe {
        let committed = handle::known(requested)?.used()?;
        (offset == 0 && done.is_aligned() && is_plain(transfer)).then_some(committed)
    }
}

/// Says how many bytes a plain call moved.
///
/// # Safety
///
/// `done` is null or writable.
#[inline(always)]
unsafe fn moved(done: *mut i64, bytes: u64) -> c_int {
    if !done.is_null() {
        // SAFETY: `done` is not null, so it is writable (contract of this function).
        unsafe { done.write(bytes as i64) };
    }
    DTC_OK
}

/// Reads a transfer without a cap on multiprocessors, for calls whose kernels take all that are free.
///
/// # Safety
///
/// `transfer` is null or leads to its size.
pub(crate) unsafe fn uncapped(transfer: *const dtc_transfer) -> Outcome<dtc_transfer> {
    // SAFETY: `transfer` is null or readable for the size that it begins with (contract of this function).
    let transfer = unsafe { arguments::read(transfer)? };
    match transfer.multiprocessors {
        0 => Ok(transfer),
        most => Err(Failure::argument("dtc_transfer.multiprocessors", "0, but for a pack or an unpack", most)),
    }
}

#[inline(always)]
pub(crate) fn ordinal(place: &str, device: i32) -> Outcome<u32> {
    u32::try_from(device).map_err(|_| Failure::argument(place, "at least 0", device))
}

/// Packed bytes `offset` to `offset + most` of `count` elements; `place` says whose numbers these are, and `limit` names the last.
#[inline(always)]
pub(crate) fn range(place: &str, count: i64, offset: i64, (limit, most): (&str, i64)) -> Outcome<Range> {
    let number = |name: &str, value: i64| {
        u64::try_from(value).map_err(|_| Failure::argument(&format!("{place}{name}"), "at least 0", value))
    };
    let (count, offset) = (number("count", count)?, number("offset", offset)?);
    Ok(Range::elements(count).fragment(offset, arguments::length(limit, most)?))
}

/// A committed type, the range of a call, and where its bytes lie as the caller said.
pub(crate) struct Call<'a> {
    pub(crate) committed: &'a Committed,
    pub(crate) range: Range,
    kinds: [Option<MemoryKind>; 2],
    stream: Option<Stream>,
    multiprocessors: Multiprocessors,
}

impl<'a> Call<'a> {
    /// # Safety
    ///
    /// `requested` is null or a type. The stream of `transfer` is one of the primary context of its device, or a special handle of
    /// CUDA.
    #[inline(always)]
    pub(crate) unsafe fn of(requested: *const dtc_type, range: Range, transfer: &dtc_transfer) -> Outcome<Call<'a>> {
        // SAFETY: `requested` is null or a type that the caller keeps for `'a` (contract of this function).
        let requested = unsafe { handle::borrow(requested)? };
        let committed = &requested.ready()?.committed;
        let (kinds, multiprocessors) = (transfer.kinds()?, transfer.multiprocessors()?);
        // SAFETY: the stream of `transfer` is one of the primary context of its device, or a special handle of CUDA
        // (contract of this function).
        let stream = unsafe { transfer.stream(requested.engine())? };
        Ok(Call { committed, range, kinds, stream, multiprocessors })
    }

    /// The elements at an address.
    pub(crate) fn at(&self, memory: *const c_void) -> Elements<'a> {
        self.committed.at(Endpoint::from(memory).with_kind(self.kinds[0]), self.range)
    }

    /// The other end of the call, at an address.
    pub(crate) fn other(&self, address: *const c_void) -> Endpoint {
        Endpoint::from(address).with_kind(self.kinds[1])
    }

    /// The packed end of the call, at an address. Null is refused unless no byte is moved. Elements may have a null base, which
    /// types of absolute addresses are applied to.
    #[inline(always)]
    pub(crate) fn packed(&self, address: *const c_void) -> Outcome<Endpoint> {
        if address.is_null() && self.range.length() > 0 && self.at(address).pack(address).bytes()? > 0 {
            return Err(Failure::argument("packed", "an address", "null"));
        }
        Ok(self.other(address))
    }

    /// Moves the bytes and waits, or enqueues the work.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`]; `done` is null or writable.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, transfer: Transfer<'_>, done: *mut i64) -> Outcome {
        let bytes = transfer.bytes()? as i64;
        let transfer = transfer.on(self.multiprocessors);
        // SAFETY: both ends of `transfer` are valid for its bytes and do not overlap, until the call returns or, with a
        // stream, until the work is done (contract of this function, which is that of `Transfer`).
        let moved = unsafe {
            match &self.stream {
                None => transfer.run(),
                Some(stream) => transfer.enqueue(stream),
            }
        };
        if let Ok(_) | Err(TransferError::External(_)) = &moved {
            // SAFETY: `done` is null or writable (contract of this function). Values that do not fit `external32` were
            // packed without their most significant bytes, so their bytes count, too.
            unsafe { arguments::offer("done", done, bytes)? };
        }
        Ok(moved.map(drop)?)
    }

    /// Starts moving the bytes, or enqueues the work.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`], until the request is done; `done` and `request` are null or writable.
    pub(crate) unsafe fn start(
        &self,
        transfer: Transfer<'_>,
        types: [Option<&Committed>; 2],
        done: *mut i64,
        request: *mut *mut dtc_request,
    ) -> Outcome {
        arguments::check_pointer("request", request)?;
        // SAFETY: both ends of `transfer` are valid for its bytes and do not overlap until the request is done, and
        // `done` is null or writable (contract of this function); `request` is aligned and not null (checked above), so
        // it is writable.
        unsafe {
            if self.stream.is_some() {
                self.run(transfer, done)?;
                request.write(std::ptr::null_mut());
                return Ok(());
            }
            let bytes = transfer.bytes()? as i64;
            request::give(transfer.on(self.multiprocessors).start()?, types, request)?;
            arguments::offer("done", done, bytes)
        }
    }
}

/// Packs a range of bytes of `count` elements: packed bytes `offset` to `offset + max`, or less at their end. Any range may
/// be packed at any time, in any order, by any thread, also inside a basic element. (MPI 4.1, 5.2)
///
/// `source`: the address that the type is applied to.
/// `packed`: receives the bytes.
/// `done`: receives how many bytes were packed; may be null.
/// `transfer`: where the bytes lie; null if the library shall find out.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: a number is negative, `packed` is null, or a field of `transfer` unknown.
/// `DTC_ERROR_RANGE`: the offset lies behind the packed bytes, or those do not fit 63 bits.
/// `DTC_ERROR_MEMORY`: a side lies nowhere, or, for a call that is enqueued, where the GPU of the stream does not reach.
/// `DTC_ERROR_DEVICE`: CUDA is missing or failed.
///
/// # Safety
///
/// Every byte of the elements in the range is readable, `packed` is writable for as many, and they do not overlap; with
/// `DTC_TRANSFER_ENQUEUE` until the work is done. The stream is one of the primary context of its device. `type` is null or
/// a type, `done` is null or writable, and `transfer` is null or leads to its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_pack(
    r#type: *const dtc_type,
    source: *const c_void,
    count: i64,
    offset: i64,
    packed: *mut c_void,
    max: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    // SAFETY: the type and the transfer are those that `plain` asks for. Where a call moves whole elements, their bytes are readable,
    // `packed` is writable for as many, and they do not overlap (contract of this function).
    unsafe {
        if let (Some(committed), Ok(room), Ok(count)) =
            (plain(r#type, offset, done, transfer), u64::try_from(max), u64::try_from(count))
            && let Some(bytes) = committed.pack_whole(source.cast(), count, packed.cast(), room)
        {
            return moved(done, bytes);
        }
    }
    answer(|| {
        // SAFETY: the elements in the range are readable and `packed` is writable for as many bytes until the call, or
        // the work that it enqueued, is done, and they do not overlap; `type` is null or a live type, `transfer` is
        // null or readable for its size, its stream is one of its device's primary context, and `done` is null or
        // writable (contract of this function).
        unsafe {
            let call = Call::of(r#type, range("", count, offset, ("max", max))?, &arguments::read(transfer)?)?;
            call.run(call.at(source).pack(call.packed(packed)?), done)
        }
    })
}

/// Unpacks `length` bytes as packed bytes `offset` to `offset + length` of `count` elements, or less at their end. Writes
/// bytes of the type map and no others. (MPI 4.1, 5.2)
///
/// `destination`: the address that the type is applied to.
/// `packed`: the bytes.
/// `done`: receives how many bytes were unpacked; may be null.
///
/// Errors are those of `dtc_pack`.
///
/// # Safety
///
/// Every byte of the elements in the range is writable, no byte is in the range twice, `packed` is readable for as many,
/// and they do not overlap; else as for `dtc_pack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_unpack(
    r#type: *const dtc_type,
    destination: *mut c_void,
    count: i64,
    offset: i64,
    packed: *const c_void,
    length: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    // SAFETY: the type and the transfer are those that `plain` asks for. Where a call moves whole elements, their bytes are writable,
    // `packed` is readable for as many, and they do not overlap (contract of this function).
    unsafe {
        if let (Some(committed), Ok(length), Ok(count)) =
            (plain(r#type, offset, done, transfer), u64::try_from(length), u64::try_from(count))
            && let Some(bytes) = committed.unpack_whole(packed.cast(), length, destination.cast(), count)
        {
            return moved(done, bytes);
        }
    }
    answer(|| {
        // SAFETY: the elements in the range are writable and `packed` is readable for as many bytes until the call, or
        // the work that it enqueued, is done, and they do not overlap; `type` is null or a live type, `transfer` is
        // null or readable for its size, its stream is one of its device's primary context, and `done` is null or
        // writable (contract of this function).
        unsafe {
            let call = Call::of(r#type, range("", count, offset, ("length", length))?, &arguments::read(transfer)?)?;
            call.run(call.at(destination).unpack(call.packed(packed)?), done)
        }
    })
}

/// Starts what `dtc_pack` does. On the host it is done at once. Where the processor takes part, as it does between a GPU and
/// memory that CUDA does not know, `dtc_test` does some of the work.
///
/// `done`: receives how many bytes will be packed; may be null.
/// `request`: receives the request to test or wait for; null in it if the call is done, or enqueued.
///
/// Errors are those of `dtc_pack`, and `DTC_ERROR_ARGUMENT` if `request` is null.
///
/// # Safety
///
/// As for `dtc_pack`, until the request is done; `request` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_pack_start(
    r#type: *const dtc_type,
    source: *const c_void,
    count: i64,
    offset: i64,
    packed: *mut c_void,
    max: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
    request: *mut *mut dtc_request,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are readable and `packed` is writable for as many bytes until the request
        // is done, and they do not overlap; `type`, `transfer`, its stream and `done` are what `dtc_pack` asks, and
        // `request` is null or writable (contract of this function).
        unsafe {
            let call = Call::of(r#type, range("", count, offset, ("max", max))?, &arguments::read(transfer)?)?;
            let pack = call.at(source).pack(call.packed(packed)?);
            call.start(pack, [Some(call.committed), None], done, request)
        }
    })
}

/// Starts what `dtc_unpack` does. On the host it is done at once. Where the processor takes part, as it does between a GPU and
/// memory that CUDA does not know, `dtc_test` does some of the work.
///
/// `done`: receives how many bytes will be unpacked; may be null.
/// `request`: receives the request to test or wait for; null in it if the call is done, or enqueued.
///
/// Errors are those of `dtc_pack`, and `DTC_ERROR_ARGUMENT` if `request` is null.
///
/// # Safety
///
/// As for `dtc_unpack`, until the request is done; `request` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_unpack_start(
    r#type: *const dtc_type,
    destination: *mut c_void,
    count: i64,
    offset: i64,
    packed: *const c_void,
    length: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
    request: *mut *mut dtc_request,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are writable and `packed` is readable for as many bytes until the request
        // is done, and they do not overlap; `type`, `transfer`, its stream and `done` are what `dtc_unpack` asks, and
        // `request` is null or writable (contract of this function).
        unsafe {
            let call = Call::of(r#type, range("", count, offset, ("length", length))?, &arguments::read(transfer)?)?;
            let unpack = call.at(destination).unpack(call.packed(packed)?);
            call.start(unpack, [Some(call.committed), None], done, request)
        }
    })
}
