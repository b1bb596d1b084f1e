//! Messages matched to receives, by a kernel that stays on a GPU.
#![expect(clippy::disallowed_types, reason = "the lock is only tried")]

use crate::arguments::{self, Growing};
use crate::engine::dtc_engine;
use crate::handle::{self, Handle, Tag};
use crate::memory;
use crate::status::{DTC_ERROR_ARGUMENT, DTC_ERROR_DEVICE, DTC_ERROR_HANDLE, Failure, Outcome, answer};
use crate::transfer::ordinal;
use dtc_matching::port::Kind;
use dtc_matching::{
    End, Envelope, EnvelopeError, MatchError, Outcome as Matched, Pattern, Queues, Semantics, Service, ServiceOptions,
};
use dtc_runtime::cuda::{Device, Stream};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

/// Any source or tag of a receive: `MPI_ANY_SOURCE` and `MPI_ANY_TAG` by another number.
pub const DTC_MATCHER_ANY: i32 = -1;

/// No receive has any source. A promise that receives are held to.
pub const DTC_MATCHER_NO_ANY_SOURCE: i32 = 1;
/// No receive has any source or any tag.
pub const DTC_MATCHER_NO_WILDCARDS: i32 = 2;
/// Messages of one source and tag may be taken in any order, and no receive has any source or tag.
pub const DTC_MATCHER_UNORDERED: i32 = 4;
/// Kernels of other GPUs post or wait, too.
pub const DTC_MATCHER_SYSTEM: i32 = 8;

/// An entry is a message.
pub const DTC_MATCHER_MESSAGES: i32 = 0;
/// An entry is a receive.
pub const DTC_MATCHER_RECEIVES: i32 = 1;

/// The outcome of an entry that waits, or was never posted. Else it is the handle of the other side, from 0 on.
pub const DTC_MATCHER_PENDING: i64 = -1;
/// The outcome of an entry that found no free slot within a second, and was not posted.
pub const DTC_MATCHER_FULL: i64 = -2;
/// The outcome of an entry that found the matcher stopped, and was not posted.
pub const DTC_MATCHER_STOPPED: i64 = -3;

/// A matcher: queues in the memory of a GPU, and a kernel that matches what streams and kernels post. It belongs to one thread at a
/// time.
pub struct dtc_matcher(());

/// How a matcher is laid out. `DTC_MATCHER_CONFIG_INIT` sets `size`, and every other field to 0, its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_matcher_config {
    /// `sizeof(dtc_matcher_config)`.
    pub size: i64,
    /// A sum of promises: `DTC_MATCHER_NO_ANY_SOURCE` and the others; 0 for what MPI guarantees.
    pub flags: i32,
    /// Communicators, numbered from 0 on; 0 for 1.
    pub communicators: i32,
    /// Queues of a communicator, by the source modulo their number; 0 for 1. More need `DTC_MATCHER_NO_ANY_SOURCE` or a stronger promise.
    pub partitions: i32,
    /// Messages, and receives, that wait in a queue; 0 for 1,024.
    pub capacity: i32,
    /// Messages, and receives, of a queue that are posted and not yet looked at, rounded up to a power of two; 0 for `capacity`.
    pub slots: i32,
    /// Handles of messages, and of receives; 0 for as many as queues and slots have room for.
    pub handles: i32,
    /// Thread blocks of the kernel, a whole multiprocessor each, at most one for each queue; 0 for 1.
    pub blocks: i32,
    /// 0; anything else is refused, so that a later library can give it a meaning.
    pub reserved: i32,
    /// The kernel ends after this long without an entry, in microseconds; 0 for 5 s.
    pub idle_microseconds: i64,
}

// SAFETY: `repr(C)`, begins with an `i64`, and any bytes are a value: all fields are integers.
unsafe impl Growing for dtc_matcher_config {
    const DEFAULT: dtc_matcher_config = dtc_matcher_config {
        size: size_of::<dtc_matcher_config>() as i64,
        flags: 0,
        communicators: 0,
        partitions: 0,
        capacity: 0,
        slots: 0,
        handles: 0,
        blocks: 0,
        reserved: 0,
        idle_microseconds: 0,
    };
    const NAME: &'static str = "dtc_matcher_config";
}

