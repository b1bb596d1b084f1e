//! Packs and unpacks.

use crate::info::Info;
use crate::library::{engine, is_host_only};
use crate::status::Status;
use crate::types::Type;
use dtc_compiler::operation::Operation;
use dtc_runtime::cuda::{MemoryKind, Stream, device_of, is_in_use};
use dtc_runtime::{Between, Range, Request, TransferError};
use std::ffi::c_void;

/// What is asked: packed bytes from `offset` on, `max` at most, of `count` elements at `memory`.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) of: &'a Type,
    pub(crate) memory: *mut u8,
    pub(crate) count: u64,
    pub(crate) offset: u64,
    pub(crate) packed: *mut u8,
    pub(crate) max: u64,
    pub(crate) info: Option<&'a Info>,
    pub(crate) operation: Operation,
}

/// What a call on a device has left to do.
pub(crate) type Pending = Option<Box<Request>>;

pub(crate) fn failed(error: TransferError) -> Status {
    match error {
        TransferError::OutOfReach { .. } | TransferError::Accumulate(_) => Status::NotSupported,
        _ => Status::Internal,
    }
}

/// What a call that was started has left to do.
pub(crate) fn pending(started: Result<Request, TransferError>) -> Result<Pending, Status> {
    let request = started.map_err(failed)?;
    Ok((!request.is_done()).then(|| Box::new(request)))
}

