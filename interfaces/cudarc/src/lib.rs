//! Packs and unpacks MPI derived datatypes between the slices of the crate `cudarc`, on its streams.
//!
//! [`pack`] and [`unpack`] take a `CudaSlice` or any of its views by the traits `DevicePtr` and `DevicePtrMut`, and enqueue one launch.
//! cudarc orders the work of several streams by events around each use of a slice: both functions wait for the events of earlier
//! uses, and record those of their own when the work is enqueued.
//!
//! dtc works in the primary context of a device, which is the one that `CudaContext::new` retains. Other contexts are refused.
//!
//! # Example
//!
//! ```
//! use cudarc::driver::{CudaContext, CudaStream};
//! use dtc_runtime::{Committed, Range};
//!
//! /// Packs the column of a matrix of doubles, and brings it to the host.
//! fn column(column: &Committed, stream: &std::sync::Arc<CudaStream>) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
//!     let matrix = stream.clone_htod(&[[1.0, 2.0], [3.0, 4.0]].concat())?;
//!     let mut packed = stream.alloc_zeros::<f64>(2)?;
//!     dtc_cudarc::pack(column, stream, &matrix, 1, Range::elements(1), &mut packed)?;
//!     Ok(stream.clone_dtoh(&packed)?)
//! }
//! ```
//!
//! `examples/column.rs` is a whole program.
#![warn(missing_debug_implementations)]

use bytemuck::{NoUninit, Pod};
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use dtc_runtime::cuda::{CudaError, Device, Stream};
use dtc_runtime::{Committed, PackError, Range, TransferError};

