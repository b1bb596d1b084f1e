//! Memory of a GPU that other processes of this machine write to, and that of others, opened here.
//!
//! Others open a piece at its first use and keep it open, which takes a millisecond; freeing it meanwhile is undefined behaviour of CUDA. So
//! a piece stays until the process ends. Lengths are powers of two: all pieces together are at most twice as long as the longest, for each
//! exchange that runs at the same time.

use crate::staging::ENGINE;
use dtc::{DTC_EXPORT_BYTES, DTC_MEMORY_DEVICE, DTC_OK, dtc_memory};
use dtc_host::lock::{Lock, Locked};
use once_cell::race::OnceBox;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fewest bytes: what CUDA allocates for itself, so that no other memory is opened with a piece. And most: pieces stay.
const MIN_BYTES: i64 = 1 << 21;
const MAX_BYTES: i64 = 1 << 29;

/// GPUs with pieces.
const DEVICES: i32 = 16;

/// A piece of this process, for what others pack. It stays.
struct Piece {
    taken: AtomicBool,
    device: i32,
    bytes: i64,
    memory: *mut c_void,
    /// Counts those of this process.
    number: i64,
    /// What others open it by.
    name: [u8; DTC_EXPORT_BYTES as usize],
}

/// A piece, until it is dropped.
pub struct ReceiveBuffer(&'static Piece);

impl ReceiveBuffer {
    /// The GPU.
    pub fn device(&self) -> i32 {
        self.0.device
    }

    /// Where it is.
    pub fn memory(&self) -> *mut c_void {
        self.0.memory
    }

    /// Its number among those of this process, and what others open it by.
    pub fn name(&self) -> (i64, [u8; DTC_EXPORT_BYTES as usize]) {
        (self.0.number, self.0.name)
    }
}

impl Drop for ReceiveBuffer {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// Memory of another process, opened here.
struct Import {
    process: i64,
    /// That of the piece in its process.
    number: i64,
    device: i32,
    /// Null if it cannot be opened.
    memory: *mut c_void,
    opened: *mut dtc_memory,
}

/// All that this process has made and opened.
#[derive(Default)]
struct Pieces {
    own: Vec<&'static Piece>,
    imports: Vec<Import>,
    last_number: i64,
    /// A bit for each GPU whose memory could not be shared: not asked again.
    closed: u32,
}

// SAFETY: what the pointers lead to is used by whoever has taken it, and by the thread that has the lock.
unsafe impl Send for Pieces {}
// SAFETY: what a piece is stays; whether it is taken is atomic.
unsafe impl Sync for Piece {}

fn pieces() -> Locked<'static, Pieces> {
    static PIECES: OnceBox<Lock<Pieces>> = OnceBox::new();
    PIECES.get_or_init(|| Box::new(Lock::new(Pieces::default()))).lock()
}

/// Allocates a piece and shares it; none if that fails.
fn allocate(pieces: &mut Pieces, device: i32, bytes: i64) -> Option<ReceiveBuffer> {
    let length = u64::try_from(bytes.max(MIN_BYTES)).ok()?.next_power_of_two() as i64;
    let (mut memory, mut allocation) = (null_mut(), null_mut());
    let mut name = [0; DTC_EXPORT_BYTES as usize];
    let engine = ENGINE.load(Ordering::Acquire);
    // SAFETY: all are writable; the engine lives as long as calls are handled, and the allocation is this function's until it is shared.
    unsafe {
        if dtc::dtc_memory_allocate(engine, DTC_MEMORY_DEVICE, device, length, &mut memory, &mut allocation) != DTC_OK {
            return None;
        }
        if dtc::dtc_memory_export(allocation, name.as_mut_ptr().cast()) != DTC_OK {
            pieces.closed |= 1 << device;
            dtc::dtc_memory_free(allocation);
            return None;
        }
    }
    pieces.last_number += 1;
    let piece = Piece { taken: AtomicBool::new(true), device, bytes: length, memory, number: pieces.last_number, name };
    let piece: &'static Piece = Box::leak(Box::new(piece));
    pieces.own.push(piece);
    Some(ReceiveBuffer(piece))
}

/// Takes a piece of at least `bytes` bytes of a GPU; none if there is no memory, or if others cannot open it.
pub fn take(device: i32, bytes: i64) -> Option<ReceiveBuffer> {
    let mut pieces = pieces();
    if !(0..DEVICES).contains(&device) || pieces.closed >> device & 1 != 0 || bytes > MAX_BYTES {
        return None;
    }
    let fits = |piece: &&&Piece| !piece.taken.load(Ordering::Acquire) && piece.device == device && piece.bytes >= bytes;
    match pieces.own.iter().filter(fits).min_by_key(|piece| piece.bytes).copied() {
        Some(piece) => {
            piece.taken.store(true, Ordering::Relaxed);
            Some(ReceiveBuffer(piece))
        }
        None => allocate(&mut pieces, device, bytes),
    }
}

/// Memory of another process, opened for GPU `device` of this one at the first time, and open until the end; null if it cannot be opened.
/// `number` and `name` are those of a piece there.
pub fn import(process: i64, number: i64, name: &[u8; DTC_EXPORT_BYTES as usize], device: i32) -> *mut c_void {
    let mut pieces = pieces();
    let is_it = |import: &&Import| (import.process, import.number, import.device) == (process, number, device);
    if let Some(import) = pieces.imports.iter().find(is_it) {
        return import.memory;
    }
    let (mut memory, mut opened) = (null_mut(), null_mut());
    let engine = ENGINE.load(Ordering::Acquire);
    // SAFETY: both are writable, the name has its length, and the engine lives as long as calls are handled.
    if unsafe { dtc::dtc_memory_import(engine, device, name.as_ptr().cast(), &mut memory, &mut opened) } != DTC_OK {
        memory = null_mut();
    }
    pieces.imports.push(Import { process, number, device, memory, opened });
    memory
}

/// At the end: closes what was opened.
pub fn close_imports() {
    for import in std::mem::take(&mut pieces().imports) {
        if !import.memory.is_null() {
            // SAFETY: opened above, and not used any more.
            unsafe { dtc::dtc_memory_free(import.opened) };
        }
    }
}