impl Call<'_> {
    /// How many bytes the call moves. A pack cuts no basic element: MPICH asserts so of what it receives. An unpack takes
    /// what it is given, since other senders may have cut it.
    #[inline]
    fn length<const PACK: bool>(&self) -> Result<u64, Status> {
        let size = self.of.shape.size;
        // Every size fits 63 bits, and so must their sum.
        let total = self.count.checked_mul(size).filter(|&total| total <= i64::MAX as u64).ok_or(Status::Internal)?;
        let rest = total.saturating_sub(self.offset);
        if self.max >= rest || !PACK {
            return Ok(self.max.min(rest));
        }
        Ok(self.of.border(self.offset + self.max).saturating_sub(self.offset))
    }

    /// Whether all bytes are the host's: because the caller says so, or because nobody in the process uses CUDA.
    #[inline]
    fn is_host_only(&self) -> bool {
        is_host_only() || self.info.map_or_else(|| !is_in_use(), Info::is_host_only)
    }

    /// The type between memory of the kinds that the caller said.
    pub(crate) fn between<const PACK: bool>(&self) -> Result<Between<'_>, Status> {
        let (input, output) = self.info.map_or((None, None), Info::kinds);
        let (memory, packed) = if PACK { (input, output) } else { (output, input) };
        Ok(self.of.committed()?.between(memory, packed))
    }

    /// The devices of the buffer that is read and of the one that is written, as the caller said or CUDA says.
    pub(crate) fn devices<const PACK: bool>(&self) -> Result<(Option<u32>, Option<u32>), Status> {
        let first: *const u8 = self.memory.wrapping_offset(self.of.shape.first as isize);
        let packed: *const u8 = self.packed;
        let (read, written) = if PACK { (first, packed) } else { (packed, first) };
        let (input, output) = self.info.map_or((None, None), Info::kinds);
        let device = |pointer, known: Option<MemoryKind>| match known {
            Some(MemoryKind::Device(ordinal)) => Ok(Some(ordinal)),
            Some(_) => Ok(None),
            None => device_of(pointer).map_err(|_| Status::Internal),
        };
        Ok((device(read, input)?, device(written, output)?))
    }

    /// Moves bytes of host memory.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`].
    #[inline]
    pub(crate) unsafe fn on_host<const PACK: bool>(&self, bytes: u64) -> Result<(), Status> {
        if self.operation != Operation::Replace {
            // SAFETY: the caller's promise.
            return unsafe { self.combine::<PACK>(bytes) };
        }
        let of = self.of.origin();
        if of.committed.get().is_none()
            && let Some(described) = of.described()?
        {
            // SAFETY: the caller's promise; the length is that of a part of the elements.
            let moved = unsafe {
                if PACK {
                    described.pack_raw(self.memory, self.count, self.offset, self.packed, bytes)
                } else {
                    described.unpack_raw(self.packed, bytes, self.memory, self.count, self.offset)
                }
            };
            if moved.is_some() {
                return Ok(());
            }
        }
        let committed = self.of.committed()?;
        // SAFETY: as above.
        unsafe {
            if PACK {
                committed.pack_raw(self.memory, Range::elements(self.count).fragment(self.offset, bytes), self.packed);
            } else {
                committed.unpack_raw(
                    self.packed,
                    Range::elements(self.count).fragment(self.offset, bytes),
                    self.memory,
                );
            }
        }
        Ok(())
    }

    /// Does what is asked, or begins it where a device does the work. Returns how many bytes are moved.
    ///
    /// # Safety
    ///
    /// The bytes of the elements that the call moves, and as many packed bytes, are readable and writable as the direction
    /// wants, the two sides do not overlap, and nobody else touches them before the call or its request is done. What the
    /// info says is true.
    #[inline]
    pub(crate) unsafe fn start<const PACK: bool>(&self) -> Result<(u64, Pending), Status> {
        let bytes = self.length::<PACK>()?;
        if bytes == 0 {
            return Ok((0, None));
        }
        if self.is_host_only() {
            // SAFETY: the caller's promise.
            unsafe { self.on_host::<PACK>(bytes)? };
            return Ok((bytes, None));
        }
        // SAFETY: the caller's promise.
        Ok((bytes, unsafe { self.anywhere::<PACK>(bytes)? }))
    }

    /// Does what is asked, wherever the bytes lie.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`].
    unsafe fn anywhere<const PACK: bool>(&self, bytes: u64) -> Result<Pending, Status> {
        if self.operation != Operation::Replace {
            // SAFETY: the caller's promise.
            return unsafe { self.combine_anywhere::<PACK>(bytes) };
        }
        let between = self.between::<PACK>()?;
        // SAFETY: the caller's promise.
        let request = unsafe {
            if PACK {
                between.start_pack(self.memory, Range::elements(self.count).fragment(self.offset, bytes), self.packed)
            } else {
                between.start_unpack(self.packed, Range::elements(self.count).fragment(self.offset, bytes), self.memory)
            }
        };
        pending(request)
    }

    /// Does what is asked and waits until it is done.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`].
    #[inline]
    pub(crate) unsafe fn finish<const PACK: bool>(&self) -> Result<u64, Status> {
        // SAFETY: the caller's promise.
        let (bytes, pending) = unsafe { self.start::<PACK>()? };
        if let Some(request) = pending {
            request.wait().map_err(failed)?;
        }
        Ok(bytes)
    }

    /// Enqueues what is asked on a CUDA stream. Where no side lies on a device, it is done at once.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`], until the stream has come past it; `stream` is a stream of the device on which the sides lie.
    pub(crate) unsafe fn enqueue<const PACK: bool>(&self, stream: *mut c_void) -> Result<u64, Status> {
        let bytes = self.length::<PACK>()?;
        if bytes == 0 {
            return Ok(0);
        }
        let sides = if self.is_host_only() { (None, None) } else { self.devices::<PACK>()? };
        match sides {
            // SAFETY: the caller's promise.
            (None, None) => unsafe { self.on_host::<PACK>(bytes)? },
            (Some(device), _) | (None, Some(device)) => {
                let gpu = engine().gpu(device).map_err(|_| Status::Internal)?;
                // SAFETY: the caller's promise.
                let stream = unsafe { Stream::borrow(gpu.device(), stream) };
                if self.operation != Operation::Replace {
                    // SAFETY: as above.
                    unsafe { self.enqueue_combine::<PACK>(&stream, bytes)? };
                    return Ok(bytes);
                }
                let between = self.between::<PACK>()?;
                // SAFETY: the caller's promise.
                let enqueued = unsafe {
                    if PACK {
                        between.enqueue_pack(
                            &stream,
                            self.memory,
                            Range::elements(self.count).fragment(self.offset, bytes),
                            self.packed,
                        )
                    } else {
                        between.enqueue_unpack(
                            &stream,
                            self.packed,
                            Range::elements(self.count).fragment(self.offset, bytes),
                            self.memory,
                        )
                    }
                };
                enqueued.map_err(failed)?;
            }
        }
        Ok(bytes)
    }
}
