//! Launches of batches: the items, and what is brought to the device for them.

use super::device_end::DeviceEnd;
use super::error::TabledError;
use super::launch::TabledLaunch;
use super::upload::{DeviceTables, TableBytes, Uploaded, host_tables, tables_of};
use crate::cached_type::tabled_batch::{TabledBatchCall, TabledBatchKernel};
use crate::device::{BatchItem, BatchKernel, Gpu, item_table, launch_items, placed};
use crate::engine::Engine;
use dtc_compiler::codegen::cuda::{BATCH_INLINE, Batch, Item, TabledEntries, tabled_in_batch};
use dtc_cuda::{Stream, graph};
use smallvec::SmallVec;
use std::sync::Arc;

/// A transfer as a device sees it, of at least one byte.
pub(super) enum BatchWork<'a> {
    Fixed(BatchItem<'a>),
    Tabled(TabledLaunch<'a>),
}

impl<'a> BatchWork<'a> {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            BatchWork::Fixed(item) => item.call.bytes,
            BatchWork::Tabled(launch) => launch.bytes,
        }
    }

    /// How the kernel of a batch moves it; nothing if none does.
    fn call(&self) -> Option<TabledBatchCall<'_>> {
        match self {
            BatchWork::Fixed(BatchItem { device_type, direction, call, .. }) => device_type
                .plan
                .allows_in_batch()
                .then(|| TabledBatchCall::Fixed(device_type, device_type.plan.variant(*direction, call))),
            BatchWork::Tabled(launch) => {
                let (shared, moved) = (launch.elements.shared, launch.moved);
                let variant = tabled_in_batch(launch.variant());
                shared.sides(moved).has_kernel().then_some(TabledBatchCall::Tabled(shared, moved, variant))
            }
        }
    }
}

