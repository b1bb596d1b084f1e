//! How long a call takes, about: for callers that choose between protocols, and not between ways.

use super::choice::TransferCase;
use super::error::TransferError;
use super::path::TransferPath;
use crate::committed::Committed;
use crate::device::{MeasuredPath, RUNS};
use dtc_compiler::plan::Direction;
use dtc_cuda::MemoryKind;

/// What a call is expected to cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The transfer path.
    pub path: TransferPath,
    /// The device that takes part, if one does.
    pub device: Option<u32>,
    /// Nanoseconds until the bytes are there. Memory that other work uses at the same time, and what is not in a cache yet,
    /// make it longer.
    pub nanoseconds: f64,
}

/// Nanoseconds of a call of the processor, before it moves anything.
const CALL: f64 = 5.0;

/// Bytes that the processor moves in a nanosecond, in the second level of the cache and beyond it.
const MOVED: [f64; 2] = [40.0, 14.0];

/// Bytes of the second level of the cache.
const NEAR: f64 = (2 << 20) as f64;

/// Bytes from run to run from which on each is in another page, or nearly.
const PAGE: f64 = 2048.0;

/// Nanoseconds of the processor for each run: those close by, those that share no page with the last one, and such
/// in memory that is not near.
const RUN: [f64; 3] = [0.45, 2.0, 13.0];

/// Nanoseconds until a kernel that moves next to nothing was waited for.
const KERNEL: f64 = 7_000.0;

/// Gigabytes per second of a kernel between memory of one device, for rows in a larger stride of [`RUNS`]; an H200. Shorter
/// rows than 8 bytes were not measured.
const ON_DEVICE: [f64; RUNS.len()] = [386.0, 386.0, 386.0, 740.0, 1895.0, 2018.0, 2041.0, 2059.0];

impl Committed {
    /// What a pack or unpack of this many packed bytes is expected to cost, for elements and packed bytes in memory of these
    /// kinds.
    ///
    /// The constants for the processor fit 43 of the 52 packs of the examples on a Xeon with AVX-512 (20 November 2026) within a
    /// factor of 2; those for transfers are the model's, which `dtc calibrate` measures.
    ///
    /// # Errors
    ///
    /// CUDA lacks the device of a side.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::cuda::MemoryKind::Pageable;
    /// use dtc_runtime::{Direction, TransferPath};
    /// let mut types = TypeBuilder::new();
    /// let double = types.named(Predefined::DOUBLE);
    /// let column = types.vector(1000, 1, 64, double)?;
    /// let column = dtc_runtime::Engine::new().commit(&types.finish(column)?);
    /// let estimate = |bytes| column.estimate(Direction::Pack, Pageable, Pageable, bytes);
    /// let (some, all) = (estimate(800)?, estimate(8000)?);
    /// assert_eq!(all.path, TransferPath::Processor);
    /// assert!(some.nanoseconds < all.nanoseconds && all.nanoseconds < 20_000.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn estimate(
        &self,
        direction: Direction,
        memory: MemoryKind,
        packed: MemoryKind,
        bytes: u64,
    ) -> Result<Estimate, TransferError> {
        use MemoryKind::{Pageable, Pinned};
        let (gpu, other) = self.devices(memory, packed)?;
        let Some(gpu) = gpu else {
            let nanoseconds = self.on_processor_nanoseconds(bytes);
            return Ok(Estimate { path: TransferPath::Processor, device: None, nanoseconds });
        };
        let run_bytes = self.run_bytes();
        let case = TransferCase {
            direction,
            memory,
            packed,
            peers: other.is_some_and(|other| gpu.state.reaches(other.device())),
            shares_page_tables: gpu.device().info().shares_page_tables,
            waits: true,
            run_bytes,
            bytes,
        };
        let choice = case.choose(gpu.model());
        let by = |path| gpu.model().microseconds(path, direction, run_bytes, bytes) * 1e3;
        let nanoseconds = match (choice.path, memory, packed) {
            (TransferPath::Kernel, _, Pinned | Pageable) => by(MeasuredPath::OneShot),
            (TransferPath::Kernel, Pinned | Pageable, _) => by(MeasuredPath::Mapped),
            (TransferPath::Kernel, ..) => KERNEL + bytes as f64 / rate_on_device(run_bytes),
            (TransferPath::Staged, _, Pageable) => by(MeasuredPath::StagedPageable),
            (TransferPath::Staged, ..) => by(MeasuredPath::Staged),
            (TransferPath::Ring, ..) => by(MeasuredPath::Ring),
            (TransferPath::HostPacked, ..) => by(MeasuredPath::HostPacked),
            (TransferPath::Processor, ..) => self.on_processor_nanoseconds(bytes),
        };
        Ok(Estimate { path: choice.path, device: choice.device, nanoseconds })
    }
}

/// Bytes that a kernel moves in a nanosecond between memory of its device.
fn rate_on_device(run_bytes: u64) -> f64 {
    let at = RUNS.partition_point(|&length| length <= run_bytes).max(1) - 1;
    ON_DEVICE[at]
}

impl Committed {
    /// Nanoseconds that the processor needs for `bytes` packed bytes.
    fn on_processor_nanoseconds(&self, bytes: u64) -> f64 {
        let layout = self.layout();
        let measure = layout.measure(layout.root().node);
        let bytes = bytes as f64;
        let runs = bytes / self.run_bytes().max(1) as f64;
        let distance = measure.high.abs_diff(measure.low) as f64 / measure.runs.max(1) as f64;
        // Whole lines, as far as the runs have lines of their own.
        let touched = runs * distance.min(self.run_bytes() as f64 + 63.0);
        let far = bytes + touched > NEAR;
        let each = match distance >= PAGE {
            false => RUN[0],
            true if runs * 64.0 > NEAR => RUN[2],
            true => RUN[1],
        };
        CALL + runs * each + bytes / MOVED[usize::from(far)]
    }
}
