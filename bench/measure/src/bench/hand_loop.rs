//! The hand-written loops of a type: shared objects that are opened in this process, so that they run on the same
//! addresses and pages as dtc and are timed by the same code.
#![expect(unsafe_code, reason = "compiled C is called")]

use crate::timing::sample;
use libloading::Library;
use std::ffi::{c_char, c_long};
use std::path::Path;

type Pack = unsafe extern "C" fn(memory: *const c_char, packed: *mut c_char, count: c_long);
type Unpack = unsafe extern "C" fn(memory: *mut c_char, packed: *const c_char, count: c_long);

/// The loops of one type, as one set of compiler flags leaves them.
pub struct HandLoop {
    /// Which flags: `loop` or `loop_o2`.
    pub kind: &'static str,
    pack: Pack,
    unpack: Unpack,
    shape: Shape,
    // The functions are its code.
    _library: Library,
}

/// What the C file says of its type, in bytes.
struct Shape {
    packed: c_long,
    extent: c_long,
    true_lower: c_long,
    true_upper: c_long,
}

/// Memory, where in it the type is applied, how often, and the packed bytes.
pub struct Transfer<'a> {
    /// The buffer.
    pub memory: &'a mut [u8],
    /// Where in it address 0 of the type is.
    pub origin: usize,
    /// Elements.
    pub count: u64,
    /// Exactly the packed bytes of `count` elements.
    pub packed: &'a mut [u8],
}

impl HandLoop {
    /// Opens the loops of a type, if they were built. The names of their symbols begin with `prefix`.
    pub fn open(library: &Path, prefix: &str, kind: &'static str) -> Result<Option<HandLoop>, String> {
        let path = std::path::absolute(library).map_err(|error| error.to_string())?;
        if !path.is_file() {
            return Ok(None);
        }
        let failed = |error: libloading::Error| format!("{kind} does not open: {error}");
        // SAFETY: what `hand-loop` prints has no initialisers, and defines these symbols with these types.
        unsafe {
            let library = Library::new(&path).map_err(failed)?;
            let number = |name: &str| {
                library.get::<*const c_long>(format!("{prefix}{name}")).map(|symbol| **symbol).map_err(failed)
            };
            let shape = Shape {
                packed: number("packed_bytes")?,
                extent: number("extent_bytes")?,
                true_lower: number("true_lower_bytes")?,
                true_upper: number("true_upper_bytes")?,
            };
            let pack = *library.get::<Pack>(format!("{prefix}pack")).map_err(failed)?;
            let unpack = *library.get::<Unpack>(format!("{prefix}unpack")).map_err(failed)?;
            Ok(Some(HandLoop { kind, pack, unpack, shape, _library: library }))
        }
    }

    /// Nanoseconds per call, over `calls` calls that pack or unpack.
    ///
    /// # Errors
    ///
    /// The transfer does not hold the elements as the loop's own constants describe them. No loop is called then.
    pub fn sample(&self, transfer: Transfer, pack: bool, calls: u64) -> Result<f64, String> {
        let Transfer { memory, origin, count, packed } = transfer;
        if !self.shape.fits(memory.len(), origin, count, packed.len()) {
            return Err(format!("{} describes another type: its bytes lie outside of the buffers", self.kind));
        }
        let (memory, packed) = (memory.as_mut_ptr().wrapping_add(origin).cast::<c_char>(), packed.as_mut_ptr().cast());
        let count = count as c_long;
        Ok(if pack {
            // SAFETY: the loop reads its elements from `memory` and writes their bytes to `packed`; `fits` found both inside
            // the slices, which are borrowed alone.
            sample(calls, || unsafe { (self.pack)(memory, packed, count) })
        } else {
            // SAFETY: the loop reads the bytes of its elements from `packed` and writes them to `memory`; `fits` found both
            // inside the slices, which are borrowed alone.
            sample(calls, || unsafe { (self.unpack)(memory, packed, count) })
        })
    }
}

impl Shape {
    fn fits(&self, memory: usize, origin: usize, count: u64, packed: usize) -> bool {
        let (count, origin) = (i128::from(count), origin as i128);
        if count * i128::from(self.packed) != packed as i128 || count > i128::from(c_long::MAX) {
            return false;
        }
        let reach = (count - 1).max(0) * i128::from(self.extent);
        packed == 0
            || origin + i128::from(self.true_lower) + reach.min(0) >= 0
                && origin + i128::from(self.true_upper) + reach.max(0) <= memory as i128
    }
}
