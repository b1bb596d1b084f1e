//! The memory that a safe call applies a type to.

use bytemuck::{NoUninit, Pod};

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
    bytes: &'a [u8],
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
        Memory { bytes: bytemuck::cast_slice(slice), origin: origin.saturating_mul(size_of::<T>()) }
    }

    /// The address that the type is applied to; only of use if it lies in the slice.
    #[inline]
    pub(crate) fn address(&self) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(self.origin)
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
    bytes: &'a mut [u8],
    /// Bytes from the beginning of the slice to the place that the type is applied to.
    origin: usize,
}

impl<'a> MemoryMut<'a> {
    /// The type is applied to the address of `slice[origin]`, which may be the end of the slice.
    ///
    /// See [`MemoryMut`] for an example.
    #[inline]
    pub fn at<T: Pod>(slice: &'a mut [T], origin: usize) -> MemoryMut<'a> {
        MemoryMut { bytes: bytemuck::cast_slice_mut(slice), origin: origin.saturating_mul(size_of::<T>()) }
    }

    /// The address that the type is applied to; only of use if it lies in the slice.
    #[inline]
    pub(crate) fn address(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().wrapping_add(self.origin)
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