/// A message, or a receive, that is posted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_matcher_entry {
    /// The rank of the sender; `DTC_MATCHER_ANY` in a receive.
    pub source: i32,
    /// The tag; `DTC_MATCHER_ANY` in a receive.
    pub tag: i32,
    /// The communicator.
    pub communicator: i32,
    /// What the caller calls it, from 0 on. Its outcome is forgotten.
    pub handle: i32,
}

/// What kernels need to post: `dtc_matching_port` of the header `dtc_matching.cuh`, which is a parameter of theirs by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_matcher_port {
    /// The device address of its memory.
    pub memory: u64,
    /// What is there.
    pub numbers: [u32; 6],
}

/// What a matcher holds.
pub(crate) struct Held {
    service: Mutex<Service>,
    device: Device,
}

impl Handle for dtc_matcher {
    type Inside = Held;
    const TAG: Tag = Tag::MATCHER;
    const NAME: &'static str = "dtc_matcher";
}

impl Held {
    /// The lock is never waited for, as that of a request.
    fn with<T>(&self, work: impl FnOnce(&mut Service) -> Outcome<T>) -> Outcome<T> {
        match self.service.try_lock() {
            Ok(mut service) => work(&mut service),
            Err(TryLockError::Poisoned(service)) => work(&mut service.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message = "dtc_matcher: expected one thread at a time, found another one inside";
                Err(Failure::new(DTC_ERROR_HANDLE, message))
            }
        }
    }
}

impl From<MatchError> for Failure {
    fn from(error: MatchError) -> Failure {
        match error {
            MatchError::Cuda(error) => error.into(),
            MatchError::NotStarted { .. } | MatchError::Abandoned { .. } => {
                Failure::new(DTC_ERROR_DEVICE, error.to_string())
            }
            other => Failure::new(DTC_ERROR_ARGUMENT, other.to_string()),
        }
    }
}

impl From<EnvelopeError> for Failure {
    fn from(error: EnvelopeError) -> Failure {
        Failure::new(DTC_ERROR_ARGUMENT, format!("dtc_matcher_entry.{error}"))
    }
}

/// Makes a matcher. Its kernels are compiled, or found in the store; none runs before `dtc_matcher_start`.
///
/// `device`: the GPU.
/// `config`: the layout and the promises; null for the defaults.
/// `matcher`: receives the matcher, to be freed by `dtc_matcher_free`.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: `matcher` is null, or a field of `config` is out of range.
/// `DTC_ERROR_DEVICE`: CUDA or NVRTC is missing or failed.
///
/// # Safety
///
/// `engine` is null or an engine, `config` is null or leads to `config->size` bytes, and `matcher` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_create(
    engine: *const dtc_engine,
    device: i32,
    config: *const dtc_matcher_config,
    matcher: *mut *mut dtc_matcher,
) -> c_int {
    answer(|| {
        arguments::check_pointer("matcher", matcher)?;
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `config` is null or readable for the size that it begins with (contract of this function).
        let (semantics, options) = unsafe { requested(&arguments::read(config)?)? };
        let _claim = memory::for_a_kernel(0)?;
        let gpu = engine.gpu(ordinal("device", device)?)?;
        let service = Service::new(&gpu, semantics, options)?;
        let made = handle::share(Held { service: Mutex::new(service), device: gpu.device().clone() });
        // SAFETY: `matcher` is aligned and not null (checked above), so it is writable (contract of this function).
        unsafe { arguments::give("matcher", matcher, made) }
    })
}

