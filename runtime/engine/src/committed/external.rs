//! Packing to and unpacking from `external32`.

use super::check::check_packed;
use crate::committed::Committed;
use crate::cpu::Addresses;
use crate::error::{ExternalError, PackError};
use crate::memory::{Memory, MemoryMut, Room};
use crate::piece::{Buffer, piece_end};
use crate::range::Range;
use dtc_compiler::datatype::Predefined;
use dtc_compiler::external32::{Bytes, Conversion, ConversionRun, Cursor};
use dtc_compiler::plan::Direction;
use dtc_microkernels::external32::{Blocks, ConvertFn, drop_excess, first_misfit, select_convert};

/// Least length of a run that is converted in place, in bytes. Shorter runs are packed first, so that one call converts many.
const IN_PLACE: u64 = 1024;

impl Committed {
    /// Bytes of a count of elements in `external32`.
    ///
    /// # Errors
    ///
    /// [`PackError::Count`] when their packed bytes do not fit 64 bits; there are never more in `external32`.
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 5.3 (`MPI_Pack_external_size`), 14.5.2.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let long = types.named(Predefined::LONG);
    /// let long = dtc_runtime::Engine::new().commit(&types.finish(long)?);
    /// assert_eq!((long.packed_size(3)?, long.packed_external_size(3)?), (24, 12));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn packed_external_size(&self, count: u64) -> Result<usize, PackError> {
        self.packed_size(count)?;
        Ok((self.external32().size() * count) as usize)
    }

    /// Packs all bytes of a range in `external32`. Returns how many bytes were written. The bytes of the range are those of
    /// `external32`; [`Range::at_most`] and [`Range::bytes`] name a part.
    ///
    /// The range may cut values anywhere. Integers and floats become big-endian; `LONG`, `UNSIGNED_LONG` and `WCHAR` become
    /// shorter, and a `LONG_DOUBLE` becomes a binary128.
    ///
    /// # Errors
    ///
    /// [`ExternalError::Pack`] for what [`Committed::pack`] refuses; nothing is written then. [`ExternalError::Value`] for a
    /// value that does not fit: everything is written, and of such values the least significant bytes.
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 5.3 (`MPI_Pack_external`), 14.5.2.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(2, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let memory: Vec<u8> = [0x0102_0304i32, 0, 5].iter().flat_map(|int| int.to_ne_bytes()).collect();
    /// let mut packed = [0; 6];
    /// assert_eq!(every_other.pack_external(&memory, Range::elements(1).bytes(2..), &mut packed)?, 6);
    /// assert_eq!(packed, [3, 4, 0, 0, 0, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pack_external<'m>(
        &self,
        source: impl Into<Memory<'m>>,
        range: Range,
        packed: &mut [u8],
    ) -> Result<usize, ExternalError> {
        let source: Memory<'m> = source.into();
        let range = check_packed(self.check_external(source.room(), range)?, packed.len())?;
        let addresses = Addresses { memory: source.address().cast_mut(), packed: packed.as_mut_ptr() };
        // SAFETY: `check_external` found every byte of the elements inside `source`, and `check_packed` the range inside
        // `packed`. The slices cannot overlap, and `source` is only read.
        unsafe { self.convert::<true>(addresses, range)? };
        Ok(range.length() as usize)
    }

    /// Unpacks all bytes of a range in `external32` from `packed`. Returns how many bytes were read. Writes bytes of the type
    /// map and no others.
    ///
    /// The range may cut values anywhere: of such a value the bytes outside the range are as they would be packed from memory,
    /// so ranges may come in any order, but those that share a value not at the same time. A `LONG_DOUBLE` of more bits than
    /// memory has is rounded to nearest; where the range cuts it, the bits are dropped.
    ///
    /// # Errors
    ///
    /// As for [`Committed::unpack`].
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 5.3 (`MPI_Unpack_external`), 14.5.2.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let long = types.named(Predefined::LONG);
    /// let long = dtc_runtime::Engine::new().commit(&types.finish(long)?);
    /// let mut memory = [0; 8];
    /// assert_eq!(long.unpack_external(&[0xff, 0xff, 0xff, 0xfe], Range::elements(1), &mut memory)?, 4);
    /// assert_eq!(i64::from_ne_bytes(memory), -2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unpack_external<'m>(
        &self,
        packed: &[u8],
        range: Range,
        destination: impl Into<MemoryMut<'m>>,
    ) -> Result<usize, PackError> {
        let mut destination: MemoryMut<'m> = destination.into();
        let range = check_packed(self.check_external(destination.room(), range)?, packed.len())?;
        let addresses = Addresses { memory: destination.address(), packed: packed.as_ptr().cast_mut() };
        // SAFETY: `check_external` found every byte of the elements inside `destination`, and `check_packed` the range inside
        // `packed`. The slices cannot overlap, and `packed` is only read.
        let converted = unsafe { self.convert::<false>(addresses, range) };
        debug_assert_eq!(converted, Ok(()), "memory represents every value");
        Ok(range.length() as usize)
    }

    /// The bytes of `external32` that a safe call moves; an error if it must not.
    fn check_external(&self, room: Room, range: Range) -> Result<Range, PackError> {
        self.check_fragment(room, range, self.packed_external_size(range.count())?)
    }

    /// A range, cut to the bytes of its elements in `external32`.
    pub(crate) fn exact_external(&self, range: Range) -> Range {
        range.within(range.count().wrapping_mul(self.external32().size()))
    }

    /// Converts the bytes of a range, which ends with those of `external32` or before. An error names the first value that does not
    /// fit.
    ///
    /// # Safety
    ///
    /// Clauses 1 to 4 and 6 of the contract of [`Transfer`](crate::Transfer), on memory of the host.
    pub(crate) unsafe fn convert<const PACK: bool>(
        &self,
        addresses: Addresses,
        range: Range,
    ) -> Result<(), ExternalError> {
        let external = self.external32();
        let direction = if PACK { Direction::Pack } else { Direction::Unpack };
        if range.length() == 0 || external.is_bytes() {
            // SAFETY: where `external32` has the bytes of memory, both ranges mean the same.
            unsafe { self.some::<PACK>(addresses, range) };
            self.record(direction, range.length());
            return Ok(());
        }
        self.count_use();
        self.record(direction, range.length());
        let (count, offset) = (range.count(), range.offset());
        let end = offset + range.length();
        // Where the value begins that the end cuts, or that comes after it.
        let last = external.cursor(count, end).0.packed();
        let (cursor, skipped) = external.cursor(count, offset);
        let convert = select_convert::<PACK>(self.cached().level());
        let position = offset;
        let mut call = Converter::<PACK> { committed: self, addresses, range, convert, cursor, position, misfit: None };
        // SAFETY: the parts are those of the range.
        unsafe {
            if skipped > 0 {
                call.part(skipped, end);
            }
            call.pieces(last);
            if call.position < end {
                call.part(0, end);
            }
        }
        call.misfit.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// A call on its way.
struct Converter<'a, const PACK: bool> {
    committed: &'a Committed,
    addresses: Addresses,
    /// Those of the bytes in `external32` that the packed side has.
    range: Range,
    convert: ConvertFn,
    /// The next value.
    cursor: Cursor<'a>,
    /// Its byte in `external32`, or the one to begin with.
    position: u64,
    /// The first value that does not fit, and where it begins.
    misfit: Option<(u64, ExternalError)>,
}

