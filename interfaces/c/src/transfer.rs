//! Packing and unpacking: blocking, started, and enqueued on a stream.

use crate::arguments::{self, Growing};
use crate::handle;
use crate::request::{self, dtc_request};
use crate::status::{DTC_ERROR_MEMORY, DTC_ERROR_RANGE, Failure, Outcome, answer};
use crate::types::dtc_type;
use dtc_runtime::cuda::{MemoryKind, Stream};
use dtc_runtime::{Between, Committed, Engine, Multiprocessors, Range};
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

/// The call returns when the work is on the stream. Whoever orders behind it, by the stream, finds the bytes there; so a
/// CUDA graph may capture it.
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
    pub(crate) fn kinds(&self) -> Outcome<[Option<MemoryKind>; 2]> {
        if self.reserved != 0 {
            return Err(Failure::argument("dtc_transfer.reserved", 0, self.reserved));
        }
        let known = |field: &str, kind: i32, device: i32| {
            let place = |suffix: &str| format!("dtc_transfer.{field}{suffix}");
            Ok(match kind {
                DTC_MEMORY_UNKNOWN => None,
                DTC_MEMORY_HOST => Some(MemoryKind::Pageable),
                DTC_MEMORY_PINNED => Some(MemoryKind::Pinned),
                DTC_MEMORY_MANAGED => Some(MemoryKind::Managed),
                DTC_MEMORY_DEVICE => Some(MemoryKind::Device(ordinal(&place("_device"), device)?)),
                unknown => return Err(Failure::argument(&place(""), "one of DTC_MEMORY_", unknown)),
            })
        };
        Ok([known("memory", self.memory, self.memory_device)?, known("packed", self.packed, self.packed_device)?])
    }

    /// What of a GPU the call may occupy.
    fn multiprocessors(&self) -> Outcome<Multiprocessors> {
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
    pub(crate) unsafe fn stream(&self, engine: &Engine) -> Outcome<Option<Stream>> {
        match self.flags {
            0 => Ok(None),
            DTC_TRANSFER_ENQUEUE => {
                let gpu = engine.gpu(ordinal("dtc_transfer.stream_device", self.stream_device)?)?;
                // SAFETY: the caller's promise.
                Ok(Some(unsafe { Stream::borrow(gpu.device(), self.stream) }))
            }
            unknown => {
                let found = format_args!("{unknown:#x}");
                Err(Failure::argument("dtc_transfer.flags", "0 or DTC_TRANSFER_ENQUEUE", found))
            }
        }
    }
}

/// Reads a transfer without a cap on multiprocessors, for calls whose kernels take all that are free.
///
/// # Safety
///
/// `transfer` is null or leads to its size.
pub(crate) unsafe fn uncapped(transfer: *const dtc_transfer) -> Outcome<dtc_transfer> {
    // SAFETY: the caller's promise.
    let transfer = unsafe { arguments::read(transfer)? };
    match transfer.multiprocessors {
        0 => Ok(transfer),
        most => Err(Failure::argument("dtc_transfer.multiprocessors", "0, but for a pack or an unpack", most)),
    }
}

fn ordinal(place: &str, device: i32) -> Outcome<u32> {
    u32::try_from(device).map_err(|_| Failure::argument(place, "at least 0", device))
}

/// One call, checked.
pub(crate) struct Move<'a> {
    pub(crate) committed: &'a Committed,
    pub(crate) between: Between<'a>,
    pub(crate) stream: Option<Stream>,
    pub(crate) count: u64,
    pub(crate) offset: u64,
    /// How many bytes it moves.
    pub(crate) bytes: u64,
}

impl<'a> Move<'a> {
    /// # Safety
    ///
    /// `asked` is null or a type, and `transfer` leads to its size.
    pub(crate) unsafe fn of(
        asked: *const dtc_type,
        count: i64,
        offset: i64,
        max: i64,
        transfer: *const dtc_transfer,
    ) -> Outcome<Move<'a>> {
        // SAFETY: the caller's promise.
        let asked = unsafe { handle::borrow(asked)? };
        let committed = &asked.ready()?.committed;
        let count = arguments::length("count", count)?;
        let (offset, max) = (arguments::length("offset", offset)?, arguments::length("max", max)?);
        let total = committed.packed_size(count)?;
        let Some(rest) = total.checked_sub(offset) else {
            return Err(Failure::new(DTC_ERROR_RANGE, format!("offset: expected at most {total}, found {offset}")));
        };
        // SAFETY: as above.
        let transfer = unsafe { arguments::read(transfer)? };
        let [memory, packed] = transfer.kinds()?;
        // SAFETY: as above.
        let stream = unsafe { transfer.stream(&asked.engine)? };
        let between = committed.between(memory, packed).on(transfer.multiprocessors()?);
        Ok(Move { committed, between, stream, count, offset, bytes: rest.min(max) })
    }

    /// # Safety
    ///
    /// As for [`Committed::pack_raw`], on the host or a device.
    unsafe fn pack(&self, memory: *const u8, packed: *mut u8) -> Outcome {
        let Move { ref between, ref stream, count, offset, bytes, .. } = *self;
        // SAFETY: the caller's promise.
        unsafe {
            match stream {
                None => between.pack(memory, Range::elements(count).fragment(offset, bytes), packed)?,
                Some(stream) => {
                    between.enqueue_pack(stream, memory, Range::elements(count).fragment(offset, bytes), packed)?
                }
            };
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`Committed::unpack_raw`], on the host or a device.
    unsafe fn unpack(&self, packed: *const u8, memory: *mut u8) -> Outcome {
        let Move { ref between, ref stream, count, offset, bytes, .. } = *self;
        // SAFETY: the caller's promise.
        unsafe {
            match stream {
                None => between.unpack(packed, Range::elements(count).fragment(offset, bytes), memory)?,
                Some(stream) => {
                    between.enqueue_unpack(stream, packed, Range::elements(count).fragment(offset, bytes), memory)?
                }
            };
        }
        Ok(())
    }
}

