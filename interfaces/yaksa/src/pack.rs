//! Packs and unpacks.

use crate::info::Info;
use crate::library::{engine, is_host_only};
use crate::status::Status;
use crate::types::Type;
use dtc_compiler::operation::Operation;
use dtc_runtime::cuda::{MemoryKind, Stream, device_of, is_in_use};
use dtc_runtime::{Elements, Endpoint, Range, Request, Transfer, TransferError};
use std::ffi::c_void;

/// The arguments of a pack or an unpack: a range of packed bytes of elements at `memory`.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) of: &'a Type,
    pub(crate) memory: *mut u8,
    pub(crate) range: Range,
    pub(crate) packed: *mut u8,
    pub(crate) info: Option<&'a Info>,
    pub(crate) operation: Operation,
}

/// The request of a call that a device is still working on.
pub(crate) type Pending = Option<Box<Request>>;

pub(crate) fn failed(error: TransferError) -> Status {
    match error {
        TransferError::OutOfReach { .. } | TransferError::Accumulate(_) | TransferError::Buffered => {
            Status::NotSupported
        }
        _ => Status::Internal,
    }
}

/// The request of a started call, unless it is done.
pub(crate) fn pending(started: Result<Request, TransferError>) -> Result<Pending, Status> {
    let request = started.map_err(failed)?;
    Ok((!request.is_done()).then(|| Box::new(request)))
}