/// Why nothing was enqueued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream or a slice belongs to a context other than the primary one of the stream's device.
    #[error("{what}: expected the primary context of GPU {device}, found another")]
    Context {
        /// What belongs to it.
        what: &'static str,
        /// The ordinal of the stream's device.
        device: usize,
    },
    /// The elements, or their packed bytes, do not lie inside the slice.
    #[error("{what}: expected a slice with bytes {low} to {high}, found {found} bytes")]
    Bounds {
        /// Which slice.
        what: &'static str,
        /// Where the first byte lies, from the beginning of the slice.
        low: i128,
        /// Where the last byte ends.
        high: i128,
        /// Length of the slice.
        found: usize,
    },
    /// The packed bytes cannot be counted.
    #[error(transparent)]
    Call(#[from] PackError),
    /// CUDA refuses.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The runtime refuses.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

/// Enqueues a pack of the bytes of a range, and returns how many there are. The type is applied to element `origin` of `memory`.
///
/// May be captured into a graph if cudarc tracks no events, which a capture would not take in.
///
/// # Errors
///
/// See [`Error`]. An event that cannot be recorded is an error of the next call of cudarc (`CudaContext::check_err`).
///
/// # Standard section
///
/// MPI 4.1, 5.2 (`MPI_Pack`).
///
/// See the [crate] for an example.
pub fn pack<T: NoUninit, U: Pod>(
    datatype: &Committed,
    stream: &CudaStream,
    memory: &impl DevicePtr<T>,
    origin: usize,
    range: Range,
    packed: &mut impl DevicePtrMut<U>,
) -> Result<usize, Error> {
    let call = Call::new(datatype, range, stream, [("memory", memory.stream()), ("packed", packed.stream())])?;
    let origin = call.origin::<T>(origin, memory.num_bytes())?;
    call.check_packed(packed.num_bytes())?;
    // The guards record events when they are dropped, which is when the work is enqueued.
    let ((memory, _read), (packed, _written)) = (memory.device_ptr(stream), packed.device_ptr_mut(stream));
    let source = (memory as *const u8).wrapping_offset(origin);
    // SAFETY: `Call` found both slices in the context of the stream, and all bytes of the call inside of them. They do not overlap,
    // since one is borrowed exclusively, and cudarc frees neither before the events of the guards.
    Ok(unsafe { datatype.at(source, range).pack(packed as *mut u8).enqueue(&call.stream)? })
}

/// Enqueues an unpack into the bytes of a range, and returns how many there are; the counterpart of [`pack`]. Other bytes of `memory`
/// stay as they are.
///
/// # Errors
///
/// As for [`pack`].
///
/// # Standard section
///
/// MPI 4.1, 5.2 (`MPI_Unpack`).
///
/// ```
/// # use cudarc::driver::{CudaSlice, CudaStream};
/// # use dtc_runtime::{Committed, Range};
/// /// Unpacks the second halo of a buffer that was received.
/// fn receive(halo: &Committed, stream: &CudaStream, received: &CudaSlice<u8>, grid: &mut CudaSlice<f64>) -> Result<(), dtc_cudarc::Error> {
///     let bytes = halo.facts().size as usize;
///     dtc_cudarc::unpack(halo, stream, &received.slice(bytes..2 * bytes), Range::elements(1), grid, 0)?;
///     Ok(())
/// }
/// ```
pub fn unpack<T: Pod, U: NoUninit>(
    datatype: &Committed,
    stream: &CudaStream,
    packed: &impl DevicePtr<U>,
    range: Range,
    memory: &mut impl DevicePtrMut<T>,
    origin: usize,
) -> Result<usize, Error> {
    let call = Call::new(datatype, range, stream, [("memory", memory.stream()), ("packed", packed.stream())])?;
    let origin = call.origin::<T>(origin, memory.num_bytes())?;
    call.check_packed(packed.num_bytes())?;
    let ((packed, _read), (memory, _written)) = (packed.device_ptr(stream), memory.device_ptr_mut(stream));
    let destination = (memory as *mut u8).wrapping_offset(origin);
    // SAFETY: `Call` found both slices in the context of the stream, and all bytes of the call inside of them. They do not overlap,
    // since `memory` is borrowed exclusively, and cudarc frees neither before the events of the guards.
    Ok(unsafe { datatype.at(destination, range).unpack(packed as *const u8).enqueue(&call.stream)? })
}

/// A call whose contexts are those that dtc works in.
struct Call {
    /// The stream of cudarc, as the runtime knows it.
    stream: Stream,
    /// Where the bytes of all elements lie, from where the type is applied.
    span: (i128, i128),
    /// Packed bytes of the range.
    bytes: u64,
}

impl Call {
    fn new(
        datatype: &Committed,
        range: Range,
        stream: &CudaStream,
        slices: [(&'static str, &std::sync::Arc<CudaStream>); 2],
    ) -> Result<Call, Error> {
        let context = stream.context();
        let device = context.ordinal();
        let contexts = slices.into_iter().map(|(what, stream)| (what, stream.context()));
        for (what, other) in std::iter::once(("stream", context)).chain(contexts) {
            if !other.is_primary() || other.cu_ctx() != context.cu_ctx() {
                return Err(Error::Context { what, device });
            }
        }
        let all = datatype.packed_size(range.count())? as u64;
        let bytes = all.saturating_sub(range.offset()).min(range.length());
        let span = datatype.span(range.count()).unwrap_or((0, 0));
        // SAFETY: the stream lives on while the call does.
        let stream = unsafe { Stream::borrow(&Device::get(device as u32)?, stream.cu_stream().cast()) };
        Ok(Call { stream, span, bytes })
    }

    /// Where the type is applied, in bytes from the beginning of a slice that holds all elements.
    fn origin<T>(&self, origin: usize, found: usize) -> Result<isize, Error> {
        let bytes = origin as i128 * size_of::<T>() as i128;
        let (low, high) = (self.span.0 + bytes, self.span.1 + bytes);
        if self.span.0 < self.span.1 && (low < 0 || high > found as i128) {
            return Err(Error::Bounds { what: "memory", low, high, found });
        }
        // A slice has at most `isize::MAX` bytes; without elements the address is not used.
        Ok(isize::try_from(bytes).unwrap_or(0))
    }

    fn check_packed(&self, found: usize) -> Result<(), Error> {
        let high = self.bytes.into();
        if high > found as i128 { Err(Error::Bounds { what: "packed", low: 0, high, found }) } else { Ok(()) }
    }
}
