//! The memory that a safe call applies a type to.

use bytemuck::{NoUninit, Pod};
use std::mem::MaybeUninit;
use std::slice;

/// Memory that a call reads elements from: a slice, and the place in it that the type is applied to.
///
/// Slices, arrays and vectors become one by themselves; the type is applied to their beginning then. Types whose bytes
/// reach below that place, and types that are applied elsewhere, need [`Memory::at`].
///
/// # Example
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, Memory, Range};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let column = types.vector(3, 1, 4, double)?;
/// let column = Engine::new().commit(&types.finish(column)?);
///
/// let matrix = [[0.0, 0.1, 0.2, 0.3], [1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3]];
/// let mut packed = [0.0; 3];
/// column.pack(&matrix, Range::elements(1), &mut packed)?;
/// assert_eq!(packed, [0.0, 1.0, 2.0]);
/// // The second column begins at the second element.
/// column.pack(Memory::at(matrix.as_flattened(), 1), Range::elements(1), &mut packed)?;
/// assert_eq!(packed, [0.1, 1.1, 2.1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// Padding of records is not initialised.
    bytes: &'a [MaybeUninit<u8>],
    /// Bytes from the beginning of the slice to the place that the type is applied to.
    origin: usize,
}

/// How far a slice reaches around the place that a type is applied to.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// Bytes of the slice.
    pub(crate) length: usize,
    /// Bytes of it before that place, which lies outside of the slice if they are more than `length`.
    pub(crate) origin: usize,
}

impl<'a> Memory<'a> {
    /// The type is applied to the address of `slice[origin]`, which may be the end of the slice.
    ///
    /// See [`Memory`] for an example.
    #[inline]
    pub fn at<T: NoUninit>(slice: &'a [T], origin: usize) -> Memory<'a> {
        Memory::of_any(slice, origin)
    }

    /// Memory whose bytes may be not initialised: the caller ensures that a call reads those that are.
    #[inline]
    pub(crate) fn of_any<T>(slice: &'a [T], origin: usize) -> Memory<'a> {
        // SAFETY: these are the bytes of the slice, which is borrowed for as long, and a `MaybeUninit` may have any byte.
        let bytes = unsafe { slice::from_raw_parts(slice.as_ptr().cast(), size_of_val(slice)) };
        Memory { bytes, origin: origin.saturating_mul(size_of::<T>()) }
    }

    /// The address that the type is applied to; only of use if it lies in the slice.
    #[inline]
    pub(crate) fn address(&self) -> *const u8 {
        self.bytes.as_ptr().cast::<u8>().wrapping_add(self.origin)
    }

    #[inline]
    pub(crate) fn room(&self) -> Room {
        Room { length: self.bytes.len(), origin: self.origin }
    }
}

impl<'a, T: NoUninit> From<&'a [T]> for Memory<'a> {
    #[inline]
    fn from(slice: &'a [T]) -> Memory<'a> {
        Memory::at(slice, 0)
    }
}

impl<'a, T: NoUninit, const N: usize> From<&'a [T; N]> for Memory<'a> {
    #[inline]
    fn from(array: &'a [T; N]) -> Memory<'a> {
        Memory::at(array, 0)
    }
}

impl<'a, T: NoUninit> From<&'a Vec<T>> for Memory<'a> {
    #[inline]
    fn from(vector: &'a Vec<T>) -> Memory<'a> {
        Memory::at(vector, 0)
    }
}

/// Memory that a call writes elements to: the counterpart of [`Memory`].
///
/// # Example
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, MemoryMut, Range};
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let backwards = types.vector(3, 1, -2, int)?;
/// let backwards = Engine::new().commit(&types.finish(backwards)?);
/// let mut memory = [0; 5];
/// backwards.unpack(&[1, 2, 3], Range::elements(1), MemoryMut::at(&mut memory, 4))?;
/// assert_eq!(memory, [3, 0, 2, 0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryMut<'a> {
    /// Calls write bytes alone that are values of the slice.
    bytes: &'a mut [MaybeUninit<u8>],
    /// Bytes from the beginning of the slice to the place that the type is applied to.
    origin: usize,
}

impl<'a> MemoryMut<'a> {
    /// The type is applied to the address of `slice[origin]`, which may be the end of the slice.
    ///
    /// See [`MemoryMut`] for an example.
    #[inline]
    pub fn at<T: Pod>(slice: &'a mut [T], origin: usize) -> MemoryMut<'a> {
        MemoryMut::of_any(slice, origin)
    }

    /// Memory where not all bytes are values: the caller ensures that a call writes those that are, and reads those that are
    /// initialised.
    #[inline]
    pub(crate) fn of_any<T>(slice: &'a mut [T], origin: usize) -> MemoryMut<'a> {
        let length = size_of_val(slice);
        // SAFETY: these are the bytes of the slice, which is borrowed alone for as long, and a `MaybeUninit` may have any byte. Nothing
        // writes one that is not initialised: the private field only gives the address, and calls write values.
        let bytes = unsafe { slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), length) };
        MemoryMut { bytes, origin: origin.saturating_mul(size_of::<T>()) }
    }

    /// The address that the type is applied to; only of use if it lies in the slice.
    #[inline]
    pub(crate) fn address(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().cast::<u8>().wrapping_add(self.origin)
    }

    #[inline]
    pub(crate) fn room(&self) -> Room {
        Room { length: self.bytes.len(), origin: self.origin }
    }
}

impl<'a, T: Pod> From<&'a mut [T]> for MemoryMut<'a> {
    #[inline]
    fn from(slice: &'a mut [T]) -> MemoryMut<'a> {
        MemoryMut::at(slice, 0)
    }
}

impl<'a, T: Pod, const N: usize> From<&'a mut [T; N]> for MemoryMut<'a> {
    #[inline]
    fn from(array: &'a mut [T; N]) -> MemoryMut<'a> {
        MemoryMut::at(array, 0)
    }
}

impl<'a, T: Pod> From<&'a mut Vec<T>> for MemoryMut<'a> {
    #[inline]
    fn from(vector: &'a mut Vec<T>) -> MemoryMut<'a> {
        MemoryMut::at(vector, 0)
    }
}
