//! Allocates blocks of powers of two in one range of memory.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of the smallest block.
const SHORTEST: usize = 32;

/// Largest alignment of a block: blocks begin at multiples of their length, up to this.
const PAGE: usize = 4096;

const CLASSES: usize = usize::BITS as usize;

/// Zero pages in the library's image.
#[repr(C, align(4096))]
pub(crate) struct Memory<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

// SAFETY: only its address is used, and an arena gives each byte to one block at a time, under its lock.
unsafe impl<const BYTES: usize> Sync for Memory<BYTES> {}

impl<const BYTES: usize> Memory<BYTES> {
    pub(crate) const fn new() -> Memory<BYTES> {
        Memory(UnsafeCell::new([0; BYTES]))
    }

    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.0.get().expose_provenance()
    }
}

/// A range of memory that allocates and frees blocks.
pub(crate) struct Arena {
    /// Whether it has memory, or a thread is about to give it some.
    taken: AtomicBool,
    locked: AtomicBool,
    /// First address; 0 without memory.
    begin: AtomicUsize,
    length: AtomicUsize,
    /// Thread whose claim it serves; 0 for none.
    owner: AtomicUsize,
    /// Bytes from `begin` on that were allocated at least once since the arena was last empty.
    used: AtomicUsize,
    /// Number of allocated blocks.
    live: AtomicUsize,
    /// First free block of each class; each free block holds the address of the next.
    free: [AtomicUsize; CLASSES],
}

impl Arena {
    pub(crate) const fn new() -> Arena {
        Arena {
            taken: AtomicBool::new(false),
            locked: AtomicBool::new(false),
            begin: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            owner: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            free: [const { AtomicUsize::new(0) }; CLASSES],
        }
    }

    /// Reserves an arena without memory for the caller, who opens it.
    pub(crate) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    /// Makes a reserved arena available again.
    pub(crate) fn forget(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// Gives it memory.
    #[inline]
    pub(crate) fn open(&self, begin: usize, length: usize, owner: usize) {
        if self.begin.load(Ordering::Acquire) != begin {
            self.owner.store(owner, Ordering::Relaxed);
            self.length.store(length, Ordering::Relaxed);
            self.begin.store(begin, Ordering::Release);
        }
    }

    /// Returns its memory to the caller if no block is allocated and no claim holds it.
    pub(crate) fn close(&self) -> Option<(usize, usize)> {
        self.lock()?;
        let unused = self.live.load(Ordering::Relaxed) == 0 && self.owner.load(Ordering::Relaxed) == 0;
        let begin = if unused { self.begin.swap(0, Ordering::AcqRel) } else { 0 };
        self.unlock();
        (begin != 0).then(|| (begin, self.length.load(Ordering::Relaxed)))
    }

    /// Ends the claim. Returns `None` if no block is allocated; otherwise the unused end of its memory, address and
    /// length, which is the caller's.
    pub(crate) fn disown(&self) -> Option<(usize, usize)> {
        let locked = self.lock();
        self.owner.store(0, Ordering::Release);
        let live = self.live.load(Ordering::Acquire) > 0;
        let kept = self.used.load(Ordering::Relaxed).next_multiple_of(PAGE);
        let length = self.length.load(Ordering::Relaxed);
        let end = (self.begin.load(Ordering::Relaxed) + kept, length - kept);
        if locked.is_none() {
            // In a forked child, a thread of the parent holds the lock for ever, so all the memory stays.
            return Some((end.0, 0));
        }
        if live {
            self.length.store(kept, Ordering::Relaxed);
        }
        self.unlock();
        live.then_some(end)
    }

    pub(crate) fn is_claimed_by(&self, thread: usize) -> bool {
        self.begin.load(Ordering::Acquire) != 0 && self.owner.load(Ordering::Relaxed) == thread
    }

    pub(crate) fn holds(&self, address: usize) -> bool {
        let begin = self.begin.load(Ordering::Acquire);
        begin != 0 && address.wrapping_sub(begin) < self.length.load(Ordering::Relaxed)
    }

    /// Bytes that were not allocated since the arena was last empty.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.length.load(Ordering::Relaxed) - self.used.load(Ordering::Relaxed)
    }

    /// `None` if the lock stays taken: in a forked child, a thread of the parent may hold it.
    fn lock(&self) -> Option<()> {
        for _ in 0..100_000 {
            if !self.locked.swap(true, Ordering::Acquire) {
                return Some(());
            }
            std::thread::yield_now();
        }
        None
    }

    fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }

    /// Logarithm of the length of the block for a layout.
    fn class(layout: Layout) -> Option<usize> {
        if layout.align() > PAGE {
            return None;
        }
        let length = layout.size().max(layout.align()).max(SHORTEST).checked_next_power_of_two()?;
        Some(length.trailing_zeros() as usize)
    }

    /// Allocates a block; null if there is none.
    pub(crate) fn allocate(&self, layout: Layout) -> *mut u8 {
        let Some(class) = Arena::class(layout) else { return null_mut() };
        if self.lock().is_none() {
            return null_mut();
        }
        let found = self.block(class);
        if found != 0 {
            self.live.fetch_add(1, Ordering::Relaxed);
        }
        self.unlock();
        with_exposed_provenance_mut(found)
    }

    fn block(&self, class: usize) -> usize {
        let first = self.free[class].load(Ordering::Relaxed);
        if first != 0 {
            // SAFETY: `first` is a free block, which holds the address of the next one since `free` wrote it; the lock
            // is held.
            let next = unsafe { with_exposed_provenance_mut::<usize>(first).read() };
            self.free[class].store(next, Ordering::Relaxed);
            return first;
        }
        let length = 1usize << class;
        let begin = self.used.load(Ordering::Relaxed).next_multiple_of(length.min(PAGE));
        match begin.checked_add(length).filter(|end| *end <= self.length.load(Ordering::Relaxed)) {
            Some(end) => {
                self.used.store(end, Ordering::Relaxed);
                self.begin.load(Ordering::Relaxed) + begin
            }
            None => 0,
        }
    }

    /// Frees a block. Returns whether the arena is now empty and no claim holds it.
    pub(crate) fn free(&self, address: *mut u8, layout: Layout) -> bool {
        let Some(class) = Arena::class(layout) else { return false };
        if self.lock().is_none() {
            return false;
        }
        let empty = self.live.fetch_sub(1, Ordering::Relaxed) == 1;
        if empty {
            self.used.store(0, Ordering::Relaxed);
            self.free.iter().for_each(|first| first.store(0, Ordering::Relaxed));
        } else {
            let next = self.free[class].swap(address.expose_provenance(), Ordering::Relaxed);
            // SAFETY: the block has at least 32 bytes, is aligned to its length, and belongs to the arena from here on;
            // the lock is held.
            unsafe { address.cast::<usize>().write(next) };
        }
        let unused = empty && self.taken.load(Ordering::Relaxed) && self.owner.load(Ordering::Relaxed) == 0;
        self.unlock();
        unused
    }
}
