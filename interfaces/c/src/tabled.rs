//! Types with index tables: the displacements of some axes come with each call.

use crate::arguments;
use crate::engine::dtc_engine;
use crate::handle::{self, Handle, Tag};
use crate::status::{
    DTC_ERROR_ARGUMENT, DTC_ERROR_OPERATION, DTC_ERROR_RANGE, DTC_ERROR_TYPE, Failure, Outcome, answer,
};
use crate::transfer::{DTC_MEMORY_HOST, DTC_MEMORY_UNKNOWN, dtc_transfer, kind_of_memory, ordinal};
use dtc_compiler::datatype::{TabledDatatype, json};
use dtc_runtime::cuda::MemoryKind;
use dtc_runtime::{CommittedTabled, Endpoint, Engine, IndexTable, TabledElements, TabledError, TabledTransfer};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Entries below 0, and addresses that are 0, are skipped: neither side is touched for them. Tables in host memory are refused for them
/// without this; those that a device alone reads are skipped in any case.
pub const DTC_TABLED_SKIP: i64 = 1;

/// A type with index tables, ready to be moved.
pub struct dtc_tabled_type {
    _private: [u8; 0],
}

/// What a type with index tables is to this library.
pub(crate) struct Tabled {
    engine: Engine,
    committed: CommittedTabled,
}

impl Handle for dtc_tabled_type {
    type Inside = Tabled;
    const TAG: Tag = Tag::TABLED;
    const NAME: &'static str = "dtc_tabled_type";
}

/// An index table of a call: indices of places, or addresses.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_index_table {
    /// The first entry, aligned to `width`.
    pub entries: *const c_void,
    /// How many entries.
    pub length: i64,
    /// Bytes of an entry, which is signed: 4 or 8. Addresses have 8.
    pub width: i32,
    /// Where the entries lie: `DTC_MEMORY_...`. Those in host memory are checked before a byte moves. The library asks CUDA for
    /// `DTC_MEMORY_UNKNOWN`, if the process uses it.
    pub memory: i32,
    /// The GPU of the entries, for `DTC_MEMORY_DEVICE`.
    pub memory_device: i32,
    /// 0; anything else is refused, so that a later library can give it a meaning.
    pub reserved: i32,
}

/// Elements of a type with index tables, the tables of the call, and the first of the packed bytes that is moved.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_tabled_elements {
    /// The type.
    pub r#type: *const dtc_tabled_type,
    /// The address that the type is applied to. A source is only read.
    pub memory: *mut c_void,
    /// The tables, as many as the type has.
    pub tables: *const dtc_index_table,
    /// How many.
    pub table_count: i64,
    /// The first packed byte.
    pub offset: i64,
    /// 0 or `DTC_TABLED_SKIP`.
    pub flags: i64,
    /// Zeros, in which the kernel notes the first entry beyond the places of its table that it meets; null for no notes. The GPU reaches it, and it
    /// is read when the work is done. Calls without a GPU leave it as it is: they refuse such an entry. Null in the destination of a copy: that of
    /// the source serves the tables of both.
    pub report: *mut dtc_index_fault,
}

/// An entry beyond the places of its table, noted by a kernel. No such entry is followed, noted or not.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_index_fault {
    /// One more than the number of the table, or 0: all entries that were read have a place, or are skipped. In a copy, the tables of the destination
    /// follow those of the source.
    pub table: i64,
    /// The place of the entry in the table.
    pub index: i64,
    /// The entry.
    pub entry: i64,
}

impl From<TabledError> for Failure {
    fn from(error: TabledError) -> Failure {
        match error {
            TabledError::Call(error) => error.into(),
            TabledError::Transfer(error) => error.into(),
            TabledError::Cuda(error) => error.into(),
            TabledError::Accumulate(error) => error.into(),
            TabledError::Apart { .. } => Failure::new(DTC_ERROR_OPERATION, error.to_string()),
            TabledError::Sizes { .. } => Failure::new(DTC_ERROR_RANGE, error.to_string()),
            TabledError::Item { item, error } => {
                let Failure { status, message } = Failure::from(*error);
                Failure::new(status, format!("transfer {item}: {message}"))
            }
            others => Failure::new(DTC_ERROR_ARGUMENT, others.to_string()),
        }
    }
}