/// The promises and options of a configuration.
fn requested(config: &dtc_matcher_config) -> Outcome<(Semantics, ServiceOptions)> {
    let place = |field: &str| format!("dtc_matcher_config.{field}");
    let number = |field: &str, value: i32, default: u32| match u32::try_from(value) {
        Ok(0) => Ok(default),
        Ok(value) => Ok(value),
        Err(_) => Err(Failure::argument(&place(field), "at least 0", value)),
    };
    let all = DTC_MATCHER_NO_ANY_SOURCE | DTC_MATCHER_NO_WILDCARDS | DTC_MATCHER_UNORDERED | DTC_MATCHER_SYSTEM;
    if config.flags & !all != 0 {
        return Err(Failure::argument(
            &place("flags"),
            "a sum of DTC_MATCHER_NO_ANY_SOURCE and the others",
            config.flags,
        ));
    }
    if config.reserved != 0 {
        return Err(Failure::argument(&place("reserved"), 0, config.reserved));
    }
    let mut semantics = Semantics::MPI;
    if config.flags & DTC_MATCHER_NO_ANY_SOURCE != 0 {
        semantics = semantics.without_source_wildcard();
    }
    if config.flags & DTC_MATCHER_NO_WILDCARDS != 0 {
        semantics = semantics.without_wildcards();
    }
    if config.flags & DTC_MATCHER_UNORDERED != 0 {
        semantics = semantics.without_ordering();
    }
    let queues = Queues {
        communicators: number("communicators", config.communicators, 1)?,
        partitions: number("partitions", config.partitions, 1)?,
        capacity: number("capacity", config.capacity, 1024)?,
    };
    let default = ServiceOptions::new(queues);
    let idle = match arguments::length(&place("idle_microseconds"), config.idle_microseconds)? {
        0 => default.idle,
        microseconds => Duration::from_micros(microseconds),
    };
    let options = ServiceOptions {
        slots: number("slots", config.slots, default.slots)?,
        handles: number("handles", config.handles, default.handles)?,
        blocks: number("blocks", config.blocks, 1)?,
        idle,
        system: config.flags & DTC_MATCHER_SYSTEM != 0,
        ..default
    };
    Ok((semantics, options))
}

/// Starts the kernel of a matcher, and returns when it runs. What waits since the last stop is served. Does nothing if it runs.
///
/// While it runs, loading code and freeing memory of the device wait for it in the whole process.
///
/// `DTC_ERROR_HANDLE`: not a matcher, or another thread uses it.
/// `DTC_ERROR_DEVICE`: other kernels kept it from running for 10 s, or CUDA failed.
///
/// # Safety
///
/// `matcher` is null or a matcher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_start(matcher: *mut dtc_matcher) -> c_int {
    answer(|| {
        // SAFETY: `matcher` is null or a live matcher, which the caller keeps during the call (contract of this function).
        let held = unsafe { handle::borrow(matcher.cast_const())? };
        held.with(|service| Ok(service.start()?))
    })
}

/// Has the kernel of a matcher serve what was posted, and end; waits for that. Entries that are not matched wait for the next start.
///
/// `idle`: receives 1 if it had ended by itself, for want of entries, and 0 else; may be null.
///
/// `DTC_ERROR_HANDLE`: not a matcher, or another thread uses it.
/// `DTC_ERROR_DEVICE`: a kernel took a slot and did not fill it within a second, or CUDA failed. It has ended all the same.
///
/// # Safety
///
/// `matcher` is null or a matcher; `idle` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_stop(matcher: *mut dtc_matcher, idle: *mut c_int) -> c_int {
    answer(|| {
        // SAFETY: `matcher` is null or a live matcher, which the caller keeps during the call (contract of this function).
        let held = unsafe { handle::borrow(matcher.cast_const())? };
        let end = held.with(|service| Ok(service.stop()?))?;
        // SAFETY: `idle` is null or writable (contract of this function).
        unsafe { arguments::offer("idle", idle, c_int::from(end == Some(End::Idle))) }
    })
}