impl<const PACK: bool> Converter<'_, PACK> {
    /// Where the next byte of `external32` lies.
    fn external(&self) -> *mut u8 {
        self.addresses.packed.wrapping_add((self.position - self.range.offset()) as usize)
    }

    /// `length` packed bytes of the elements, from one on.
    fn packed(&self, first: u64, length: u64) -> Range {
        Range::elements(self.range.count()).fragment(first, length)
    }

    /// Converts whole values, up to the packed byte where the last one ends.
    ///
    /// # Safety
    ///
    /// As for [`Committed::convert`], for the values.
    unsafe fn pieces(&mut self, last: u64) {
        let cached = self.committed.cached();
        let mut buffer = Buffer::new();
        while self.cursor.packed() < last {
            let from = self.cursor.packed();
            let run = cached.run_at(from);
            let contiguous = run.bytes.min(last - from);
            // SAFETY: values before `last` are among those of the call, for which the contract of `convert` holds. A run has
            // memory as it would be packed, and a piece fits the buffer.
            unsafe {
                if contiguous >= IN_PLACE || contiguous == last - from {
                    self.values(self.addresses.memory.wrapping_offset(run.offset as isize), contiguous);
                    continue;
                }
                let bytes = piece_end(from, last, cached.shape.size, 1) - from;
                let (collected, piece) =
                    (Addresses { packed: buffer.start(), ..self.addresses }, self.packed(from, bytes));
                if PACK {
                    cached.run::<true>(collected, piece);
                }
                let converted = self.values(collected.packed, bytes);
                if !PACK {
                    cached.run::<false>(collected, self.packed(from, converted));
                }
            }
        }
    }

    /// Converts the whole values among the first `bytes` bytes of `packed`. Returns the bytes of those values.
    ///
    /// # Safety
    ///
    /// The bytes are readable and initialised in a pack, writable in an unpack, and so are those that they become.
    unsafe fn values(&mut self, packed: *mut u8, bytes: u64) -> u64 {
        let mut done = 0;
        loop {
            let at = packed.wrapping_add(done as usize);
            // Of many records, the values at one offset are converted together, then those at the next offset.
            if let Some(records) = self.cursor.records() {
                let count = records.count.min((bytes - done) / records.size.packed);
                if count > 1 {
                    for &(start, run) in records.runs {
                        // SAFETY: `count` records fit in the `bytes - done` bytes from `at` on, so the contract of `values`
                        // covers each run of each record, and what it becomes.
                        unsafe { self.blocks(at, start, run, count, records.size) };
                    }
                    self.cursor.advance_records(count, records.size);
                    self.position += count * records.size.external;
                    done += count * records.size.packed;
                    continue;
                }
            }
            let run = self.cursor.run();
            let size = run.conversion.packed_size();
            let values = run.values.min((bytes - done) / size);
            if values == 0 {
                return done;
            }
            // SAFETY: `values` values fit in the `bytes - done` bytes from `at` on, so the contract of `values` covers them, and
            // what they become.
            unsafe { self.blocks(at, Bytes::default(), ConversionRun { values, ..run }, 1, Bytes::default()) };
            self.cursor.advance(values);
            self.position += values * run.conversion.external_size();
            done += values * size;
        }
    }

    /// Converts `count` runs. The first begins `start` after `packed` and after the position, and each of the others a stride after
    /// the one before.
    ///
    /// # Safety
    ///
    /// As for [`Converter::values`], for the runs.
    unsafe fn blocks(&mut self, packed: *mut u8, start: Bytes, run: ConversionRun, count: u64, stride: Bytes) {
        let packed = packed.wrapping_add(start.packed as usize);
        let external = self.external().wrapping_add(start.external as usize);
        let (from, to) = if PACK { (packed, external) } else { (external, packed) };
        let (packed_stride, external_stride) = (stride.packed as usize, stride.external as usize);
        let (from_stride, to_stride) =
            if PACK { (packed_stride, external_stride) } else { (external_stride, packed_stride) };
        let blocks = Blocks { count: count as usize, values: run.values as usize, from_stride, to_stride };
        // SAFETY: the contract of `blocks` covers every run at `from` and at `to`. `convert` was selected for the level of the
        // cached, which the CPU has.
        if unsafe { (self.convert)(run.conversion, from, to, blocks) } {
            return;
        }
        for block in 0..blocks.count {
            let position = self.position + start.external + block as u64 * stride.external;
            let bytes = run.values * run.conversion.packed_size();
            // SAFETY: only a pack finds values that do not fit, and in a pack the `bytes` bytes of every run are readable and
            // initialised (contract of `values`).
            let values =
                unsafe { std::slice::from_raw_parts(packed.wrapping_add(block * packed_stride), bytes as usize) };
            self.report(run.conversion, position, values);
        }
    }

    /// Remembers the first value that does not fit, if one of these that begin at a byte of `external32` is it.
    #[cold]
    fn report(&mut self, conversion: Conversion, position: u64, values: &[u8]) {
        let element = match conversion {
            Conversion::Long => Predefined::LONG,
            Conversion::UnsignedLong => Predefined::UNSIGNED_LONG,
            _ => Predefined::WCHAR,
        };
        let Some((at, found)) = first_misfit(conversion, values) else { return };
        let position = position + at as u64 * conversion.external_size();
        if self.misfit.is_none_or(|(first, _)| position < first) {
            self.misfit = Some((position, ExternalError::Value { element, position, found }));
        }
    }

    /// Converts the part of the next value that begins with byte `skipped` of it and ends with the value, or before at the end of
    /// the call.
    ///
    /// # Safety
    ///
    /// As for [`Committed::convert`], for the value.
    unsafe fn part(&mut self, skipped: u64, end: u64) {
        let conversion = self.cursor.run().conversion;
        let (at, size) = (self.cursor.packed(), conversion.packed_size());
        let bytes = (conversion.external_size() - skipped).min(end - self.position);
        let within: std::ops::Range<usize> = skipped as usize..(skipped + bytes) as usize;
        let (cached, mut external) = (self.committed.cached(), [0; 16]);
        let mut buffer = Buffer::new();
        let (addresses, value) = (Addresses { packed: buffer.start(), ..self.addresses }, self.packed(at, size));
        let one = Blocks { count: 1, values: 1, from_stride: 0, to_stride: 0 };
        let (to_external, to_memory) =
            (select_convert::<true>(cached.level()), select_convert::<false>(cached.level()));
        // SAFETY: the contract of `convert` holds for the value. Packed it fits the buffer, and converted the array of 16 bytes.
        // The CPU has the level of the cached type, and `within` lies in the range of the packed side.
        unsafe {
            cached.run::<true>(addresses, value);
            let fits = to_external(conversion, addresses.packed, external.as_mut_ptr(), one);
            let part = &mut external[within];
            if PACK {
                part.as_ptr().copy_to_nonoverlapping(self.external(), part.len());
                if !fits {
                    self.report(
                        conversion,
                        self.position - skipped,
                        std::slice::from_raw_parts(addresses.packed, size as usize),
                    );
                }
            } else {
                self.external().copy_to_nonoverlapping(part.as_mut_ptr(), part.len());
                drop_excess(conversion, &mut external);
                to_memory(conversion, external.as_ptr(), addresses.packed, one);
                cached.run::<false>(addresses, value);
            }
        }
        self.position += bytes;
        self.cursor.advance(1);
    }
}
