//! Memory that packed data goes through. It is kept for later calls: fresh memory costs a page fault for every page, and memory of CUDA
//! milliseconds.

use crate::report;
use dtc::{DTC_MEMORY_DEVICE, DTC_MEMORY_HOST, DTC_MEMORY_PINNED, DTC_OK, dtc_engine, dtc_memory};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

/// The engine of all types; null until the library has begun, and after `MPI_Finalize`.
pub static ENGINE: AtomicPtr<dtc_engine> = AtomicPtr::new(null_mut());

/// The pool of memory of the host.
pub const HOST: usize = 0;
/// The pool of memory of the host that is pinned.
pub const PINNED: usize = 1;
/// The pool of the memory of a GPU; those of the others follow.
pub const DEVICE: usize = 2;

/// GPUs with a pool.
const DEVICES: usize = 16;
const POOLS: usize = DEVICE + DEVICES;

/// Sizes are powers of two, from 4 KiB on.
const SMALLEST: u32 = 12;

/// Most bytes of a block that is kept, as a power of two: of the host, and of memory that CUDA allocates.
const LARGEST_KEPT: u32 = 24;
const LARGEST_KEPT_OF_CUDA: u32 = 28;

/// Blocks kept of each size: those of the faces of ten fields with three axes, sent and received at once. And most bytes of all of them in a pool.
const KEPT: usize = 128;
const MOST_KEPT: i64 = 64 << 20;
const MOST_KEPT_OF_CUDA: i64 = 512 << 20;

/// Most bytes of host memory that are lent at once: nonblocking messages hold theirs until they end.
const MOST_LENT: i64 = 1 << 30;

/// Bytes behind each block of memory of the host, which a receive may ask for ([`receive_type`](crate::receive_type)). None behind memory of a GPU, of which an MPI opens the whole
/// allocation in another process: between two H200, Open MPI 5.0 takes 70 us more for 64 MiB if 64 bytes follow them.
const SLACK: usize = 64;

/// Bytes that memory of the host is aligned to.
const PAGE: usize = 4096;

/// Sizes that are kept.
const SIZES: usize = (LARGEST_KEPT_OF_CUDA - SMALLEST + 1) as usize;

/// A piece of staging memory.
struct StagingBlock {
    memory: *mut c_void,
    kind: i32,
    device: i32,
    pool: usize,
    /// The size, as a power of two.
    power: u32,
    /// Of memory that CUDA allocated.
    allocation: *mut dtc_memory,
}

