//! Types that the tests of the C interfaces build through each interface, and the expected results.

use crate::buffers::{POISON, expect_equal, random_bytes};
use crate::harness::text;
use crate::tier::OnTier;
use dtc_compiler::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder};
use dtc_runtime::cuda::DeviceBuffer;
use dtc_tests::type_map::TypeMap;

/// A type, by the arguments of its constructors.
#[derive(Clone)]
pub enum Form {
    /// Rows of ints at a stride in bytes.
    Rows { count: i64, ints: i64, stride: i64 },
    /// Blocks of two ints at displacements in bytes.
    Blocks { displacements: Vec<i64> },
    /// An int, two doubles at byte 8 and a character at byte 24.
    Records { count: i64 },
}

/// Lengths and offsets of the members of a record.
pub const RECORD: ([i64; 3], [i64; 3]) = ([1, 2, 1], [0, 8, 24]);

impl Form {
    /// Forms of every family, with their names.
    pub fn all() -> Vec<(&'static str, Form)> {
        vec![
            ("rows", Form::Rows { count: 700, ints: 5, stride: 52 }),
            ("blocks", Form::Blocks { displacements: (0..900).map(|at| at * 20 + at * at % 3 * 4).collect() }),
            ("records", Form::Records { count: 1000 }),
        ]
    }

    /// The form as a datatype.
    pub fn datatype(&self) -> Result<Datatype, DatatypeError> {
        let mut types = TypeBuilder::new();
        let int = types.named(Predefined::INT);
        let root = match self {
            Form::Rows { count, ints, stride } => types.hvector(*count, *ints, *stride, int)?,
            Form::Blocks { displacements } => types.hindexed_block(2, displacements, int)?,
            Form::Records { count } => {
                let [double, character] = [Predefined::DOUBLE, Predefined::CHAR].map(|each| types.named(each));
                let record = types.structure(&RECORD.0, &RECORD.1, &[int, double, character])?;
                types.contiguous(*count, record)?
            }
        };
        types.finish(root)
    }
}

/// One element of a form in host memory and on the device, with its type map and packed bytes.
pub struct Data {
    /// Index in memory of each packed byte.
    pub map: Vec<usize>,
    pub host: Vec<u8>,
    pub packed: Vec<u8>,
    pub on_device: DeviceBuffer,
}

impl Data {
    pub fn new(on: &OnTier, form: &Form, seed: u64) -> Result<Data, String> {
        let datatype = form.datatype().map_err(text)?;
        let map: Vec<usize> = TypeMap::new(&datatype).bytes().into_iter().map(|byte| byte as usize).collect();
        let length = map.iter().max().map_or(0, |last| last + 1);
        let host = random_bytes(length, seed);
        let packed = map.iter().map(|&byte| host[byte]).collect();
        let mut on_device = DeviceBuffer::new(on.gpu.device(), length).map_err(text)?;
        on_device.write(0, &host).map_err(text)?;
        Ok(Data { map, host, packed, on_device })
    }

    pub fn source(&self) -> *const std::ffi::c_void {
        address(&self.on_device).cast_const()
    }

    /// The memory after an unpack of `packed` from byte `from` on into poison.
    pub fn unpacked(&self, from: usize, packed: &[u8]) -> Vec<u8> {
        let mut memory = vec![POISON; self.host.len()];
        self.map[from..].iter().zip(packed).for_each(|(&byte, &value)| memory[byte] = value);
        memory
    }

    /// The memory after packed ints were added from packed byte `from` on.
    pub fn summed(&self, from: usize, packed: &[u8]) -> Vec<u8> {
        let mut memory = self.host.clone();
        for (places, added) in self.map[from..].chunks_exact(4).zip(packed.chunks_exact(4)) {
            let mine = places.iter().map(|&byte| memory[byte]).collect::<Vec<u8>>();
            let sum = int(&mine).wrapping_add(int(added)).to_ne_bytes();
            places.iter().zip(sum).for_each(|(&byte, value)| memory[byte] = value);
        }
        memory
    }
}

/// The int that four bytes encode.
fn int(bytes: &[u8]) -> i32 {
    bytes.try_into().map_or(0, i32::from_ne_bytes)
}

/// The sums of ints, element by element.
pub fn sums(one: &[u8], other: &[u8]) -> Vec<u8> {
    let pairs = one.chunks_exact(4).zip(other.chunks_exact(4));
    pairs.flat_map(|(one, other)| int(one).wrapping_add(int(other)).to_ne_bytes()).collect()
}

/// Address of a buffer, as a C pointer.
pub fn address(buffer: &DeviceBuffer) -> *mut std::ffi::c_void {
    buffer.address() as *mut std::ffi::c_void
}

/// Compares all bytes of a buffer.
pub fn expect_bytes(what: &str, buffer: &DeviceBuffer, expected: &[u8]) -> Result<(), String> {
    expect_equal(what, &crate::buffers::read(buffer, 0, buffer.len())?, expected)
}

/// A buffer on the device with these bytes.
pub fn holding(on: &OnTier, bytes: &[u8]) -> Result<DeviceBuffer, String> {
    let mut buffer = DeviceBuffer::new(on.gpu.device(), bytes.len()).map_err(text)?;
    buffer.write(0, bytes).map_err(text)?;
    Ok(buffer)
}

/// Ranges of packed bytes: all, one from the begin of an int on, and, if `cut`, unaligned ones.
pub fn ranges(total: usize, cut: bool) -> Vec<(usize, usize)> {
    let mut ranges = vec![(0, total), (total / 3 / 4 * 4, total / 2 / 4 * 4), (total - 8, 8)];
    if cut {
        ranges.extend([(1, total - 2), (total / 2 + 1, 1), (7, 1001)]);
    }
    ranges
}
