//! Structs with padding, and the datatypes that leave it out.

use crate::committed::Committed;
use crate::error::PackError;
use crate::memory::{Memory, MemoryMut};
use crate::range::Range;
use bytemuck::{NoUninit, Pod};
use dtc_compiler::datatype::{Constructor, Datatype, DatatypeError, Predefined};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use thiserror::Error;

/// A number, an array of records, or a struct whose fields are records: its datatype has the bytes of all fields, and no padding.
///
/// `#[derive(Record)]` implements it for a struct without parameters. The packed order is that of the fields in the source, also
/// where Rust orders them otherwise in memory (without `#[repr(C)]`). `bool`, `char`, enums and references are no records: not
/// all bytes are values of theirs, so an unpack could make a value that Rust does not have. A number takes their place.
///
/// [`Committed::of`] packs and unpacks slices of records.
///
/// # Safety
///
/// 1. [`Record::datatype`] has the extent `size_of::<Self>()`, bytes inside of it, and none twice.
/// 2. Every value has initialised bytes where the datatype has some.
/// 3. Any bytes there make a value of the type out of one.
///
/// # Example
///
/// ```
/// use dtc_runtime::{Engine, Range, Record};
///
/// #[derive(Clone, Copy, Debug, Default, PartialEq, Record)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     charge: i32, // and 4 bytes of padding
/// }
///
/// let particle = Particle::datatype()?;
/// assert_eq!((particle.size(), particle.extent()), (28, 32));
/// let particle = Engine::new().commit(&particle).of::<Particle>()?;
///
/// let particles = [1, 2, 3].map(|charge| Particle { position: [0.5; 3], charge });
/// let mut packed = [0u8; 3 * 28];
/// particle.pack(&particles, Range::elements(3), &mut packed)?;
/// let mut others = [Particle::default(); 3];
/// particle.unpack(&packed, Range::elements(3), &mut others)?;
/// assert_eq!(others, particles);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Not every byte is a `bool`:
///
/// ```compile_fail,E0277
/// #[derive(dtc_runtime::Record)]
/// struct Cell {
///     is_wall: bool,
/// }
/// ```
pub unsafe trait Record: Sized + 'static {
    /// The datatype of one record.
    ///
    /// # Errors
    ///
    /// An array has more elements than MPI counts.
    ///
    /// See [`Record`] for an example.
    fn datatype() -> Result<Datatype, DatatypeError>;
}

pub use dtc_derive::Record;

/// Numbers, and the predefined types of their size and kind.
macro_rules! numbers {
    ($($number:ty => $predefined:ident),* $(,)?) => {$(
        // SAFETY: the predefined type has the bytes of the number and no others (clause 1). All are initialised (clause 2), and all
        // values of them are numbers (clause 3).
        unsafe impl Record for $number {
            fn datatype() -> Result<Datatype, DatatypeError> {
                Ok(Datatype::named(Predefined::$predefined))
            }
        }
    )*};
}

numbers! {
    i8 => INT8_T, i16 => INT16_T, i32 => INT32_T, i64 => INT64_T,
    u8 => UINT8_T, u16 => UINT16_T, u32 => UINT32_T, u64 => UINT64_T,
    f32 => FLOAT, f64 => DOUBLE,
}

// SAFETY: as for the numbers of 64 bits, which these are on the machines that dtc runs on.
unsafe impl Record for isize {
    fn datatype() -> Result<Datatype, DatatypeError> {
        const { assert!(size_of::<isize>() == size_of::<i64>()) };
        i64::datatype()
    }
}

// SAFETY: as for `isize`.
unsafe impl Record for usize {
    fn datatype() -> Result<Datatype, DatatypeError> {
        const { assert!(size_of::<usize>() == size_of::<u64>()) };
        u64::datatype()
    }
}

// SAFETY: elements of an array are one size apart, which is the extent of their datatype (clause 1), and the other clauses hold for each.
unsafe impl<T: Record, const N: usize> Record for [T; N] {
    fn datatype() -> Result<Datatype, DatatypeError> {
        // More than MPI counts is less than none, which the constructor refuses.
        let count = i64::try_from(N).unwrap_or(-1);
        Datatype::new(Constructor::Contiguous { count }, [T::datatype()?], None)
    }
}

/// The datatype of a struct, from offsets and types of its fields: what `#[derive(Record)]` calls.
///
/// # Errors
///
/// As for [`Record::datatype`].
#[doc(hidden)]
pub fn of_fields<T>(fields: Vec<(usize, Datatype)>) -> Result<Datatype, DatatypeError> {
    // No struct is larger than `isize::MAX`.
    let displacements_bytes = fields.iter().map(|field| field.0 as i64).collect();
    let constructor = Constructor::Struct { blocklengths: vec![1; fields.len()].into(), displacements_bytes };
    let fields = Datatype::new(constructor, fields.into_iter().map(|field| field.1), None)?;
    Datatype::new(Constructor::Resized { lb: 0, extent: size_of::<T>() as i64 }, [fields], None)
}

