//! Batches: packs, unpacks and copies of types with index tables, and packs and unpacks of others, in one launch.

use super::batch_launch::{self, BatchWork};
use super::error::TabledError;
use super::transfer::{CheckedTabled, TabledTransfer};
use crate::device::Gpu;
use crate::endpoint::Endpoint;
use crate::engine::Engine;
use crate::policy::{Policy, Tier};
use crate::transfers::{Located, Transfer, TransferError, batch_item, packed_end};
use dtc_cuda::{MemoryKind, Stream};

/// A transfer of a batch of [`Engine::enqueue_tabled_batch`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum BatchTransfer<'a> {
    /// A pack or unpack of a type without index tables.
    Fixed(Transfer<'a>),
    /// A pack, unpack or copy of types with index tables.
    Tabled(TabledTransfer<'a>),
}

impl<'a> From<Transfer<'a>> for BatchTransfer<'a> {
    fn from(transfer: Transfer<'a>) -> BatchTransfer<'a> {
        BatchTransfer::Fixed(transfer)
    }
}

impl<'a> From<TabledTransfer<'a>> for BatchTransfer<'a> {
    fn from(transfer: TabledTransfer<'a>) -> BatchTransfer<'a> {
        BatchTransfer::Tabled(transfer)
    }
}

/// A transfer that moves bytes, checked.
enum CheckedTransfer<'a> {
    Fixed { transfer: Transfer<'a>, ends: [(&'static str, Option<MemoryKind>); 2] },
    Tabled { transfer: TabledTransfer<'a>, checked: CheckedTabled<'a> },
}