/// Nothing is moved, or the packed bytes lie somewhere. Elements may have a null base: it is for absolute addresses.
pub(crate) fn check_packed(bytes: u64, packed: *const c_void) -> Outcome {
    if bytes > 0 && packed.is_null() {
        return Err(Failure::argument("packed", "an address", "null"));
    }
    Ok(())
}

/// Refuses what is not done by the CPU: a side that the caller says, or CUDA, lies on a device.
///
/// # Safety
///
/// `transfer` is null or leads to its size.
pub(crate) unsafe fn on_host(transfer: *const dtc_transfer, sides: [(&str, *const u8); 2]) -> Outcome {
    // SAFETY: the caller's promise.
    let transfer = unsafe { arguments::read(transfer)? };
    if transfer.flags != 0 {
        return Err(Failure::argument("dtc_transfer.flags", "0", transfer.flags));
    }
    for (kind, (side, address)) in transfer.kinds()?.into_iter().zip(sides) {
        let kind = kind.map_or_else(|| MemoryKind::of(address), Ok)?;
        if matches!(kind, MemoryKind::Device(_)) {
            let message = format!("{side}: expected memory of the host, found {kind}");
            return Err(Failure::new(DTC_ERROR_MEMORY, message));
        }
    }
    Ok(())
}

/// The address of the first byte of elements: the base of an absolute type lies nowhere.
pub(crate) fn first_byte(committed: &Committed, memory: *const u8) -> *const u8 {
    let layout = committed.layout();
    let begin = layout.root().offset.wrapping_add(layout.measure(layout.root().node).first);
    memory.wrapping_offset(begin as isize)
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
/// `DTC_TRANSFER_ENQUEUE` until the work is done. The stream is one of the primary context of its device.
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
    answer(|| {
        // SAFETY: the caller's promise, here and below.
        let asked = unsafe { Move::of(r#type, count, offset, max, transfer)? };
        check_packed(asked.bytes, packed)?;
        // SAFETY: as above.
        unsafe {
            asked.pack(source.cast(), packed.cast())?;
            arguments::offer("done", done, asked.bytes as i64)
        }
    })
}

/// Unpacks `length` bytes as packed bytes `offset` to `offset + length` of `count` elements, or less at their end. Writes
/// bytes of the type map and no others. (MPI 4.1, 5.2)
///
/// `packed`: the bytes.
/// `destination`: the address that the type is applied to.
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
    packed: *const c_void,
    length: i64,
    destination: *mut c_void,
    count: i64,
    offset: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise, here and below.
        let asked = unsafe { Move::of(r#type, count, offset, length, transfer)? };
        check_packed(asked.bytes, packed)?;
        // SAFETY: as above.
        unsafe {
            asked.unpack(packed.cast(), destination.cast())?;
            arguments::offer("done", done, asked.bytes as i64)
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
/// As for `dtc_pack`, until the request is done.
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
        arguments::check_pointer("request", request)?;
        // SAFETY: the caller's promise, here and below.
        let asked = unsafe { Move::of(r#type, count, offset, max, transfer)? };
        check_packed(asked.bytes, packed)?;
        // SAFETY: as above.
        unsafe {
            if asked.stream.is_some() {
                asked.pack(source.cast(), packed.cast())?;
                request.write(std::ptr::null_mut());
            } else {
                let Move { committed, ref between, count, offset, bytes, .. } = asked;
                let started =
                    between.start_pack(source.cast(), Range::elements(count).fragment(offset, bytes), packed.cast())?;
                request::give(started, [Some(committed), None], request)?;
            }
            arguments::offer("done", done, asked.bytes as i64)
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
/// As for `dtc_unpack`, until the request is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_unpack_start(
    r#type: *const dtc_type,
    packed: *const c_void,
    length: i64,
    destination: *mut c_void,
    count: i64,
    offset: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
    request: *mut *mut dtc_request,
) -> c_int {
    answer(|| {
        arguments::check_pointer("request", request)?;
        // SAFETY: the caller's promise, here and below.
        let asked = unsafe { Move::of(r#type, count, offset, length, transfer)? };
        check_packed(asked.bytes, packed)?;
        // SAFETY: as above.
        unsafe {
            if asked.stream.is_some() {
                asked.unpack(packed.cast(), destination.cast())?;
                request.write(std::ptr::null_mut());
            } else {
                let Move { committed, ref between, count, offset, bytes, .. } = asked;
                let started = between.start_unpack(
                    packed.cast(),
                    Range::elements(count).fragment(offset, bytes),
                    destination.cast(),
                )?;
                request::give(started, [Some(committed), None], request)?;
            }
            arguments::offer("done", done, asked.bytes as i64)
        }
    })
}