/// Makes a type with index tables from a description: the short notation, or JSON.
///
/// `table NUMBER PLACES MOST PITCH (type)` has a copy of the type at `entry * PITCH` for each entry of the table of that number, which are below
/// `PLACES` and at most `MOST`. `addresses NUMBER MOST ALIGNMENT (type)` has one at each address in the table.
///
/// `description`: the text, with a byte 0 at its end.
/// `type`: receives the type, to be released by `dtc_tabled_release`.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: a pointer is null.
/// `DTC_ERROR_TYPE`: the description is wrong; the message says where.
///
/// # Safety
///
/// `engine` is null or an engine, `description` is null or a string, and `type` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_create(
    engine: *const dtc_engine,
    description: *const c_char,
    r#type: *mut *mut dtc_tabled_type,
) -> c_int {
    answer(|| {
        arguments::check_pointer("type", r#type)?;
        arguments::check_pointer("description", description)?;
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `description` is not null (checked above), so it is a string (contract of this function).
        let text = unsafe { CStr::from_ptr(description) };
        let wrong = |error: &dyn std::fmt::Display| Failure::new(DTC_ERROR_TYPE, format!("description: {error}"));
        let text = text.to_str().map_err(|error| wrong(&error))?;
        let datatype: TabledDatatype = if text.trim_start().starts_with('{') {
            json::read_tabled(text).map_err(|error| wrong(&error))?.datatype
        } else {
            text.parse().map_err(|error| wrong(&error))?
        };
        let made = handle::share(Tabled { committed: engine.commit_tabled(&datatype), engine: engine.clone() });
        // SAFETY: `type` is aligned and not null (checked above), so it is writable (contract of this function).
        unsafe { arguments::give("type", r#type, made) }
    })
}

/// Releases a type. Calls that were enqueued go on.
///
/// `DTC_ERROR_HANDLE`: not such a type.
///
/// # Safety
///
/// `type` is null or a type with index tables that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_release(r#type: *mut dtc_tabled_type) -> c_int {
    // SAFETY: `type` is null or a live handle, whose reference is given back (contract of this function).
    answer(|| unsafe { handle::release(r#type.cast_const()) })
}

/// Says how many packed bytes a call has whose tables are so long.
///
/// `lengths`, `count`: entries of each table.
/// `bytes`: receives how many.
///
/// `DTC_ERROR_HANDLE`: not such a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, a length negative or above the bound of the type, or `count` not what the type has.
///
/// # Safety
///
/// `type` is null or a type with index tables, `lengths` leads to as many, and `bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_size(
    r#type: *const dtc_tabled_type,
    lengths: *const i64,
    count: i64,
    bytes: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let tabled = unsafe { handle::borrow(r#type)? };
        // SAFETY: `lengths` has `count` entries, which no thread writes during the call (contract of this function).
        let lengths = unsafe { arguments::list("lengths", lengths, count)? };
        let lengths: Outcome<Vec<u64>> = lengths.iter().map(|&length| arguments::length("a length", length)).collect();
        let size = tabled.committed.packed_size(&lengths?)?;
        // SAFETY: `bytes` is null or writable (contract of this function).
        unsafe { arguments::give("bytes", bytes, size as i64) }
    })
}

/// Has the kernels of whole packs and unpacks on a GPU, compiled now if no store has them, under any policy.
///
/// `device`: the GPU.
///
/// `DTC_ERROR_HANDLE`: not such a type.
/// `DTC_ERROR_ARGUMENT`: `device` is negative.
/// `DTC_ERROR_DEVICE`: CUDA is missing or failed, or a kernel cannot be compiled.
///
/// # Safety
///
/// `type` is null or a type with index tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_prepare(r#type: *const dtc_tabled_type, device: i32) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let tabled = unsafe { handle::borrow(r#type)? };
        Ok(tabled.committed.prepare(&tabled.engine.gpu(ordinal("device", device)?)?)?)
    })
}

/// The tables of one side of a call.
///
/// # Safety
///
/// `elements.tables` leads to as many, and each to its entries if they lie in host memory.
unsafe fn tables<'a>(elements: &dtc_tabled_elements) -> Outcome<Vec<IndexTable<'a>>> {
    // SAFETY: `elements.tables` has as many entries, which no thread writes during the call (contract of this function).
    let tables = unsafe { arguments::list("tables", elements.tables, elements.table_count)? };
    let table = |table: &dtc_index_table| {
        let dtc_index_table { entries, length, width, memory, memory_device, reserved } = *table;
        if reserved != 0 {
            return Err(Failure::argument("dtc_index_table.reserved", 0, reserved));
        }
        let wide = match width {
            4 => false,
            8 => true,
            found => return Err(Failure::argument("dtc_index_table.width", "4 or 8", found)),
        };
        let length = arguments::length("dtc_index_table.length", length)?;
        let kind = match memory {
            DTC_MEMORY_UNKNOWN => MemoryKind::of(entries.cast())?,
            DTC_MEMORY_HOST => MemoryKind::Pageable,
            named => {
                kind_of_memory(("dtc_index_table", "memory"), named, memory_device)?.unwrap_or(MemoryKind::Pageable)
            }
        };
        if kind != MemoryKind::Pageable {
            return Ok(IndexTable::at(Endpoint::of_kind(kind, entries.cast::<u8>()), wide, length));
        }
        // SAFETY: the entries lie in host memory, and no thread writes them during the call (contract of this function).
        Ok(unsafe {
            if wide {
                IndexTable::from(arguments::list("dtc_index_table.entries", entries.cast::<i64>(), length as i64)?)
            } else {
                IndexTable::from(arguments::list("dtc_index_table.entries", entries.cast::<i32>(), length as i64)?)
            }
        })
    };
    tables.iter().map(table).collect()
}

/// One side of a call, read and checked.
pub(crate) struct Side<'a> {
    tabled: &'a Tabled,
    elements: dtc_tabled_elements,
    tables: Vec<IndexTable<'a>>,
    bytes: std::ops::Range<u64>,
}

