//! What the MPI receives packed bytes as.
//!
//! Open MPI 4.1 and 5.0 write a message that is too long past the end of a contiguous receive buffer, when they copy it from the
//! memory of the sender. They do not do so if the datatype has a gap: so the last byte is received one place further on. This is
//! faster, too (decision 23).

use crate::abi::{Abi, Handle, MPI_SUCCESS};
use crate::pmpi::pmpi;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of staging memory that are not bytes of the message.
pub const fn gap<A: Abi>() -> usize {
    A::IS_OPEN_MPI as usize
}

/// Datatypes that are kept, by a hash of their length. A power of two.
const KEPT: usize = 64;

/// A datatype of so many bytes, with a gap in front of the last.
struct CachedReceiveType {
    bytes: i64,
    datatype: usize,
}

/// Those of late. A thread that uses one has taken it out.
static TYPES: [AtomicPtr<CachedReceiveType>; KEPT] = [const { AtomicPtr::new(null_mut()) }; KEPT];

fn place(bytes: i64) -> &'static AtomicPtr<CachedReceiveType> {
    // The upper 6 bits of a product with 2^64 over the golden ratio.
    &TYPES[((bytes as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % KEPT]
}

/// The datatype that receives so many bytes; it is kept for later receives when it is dropped: a receive under way has its own hold on it.
pub struct ReceiveType<A: Abi> {
    kept: Option<Box<CachedReceiveType>>,
    abi: PhantomData<A>,
}

fn free<A: Abi>(kept: &CachedReceiveType) {
    let mut datatype = A::Handle::of(kept.datatype);
    // SAFETY: made by `take`.
    unsafe { (pmpi::<A>().type_free)(&mut datatype) };
}

/// Takes what a place keeps, and puts something there.
fn swap(place: &AtomicPtr<CachedReceiveType>, kept: *mut CachedReceiveType) -> Option<Box<CachedReceiveType>> {
    let before = place.swap(kept, Ordering::AcqRel);
    // SAFETY: null, or a box that the place owned.
    (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
}

impl<A: Abi> ReceiveType<A> {
    /// Takes the datatype that receives `bytes` bytes, at least two; none if it cannot be made.
    pub fn take(bytes: i64) -> Option<ReceiveType<A>> {
        let kept = swap(place(bytes), null_mut());
        if let Some(kept) = kept {
            if kept.bytes == bytes {
                return Some(ReceiveType { kept: Some(kept), abi: PhantomData });
            }
            free::<A>(&kept);
        }
        let pmpi = pmpi::<A>();
        let (lengths, places): ([c_int; 2], [isize; 2]) = ([(bytes - 1) as c_int, 1], [0, bytes as isize]);
        let mut datatype = A::handles().datatype_null;
        // SAFETY: two blocks, and `datatype` is writable.
        unsafe {
            let byte = A::handles().byte;
            if (pmpi.type_create_hindexed)(2, lengths.as_ptr(), places.as_ptr(), byte, &mut datatype) != MPI_SUCCESS {
                return None;
            }
            if (pmpi.type_commit)(&mut datatype) != MPI_SUCCESS {
                (pmpi.type_free)(&mut datatype);
                return None;
            }
        }
        let kept = Box::new(CachedReceiveType { bytes, datatype: datatype.word() });
        Some(ReceiveType { kept: Some(kept), abi: PhantomData })
    }

    /// The handle.
    pub fn handle(&self) -> A::Handle {
        self.kept.as_ref().map_or(A::handles().datatype_null, |kept| A::Handle::of(kept.datatype))
    }
}

impl<A: Abi> Drop for ReceiveType<A> {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let place = place(kept.bytes);
        if let Some(before) = swap(place, Box::into_raw(kept)) {
            free::<A>(&before);
        }
    }
}