/// Stops a matcher and frees it with what waits.
///
/// `DTC_ERROR_HANDLE`: not a matcher.
///
/// # Safety
///
/// `matcher` is null or a matcher, which neither the caller nor a kernel uses from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_free(matcher: *mut dtc_matcher) -> c_int {
    // SAFETY: `matcher` is null or a live matcher, and the caller gives its reference up (contract of this function).
    answer(|| unsafe { handle::release(matcher) })
}

/// What kernels need to post. It is the same over starts and stops.
///
/// `port`: receives it.
///
/// `DTC_ERROR_HANDLE`: not a matcher, or another thread uses it.
/// `DTC_ERROR_ARGUMENT`: `port` is null.
///
/// # Safety
///
/// `matcher` is null or a matcher; `port` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_get_port(matcher: *const dtc_matcher, port: *mut dtc_matcher_port) -> c_int {
    answer(|| {
        // SAFETY: `matcher` is null or a live matcher, which the caller keeps during the call (contract of this function).
        let held = unsafe { handle::borrow(matcher)? };
        let found = held.with(|service| Ok(service.port()))?;
        let numbers = [found.communicators, found.partitions, found.slots, found.handles, found.refused, found.system];
        // SAFETY: `port` is null, misaligned or writable (contract of this function).
        unsafe { arguments::give("port", port, dtc_matcher_port { memory: found.memory, numbers }) }
    })
}

/// Enqueues messages or receives on a CUDA stream, in order, and returns at once. A CUDA graph may capture it.
///
/// `kind`: `DTC_MATCHER_MESSAGES` or `DTC_MATCHER_RECEIVES`.
/// `entries`, `length`: the entries.
/// `stream`: a `cudaStream_t` or `CUstream` of the device of the matcher; null for the legacy default stream.
///
/// `DTC_ERROR_HANDLE`: not a matcher, or another thread uses it.
/// `DTC_ERROR_ARGUMENT`: a number is out of range, a wildcard was promised not to be used, or the matcher does not run. Nothing is posted.
/// `DTC_ERROR_DEVICE`: CUDA failed.
///
/// # Safety
///
/// `matcher` is null or a matcher, `entries` leads to as many, and the stream is one of the primary context of its device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_post(
    matcher: *mut dtc_matcher,
    kind: i32,
    entries: *const dtc_matcher_entry,
    length: i64,
    stream: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: `matcher` is null or a live matcher, which the caller keeps during the call (contract of this function).
        let held = unsafe { handle::borrow(matcher.cast_const())? };
        // SAFETY: `entries` has `length` entries, which no thread writes during the call (contract of this function).
        let entries = unsafe { arguments::list("entries", entries, length)? };
        // SAFETY: `stream` is one of the primary context of the device of the matcher, or null for its default stream (contract of this
        // function).
        let stream = unsafe { Stream::borrow(&held.device, stream) };
        let _claim = memory::for_numbers(4 * entries.len() as u64)?;
        // Numbers below 0 are above the largest, and refused as such.
        let number = |number: i32| number as u32;
        match self::kind(kind)? {
            Kind::Messages => {
                let message = |entry: &dtc_matcher_entry| {
                    let [source, tag, communicator] = [entry.source, entry.tag, entry.communicator].map(number);
                    Ok((Envelope::new(source, tag, communicator)?, number(entry.handle)))
                };
                let messages: Outcome<Vec<(Envelope, u32)>> = entries.iter().map(message).collect();
                let messages = messages?;
                held.with(|service| Ok(service.arrive(&stream, &messages)?))
            }
            Kind::Receives => {
                let any = |place: i32| (place != DTC_MATCHER_ANY).then_some(number(place));
                let receive = |entry: &dtc_matcher_entry| {
                    let pattern = Pattern::new(any(entry.source), any(entry.tag), number(entry.communicator))?;
                    Ok((pattern, number(entry.handle)))
                };
                let receives: Outcome<Vec<(Pattern, u32)>> = entries.iter().map(receive).collect();
                let receives = receives?;
                held.with(|service| Ok(service.post(&stream, &receives)?))
            }
        }
    })
}