/// Why slices of a record cannot be packed with a type.
///
/// ```
/// use dtc_runtime::{Engine, Record, RecordError, datatype::Datatype};
/// #[derive(Record)]
/// #[repr(C)]
/// struct CopyKernelSpec(f64, i32);
/// let bytes = Engine::new().commit(&"contiguous 16 byte".parse::<Datatype>()?);
/// let error = bytes.of::<CopyKernelSpec>().unwrap_err();
/// assert!(matches!(error, RecordError::Padding { byte: 12, size: 16, .. }));
/// # Ok::<(), dtc_runtime::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The record has no datatype.
    #[error(transparent)]
    Datatype(#[from] DatatypeError),
    /// The type has bytes of the padding.
    #[error("type: expected bytes of the fields of {record}, found byte {byte} of its {size}, which is padding")]
    Padding {
        /// The name of the record.
        record: &'static str,
        /// The first such byte of a record.
        byte: u64,
        /// Bytes of a record.
        size: usize,
    },
    /// The type is too irregular to find out in a few milliseconds.
    #[error("type: expected one made of whole elements of {record}, found one too irregular to compare")]
    Irregular {
        /// The name of the record.
        record: &'static str,
    },
}

/// A committed type for slices of a record: [`Committed::of`] makes one.
///
/// See [`Record`] for an example.
pub struct Records<T> {
    committed: Committed,
    /// Records are written and read, and none is kept.
    of: PhantomData<fn(T) -> T>,
}

impl<T> Clone for Records<T> {
    fn clone(&self) -> Records<T> {
        Records { committed: self.committed.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Records<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Records").field(&type_name::<T>()).field(&self.committed).finish()
    }
}

impl Committed {
    /// The type for slices of a record, which may have padding: any type that is made of the record's datatype, or of fields of it.
    ///
    /// # Errors
    ///
    /// A [`RecordError`] when the type, in an array of records, has bytes of their padding.
    ///
    /// ```
    /// use dtc_runtime::datatype::TypeBuilder;
    /// use dtc_runtime::{Engine, Range, Record, datatype::Constructor};
    /// #[derive(Clone, Copy, Record)]
    /// #[repr(C)]
    /// struct Cell {
    ///     pressure: f64,
    ///     phase: u8, // and 7 bytes of padding
    /// }
    /// // A column of a 3 x 4 matrix of cells.
    /// let column = Constructor::Vector { count: 3, blocklength: 1, stride: 4 };
    /// let column = dtc_runtime::datatype::Datatype::new(column, [Cell::datatype()?], None)?;
    /// let column = Engine::new().commit(&column).of::<Cell>()?;
    /// let matrix: Vec<Cell> = (0..12).map(|phase| Cell { pressure: 1.0, phase }).collect();
    /// let mut packed = [0u8; 27];
    /// column.pack(&matrix[1..], Range::elements(1), &mut packed)?;
    /// assert_eq!([packed[8], packed[17], packed[26]], [1, 5, 9]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of<T: Record>(&self) -> Result<Records<T>, RecordError> {
        let (datatype, size) = (T::datatype()?, size_of::<T>());
        if datatype.size() != size as u64 {
            let record = type_name::<T>();
            let fields = self.engine().commit(&datatype).layout().residues(size as u64);
            let (Some(fields), Some(found)) = (fields, self.layout().residues(size as u64)) else {
                return Err(RecordError::Irregular { record });
            };
            if let Some(byte) = found.first_outside(&fields) {
                return Err(RecordError::Padding { record, byte, size });
            }
        }
        Ok(Records { committed: self.clone(), of: PhantomData })
    }
}

impl<T: Record> Records<T> {
    /// Packs all bytes of a range, as [`Committed::pack`] does. The type is applied to the beginning of `source`.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack`].
    ///
    /// See [`Record`] for an example.
    #[inline]
    pub fn pack<U: Pod>(&self, source: &[T], range: Range, packed: &mut [U]) -> Result<usize, PackError> {
        // The bytes of the type are those of fields, in every element at every record, as `of` has found: all are initialised (clause 2
        // of `Record`). Microkernels read padding between them, too, and write none of it.
        self.committed.pack(Memory::of_any(source, 0), range, packed)
    }

    /// Unpacks all bytes of a range, as [`Committed::unpack`] does. The type is applied to the beginning of `destination`.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack`].
    ///
    /// See [`Record`] for an example.
    #[inline]
    pub fn unpack<U: NoUninit>(&self, packed: &[U], range: Range, destination: &mut [T]) -> Result<usize, PackError> {
        // The bytes of the type are those of fields, where any bytes make a value (clause 3 of `Record`). No other is written.
        self.committed.unpack(packed, range, MemoryMut::of_any(destination, 0))
    }

    /// The type itself.
    ///
    /// ```
    /// use dtc_runtime::{Engine, Record};
    /// let numbers = Engine::new().commit(&f64::datatype()?).of::<f64>()?;
    /// assert_eq!(numbers.committed().packed_size(10)?, 80);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn committed(&self) -> &Committed {
        &self.committed
    }
}
