//! Packs and unpacks.

use crate::info::Info;
use crate::library::{engine, is_host_only};
use crate::status::Status;
use crate::types::Type;
use dtc_compiler::operation::Operation;
use dtc_runtime::cuda::{Stream, device_of};
use dtc_runtime::{Between, Request, TransferError};
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

fn failed(error: TransferError) -> Status {
    match error {
        TransferError::OutOfReach { .. } => Status::NotSupported,
        _ => Status::Internal,
    }
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

    /// Whether all bytes are the host's, as far as the caller has said.
    #[inline]
    fn is_host_only(&self) -> bool {
        is_host_only() || self.info.is_some_and(Info::is_host_only)
    }

    /// The type between memory of the kinds that the caller said.
    fn between<const PACK: bool>(&self) -> Result<Between<'_>, Status> {
        let (input, output) = self.info.map_or((None, None), Info::kinds);
        let (memory, packed) = if PACK { (input, output) } else { (output, input) };
        Ok(self.of.committed()?.between(memory, packed))
    }

    /// The devices on which the elements and the packed bytes lie.
    fn devices(&self) -> Result<(Option<u32>, Option<u32>), Status> {
        let first = self.memory.wrapping_offset(self.of.shape.first as isize);
        let device = |pointer: *const u8| device_of(pointer).map_err(|_| Status::Internal);
        Ok((device(first)?, device(self.packed)?))
    }

    /// Moves bytes of host memory.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`].
    #[inline]
    unsafe fn on_host<const PACK: bool>(&self, bytes: u64) -> Result<(), Status> {
        if self.operation != Operation::Replace {
            // SAFETY: the caller's promise.
            return unsafe { self.combine::<PACK>(bytes) };
        }
        let committed = self.of.committed()?;
        // SAFETY: the caller's promise; the length is that of a part of the elements.
        unsafe {
            if PACK {
                committed.pack_raw(self.memory, self.count, self.offset, self.packed, bytes);
            } else {
                committed.unpack_raw(self.packed, bytes, self.memory, self.count, self.offset);
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
            return match self.devices()? {
                // SAFETY: the caller's promise.
                (None, None) => unsafe { self.on_host::<PACK>(bytes).map(|()| None) },
                _ => Err(Status::NotSupported),
            };
        }
        let between = self.between::<PACK>()?;
        // SAFETY: the caller's promise.
        let request = unsafe {
            if PACK {
                between.start_pack(self.memory, self.count, self.offset, self.packed, bytes)
            } else {
                between.start_unpack(self.packed, bytes, self.memory, self.count, self.offset)
            }
        };
        let mut request = request.map_err(failed)?;
        if request.test().map_err(failed)? { Ok(None) } else { Ok(Some(Box::new(request))) }
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
        let sides = if self.is_host_only() { (None, None) } else { self.devices()? };
        match sides {
            // SAFETY: the caller's promise.
            (None, None) => unsafe { self.on_host::<PACK>(bytes)? },
            (Some(device), _) | (None, Some(device)) if self.operation == Operation::Replace => {
                let gpu = engine().gpu(device).map_err(|_| Status::Internal)?;
                let between = self.between::<PACK>()?;
                // SAFETY: the caller's promise.
                let enqueued = unsafe {
                    let stream = Stream::borrow(gpu.device(), stream);
                    if PACK {
                        between.enqueue_pack(&stream, self.memory, self.count, self.offset, self.packed, bytes)
                    } else {
                        between.enqueue_unpack(&stream, self.packed, bytes, self.memory, self.count, self.offset)
                    }
                };
                enqueued.map_err(failed)?;
            }
            _ => return Err(Status::NotSupported),
        }
        Ok(bytes)
    }
}
