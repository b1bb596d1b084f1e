//! What a buffer on a device must hold, computed on the host, and whether it does.

use crate::failure::Failure;
use crate::samples::{SEED, fill};
use dtc_runtime::TransferError;
use dtc_runtime::cuda::{CudaError, Device, DeviceBuffer, PinnedBuffer, Stream};
use std::ops::Range;

/// What outputs hold before a call.
pub const POISON: u8 = 0xa5;

/// Bytes behind every output that no call may touch.
pub const GUARD: u64 = 4096;

/// Random bytes that are repeated. The number of pages is prime, so that bytes a power of two apart differ, as they
/// would not if a kernel's index wrapped.
const PATTERN_BYTES: usize = 16_381 * 4096;

/// Bytes that come back from the device at once.
const CHUNK_BYTES: usize = 64 << 20;

/// Random bytes of any length, the same on host and device.
pub struct Pattern {
    host: Vec<u8>,
    device: DeviceBuffer,
    returned: PinnedBuffer,
}

impl Pattern {
    /// Draws it and brings it to the device.
    pub fn new(device: &Device) -> Result<Pattern, CudaError> {
        let mut host = vec![0; PATTERN_BYTES];
        fill(&mut host, SEED);
        let mut on_device = DeviceBuffer::new(device, PATTERN_BYTES)?;
        on_device.write(0, &host)?;
        Ok(Pattern { host, device: on_device, returned: PinnedBuffer::new(device, CHUNK_BYTES)? })
    }

    /// Fills a buffer of the host, from some byte of the pattern on.
    pub fn fill(&self, bytes: &mut [u8], phase: usize) {
        in_parallel(bytes, |start, part| {
            let mut done = 0;
            while done < part.len() {
                let from = (phase + start + done) % PATTERN_BYTES;
                let take = (PATTERN_BYTES - from).min(part.len() - done);
                part[done..done + take].copy_from_slice(&self.host[from..from + take]);
                done += take;
            }
        });
    }

    /// Fills the first bytes of a buffer of the device in the same way.
    pub fn enqueue_fill(
        &self,
        stream: &Stream,
        buffer: &DeviceBuffer,
        bytes: u64,
        phase: usize,
    ) -> Result<(), TransferError> {
        let mut done = 0;
        while done < bytes {
            let from = (phase as u64 + done) % PATTERN_BYTES as u64;
            let take = (PATTERN_BYTES as u64 - from).min(bytes - done);
            crate::device::copy(stream, buffer, done, &self.device, from, take)?;
            done += take;
        }
        Ok(())
    }

    /// The first of the first bytes of a buffer of the device that is not as expected: where, what it should be and
    /// what it is. The device has done its work.
    pub fn difference(&mut self, buffer: &DeviceBuffer, expected: &[u8]) -> Result<Option<(usize, u8, u8)>, CudaError> {
        for (number, expected) in expected.chunks(CHUNK_BYTES).enumerate() {
            let found = &mut self.returned.as_mut_slice()[..expected.len()];
            buffer.read(number * CHUNK_BYTES, found)?;
            if let Some(at) = first_difference(expected, found) {
                return Ok(Some((number * CHUNK_BYTES + at, expected[at], found[at])));
            }
        }
        Ok(None)
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Hands parts of a slice to threads, with the place where each begins.
pub fn in_parallel(bytes: &mut [u8], work: impl Fn(usize, &mut [u8]) + Sync) {
    let part = bytes.len().div_ceil(threads()).max(1 << 20);
    std::thread::scope(|scope| {
        for (index, part_bytes) in bytes.chunks_mut(part).enumerate() {
            let work = &work;
            scope.spawn(move || work(index * part, part_bytes));
        }
    });
}

/// The first byte that differs between two buffers of one length.
pub fn first_difference(expected: &[u8], found: &[u8]) -> Option<usize> {
    let part = expected.len().div_ceil(threads()).max(1 << 20);
    let differs = |range: Range<usize>| {
        let (expected, found) = (&expected[range.clone()], &found[range.clone()]);
        let first = if expected == found { None } else { (0..expected.len()).find(|&at| expected[at] != found[at]) };
        first.map(|at| range.start + at)
    };
    std::thread::scope(|scope| {
        let starts = (0..expected.len()).step_by(part);
        let parts: Vec<_> =
            starts.map(|start| scope.spawn(move || differs(start..(start + part).min(expected.len())))).collect();
        parts.into_iter().filter_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).min()
    })
}

/// Refuses buffers that the host has no memory for: the system would end the process.
pub fn host_has(bytes: u64) -> Result<(), Failure> {
    let information = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = information.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = available.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    match kibibytes.map(|number| number << 10) {
        Some(available) if available < bytes => {
            let expected = format!("{bytes} bytes, to check every byte");
            Err(Failure::data("memory of the host", expected, format_args!("{available}; choose cases with --only")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_at_part_borders() {
        let mut bytes = vec![7_u8; 3 << 20];
        in_parallel(&mut bytes, |start, part| {
            part.iter_mut().enumerate().for_each(|(at, byte)| *byte = (start + at) as u8)
        });
        let mut other = bytes.clone();
        assert_eq!(first_difference(&bytes, &other), None);
        for at in [(3 << 20) - 1, 2 << 20, (1 << 20) - 1, 0] {
            other[at] ^= 1;
            assert_eq!(first_difference(&bytes, &other), Some(at));
        }
    }
}