impl<'a> Side<'a> {
    /// # Safety
    ///
    /// `elements` is null or readable, its type null or a type, and its tables as for [`tables`]; all live for `'a`.
    pub(crate) unsafe fn read(name: &str, elements: *const dtc_tabled_elements, bytes: i64) -> Outcome<Side<'a>> {
        // SAFETY: the pointer is null or readable (contract of this function).
        let elements = unsafe { elements.as_ref() }.copied();
        let elements = elements.ok_or_else(|| Failure::argument(name, "a pointer to dtc_tabled_elements", "null"))?;
        // SAFETY: the type is null or one that the caller keeps for `'a`, and so are the tables (contract of this function).
        let (tabled, tables) = unsafe { (handle::borrow(elements.r#type)?, tables(&elements)?) };
        if !matches!(elements.flags, 0 | DTC_TABLED_SKIP) {
            return Err(Failure::argument("dtc_tabled_elements.flags", "0 or DTC_TABLED_SKIP", elements.flags));
        }
        let first = arguments::length("dtc_tabled_elements.offset", elements.offset)?;
        let bytes = first..first.saturating_add(arguments::length("bytes", bytes)?);
        Ok(Side { tabled, elements, tables, bytes })
    }

    /// The elements, in memory of a kind if the caller said one.
    pub(crate) fn at(&self, kind: Option<MemoryKind>) -> TabledElements<'_> {
        let memory = Endpoint::from(self.elements.memory).with_kind(kind);
        let elements = self.tabled.committed.at(memory, &self.tables).bytes(self.bytes.clone());
        if self.elements.flags == DTC_TABLED_SKIP { elements.skipping() } else { elements }
    }

    /// A transfer whose kernel notes a fault where these elements ask for it.
    pub(crate) fn reporting<'t>(&self, transfer: TabledTransfer<'t>) -> TabledTransfer<'t> {
        let report = self.elements.report;
        if report.is_null() { transfer } else { transfer.reporting(report.cast::<u8>()) }
    }

    /// Refuses a report in the destination of a copy.
    pub(crate) fn check_silent(&self) -> Outcome {
        let place = "dtc_tabled_elements.report";
        match self.elements.report.is_null() {
            true => Ok(()),
            false => Err(Failure::argument(place, "null in the destination of a copy", "a pointer")),
        }
    }

    /// Makes a call, or enqueues it.
    ///
    /// # Safety
    ///
    /// The contract of the transfer, until the work is done; the stream of `options` is one of the primary context of its device.
    pub(crate) unsafe fn run(&self, transfer: TabledTransfer<'_>, options: &dtc_transfer, done: *mut i64) -> Outcome {
        let transfer = self.reporting(transfer).on(options.multiprocessors()?);
        // SAFETY: the contract of this function.
        let bytes = unsafe {
            match options.stream(&self.tabled.engine)? {
                Some(stream) => transfer.enqueue(&stream)?,
                None => transfer.run()?,
            }
        };
        // SAFETY: `done` is null or writable (contract of this function).
        unsafe { arguments::offer("done", done, bytes as i64) }
    }
}

