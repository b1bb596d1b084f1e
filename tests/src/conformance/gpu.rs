//! Subjects on a GPU: buffers are copied to the device, packed there, and copied back.
#![expect(unsafe_code, reason = "the calls on device memory are on raw addresses")]

use super::Subject;
use dtc_compiler::datatype::Datatype;
use dtc_runtime::cuda::{CudaError, DeviceBuffer};
use dtc_runtime::{Committed, Engine, Gpu, Range};
use std::sync::{Mutex, PoisonError};

/// Guard bytes around a buffer on the device; also the range of alignments.
const GUARD: usize = 64;

/// Value of the guard bytes.
const POISON: u8 = 0xa5;

/// A type committed to an engine, on data in the memory of a GPU.
pub struct GpuSubject {
    name: String,
    /// The committed type.
    pub committed: Committed,
    gpu: Gpu,
    buffers: Mutex<Buffers>,
}

struct Buffers {
    memory: Option<DeviceBuffer>,
    packed: Option<DeviceBuffer>,
}

impl GpuSubject {
    /// Commits a type; `name` is for messages.
    pub fn new(engine: &Engine, gpu: &Gpu, name: &str, datatype: &Datatype) -> GpuSubject {
        let committed = engine.commit(datatype);
        let buffers = Mutex::new(Buffers { memory: None, packed: None });
        GpuSubject { name: name.to_owned(), committed, gpu: gpu.clone(), buffers }
    }

    /// Copies a buffer to the device at its own alignment, between guards. Returns its address there and its offset in
    /// the allocation.
    fn on_device(&self, slot: &mut Option<DeviceBuffer>, host: &[u8]) -> Result<(u64, usize), CudaError> {
        let skew = host.as_ptr().addr() % GUARD;
        let needed = host.len() + 3 * GUARD;
        if slot.as_ref().is_none_or(|buffer| buffer.len() < needed) {
            *slot = Some(DeviceBuffer::new(self.gpu.device(), needed.next_power_of_two())?);
        }
        let Some(buffer) = slot else { return Ok((0, 0)) };
        let at = GUARD + skew;
        let mut image = vec![POISON; needed];
        image[at..at + host.len()].copy_from_slice(host);
        buffer.write(0, &image)?;
        Ok((buffer.address() + at as u64, at))
    }

    /// Copies a buffer back; an error if a guard was touched.
    fn back(slot: &Option<DeviceBuffer>, at: usize, length: usize) -> Result<Vec<u8>, String> {
        let Some(buffer) = slot else { return Ok(Vec::new()) };
        let mut image = vec![0; length + 3 * GUARD];
        buffer.read(0, &mut image).map_err(|error| error.to_string())?;
        let touched = (0..at).chain(at + length..image.len()).find(|&index| image[index] != POISON);
        if let Some(index) = touched {
            return Err(format!("byte {} of a buffer of {length} bytes was written", index as i64 - at as i64));
        }
        Ok(image[at..at + length].to_vec())
    }
}

impl Subject for GpuSubject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn pack(&self, source: &[u8], origin: usize, count: u64, offset: u64, packed: &mut [u8]) -> Result<usize, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let Buffers { memory, packed: target } = &mut *buffers;
        let (from, from_at) = self.on_device(memory, source).map_err(|error| text(&error))?;
        let (to, to_at) = self.on_device(target, packed).map_err(|error| text(&error))?;
        let (from, to) = ((from + origin as u64) as *const u8, to as *mut u8);
        // SAFETY: both device buffers hold the bytes of their slices. A kernel that touches others is the fault that
        // the test looks for.
        let moved = unsafe {
            self.committed.at(from, Range::elements(count).fragment(offset, packed.len() as u64)).pack(to).run()
        };
        let moved = moved.map_err(|error| text(&error))?;
        if Self::back(memory, from_at, source.len())? != source {
            return Err("a pack wrote to its source".to_owned());
        }
        packed.copy_from_slice(&Self::back(target, to_at, packed.len())?);
        Ok(moved)
    }

    fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let Buffers { memory, packed: source } = &mut *buffers;
        let (from, from_at) = self.on_device(source, packed).map_err(|error| text(&error))?;
        let (to, to_at) = self.on_device(memory, destination).map_err(|error| text(&error))?;
        let (from, to) = (from as *const u8, (to + origin as u64) as *mut u8);
        // SAFETY: both device buffers hold the bytes of their slices. A kernel that touches others is the fault that
        // the test looks for.
        let moved = unsafe {
            self.committed.at(to, Range::elements(count).fragment(offset, packed.len() as u64)).unpack(from).run()
        };
        let moved = moved.map_err(|error| text(&error))?;
        if Self::back(source, from_at, packed.len())? != packed {
            return Err("an unpack wrote to its source".to_owned());
        }
        destination.copy_from_slice(&Self::back(memory, to_at, destination.len())?);
        Ok(moved)
    }

    fn piece_lengths(&self) -> &'static [usize] {
        // Few lengths, because every piece takes several copies and launches.
        &[997, 4096]
    }

    unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, most: usize) -> usize {
        // SAFETY: `source` and `packed` are valid for the bytes of the range (contract of `Subject::pack_raw`).
        unsafe { self.committed.at(source, Range::elements(count).fragment(offset, most as u64)).pack(packed).run() }
            .unwrap_or(0)
    }

    unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        most: usize,
        offset: u64,
        destination: *mut u8,
        count: u64,
    ) -> usize {
        // SAFETY: `packed` and `destination` are valid for the bytes of the range (contract of `Subject::unpack_raw`).
        let moved = unsafe {
            self.committed.at(destination, Range::elements(count).fragment(offset, most as u64)).unpack(packed).run()
        };
        moved.unwrap_or(0)
    }
}
