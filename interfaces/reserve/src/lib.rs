//! The allocator of the C libraries: the system's, with a reserve for when the system has no memory.
//!
//! Rust ends the process when an allocation fails, which a library in an application's process must not do. So a call
//! whose memory grows with its input begins with a [`claim`] of the most that it needs, and returns its out-of-memory
//! status if the claim fails. Within a claim, the reserve serves allocations that the system refuses. Calls without a
//! claim, and the background thread, may also take small pieces of it: a message, a short stack.
//!
//! The reserve is 32 MiB of zero pages of the library's image, which take no memory until they are used. A claim of
//! more than 1 MiB maps a region of its own, which takes none either, and unmaps it when no block in it is left.
//!
//! While the system has memory, the cost is one comparison for each free, and a few atomic operations for each claim.
//! Rust users of `dtc-runtime` keep their own allocator: only `dtc-capi` and `dtc-yaksa` depend on this crate.

mod aligned;
mod arena;

use arena::{Arena, Memory};
use std::alloc::{GlobalAlloc, Layout};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the reserve.
const RESERVE: usize = 32 << 20;

/// Largest claim that the reserve serves, in bytes.
const SMALL: usize = 1 << 20;

/// Bytes of the reserve that claims must leave, for the background thread and for calls without a claim.
const UNCLAIMED: usize = 8 << 20;

/// Most regions that claims may have mapped at once. A type committed without system memory lives in its region until
/// it is freed and has left the caches, which keep up to 1,280 types.
const REGIONS: usize = 2048;

static MEMORY: Memory<RESERVE> = Memory::new();
static STANDING: Arena = Arena::new();
/// Number of live claims that the reserve serves.
static CLAIMS: AtomicUsize = AtomicUsize::new(0);

static MAPPED: [Arena; REGIONS] = [const { Arena::new() }; REGIONS];
/// Number of regions that hold memory.
static MAPPINGS: AtomicUsize = AtomicUsize::new(0);
/// One past the index of the last region that ever held memory.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// The regions that may hold memory.
fn mapped() -> &'static [Arena] {
    if MAPPINGS.load(Ordering::Acquire) == 0 { &[] } else { &MAPPED[..HIGHEST.load(Ordering::Acquire)] }
}

/// The allocator. Symbols of the C libraries are hidden, so it never becomes the allocator of the process.
struct Reserved;

#[global_allocator]
static ALLOCATOR: Reserved = Reserved;

fn standing() -> &'static Arena {
    STANDING.open(MEMORY.address(), RESERVE, 0);
    &STANDING
}

/// The arena that contains an address.
#[inline]
fn arena_of(address: *mut u8) -> Option<&'static Arena> {
    if address.addr().wrapping_sub(MEMORY.address()) < RESERVE {
        return Some(&STANDING);
    }
    mapped().iter().find(|region| region.holds(address.addr()))
}

/// Allocates in this thread's region or in the reserve, after the system has refused.
#[cold]
fn from_reserve(layout: Layout) -> *mut u8 {
    let own = mapped().iter().find(|region| region.is_claimed_by(thread()));
    let found = own.map_or(null_mut(), |region| region.allocate(layout));
    if found.is_null() { standing().allocate(layout) } else { found }
}