/// Packs bytes of elements whose type has index tables. On a GPU it is one launch, which a CUDA graph may capture; each replay then reads what
/// tables on the device hold.
///
/// `source`: the elements and their tables; read before the call returns.
/// `packed`: where the first of the packed bytes goes.
/// `bytes`: how many at most.
/// `done`: receives how many were moved; may be null.
/// `transfer`: where the bytes lie; null if the library shall find out.
///
/// `DTC_ERROR_HANDLE`: not such a type.
/// `DTC_ERROR_ARGUMENT`: a pointer is null, a number negative, a field unknown, or the tables do not fit the type: the message names table and entry.
/// `DTC_ERROR_RANGE`: an offset lies behind the packed bytes.
/// `DTC_ERROR_MEMORY`, `DTC_ERROR_DEVICE`: as for `dtc_pack`.
///
/// # Safety
///
/// Every byte that the tables lead to is readable, `packed` is writable for as many, and the two do not overlap; with
/// `DTC_TRANSFER_ENQUEUE` until the work is done. Tables have as many entries as they say. The stream is one of the primary context of its
/// device. `source` is null or readable and its type null or a type, `done` is null or writable, and `transfer` is null or leads to its size. A
/// report is null or writable for the device until the work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_pack(
    source: *const dtc_tabled_elements,
    packed: *mut c_void,
    bytes: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: `source` and its tables are readable, `transfer` is null or leads to its size, `done` is null or writable, and the bytes of
        // both sides are as `TabledTransfer` asks for, until the work is done (contract of this function).
        unsafe {
            let (side, options) = (Side::read("source", source, bytes)?, arguments::read(transfer)?);
            let [memory, other] = options.kinds()?;
            side.run(side.at(memory).pack(Endpoint::from(packed).with_kind(other)), &options, done)
        }
    })
}

/// Unpacks bytes to elements whose type has index tables. Where a place occurs twice in the tables, one of both wins.
///
/// `packed`: where the first of the packed bytes lies.
/// `bytes`: how many at most.
/// `destination`: the elements and their tables; read before the call returns.
/// `done`, `transfer`: as for `dtc_tabled_pack`, whose errors are those of this function.
///
/// # Safety
///
/// As for `dtc_tabled_pack`, with the packed bytes readable and the elements writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_unpack(
    packed: *const c_void,
    bytes: i64,
    destination: *const dtc_tabled_elements,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: as for `dtc_tabled_pack`.
        unsafe {
            let (side, options) = (Side::read("destination", destination, bytes)?, arguments::read(transfer)?);
            let [memory, other] = options.kinds()?;
            side.run(side.at(memory).unpack(Endpoint::from(packed).with_kind(other)), &options, done)
        }
    })
}

/// Copies elements to elements of another type, each with its own tables: packed bytes of the source from its offset on become packed bytes of
/// the destination from its own on.
///
/// `source`, `destination`: the elements and their tables; read before the call returns.
/// `bytes`: how many at most; both sides have as many.
/// `done`, `transfer`: as for `dtc_tabled_pack`; the packed side of `transfer` says where the destination lies.
///
/// Errors are those of `dtc_tabled_pack`, and `DTC_ERROR_RANGE` if the sides have different numbers of bytes.
///
/// # Safety
///
/// As for `dtc_tabled_pack`, with the elements of the destination writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_tabled_copy(
    source: *const dtc_tabled_elements,
    destination: *const dtc_tabled_elements,
    bytes: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: as for `dtc_tabled_pack`.
        unsafe {
            let from = Side::read("source", source, bytes)?;
            let to = Side::read("destination", destination, bytes)?;
            to.check_silent()?;
            let options = arguments::read(transfer)?;
            let [memory, other] = options.kinds()?;
            from.run(from.at(memory).copy_to(to.at(other)), &options, done)
        }
    })
}