impl Call<'_> {
    /// The bytes that the call moves. A pack cuts no basic element: MPICH asserts so of what it receives. An unpack takes
    /// what it is given, since other senders may have cut it.
    #[inline]
    fn exact<const PACK: bool>(&self) -> Result<Range, Status> {
        let (offset, most) = (self.range.offset(), self.range.length());
        let total = self.range.count().checked_mul(self.of.shape.size);
        // Every size fits 63 bits, and so must their sum.
        let total = total.filter(|&total| total <= i64::MAX as u64).ok_or(Status::Internal)?;
        let rest = total.saturating_sub(offset);
        let length = match PACK && most < rest {
            true => self.of.border(offset + most).saturating_sub(offset),
            false => most.min(rest),
        };
        Ok(self.range.fragment(offset, length))
    }

    /// Whether all bytes lie in host memory: the caller says so, or the process does not use CUDA.
    #[inline]
    fn is_host_only(&self) -> bool {
        is_host_only() || self.info.map_or_else(|| !is_in_use(), Info::is_host_only)
    }

    /// The elements and the packed bytes, in memory of the kinds that the caller said.
    pub(crate) fn ends<const PACK: bool>(&self, range: Range) -> Result<(Elements<'_>, Endpoint), Status> {
        let (input, output) = self.info.map_or((None, None), Info::kinds);
        let (memory, packed) = if PACK { (input, output) } else { (output, input) };
        let elements = self.of.committed()?.at(Endpoint::from(self.memory).with_kind(memory), range);
        Ok((elements, Endpoint::from(self.packed).with_kind(packed)))
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
    pub(crate) unsafe fn on_host<const PACK: bool>(&self, range: Range) -> Result<(), Status> {
        if self.operation != Operation::Replace {
            // SAFETY: `accumulate` asks what `start` asks, with both sides readable; an operation reads what it replaces,
            // so the direction wants that (contract of this function).
            return unsafe { self.accumulate::<PACK>(range) };
        }
        let of = self.of.origin();
        if of.committed.get().is_none()
            && let Some(described) = of.described()?
        {
            // SAFETY: the bytes of the elements in `range` and as many packed bytes are valid for this direction and do
            // not overlap (contract of this function); `exact` cut the range to the packed bytes that exist.
            let moved = unsafe {
                match PACK {
                    true => described.pack(self.memory, range, self.packed),
                    false => described.unpack(self.packed, range, self.memory),
                }
            };
            if moved.is_some() {
                return Ok(());
            }
        }
        let elements = self.of.committed()?.at(Endpoint::host(self.memory), range);
        // SAFETY: the described type, if there is one, refused and moved nothing; the bytes of the elements in `range`
        // and as many packed bytes are valid for this direction, and both sides are memory of the host (contract of
        // this function).
        unsafe { moved::<PACK>(elements, Endpoint::host(self.packed)).run().map_err(failed)? };
        Ok(())
    }

    /// Moves the bytes, or starts a device that moves them. Returns the number of bytes, and the request if one is under way.
    ///
    /// # Safety
    ///
    /// The bytes of the elements that the call moves, and as many packed bytes, are readable and writable as the direction
    /// wants, the two sides do not overlap, and no other thread touches them before the call or its request is done. What the
    /// info says is true.
    #[inline]
    pub(crate) unsafe fn start<const PACK: bool>(&self) -> Result<(u64, Pending), Status> {
        let range = self.exact::<PACK>()?;
        if range.length() == 0 {
            return Ok((0, None));
        }
        if self.is_host_only() {
            // SAFETY: the bytes of this range are valid for this direction (contract of this function), and lie in
            // memory of the host, as the caller's info says or because the process does not use CUDA.
            unsafe { self.on_host::<PACK>(range)? };
            return Ok((range.length(), None));
        }
        // SAFETY: `anywhere` asks what this function asks, of the range that `exact` made of the call's.
        Ok((range.length(), unsafe { self.anywhere::<PACK>(range)? }))
    }

    /// Moves the bytes, in memory of any kind.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`].
    unsafe fn anywhere<const PACK: bool>(&self, range: Range) -> Result<Pending, Status> {
        if self.operation != Operation::Replace {
            // SAFETY: `accumulate_anywhere` asks what this function asks, with both sides readable; an operation reads
            // what it replaces, so the direction wants that.
            return unsafe { self.accumulate_anywhere::<PACK>(range) };
        }
        let (elements, packed) = self.ends::<PACK>(range)?;
        // SAFETY: the bytes of the elements in `range` and as many packed bytes stay valid until the request is done,
        // and are of the kinds that the info states (contract of this function).
        pending(unsafe { moved::<PACK>(elements, packed).start() })
    }

    /// Moves the bytes and returns their number.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`].
    #[inline]
    pub(crate) unsafe fn finish<const PACK: bool>(&self) -> Result<u64, Status> {
        // SAFETY: the bytes stay valid until the request is done (contract of this function), and this function waits
        // for it.
        let (bytes, pending) = unsafe { self.start::<PACK>()? };
        if let Some(request) = pending {
            request.wait().map_err(failed)?;
        }
        Ok(bytes)
    }

    /// Enqueues the call on a CUDA stream. If neither side lies on a device, the bytes are moved before this returns.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`], until the stream has passed it; `stream` is a stream of the device on which the sides lie.
    pub(crate) unsafe fn enqueue<const PACK: bool>(&self, stream: *mut c_void) -> Result<u64, Status> {
        let range = self.exact::<PACK>()?;
        if range.length() == 0 {
            return Ok(0);
        }
        let sides = if self.is_host_only() { (None, None) } else { self.devices::<PACK>()? };
        match sides {
            // SAFETY: the bytes of `range` are valid for this direction (contract of this function), and neither side
            // lies on a device.
            (None, None) => unsafe { self.on_host::<PACK>(range)? },
            (Some(device), _) | (None, Some(device)) => {
                let gpu = engine().gpu(device).map_err(|_| Status::Internal)?;
                // SAFETY: `stream` is a stream of the device on which the sides lie (contract of this function), which is `device`.
                let stream = unsafe { Stream::borrow(gpu.device(), stream) };
                let transfer = match self.operation {
                    Operation::Replace => {
                        let (elements, packed) = self.ends::<PACK>(range)?;
                        moved::<PACK>(elements, packed)
                    }
                    _ => self.accumulation::<PACK>(range)?,
                };
                // SAFETY: the bytes of the elements in `range` and as many packed bytes stay valid until the stream has
                // passed the transfer (contract of this function).
                unsafe { transfer.enqueue(&stream).map_err(failed)? };
            }
        }
        Ok(range.length())
    }
}

/// A pack or an unpack.
fn moved<const PACK: bool>(elements: Elements<'_>, packed: Endpoint) -> Transfer<'_> {
    if PACK { elements.pack(packed) } else { elements.unpack(packed) }
}