/// Identity of this thread. It uses no thread-local variable, because the first use of one may allocate.
fn thread() -> usize {
    // SAFETY: `pthread_self` has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

// SAFETY: a block is the system's, or an arena's, which allocates each byte once at a time. `arena_of` tells by the
// address which of them frees it.
unsafe impl GlobalAlloc for Reserved {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `layout` has a size above 0 (contract of `GlobalAlloc`).
        let found = unsafe { aligned::alloc(layout) };
        if found.is_null() { from_reserve(layout) } else { found }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `layout` has a size above 0 (contract of `GlobalAlloc`).
        let found = unsafe { aligned::alloc_zeroed(layout) };
        if !found.is_null() {
            return found;
        }
        let found = from_reserve(layout);
        if !found.is_null() {
            // SAFETY: the arena has just allocated `layout.size()` bytes at `found`.
            unsafe { found.write_bytes(0, layout.size()) };
        }
        found
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        match arena_of(address) {
            None => {
                // SAFETY: no arena contains `address`, so `aligned` allocated it, with this layout (contract of
                // `GlobalAlloc`).
                unsafe { aligned::dealloc(address, layout) }
            }
            Some(arena) => {
                if arena.free(address, layout) {
                    unmap(arena);
                }
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let inside = arena_of(address).is_some();
        if !inside {
            // SAFETY: no arena contains `address`, so `aligned` allocated it, with this layout; `size` is as `GlobalAlloc`
            // asks (contract of `GlobalAlloc`).
            let found = unsafe { aligned::realloc(address, layout, size) };
            if !found.is_null() {
                return found;
            }
        }
        // SAFETY: `size`, rounded up to the alignment, fits `isize` (contract of `GlobalAlloc::realloc`). Both blocks
        // have at least `layout.size().min(size)` bytes, and the new one does not overlap the live old one.
        unsafe {
            let new = Layout::from_size_align_unchecked(size, layout.align());
            let found = if inside { self.alloc(new) } else { from_reserve(new) };
            if !found.is_null() {
                found.copy_from_nonoverlapping(address, layout.size().min(size));
                self.dealloc(address, layout);
            }
            found
        }
    }
}

/// Unmaps a region without blocks that no claim holds.
#[cold]
fn unmap(region: &Arena) {
    if let Some((address, length)) = region.close() {
        // SAFETY: `close` returns the range that `map` has mapped, to one caller, and only when no block in it is
        // allocated.
        unsafe { libc::munmap(std::ptr::without_provenance_mut(address), length) };
        MAPPINGS.fetch_sub(1, Ordering::Release);
        region.forget();
    }
}

/// Memory that this thread can allocate while the claim lives.
#[derive(Debug)]
pub struct Claim {
    /// Index of the region; `None` if the reserve serves the claim.
    region: Option<usize>,
    /// A claim stays in the thread that made it.
    thread: PhantomData<*const ()>,
}

/// Guarantees that this thread can allocate `bytes` bytes in pieces of any size while the claim lives, even if the
/// system has no memory. `None`, without any effect, if that cannot be guaranteed.
///
/// # Example
///
/// ```
/// let claim = dtc_reserve::claim(10 << 20).expect("memory");
/// let list = vec![1u8; 5 << 20];
/// drop((claim, list));
/// assert!(dtc_reserve::claim(usize::MAX).is_none());
/// ```
#[inline]
#[must_use]
pub fn claim(bytes: usize) -> Option<Claim> {
    if bytes <= SMALL {
        let others = CLAIMS.fetch_add(1, Ordering::AcqRel);
        // Blocks are rounded up to powers of two, so a claim may need twice its bytes.
        if standing().left() >= UNCLAIMED + (others + 1) * 2 * SMALL {
            return Some(Claim { region: None, thread: PhantomData });
        }
        CLAIMS.fetch_sub(1, Ordering::AcqRel);
    }
    map(bytes)
}

#[cold]
fn map(bytes: usize) -> Option<Claim> {
    const PAGE: usize = 4096;
    let length = bytes.max(SMALL).checked_mul(2)?.checked_next_multiple_of(PAGE)?;
    let free = MAPPED.iter().position(Arena::take)?;
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: without an address, `mmap` creates a new mapping and replaces none.
    let address = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        MAPPED[free].forget();
        return None;
    }
    HIGHEST.fetch_max(free + 1, Ordering::AcqRel);
    MAPPINGS.fetch_add(1, Ordering::AcqRel);
    MAPPED[free].open(address.addr(), length, thread());
    Some(Claim { region: Some(free), thread: PhantomData })
}

impl Drop for Claim {
    #[inline]
    fn drop(&mut self) {
        match self.region {
            None => {
                CLAIMS.fetch_sub(1, Ordering::AcqRel);
            }
            Some(region) => {
                let region = &MAPPED[region];
                match region.disown() {
                    Some((_, 0)) => {}
                    // SAFETY: `disown` returns the end of a mapping of `map`, which contains no block, and from which
                    // none will be allocated.
                    Some((end, length)) => unsafe {
                        libc::munmap(std::ptr::without_provenance_mut(end), length);
                    },
                    None => unmap(region),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_serve_their_claim_and_go_with_what_lives_in_them() {
        let mapped = claim(3 << 20).unwrap();
        let layout = Layout::from_size_align(1000, 8).unwrap();
        let (one, other) = (from_reserve(layout), from_reserve(layout));
        assert!(!one.is_null() && !other.is_null() && one != other);
        assert!(std::ptr::eq(arena_of(one).unwrap(), arena_of(other).unwrap()));
        assert!(!std::ptr::eq(arena_of(one).unwrap(), &STANDING));
        drop(mapped);
        // SAFETY: both blocks were allocated with this layout, and each is freed once.
        unsafe {
            ALLOCATOR.dealloc(one, layout);
            assert!(arena_of(other).is_some());
            let grown = ALLOCATOR.realloc(other, layout, 5000);
            assert!(arena_of(other).is_none());
            ALLOCATOR.dealloc(grown, Layout::from_size_align(5000, 8).unwrap());
        }
    }

    #[test]
    fn claims_are_refused_when_the_reserve_is_used_up_and_nothing_can_be_mapped() {
        assert!(claim(usize::MAX / 4).is_none());
        let claims: Vec<Claim> = std::iter::from_fn(|| claim(2 << 20)).take(REGIONS).collect();
        assert_eq!(claims.len(), REGIONS);
        assert!(claim(2 << 20).is_none());
        drop(claims);
        assert!(claim(2 << 20).is_some());
    }
}