fn kind(kind: i32) -> Outcome<Kind> {
    match kind {
        DTC_MATCHER_MESSAGES => Ok(Kind::Messages),
        DTC_MATCHER_RECEIVES => Ok(Kind::Receives),
        unknown => Err(Failure::argument("kind", "DTC_MATCHER_MESSAGES or DTC_MATCHER_RECEIVES", unknown)),
    }
}

/// Enqueues a wait on a CUDA stream: what is behind it runs when an entry is matched, when the time is up, or when the matcher has ended.
/// Ask for the outcome to know which. A CUDA graph may capture it.
///
/// `kind`, `handle`: the entry.
/// `microseconds`: the time.
/// `stream`: as for `dtc_matcher_post`.
///
/// `DTC_ERROR_HANDLE`: not a matcher, or another thread uses it.
/// `DTC_ERROR_ARGUMENT`: the kind is unknown, the handle out of range, or the time negative.
/// `DTC_ERROR_DEVICE`: CUDA failed.
///
/// # Safety
///
/// `matcher` is null or a matcher, and the stream one of the primary context of its device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_wait(
    matcher: *mut dtc_matcher,
    kind: i32,
    handle: i32,
    microseconds: i64,
    stream: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: `matcher` is null or a live matcher, which the caller keeps during the call (contract of this function).
        let held = unsafe { handle::borrow(matcher.cast_const())? };
        let kind = self::kind(kind)?;
        let most = Duration::from_micros(arguments::length("microseconds", microseconds)?);
        // SAFETY: `stream` is one of the primary context of the device of the matcher, or null for its default stream (contract of this
        // function).
        let stream = unsafe { Stream::borrow(&held.device, stream) };
        held.with(|service| Ok(service.wait(&stream, kind, handle as u32, most)?))
    })
}

/// What became of entries, as it is now.
///
/// `kind`, `first`, `length`: the entries, by their handles.
/// `outcomes`: receives for each the handle of the other side, or `DTC_MATCHER_PENDING`, `DTC_MATCHER_FULL` or `DTC_MATCHER_STOPPED`.
///
/// `DTC_ERROR_HANDLE`: not a matcher, or another thread uses it.
/// `DTC_ERROR_ARGUMENT`: the kind is unknown, a handle out of range, or a pointer null.
/// `DTC_ERROR_DEVICE`: CUDA failed.
///
/// # Safety
///
/// `matcher` is null or a matcher, and `outcomes` is null or has room for `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_matcher_outcomes(
    matcher: *const dtc_matcher,
    kind: i32,
    first: i32,
    length: i64,
    outcomes: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `matcher` is null or a live matcher, which the caller keeps during the call (contract of this function).
        let held = unsafe { handle::borrow(matcher)? };
        let kind = self::kind(kind)?;
        let start = u32::try_from(first).map_err(|_| Failure::argument("first", "at least 0", first))?;
        let end = u64::from(start).checked_add(arguments::length("length", length)?);
        let end = end.and_then(|end| u32::try_from(end).ok());
        let end = end.ok_or_else(|| Failure::argument("length", "at most the handles of the matcher", length))?;
        if start == end {
            return Ok(());
        }
        arguments::check_pointer("outcomes", outcomes)?;
        let _claim = memory::for_numbers(u64::from(end - start))?;
        let found = held.with(|service| Ok(service.outcomes(kind, start..end)?))?;
        for (place, outcome) in found.into_iter().enumerate() {
            let outcome = match outcome {
                Matched::Pending => DTC_MATCHER_PENDING,
                Matched::Matched(other) => i64::from(other),
                Matched::Full => DTC_MATCHER_FULL,
                Matched::Stopped => DTC_MATCHER_STOPPED,
            };
            // SAFETY: `outcomes` is aligned and not null (checked above), so it has room for `length` numbers (contract of this function);
            // `place` is below `length`.
            unsafe { outcomes.add(place).write(outcome) };
        }
        Ok(())
    })
}