/// The kernel for a batch, and the kind of each of its transfers; nothing if it is served one by one.
pub(super) fn kernel(
    engine: &Engine,
    gpu: &Gpu,
    works: &[BatchWork<'_>],
) -> Option<(Arc<TabledBatchKernel>, Vec<u32>)> {
    // One alone has its own kernels, and so have types without index tables.
    if works.len() < 2 || works.iter().all(|work| matches!(work, BatchWork::Fixed(_))) {
        return None;
    }
    let calls: Option<Vec<_>> = works.iter().map(BatchWork::call).collect();
    engine.shared.tabled_batches.kernel(&gpu.state, &calls?)
}

/// Enqueues a batch: as one launch if its kernel is there.
///
/// # Safety
///
/// The device reaches every byte that the entries lead to, on both ends of each, which do not overlap, until the work is done; none writes what
/// another one reads or writes.
pub(super) unsafe fn enqueue(
    engine: &Engine,
    gpu: &Gpu,
    stream: &Stream,
    works: &[BatchWork<'_>],
) -> Result<(), TabledError> {
    if let Some((kernel, kinds)) = kernel(engine, gpu, works)
        && let Some(code) = kernel.serving(&gpu.state)
        && let Some(items) = items(works, code, &kinds)
    {
        // SAFETY: the contract of this function; the items are those of the kernel.
        return unsafe { launch(engine, gpu, stream, (works, code, items)) };
    }
    let fixed: Vec<BatchItem<'_>> = works
        .iter()
        .filter_map(|work| match work {
            BatchWork::Fixed(item) => Some(*item),
            BatchWork::Tabled(_) => None,
        })
        .collect();
    if !fixed.is_empty() {
        let prepared = gpu.shared_kernels.batches.prepared(&gpu.state, &fixed)?;
        // SAFETY: `prepared` addresses the bytes of these transfers, which are as the contract of this function says.
        unsafe { prepared.launch(stream)? };
    }
    for work in works {
        if let BatchWork::Tabled(launch) = work {
            // SAFETY: the contract of this function.
            unsafe { launch.enqueue(engine, gpu, stream)? };
        }
    }
    Ok(())
}

/// The items, whose programs are counted from the words of the first transfer with tables, and all blocks; nothing where a grid is too large.
struct Items {
    all: Vec<Item>,
    blocks: u32,
}

fn items(works: &[BatchWork<'_>], code: &BatchKernel, kinds: &[u32]) -> Option<Items> {
    let (mut begin, mut words) = (0u32, 0);
    let mut all = Vec::with_capacity(works.len());
    for (work, &kind) in works.iter().zip(kinds) {
        let (item, blocks) = match (work, work.call()?) {
            (BatchWork::Fixed(requested), TabledBatchCall::Fixed(_, variant)) => {
                let (item, blocks) = code.item(requested, variant, kind as usize);
                (placed(requested, item), blocks)
            }
            (BatchWork::Tabled(launch), TabledBatchCall::Tabled(shared, moved, variant)) => {
                let (call, _) = launch.call();
                let item = Item {
                    memory: call.memory,
                    packed: call.packed,
                    tables: code.lists(),
                    first: call.first,
                    bytes: call.bytes,
                    program: words,
                    kind: code.case(kind as usize),
                    ..Item::default()
                };
                words += (shared.sides(moved).words() * size_of::<u64>()) as u64;
                (item, variant.blocks(call.bytes))
            }
            _ => return None,
        };
        all.push(Item { begin, ..item });
        begin = blocks.and_then(|blocks| begin.checked_add(blocks)).filter(|&end| end < 1 << 31)?;
    }
    Some(Items { all, blocks: begin })
}

/// Brings tables, words and items to the device, and launches the kernel.
///
/// # Safety
///
/// As for [`enqueue`]; the items are those of these transfers and this kernel.
unsafe fn launch(
    engine: &Engine,
    gpu: &Gpu,
    stream: &Stream,
    (works, code, items): (&[BatchWork<'_>], &Arc<BatchKernel>, Items),
) -> Result<(), TabledError> {
    let scope = stream.device().scope()?;
    let ends: Vec<DeviceEnd<'_>> = works.iter().flat_map(ends).collect();
    let tables = host_tables(&ends);
    let Items { mut all, blocks } = items;
    let mut batch = Batch { count: all.len() as u32, blocks, items: 0, own: [Item::default(); BATCH_INLINE] };
    let after = |begin: usize, count: usize| begin + count * size_of::<u64>();
    let words: usize = works.iter().map(words).sum();
    let begin = tables.len();
    let listed = if all.len() > BATCH_INLINE { all.len() * size_of::<Item>() + blocks as usize * 4 } else { 0 };
    let uploaded = Uploaded::placed(after(begin, words) + listed, gpu, stream, |address| {
        let mut bytes = tables;
        let mut of_ends = tables_of(&ends, engine, gpu, address)?.into_iter();
        for (work, item) in works.iter().zip(&mut all) {
            if let BatchWork::Tabled(launch) = work {
                item.program += address + begin as u64;
                append_words(launch, &mut of_ends, &mut bytes)?;
            }
        }
        match batch.own.get_mut(..all.len()) {
            Some(own) => own.copy_from_slice(&all),
            None => {
                batch.items = address + bytes.len() as u64;
                bytes.extend_from_slice(&item_table(&all, blocks));
            }
        }
        Ok(bytes)
    })?;
    graph::keep_in_graph(&scope, stream, code)?;
    // SAFETY: the items are of the kernel's kinds, and address the bytes of the transfers, which the device reaches (contract of this function).
    let launched = unsafe { launch_items(&scope, stream, &code.function, batch) };
    // Without a launch, the copy to the memory may still be under way.
    let given_back = uploaded.launched(&scope, gpu, stream);
    launched?;
    Ok(given_back?)
}

fn ends<'a>(work: &'a BatchWork<'_>) -> SmallVec<[DeviceEnd<'a>; 2]> {
    match work {
        BatchWork::Fixed(_) => SmallVec::new(),
        BatchWork::Tabled(launch) => launch.ends(),
    }
}

/// Numbers of the call that the kernel reads.
fn words(work: &BatchWork<'_>) -> usize {
    match work {
        BatchWork::Fixed(_) => 0,
        BatchWork::Tabled(launch) => launch.elements.shared.sides(launch.moved).words(),
    }
}

/// Appends what a kernel has of a call. `of_ends`: the tables of the ends that follow.
fn append_words(
    launch: &TabledLaunch<'_>,
    of_ends: &mut impl Iterator<Item = DeviceTables>,
    bytes: &mut TableBytes,
) -> Result<(), TabledError> {
    let tables: SmallVec<[DeviceTables; 2]> = of_ends.take(launch.ends().len()).collect();
    let tables: SmallVec<[&[TabledEntries]; 2]> = tables.iter().map(|tables| &tables[..]).collect();
    let (word, (_, target_first)) = (launch.variant().word, launch.call());
    let sides = launch.elements.shared.sides(launch.moved);
    let words = sides.parameter(word, &tables, target_first, launch.report).ok_or_else(|| launch.too_large())?;
    bytes.extend_from_slice(bytemuck::cast_slice(&words));
    Ok(())
}