impl Engine {
    /// Moves the bytes of many transfers, and returns when they are there. Returns how many. If memory of a device takes part, its kernels
    /// move all of them in one launch, ordered after the work of the legacy default stream; in host memory one comes after the other.
    ///
    /// # Errors
    ///
    /// [`TabledError::Item`] names the transfer that is wrong. Nothing was moved then, unless CUDA refuses.
    ///
    /// # Safety
    ///
    /// As for [`Engine::enqueue_tabled_batch`].
    ///
    /// ```
    /// use dtc_runtime::{Endpoint, Engine, IndexTable, Range};
    /// let engine = Engine::new();
    /// let pages = engine.commit_tabled(&"table 0 4 3 16 (contiguous 2 double)".parse()?);
    /// let row = engine.commit(&"contiguous 2 double".parse()?);
    /// let cache = [0.0, 0.1, 1.0, 1.1, 2.0, 2.1, 3.0, 3.1];
    /// let (mut packed, mut first) = ([0.0; 4], [0.0; 2]);
    /// let tables = [IndexTable::from(&[3, 1])];
    /// let memory = Endpoint::host(cache.as_ptr());
    /// let transfers = [
    ///     pages.at(memory, &tables).pack(Endpoint::host(packed.as_mut_ptr())).into(),
    ///     row.at(memory, Range::elements(1)).pack(Endpoint::host(first.as_mut_ptr())).into(),
    /// ];
    /// // SAFETY: the cache has 4 places, and both results have room.
    /// assert_eq!(unsafe { engine.run_tabled_batch(&transfers)? }, 48);
    /// assert_eq!((packed, first), ([3.0, 3.1, 1.0, 1.1], [0.0, 0.1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn run_tabled_batch(&self, transfers: &[BatchTransfer<'_>]) -> Result<u64, TabledError> {
        let all = all_checked(transfers)?;
        if let Some(ordinal) = all.iter().find_map(|(_, transfer)| transfer.device()) {
            let gpu = self.gpu(ordinal)?;
            let stream = &gpu.state.stream;
            // SAFETY: the contract of this function, until the stream was waited for.
            let bytes = unsafe { self.enqueue_all(&all, &gpu, stream)? };
            stream.synchronize()?;
            return Ok(bytes);
        }
        let mut bytes = 0;
        for (item, transfer) in &all {
            // SAFETY: the contract of this function, in memory that the processor reaches.
            bytes += unsafe {
                match transfer {
                    CheckedTransfer::Fixed { transfer, .. } => {
                        transfer.run().map_err(|error| TabledError::from(error).of_item(*item))? as u64
                    }
                    CheckedTransfer::Tabled { transfer, checked } => {
                        transfer.run_on_host(checked).map_err(|error| error.of_item(*item))?
                    }
                }
            };
        }
        Ok(bytes)
    }

    /// Enqueues many transfers on a CUDA stream as one launch, and returns at once. Returns how many bytes will be moved.
    ///
    /// They may be of different types and sizes, and run in any order; each has its own range, tables and report. May be captured into a graph, whose
    /// replays read what tables on the device hold then. Batches of the same types at the same alignments share a compiled kernel, which
    /// is made as the policy says. Until it is there, and for good with more than 64 kinds of transfers, each transfer with index tables is a launch of its
    /// own, and the others are one. All multiprocessors take part, whatever a transfer asks for.
    ///
    /// # Errors
    ///
    /// [`TabledError::Item`] names the transfer that is wrong: as [`TabledTransfer::enqueue`] says of those with tables; of others, one that is no pack
    /// or unpack, or an end that the device does not reach. Nothing was enqueued then, unless CUDA refuses.
    ///
    /// # Safety
    ///
    /// The contracts of [`TabledTransfer`] and [`Transfer`], for every one, until the work is done; and none writes what another one reads or
    /// writes.
    ///
    /// ```
    /// # use dtc_runtime::cuda::{DeviceBuffer, Stream};
    /// use dtc_runtime::{CommittedTabled, Engine, IndexTable, TabledError};
    /// # fn gather(engine: &Engine, pages: &CommittedTabled, caches: [&DeviceBuffer; 2], packed: [&DeviceBuffer; 2], stream: &Stream) -> Result<u64, TabledError> {
    /// let tables = [[IndexTable::from(&[3, 1])], [IndexTable::from(&[0, 2])]];
    /// let packs = [0, 1].map(|layer| pages.at(caches[layer], &tables[layer]).pack(packed[layer]).into());
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// unsafe { engine.enqueue_tabled_batch(stream, &packs) }
    /// # }
    /// ```
    pub unsafe fn enqueue_tabled_batch(
        &self,
        stream: &Stream,
        transfers: &[BatchTransfer<'_>],
    ) -> Result<u64, TabledError> {
        let all = all_checked(transfers)?;
        let gpu = self.gpu(stream.device().info().ordinal)?;
        // SAFETY: the contract of this function.
        unsafe { self.enqueue_all(&all, &gpu, stream) }
    }

    /// Makes a device ready for a batch: unless the policy is [`Policy::Off`], compiles its kernel now. Returns the tier that serves the batch from
    /// here on: with [`Tier::Generic`], each transfer with index tables is a launch of its own. A batch of one transfer, or of none with tables, has no
    /// kernel of this kind.
    ///
    /// # Errors
    ///
    /// As for [`Engine::enqueue_tabled_batch`]. A kernel that cannot be compiled is no error, [`Gpu::problem`] tells.
    ///
    /// ```
    /// # use dtc_runtime::{BatchTransfer, Engine, Gpu, TabledError};
    /// # fn ready(engine: &Engine, gpu: &Gpu, transfers: &[BatchTransfer]) -> Result<(), TabledError> {
    /// println!("{}", engine.prepare_tabled_batch(gpu, transfers)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_tabled_batch(&self, gpu: &Gpu, transfers: &[BatchTransfer<'_>]) -> Result<Tier, TabledError> {
        gpu.load()?;
        let all = all_checked(transfers)?;
        let works = self.works(&all, gpu)?;
        let Some((kernel, _)) = batch_launch::kernel(self, gpu, &works) else { return Ok(Tier::Generic) };
        if gpu.state.policy != Policy::Off {
            kernel.compile(&gpu.state);
        }
        Ok(if kernel.ready().is_some() { Tier::Specialised } else { Tier::Generic })
    }

    /// # Safety
    ///
    /// As for [`Engine::enqueue_tabled_batch`].
    unsafe fn enqueue_all(
        &self,
        all: &[(usize, CheckedTransfer<'_>)],
        gpu: &Gpu,
        stream: &Stream,
    ) -> Result<u64, TabledError> {
        let works = self.works(all, gpu)?;
        for (_, transfer) in all {
            if let CheckedTransfer::Tabled { transfer, checked } = transfer {
                transfer.count_use(checked);
            }
        }
        // SAFETY: the device reaches both ends of each, which are as the contract of this function says.
        unsafe { batch_launch::enqueue(self, gpu, stream, &works)? };
        Ok(works.iter().map(BatchWork::bytes).sum())
    }

    /// The transfers as a device sees them, which reaches their ends.
    fn works<'t>(&self, all: &[(usize, CheckedTransfer<'t>)], gpu: &Gpu) -> Result<Vec<BatchWork<'t>>, TabledError> {
        let work = |(item, transfer): &(usize, CheckedTransfer<'t>)| {
            transfer.work(self, gpu).map_err(|error| error.of_item(*item)).transpose()
        };
        all.iter().filter_map(work).collect()
    }
}

