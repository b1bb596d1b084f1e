//! The calls of a committed type on data in any memory.

use super::copies::Multiprocessors;
use super::on_device::{GpuType, Move};
use super::request::{Request, TransferError};
use super::{DEVICES, Gpu};
use crate::committed::Committed;
use crate::policy::Tier;
use crate::range::Range;
use dtc_compiler::plan::Direction;
use dtc_cuda::{CudaError, Stream};
use std::sync::Arc;

impl Committed {
    /// Enqueues a pack of the bytes of a range on a CUDA stream and returns at once. Returns how many bytes will be written.
    /// May be captured into a graph, which then keeps what the kernel needs.
    ///
    /// # Errors
    ///
    /// CUDA refuses.
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_raw`], for the device of the stream and until the work is done.
    ///
    /// ```
    /// use dtc_runtime::Range;
    /// # use dtc_runtime::cuda::{CudaError, DeviceBuffer, Stream};
    /// # fn pack(column: &dtc_runtime::Committed, matrix: &DeviceBuffer, packed: &DeviceBuffer, stream: &Stream) -> Result<u64, CudaError> {
    /// let (source, target) = (matrix.address() as *const u8, packed.address() as *mut u8);
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// unsafe { column.pack_enqueue(stream, source, Range::elements(1).bytes(..packed.len() as u64), target) }
    /// # }
    /// ```
    pub unsafe fn pack_enqueue(
        &self,
        stream: &Stream,
        source: *const u8,
        range: Range,
        packed: *mut u8,
    ) -> Result<u64, CudaError> {
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(Direction::Pack, stream, source, packed, range) }
    }

    /// Enqueues an unpack on a CUDA stream and returns at once; the counterpart of [`Committed::pack_enqueue`].
    ///
    /// # Errors
    ///
    /// CUDA refuses.
    ///
    /// # Safety
    ///
    /// As for [`Committed::unpack_raw`], for the device of the stream and until the work is done.
    ///
    /// ```
    /// use dtc_runtime::Range;
    /// # use dtc_runtime::cuda::{CudaError, DeviceBuffer, Stream};
    /// # fn unpack(column: &dtc_runtime::Committed, packed: &DeviceBuffer, matrix: &DeviceBuffer, stream: &Stream) -> Result<u64, CudaError> {
    /// let (source, target) = (packed.address() as *const u8, matrix.address() as *mut u8);
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// unsafe { column.unpack_enqueue(stream, source, Range::elements(1).bytes(..packed.len() as u64), target) }
    /// # }
    /// ```
    pub unsafe fn unpack_enqueue(
        &self,
        stream: &Stream,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, CudaError> {
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(Direction::Unpack, stream, destination, packed, range) }
    }

    /// Packs from and to memory of any kind, asking CUDA what it is, and returns when the bytes are there. On a device it is
    /// ordered after what was enqueued on the legacy default stream. Returns how many bytes were written.
    ///
    /// # Errors
    ///
    /// [`TransferError::Address`] when a side is null, or a run of a type with absolute addresses; CUDA refuses.
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_raw`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let (memory, mut packed) = (7i32, [0u8; 4]);
    /// // SAFETY: both sides are as long as the type.
    /// let written = unsafe { int.pack_any((&raw const memory).cast(), Range::elements(1).bytes(..4), packed.as_mut_ptr())? };
    /// assert_eq!((written, i32::from_ne_bytes(packed)), (4, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn pack_any(&self, source: *const u8, range: Range, packed: *mut u8) -> Result<u64, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.between(None, None).pack(source, range, packed) }
    }

    /// Unpacks from and to memory of any kind; the counterpart of [`Committed::pack_any`].
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack_any`].
    ///
    /// # Safety
    ///
    /// As for [`Committed::unpack_raw`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let (packed, mut memory) = (7i32.to_ne_bytes(), 0i32);
    /// // SAFETY: both sides are as long as the type.
    /// let read = unsafe { int.unpack_any(packed.as_ptr(), Range::elements(1).bytes(..4), (&raw mut memory).cast())? };
    /// assert_eq!((read, memory), (4, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn unpack_any(
        &self,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.between(None, None).unpack(packed, range, destination) }
    }

    /// Starts what [`Committed::pack_any`] does, and returns at once where a device does the work.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack_any`].
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_raw`], until the request is done.
    ///
    /// ```
    /// use dtc_runtime::Range;
    /// # use dtc_runtime::{Committed, TransferError};
    /// # fn pack(column: &Committed, matrix: *const u8, packed: *mut u8) -> Result<u64, TransferError> {
    /// // SAFETY: the caller answers for both buffers.
    /// let request = unsafe { column.pack_start(matrix, Range::elements(1).bytes(..4096), packed)? };
    /// request.wait()
    /// # }
    /// ```
    pub unsafe fn pack_start(
        &self,
        source: *const u8,
        range: Range,
        packed: *mut u8,
    ) -> Result<Request, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.between(None, None).start_pack(source, range, packed) }
    }

    /// Starts what [`Committed::unpack_any`] does, and returns at once where a device does the work.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack_any`].
    ///
    /// # Safety
    ///
    /// As for [`Committed::unpack_raw`], until the request is done.
    ///
    /// ```
    /// use dtc_runtime::Range;
    /// # use dtc_runtime::{Committed, TransferError};
    /// # fn unpack(column: &Committed, packed: *const u8, matrix: *mut u8) -> Result<u64, TransferError> {
    /// // SAFETY: the caller answers for both buffers.
    /// let request = unsafe { column.unpack_start(packed, Range::elements(1).bytes(..4096), matrix)? };
    /// request.wait()
    /// # }
    /// ```
    pub unsafe fn unpack_start(
        &self,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<Request, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.between(None, None).start_unpack(packed, range, destination) }
    }

    /// Does at once what the first calls on a device would do: loads the generic kernels, brings lists to the device, and,
    /// unless the policy is [`Policy::Off`](crate::Policy::Off), compiles the kernels for whole elements. Returns which tier
    /// serves those.
    ///
    /// # Errors
    ///
    /// CUDA refuses. That a kernel cannot be compiled is no error: see [`Gpu::problem`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let engine = dtc_runtime::Engine::new();
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = engine.commit(&types.finish(every_other)?);
    /// if let Ok(gpu) = engine.gpu(0) {
    ///     println!("{}", every_other.prepare(&gpu)?);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(&self, gpu: &Gpu) -> Result<Tier, CudaError> {
        gpu.load()?;
        let on_device = self.on_device(gpu);
        on_device.interpreter()?;
        if gpu.shared.policy != crate::Policy::Off {
            on_device.compile_usual();
        }
        Ok(self.gpu_tier(gpu))
    }

    /// Which tier serves whole elements between allocations on a device.
    ///
    /// ```
    /// # fn tier(column: &dtc_runtime::Committed, gpu: &dtc_runtime::Gpu) {
    /// println!("{}", column.gpu_tier(gpu));
    /// # }
    /// ```
    pub fn gpu_tier(&self, gpu: &Gpu) -> Tier {
        if gpu.device().check_process().is_err() {
            // In a forked child nothing is planned for a device.
            return Tier::Generic;
        }
        let on_device = self.on_device(gpu);
        let there = on_device.usual().iter().all(|variant| on_device.kernel(variant).is_some());
        if there { Tier::Specialised } else { Tier::Generic }
    }

    /// This type on a device, planned at the first use.
    pub(super) fn on_device(&self, gpu: &Gpu) -> &Arc<GpuType> {
        self.entry().on_device(gpu.device().info().ordinal as usize % DEVICES, || gpu.shared.clone())
    }

    /// # Safety
    ///
    /// As for [`Committed::pack_enqueue`] or [`Committed::unpack_enqueue`].
    unsafe fn enqueue(
        &self,
        direction: Direction,
        stream: &Stream,
        memory: *const u8,
        packed: *const u8,
        range: Range,
    ) -> Result<u64, CudaError> {
        let bytes = self.take(range);
        if bytes > 0 {
            let gpu = self.engine().gpu(stream.device().info().ordinal)?;
            let (memory, packed) = (memory as u64, packed as u64);
            let multiprocessors = Multiprocessors::All;
            let (count, first) = (range.count(), range.offset());
            let asked = Move { direction, memory, packed, count, first, bytes, multiprocessors };
            // SAFETY: the caller's promise.
            unsafe { self.on_device(&gpu).launch(stream, &asked)? };
        }
        Ok(bytes)
    }
}
