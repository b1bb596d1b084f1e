//! The system's allocator, with blocks of large alignment made of plain ones.
//!
//! `memalign` of glibc (before 2.38) takes a block that is longer by the alignment, and gives the rest back. The next call needs the longer
//! block again, which the freed one is not: if something else has come to lie beside it meanwhile, the heap grows with every type that
//! is made and released, by 0.8 to 1 KB each. A plain block is as long as the one that was freed before it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

/// Alignment of the system's plain blocks on 64-bit platforms.
const PLAIN: usize = 16;

/// The plain block that holds a block of larger alignment, and its own address behind `PLAIN` bytes at most; `None` if no block is that long.
#[inline]
fn around(layout: Layout) -> Option<Layout> {
    Layout::from_size_align(layout.size().checked_add(layout.align())?, PLAIN).ok()
}

/// Allocates as `System` does; null if there is no memory.
///
/// # Safety
///
/// `layout` has a size above 0.
#[inline]
pub(crate) unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: a size above 0 (contract of this function).
    if layout.align() <= PLAIN { unsafe { System.alloc(layout) } } else { alloc_aligned(layout) }
}

/// The same, of zero bytes.
///
/// # Safety
///
/// `layout` has a size above 0.
#[inline]
pub(crate) unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    if layout.align() <= PLAIN {
        // SAFETY: a size above 0 (contract of this function).
        return unsafe { System.alloc_zeroed(layout) };
    }
    let found = alloc_aligned(layout);
    if !found.is_null() {
        // SAFETY: `alloc_aligned` has returned `layout.size()` bytes, and no other reference to them exists yet.
        unsafe { found.write_bytes(0, layout.size()) };
    }
    found
}

#[inline(never)]
fn alloc_aligned(layout: Layout) -> *mut u8 {
    let Some(plain) = around(layout) else { return null_mut() };
    // SAFETY: the size is above 0, since the alignment is.
    let block = unsafe { System.alloc(plain) };
    if block.is_null() {
        return block;
    }
    // Both are multiples of PLAIN, so that at least PLAIN bytes lie before the address, and at most as many as the alignment.
    let skipped = layout.align() - block.addr() % layout.align();
    // SAFETY: `skipped` is at most the alignment, and the block is longer than `layout.size()` by that (`around`). The address of the block is
    // stored right before, in bytes of the block, since `skipped` is at least PLAIN; it is aligned for a pointer.
    unsafe {
        let found = block.add(skipped);
        found.cast::<*mut u8>().sub(1).write(block);
        found
    }
}

/// Frees a block.
///
/// # Safety
///
/// A function of this module allocated `address` with `layout`, and it was not freed.
#[inline]
pub(crate) unsafe fn dealloc(address: *mut u8, layout: Layout) {
    if layout.align() <= PLAIN {
        // SAFETY: `alloc` has it from `System`, with this layout (contract of this function).
        unsafe { System.dealloc(address, layout) };
    } else if let Some(plain) = around(layout) {
        // SAFETY: `alloc_aligned` has written the address of the block there, which `System` allocated with this layout.
        unsafe { System.dealloc(address.cast::<*mut u8>().sub(1).read(), plain) };
    }
}

/// Makes a block longer or shorter; null, with the block as it was, if there is no memory.
///
/// # Safety
///
/// A function of this module allocated `address` with `layout`, and it was not freed; `size` is above 0, and fits `isize` when rounded up to
/// the alignment.
#[inline]
pub(crate) unsafe fn realloc(address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    if layout.align() <= PLAIN {
        // SAFETY: `alloc` has it from `System`, with this layout; `size` is as `System` needs it (contract of this function).
        return unsafe { System.realloc(address, layout, size) };
    }
    // SAFETY: `size` is above 0 and fits (contract of this function). The new block does not overlap the old one, and both have at least the
    // bytes that are copied; the old one is freed once.
    unsafe {
        let found = alloc_aligned(Layout::from_size_align_unchecked(size, layout.align()));
        if !found.is_null() {
            found.copy_from_nonoverlapping(address, layout.size().min(size));
            dealloc(address, layout);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        for align in [1, 8, 16, 32, 64, 4096] {
            for size in [1, 63, 448, 5000] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                // SAFETY: sizes above 0; each block is written within its size, and freed once with its layout.
                unsafe {
                    let block = alloc(layout);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align));
                    block.write_bytes(7, size);
                    let longer = realloc(block, layout, 2 * size);
                    assert!(longer.addr().is_multiple_of(align) && (0..size).all(|at| *longer.add(at) == 7));
                    longer.write_bytes(9, 2 * size);
                    dealloc(longer, Layout::from_size_align(2 * size, align).expect("a layout"));
                    let zeros = alloc_zeroed(layout);
                    assert!((0..size).all(|at| *zeros.add(at) == 0));
                    dealloc(zeros, layout);
                }
            }
        }
        let endless = Layout::from_size_align(isize::MAX as usize - 63, 64).expect("a layout");
        // SAFETY: a size above 0.
        assert!(unsafe { alloc(endless) }.is_null());
    }
}