impl<'a> CheckedTransfer<'a> {
    /// The device that moves the bytes, if it has one of the ends.
    fn device(&self) -> Option<u32> {
        match self {
            CheckedTransfer::Fixed { ends, .. } => ends.iter().find_map(|(_, kind)| match kind {
                Some(MemoryKind::Device(ordinal)) => Some(*ordinal),
                _ => None,
            }),
            CheckedTransfer::Tabled { checked, .. } => checked.device(),
        }
    }

    /// What a device does; nothing if that moves no byte.
    fn work(&self, engine: &Engine, gpu: &Gpu) -> Result<Option<BatchWork<'a>>, TabledError> {
        Ok(match self {
            CheckedTransfer::Fixed { transfer, ends } => {
                for (side, kind) in ends {
                    kind.map_or(Ok(()), |kind| engine.check_reach(gpu, side, kind))?;
                }
                batch_item(gpu, transfer)?.map(BatchWork::Fixed)
            }
            CheckedTransfer::Tabled { transfer, checked } => Some(BatchWork::Tabled(transfer.launch(checked, gpu)?)),
        })
    }
}

/// The transfers that move bytes, with their places among all.
fn all_checked<'a>(transfers: &[BatchTransfer<'a>]) -> Result<Vec<(usize, CheckedTransfer<'a>)>, TabledError> {
    let checked = |(item, transfer): (usize, &BatchTransfer<'a>)| {
        let checked = match transfer {
            BatchTransfer::Fixed(transfer) => checked_fixed(transfer).map_err(TabledError::from),
            BatchTransfer::Tabled(transfer) => transfer
                .checked()
                .map(|checked| checked.map(|checked| CheckedTransfer::Tabled { transfer: *transfer, checked })),
        };
        checked.map(|checked| checked.map(|checked| (item, checked))).map_err(|error| error.of_item(item)).transpose()
    };
    transfers.iter().enumerate().filter_map(checked).collect()
}

fn checked_fixed<'a>(transfer: &Transfer<'a>) -> Result<Option<CheckedTransfer<'a>>, TransferError> {
    let packed = packed_end(transfer)?;
    if transfer.bytes()? == 0 {
        return Ok(None);
    }
    // A null base of a type of absolute addresses is in no memory.
    let memory = transfer.elements.memory();
    let kind = |side, end: Endpoint| Located::new(side, end).map(Located::kind);
    let memory = if memory.is_nowhere() { None } else { Some(kind("memory", memory)?) };
    let ends = [("memory", memory), ("packed bytes", Some(kind("packed bytes", packed)?))];
    Ok(Some(CheckedTransfer::Fixed { transfer: *transfer, ends }))
}