impl Drop for StagingBlock {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate`, by the one or the other.
        unsafe {
            if self.allocation.is_null() {
                libc::free(self.memory);
            } else {
                dtc::dtc_memory_free(self.allocation);
            }
        }
    }
}

/// Blocks of one size.
type Shelf = [AtomicPtr<StagingBlock>; KEPT];

/// Memory of one kind.
struct Pool {
    shelves: [Shelf; SIZES],
    kept: AtomicI64,
}

static POOL: [Pool; POOLS] = [const {
    Pool { shelves: [const { [const { AtomicPtr::new(null_mut()) }; KEPT] }; SIZES], kept: AtomicI64::new(0) }
}; POOLS];

static LENT: AtomicI64 = AtomicI64::new(0);

/// The power of two that holds so many bytes.
fn power_of(bytes: i64) -> u32 {
    let bytes = u64::try_from(bytes).unwrap_or(0).max(1);
    (u64::BITS - (bytes - 1).leading_zeros()).clamp(SMALLEST, 62)
}

/// Where blocks of a size are kept; none if they are not.
fn shelf(pool: usize, power: u32) -> Option<&'static Shelf> {
    let largest = if pool == HOST { LARGEST_KEPT } else { LARGEST_KEPT_OF_CUDA };
    POOL.get(pool).filter(|_| power <= largest)?.shelves.get(power.checked_sub(SMALLEST)? as usize)
}

fn allocate(pool: usize, power: u32, device: i32) -> Option<Box<StagingBlock>> {
    let kind = match pool {
        HOST => DTC_MEMORY_HOST,
        PINNED => DTC_MEMORY_PINNED,
        _ => DTC_MEMORY_DEVICE,
    };
    let bytes = (1 << power) + if pool < DEVICE { SLACK } else { 0 };
    let (mut memory, mut allocation) = (null_mut(), null_mut());
    // SAFETY: both are writable; the engine lives as long as calls are handled.
    let made = unsafe {
        if pool == HOST {
            libc::posix_memalign(&mut memory, PAGE, bytes) == 0
        } else {
            let engine = ENGINE.load(Ordering::Acquire);
            dtc::dtc_memory_allocate(engine, kind, device, bytes as i64, &mut memory, &mut allocation) == DTC_OK
        }
    };
    let block = StagingBlock { memory, kind, device, pool, power, allocation };
    // What was not allocated is not freed.
    if !made {
        std::mem::forget(block);
        return None;
    }
    Some(Box::new(block))
}

/// Lends memory of the host; false if too much is lent.
fn lend(size: i64) -> bool {
    let fits = LENT.fetch_add(size, Ordering::Relaxed) + size <= MOST_LENT;
    if !fits {
        LENT.fetch_sub(size, Ordering::Relaxed);
    }
    fits
}

/// Staging memory, until it is dropped.
pub struct BlockRef(NonNull<StagingBlock>);

// SAFETY: memory that any thread may use and give back.
unsafe impl Send for BlockRef {}

impl BlockRef {
    /// Where it is.
    pub fn memory(&self) -> *mut c_void {
        self.block().memory
    }

    /// `DTC_MEMORY_...`.
    pub fn kind(&self) -> i32 {
        self.block().kind
    }

    /// The GPU that it is for.
    pub fn device(&self) -> i32 {
        self.block().device
    }

    fn block(&self) -> &StagingBlock {
        // SAFETY: made by `allocate`, and this value's.
        unsafe { self.0.as_ref() }
    }
}

/// Takes at least `bytes` bytes for packed data, from a pool for elements of GPU `device`; none if there is no memory.
pub fn take(pool: usize, device: i32, bytes: i64) -> Option<BlockRef> {
    let gpu = usize::try_from(device).ok().filter(|device| *device < DEVICES)?;
    let pool = if pool == DEVICE { DEVICE + gpu } else { pool };
    let power = power_of(bytes);
    let size = 1 << power;
    if pool == HOST && !lend(size) {
        return None;
    }
    let take = |place: &AtomicPtr<StagingBlock>| {
        if place.load(Ordering::Relaxed).is_null() { null_mut() } else { place.swap(null_mut(), Ordering::Acquire) }
    };
    let kept = shelf(pool, power).into_iter().flatten().map(take).find(|block| !block.is_null());
    let block = match kept {
        Some(block) => {
            POOL[pool].kept.fetch_sub(size, Ordering::Relaxed);
            NonNull::new(block)
        }
        None => allocate(pool, power, device).map(|block| NonNull::from(Box::leak(block))),
    };
    if block.is_none() && pool == HOST {
        LENT.fetch_sub(size, Ordering::Relaxed);
    }
    if block.is_some() {
        report::record_work();
    }
    block.map(BlockRef)
}

impl Drop for BlockRef {
    fn drop(&mut self) {
        let StagingBlock { pool, power, .. } = *self.block();
        let size = 1 << power;
        let most = if pool == HOST { MOST_KEPT } else { MOST_KEPT_OF_CUDA };
        if pool == HOST {
            LENT.fetch_sub(size, Ordering::Relaxed);
        }
        if let (Some(shelf), Some(of)) = (shelf(pool, power), POOL.get(pool)) {
            if of.kept.fetch_add(size, Ordering::Relaxed) + size <= most {
                let put = |place: &AtomicPtr<StagingBlock>| {
                    let block = self.0.as_ptr();
                    let empty = place.load(Ordering::Relaxed).is_null();
                    empty && place.compare_exchange(null_mut(), block, Ordering::Release, Ordering::Relaxed).is_ok()
                };
                if shelf.iter().any(put) {
                    return;
                }
            }
            of.kept.fetch_sub(size, Ordering::Relaxed);
        }
        // SAFETY: made by `allocate`, and kept nowhere.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_from_a_page_on() {
        let powers = [0, 1, 4096, 4097, 1 << 20, (1 << 20) + 1, i64::MAX].map(power_of);
        assert_eq!(powers, [12, 12, 12, 13, 20, 21, 62]);
    }

    #[test]
    fn memory_of_the_host_is_kept_and_lent_again_and_not_without_end() {
        let first = take(HOST, 0, 5000).expect("memory");
        let memory = first.memory();
        drop(first);
        let second = take(HOST, 0, 8192).expect("memory");
        assert_eq!(second.memory(), memory);
        drop(second);
        assert!(take(HOST, 0, MOST_LENT + 1).is_none());
        assert!(take(HOST, DEVICES as i32, 1).is_none());
        assert_eq!(LENT.load(Ordering::Relaxed), 0);
    }
}
