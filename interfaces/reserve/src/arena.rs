//! Blocks of powers of two from one stretch of memory.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The shortest block.
const SHORTEST: usize = 32;

/// Blocks begin at multiples of their length, and of this at most.
const PAGE: usize = 4096;

const CLASSES: usize = usize::BITS as usize;

/// Zero pages of the library.
#[repr(C, align(4096))]
pub(crate) struct Memory<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

// SAFETY: only addresses of it are used, and the arena hands every byte out once.
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

/// A stretch of memory whose blocks are handed out and taken back.
pub(crate) struct Arena {
    /// Whether somebody is preparing it, or it holds memory.
    taken: AtomicBool,
    locked: AtomicBool,
    /// 0 if it holds no memory.
    begin: AtomicUsize,
    length: AtomicUsize,
    /// The thread whose claim it serves; 0 for none.
    owner: AtomicUsize,
    /// Bytes from the beginning that were ever handed out since nothing lived in it.
    used: AtomicUsize,
    /// Blocks that live in it.
    live: AtomicUsize,
    /// The first free block of each class; each holds the address of the next.
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

    /// Takes an arena without memory, to open it.
    pub(crate) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    /// Makes it available again.
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

    /// Takes its memory away if nothing lives in it and no claim holds it: the memory is the caller's then.
    pub(crate) fn close(&self) -> Option<(usize, usize)> {
        self.lock()?;
        let unused = self.live.load(Ordering::Relaxed) == 0 && self.owner.load(Ordering::Relaxed) == 0;
        let begin = if unused { self.begin.swap(0, Ordering::AcqRel) } else { 0 };
        self.unlock();
        (begin != 0).then(|| (begin, self.length.load(Ordering::Relaxed)))
    }

    /// Ends the claim: `None` if nothing lives in it. Otherwise its end, where nothing was put, is the caller's: address and
    /// length.
    pub(crate) fn disown(&self) -> Option<(usize, usize)> {
        let locked = self.lock();
        self.owner.store(0, Ordering::Release);
        let live = self.live.load(Ordering::Acquire) > 0;
        let kept = self.used.load(Ordering::Relaxed).next_multiple_of(PAGE);
        let length = self.length.load(Ordering::Relaxed);
        let end = (self.begin.load(Ordering::Relaxed) + kept, length - kept);
        if locked.is_none() {
            // Another thread of a process that forked meanwhile holds the lock for ever: all of it stays.
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

    /// Bytes that were never handed out.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.length.load(Ordering::Relaxed) - self.used.load(Ordering::Relaxed)
    }

    /// Nothing if the lock is not to be had: a forked child may find it held by a thread that it does not have.
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

    /// The logarithm of the length of the block that a layout gets.
    fn class(layout: Layout) -> Option<usize> {
        if layout.align() > PAGE {
            return None;
        }
        let length = layout.size().max(layout.align()).max(SHORTEST).checked_next_power_of_two()?;
        Some(length.trailing_zeros() as usize)
    }

    /// A block; null if there is none.
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
            // SAFETY: a free block, which holds the address of the next one; the lock is held.
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

    /// Takes a block back; says whether nothing lives in the arena and no claim holds it.
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
            // SAFETY: the block is at least as long, aligned to its length, and free from here on; the lock is held.
            unsafe { address.cast::<usize>().write(next) };
        }
        let unused = empty && self.taken.load(Ordering::Relaxed) && self.owner.load(Ordering::Relaxed) == 0;
        self.unlock();
        unused
    }
}
